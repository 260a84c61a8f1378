//! Errands against peers of their own on loopback sockets.

use super::*;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::time::Duration;

use server_core::errand::{Conversation, Destination, Progress};
use server_core::errlog::Sink;

use crate::sys::poll::Events;

/// Asks "ask" and wants "yes!"; what came is written down.
struct Asks {
    to: Destination,
    ends: Mutex<Vec<bool>>,
}

impl Asks {
    fn destination_of(host: &str, addresses: Vec<SocketAddr>) -> Destination {
        Destination {
            host: host.to_owned(),
            port: addresses.first().map_or(0, SocketAddr::port),
            addresses,
            servers: None,
            resolver_timeout_ms: 30_000,
            timeout_ms: 30_000,
            peer: "peer",
            action: "asking".to_owned(),
            purpose: ", for a test".to_owned(),
        }
    }

    fn of(to: Destination) -> Arc<Self> {
        Arc::new(Self {
            to,
            ends: Mutex::default(),
        })
    }

    fn ends(&self) -> Vec<bool> {
        self.ends.lock().expect("no panic before").clone()
    }
}

impl Errand for Asks {
    fn destination(&self) -> &Destination {
        &self.to
    }

    fn begins_in_ms(&self, _: i64) -> u64 {
        0
    }

    fn begin(self: Arc<Self>) -> Box<dyn Conversation> {
        Box::new(Talks(Vec::new()))
    }

    fn ended(&self, well: bool, _: i64) -> u64 {
        self.ends.lock().expect("no panic before").push(well);
        3_600_000
    }
}

struct Talks(Vec<u8>);

impl Conversation for Talks {
    fn request(&self) -> &[u8] {
        b"ask"
    }

    fn receive(&mut self, bytes: &[u8], _: i64) -> Progress {
        self.0.extend_from_slice(bytes);
        match self.0.as_slice() {
            b"yes!" => Progress::Ended(Ok(())),
            text if b"yes!".starts_with(text) => Progress::More,
            b"no" => Progress::Ended(Err("the peer says no".to_owned())),
            text if b"no".starts_with(text) => Progress::More,
            _ => Progress::Elsewhere("the peer says nothing that is known".to_owned()),
        }
    }

    fn end(&mut self, _: i64) -> Progress {
        Progress::More
    }
}

/// A peer that answers each question so; it gets the stream after "ask" has come.
fn peer(act: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accept");
            let mut question = [0; 3];
            stream.read_exact(&mut question).expect("a question");
            assert_eq!(&question, b"ask");
            act(stream);
        }
    });
    address
}

fn says(text: &'static [u8]) -> SocketAddr {
    peer(move |mut stream| {
        for byte in text {
            stream.set_nodelay(true).expect("an option");
            stream.write_all(&[*byte]).expect("send");
        }
    })
}

/// A port where nobody listens as long as the socket lives.
fn nobody() -> (SocketAddr, std::os::fd::OwnedFd) {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
    let bound = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    bind(&bound, &any).expect("bind");
    let name = getsockname(&bound).expect("a name");
    (name.try_into().expect("an address"), bound)
}

/// Runs errands until each has ended so often; gives what was logged.
#[track_caller]
fn run(all: &[Arc<Asks>]) -> String {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let n = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("firstbyte-errands-{}-{n}.log", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = File::create(&path).expect("a file");
    let log = ErrorLog::new(vec![Sink::file(Arc::new(file), Level::Info)]);
    let poller = Poller::new().expect("a poller");
    let errands: Vec<_> = all
        .iter()
        .map(|e| Arc::clone(e) as Arc<dyn Errand>)
        .collect();
    let mut errands = Errands::new(&errands, 10);
    let mut events = Events::with_capacity(8);
    let began = Instant::now();
    errands.run_due(&poller, &log);
    while all.iter().any(|errand| errand.ends().is_empty()) {
        assert!(began.elapsed() < Duration::from_secs(30), "it never ends");
        let wait_ms = errands.wait_ms(10_000);
        poller.wait(&mut events, Some(wait_ms)).expect("wait");
        errands.run_due(&poller, &log);
        for n in 0..events.len() {
            errands.ready(events.at(n), &poller, &log);
        }
    }
    assert_eq!(errands.under_way(), 0);
    assert!(errands.wait_ms(u64::MAX) > 3_000_000, "the pause begins");
    let text = std::fs::read_to_string(&path).expect("a log");
    std::fs::remove_file(&path).expect("it is there");
    text
}

#[test]
fn an_answer_in_pieces_ends_an_errand_well() {
    let errand = Asks::of(Asks::destination_of("127.0.0.1", vec![says(b"yes!")]));
    let log = run(&[Arc::clone(&errand)]);
    assert_eq!((errand.ends(), log.as_str()), (vec![true], ""));
}

#[test]
fn an_answer_of_no_use_ends_it_and_is_logged() {
    let to = says(b"no");
    let errand = Asks::of(Asks::destination_of("127.0.0.1", vec![to, says(b"yes!")]));
    let log = run(&[Arc::clone(&errand)]);
    assert_eq!(errand.ends(), [false]);
    let line = format!("the peer says no while asking, peer: {to}, for a test\n");
    assert!(log.contains("[error]") && log.ends_with(&line), "{log}");
}

#[test]
fn the_next_address_is_tried_where_one_cannot_be_talked_to() {
    let (closed, _kept) = nobody();
    let short = peer(drop);
    let addresses = vec![closed, says(b"what?"), short, says(b"yes!")];
    let errand = Asks::of(Asks::destination_of("127.0.0.1", addresses));
    let log = run(&[Arc::clone(&errand)]);
    assert_eq!(errand.ends(), [true]);
    for line in [
        format!("connect() failed (111: Connection refused) while asking, peer: {closed}"),
        "the peer says nothing that is known while asking".to_owned(),
        format!("the connection was ended while asking, peer: {short}"),
    ] {
        assert!(log.contains(&line), "{line}: {log}");
    }
}

#[test]
fn a_silent_peer_is_given_up_in_time() {
    let silent = peer(|mut stream| {
        // Until the other side gives up.
        let _ = stream.read(&mut [0]);
    });
    let errand = Asks::of(Destination {
        timeout_ms: 30,
        ..Asks::destination_of("127.0.0.1", vec![silent, silent])
    });
    let log = run(&[Arc::clone(&errand)]);
    assert_eq!(errand.ends(), [false]);
    let line = format!(
        "peer timed out (110: Connection timed out) while asking, peer: {silent}, for a test"
    );
    assert_eq!(log.matches(&line).count(), 2, "{log}");
}

#[test]
fn many_errands_take_turns() {
    let to = says(b"yes!");
    let errand = |_| Asks::of(Asks::destination_of("127.0.0.1", vec![to]));
    let all: Vec<_> = (0..UNDER_WAY_MAX * 2 + 1).map(errand).collect();
    run(&all);
    assert!(all.iter().all(|errand| errand.ends() == [true]));
}

#[test]
fn an_address_from_the_configuration_is_used_with_a_warning() {
    let errand = Asks::of(Asks::destination_of("peer.test", vec![says(b"yes!")]));
    let log = run(&[Arc::clone(&errand)]);
    assert_eq!(errand.ends(), [true]);
    assert!(log.contains("[warn]"), "{log}");
    assert!(log.contains("no resolver defined to resolve peer.test while asking"));
}

/// A name server that answers with 127.0.0.1, or with a code.
fn name_server(code: u8) -> Arc<NameServers> {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let address = socket.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut query = [0; 512];
        loop {
            let (length, asker) = socket.recv_from(&mut query).expect("a query");
            let mut reply = query[..length].to_vec();
            (reply[2], reply[3]) = (0x81, 0x80 | code);
            if code == 0 {
                reply[7] = 1;
                reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
            }
            socket.send_to(&reply, asker).expect("send");
        }
    });
    Arc::new(NameServers {
        servers: vec![address],
        valid_ms: None,
        ipv4: true,
        ipv6: false,
    })
}

#[test]
fn names_are_resolved_each_time() {
    let to = says(b"yes!");
    let errand = Asks::of(Destination {
        port: to.port(),
        servers: Some(name_server(0)),
        ..Asks::destination_of("peer.test", Vec::new())
    });
    let log = run(&[Arc::clone(&errand)]);
    assert_eq!((errand.ends(), log.as_str()), (vec![true], ""));
}

#[test]
fn a_name_that_is_not_known_ends_an_errand() {
    let servers = name_server(3);
    let errand = || {
        Asks::of(Destination {
            servers: Some(Arc::clone(&servers)),
            ..Asks::destination_of("peer.test", Vec::new())
        })
    };
    let all = [errand(), errand()];
    let log = run(&all);
    assert!(all.iter().all(|errand| errand.ends() == [false]));
    let line = "peer.test could not be resolved (3: Host not found) while asking, for a test";
    assert_eq!(log.matches(line).count(), 2, "{log}");
}
