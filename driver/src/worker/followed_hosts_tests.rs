//! Hosts of groups against a name server on a loopback socket. Tests move the clock of the lookups.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use server_base::errlog::Sink;
use server_upstream::balance::PickKey;
use server_upstream::peers::TriedPeers;
use server_upstream::route::UpstreamAddr;
use server_upstream::server::{Server, UnresolvedHost};
use server_upstream::shared::PeerSettings;
use sys::poll::Events;

use super::*;
use crate::io::resolver::tests::{NameServer, Query, Reply};
use crate::worker::names::is_token;

/// A main thread with one group of one host.
struct Main {
    poller: Poller,
    followed: FollowedHosts,
    log: ErrorLog,
}

/// A server for all names. It returns the address with this last byte, or an error: [`CODE`] and the code.
fn name_server(answer: &Arc<AtomicU8>) -> NameServer {
    let answer = Arc::clone(answer);
    NameServer::start(move |query: &Query| {
        let message = match answer.load(Ordering::Relaxed) {
            last if last < CODE => query.address(last),
            code => {
                let mut reply = query.reply();
                reply[3] |= code - CODE;
                reply
            }
        };
        Reply::Say(vec![message])
    })
}

impl Main {
    fn new(server: &NameServer) -> Self {
        let host = Server {
            name: Arc::from(*b"app.test"),
            unresolved: Some(UnresolvedHost::followed("app.test", 80, None)),
            ..Server::new()
        };
        let mut group = Followed {
            name: Box::from(&b"app"[..]),
            peers: Arc::new(SharedPeers::new(&PeerSettings {
                servers: &[host],
                ..PeerSettings::default()
            })),
            resolver: Some(Arc::new(NameServers {
                servers: vec![server.address],
                valid_ms: None,
                ipv4: true,
                ipv6: false,
                status: None,
            })),
            timeout_ms: TIMEOUT_MS,
            state: None,
            hosts: Vec::new(),
        };
        group.update(&[]);
        let mut followed = FollowedHosts::new();
        followed.groups.push(group);
        Self {
            poller: Poller::new().expect("a poller"),
            followed,
            log: ErrorLog::new(Vec::new()),
        }
    }

    /// Moves the clock.
    fn pass(&mut self, ms: u64) {
        let before = Duration::from_millis(ms);
        self.followed.began =
            (self.followed.began.checked_sub(before)).expect("the clock is late enough");
    }

    /// Runs the loop until the host was looked up, and returns the last bytes of the addresses.
    fn looked_up(&mut self) -> Vec<u8> {
        let mut events = Events::with_capacity(8);
        loop {
            self.followed.run_due(&self.poller, &self.log);
            if let State::Due(at_ms) = self.followed.groups[0].hosts[0].state
                && at_ms > self.followed.now_ms()
            {
                return self.addresses();
            }
            let wait_ms = self.followed.wait_ms(100);
            (self.poller.wait(&mut events, Some(wait_ms))).expect("wait");
            for ready in events.iter() {
                assert!(is_token(ready.token));
                self.followed.ready(ready, &self.poller, &self.log);
            }
        }
    }

    /// Last bytes of the addresses of the group.
    fn addresses(&self) -> Vec<u8> {
        let mut list = self.followed.groups[0].peers.lock();
        let mut tried = TriedPeers::default();
        let mut all = Vec::new();
        for _ in 0..list.tries() {
            let id = list
                .pick(&mut tried, &PickKey::default(), 1_000_000)
                .expect("all are usable");
            if let Some(UpstreamAddr::Inet(addr)) = list.get(id).map(|peer| peer.addr())
                && let std::net::IpAddr::V4(ip) = addr.ip()
            {
                all.push(ip.octets()[3]);
            }
            list.release(id);
        }
        all
    }
}

#[test]
fn a_host_is_looked_up_again_when_its_answer_has_expired() {
    let answer = Arc::new(AtomicU8::new(1));
    let server = name_server(&answer);
    let mut main = Main::new(&server);
    assert_eq!(main.looked_up(), [1]);
    answer.store(2, Ordering::Relaxed);
    assert_eq!(main.looked_up(), [1]);
    main.pass(TTL_MS - 5_000);
    assert_eq!(main.looked_up(), [1]);
    assert_eq!(server.received().len(), 1);
    main.pass(5_000);
    assert_eq!(main.looked_up(), [2]);
    assert_eq!(server.received().len(), 2);
}

#[test]
fn only_an_answer_without_addresses_removes_the_servers_of_a_host() {
    let answer = Arc::new(AtomicU8::new(1));
    let server = name_server(&answer);
    let mut main = Main::new(&server);
    assert_eq!(main.looked_up(), [1]);
    answer.store(CODE + SERVFAIL, Ordering::Relaxed);
    main.pass(TTL_MS);
    assert_eq!(main.looked_up(), [1]);
    // The next lookup is not before the timeout of a resolver.
    answer.store(CODE + NXDOMAIN, Ordering::Relaxed);
    main.pass(TIMEOUT_MS / 2);
    assert_eq!(main.looked_up(), [1]);
    main.pass(TIMEOUT_MS / 2);
    assert_eq!(main.looked_up(), [0; 0]);
    answer.store(3, Ordering::Relaxed);
    main.pass(60_000);
    assert_eq!(main.looked_up(), [3]);
}

#[test]
fn a_reload_continues_with_the_hosts_that_it_keeps() {
    let answer = Arc::new(AtomicU8::new(1));
    let server = name_server(&answer);
    let mut main = Main::new(&server);
    assert_eq!(main.looked_up(), [1]);
    let group = &mut main.followed.groups[0];
    let added = Server {
        unresolved: Some(UnresolvedHost::followed("other.test", 80, None)),
        ..Server::new()
    };
    group.peers.add(added).expect("there is room");
    let before = std::mem::take(&mut group.hosts);
    group.update(&before);
    let states: Vec<_> = group.hosts.iter().map(|host| host.state).collect();
    assert!(matches!(states[..], [State::Due(1..), State::Due(0)]));
}

#[test]
fn servers_added_at_run_time_are_stored_and_their_hosts_followed() {
    let server = name_server(&Arc::new(AtomicU8::new(1)));
    let mut main = Main::new(&server);
    assert_eq!(main.looked_up(), [1]);
    let path = std::env::temp_dir().join(format!("followed-hosts-{}", std::process::id()));
    let group = &mut main.followed.groups[0];
    group.state = Some(path.clone());
    let added = Server {
        name: Arc::from(*b"other.test"),
        unresolved: Some(UnresolvedHost::followed("other.test", 80, None)),
        ..Server::new()
    };
    let id = group.peers.add(added).expect("there is room");
    main.followed.run_due(&main.poller, &main.log);
    let stored = |path| std::fs::read_to_string(path).expect("it is there");
    assert_eq!(
        stored(&path),
        "server app.test resolve;\nserver other.test resolve;\n"
    );
    assert_eq!(main.followed.groups[0].hosts.len(), 2);
    assert!(main.followed.groups[0].peers.remove(id));
    main.followed.run_due(&main.poller, &main.log);
    assert_eq!(stored(&path), "server app.test resolve;\n");
    std::fs::remove_file(&path).expect("it is there");
}

/// Answers from this number on are errors.
const CODE: u8 = 200;
const SERVFAIL: u8 = 2;
const NXDOMAIN: u8 = 3;
/// Time to live of the server's answers.
const TTL_MS: u64 = 60_000;
const TIMEOUT_MS: u64 = 20_000;

#[test]
fn servers_that_could_not_be_stored_are_stored_at_the_next_change() {
    let server = name_server(&Arc::new(AtomicU8::new(1)));
    let mut main = Main::new(&server);
    let dir = std::env::temp_dir().join(format!("followed-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let (log_path, folder) = (dir.join("log"), dir.join("state"));
    let file = std::fs::File::create(&log_path).expect("a file");
    main.log = ErrorLog::new(vec![Sink::file(Arc::new(file), Level::Info)]);
    let path = folder.join("servers");
    main.followed.groups[0].state = Some(path.clone());
    let peers = Arc::clone(&main.followed.groups[0].peers);
    let mut add = |name: &str| {
        let added = peers.add(Server {
            name: Arc::from(name.as_bytes()),
            addresses: vec![UpstreamAddr::Unix(Arc::from(*b"/x"))],
            ..Server::new()
        });
        added.expect("the group has room");
        main.followed.take_changes(&main.log);
    };
    add("unix:/a");
    let log = || std::fs::read_to_string(&log_path).expect("it is there");
    let line = format!("servers could not be stored in \"{}\" (2: ", path.display());
    assert_eq!(log().matches(&line).count(), 1, "{}", log());
    assert_eq!(log().lines().count(), 1);
    std::fs::create_dir(&folder).expect("a directory");
    add("unix:/b");
    let stored = std::fs::read_to_string(&path).expect("it is there");
    assert_eq!(
        stored,
        "server app.test resolve;\nserver unix:/a;\nserver unix:/b;\n"
    );
    assert_eq!(log().lines().count(), 1);
    std::fs::remove_dir_all(&dir).expect("it is removed");
}
