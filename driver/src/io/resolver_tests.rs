//! A resolver against name servers of its own on loopback sockets.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engines::dns::{Answer, Failure};
use sys::poll::{Events, Waker};

use super::*;

/// Reaction of a server to a query.
pub(crate) enum Reply {
    /// Nothing.
    Silence,
    /// Sends these messages.
    Say(Vec<Vec<u8>>),
}

/// A query, as received by the server.
#[derive(Clone)]
pub(crate) struct Query {
    message: Vec<u8>,
    port: u16,
    tcp: bool,
}

impl Query {
    pub(crate) fn name(&self) -> String {
        let mut labels = Vec::new();
        let mut rest = &self.message[12..];
        while rest[0] != 0 {
            let (label, next) = rest[1..].split_at(usize::from(rest[0]));
            labels.push(String::from_utf8_lossy(label).into_owned());
            rest = next;
        }
        labels.join(".")
    }

    pub(crate) fn reply(&self) -> Vec<u8> {
        let mut message = self.message.clone();
        message[2] = 0x81;
        message[3] = 0x80;
        message
    }

    /// A response with one address.
    pub(crate) fn address(&self, last: u8) -> Vec<u8> {
        let mut message = self.reply();
        message[7] = 1;
        message.extend(b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04");
        message.extend([192, 0, 2, last]);
        message
    }

    fn truncated(&self) -> Vec<u8> {
        let mut message = self.reply();
        message[2] |= 2;
        message
    }
}

/// A name server in a thread of its own.
pub(crate) struct NameServer {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Vec<Query>>>,
    stop: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

const STOP: u64 = 0;
const DATAGRAM: u64 = 1;
const CONNECTION: u64 = 2;

impl NameServer {
    pub(crate) fn start(act: impl Fn(&Query) -> Reply + Send + Sync + 'static) -> Self {
        let act: Arc<dyn Fn(&Query) -> Reply + Send + Sync> = Arc::new(act);
        let (datagrams, connections) = sockets();
        let address = datagrams.local_addr().expect("an address");
        let received: Arc<Mutex<Vec<Query>>> = Arc::default();
        let stop = Arc::new(Waker::new().expect("a waker"));
        let poller = Poller::new().expect("a poller");
        for (added, token) in [
            (poller.add(&*stop, STOP, Interest::Readable), STOP),
            (
                poller.add(&datagrams, DATAGRAM, Interest::Readable),
                DATAGRAM,
            ),
            (
                poller.add(&connections, CONNECTION, Interest::Readable),
                CONNECTION,
            ),
        ] {
            added.unwrap_or_else(|error| panic!("{token}: {error}"));
        }
        let log = Arc::clone(&received);
        let serve = move || {
            let mut events = Events::with_capacity(4);
            loop {
                poller.wait(&mut events, None).expect("wait");
                for ready in events.iter() {
                    match ready.token {
                        DATAGRAM => answer_datagram(&datagrams, &*act, &log),
                        CONNECTION => {
                            let (stream, peer) = connections.accept().expect("accept");
                            let (act, log) = (Arc::clone(&act), Arc::clone(&log));
                            // It ends with its stream.
                            std::thread::spawn(move || {
                                answer_stream(stream, peer.port(), &*act, &log);
                            });
                        }
                        _ => return,
                    }
                }
            }
        };
        Self {
            address,
            received,
            stop,
            thread: Some(std::thread::spawn(serve)),
        }
    }

    pub(crate) fn received(&self) -> Vec<Query> {
        self.received.lock().expect("no panic before").clone()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop.wake();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the name server panicked");
        }
    }
}

/// A datagram socket and a listener on one port.
fn sockets() -> (UdpSocket, TcpListener) {
    for _ in 0..100 {
        let connections = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = connections.local_addr().expect("an address");
        if let Ok(datagrams) = UdpSocket::bind(address) {
            return (datagrams, connections);
        }
    }
    panic!("no port is free for both");
}

/// A datagram socket without a listener: its TCP port is bound and does not listen.
fn datagrams_alone() -> (UdpSocket, OwnedFd) {
    use rustix::net::{AddressFamily, SocketType, bind, socket};
    for _ in 0..100 {
        let datagrams = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let address = datagrams.local_addr().expect("an address");
        let bound = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        if bind(&bound, &address).is_ok() {
            return (datagrams, bound);
        }
    }
    panic!("no port is free for both");
}

fn answer_datagram(socket: &UdpSocket, act: &dyn Fn(&Query) -> Reply, log: &Mutex<Vec<Query>>) {
    let mut buffer = [0; 4096];
    let (length, peer) = socket.recv_from(&mut buffer).expect("receive");
    let received = Query {
        message: buffer[..length].to_vec(),
        port: peer.port(),
        tcp: false,
    };
    log.lock().expect("no panic before").push(received.clone());
    if let Reply::Say(messages) = act(&received) {
        for message in messages {
            // The resolver may have its answer and be gone before the second message.
            let _ = socket.send_to(&message, peer);
        }
    }
}

/// Answers in pieces until the other side closes.
fn answer_stream(
    mut stream: TcpStream,
    port: u16,
    act: &dyn Fn(&Query) -> Reply,
    log: &Mutex<Vec<Query>>,
) {
    stream.set_nodelay(true).expect("an option");
    let mut length = [0; 2];
    while stream.read_exact(&mut length).is_ok() {
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut message).expect("a whole query");
        let received = Query {
            message,
            port,
            tcp: true,
        };
        log.lock().expect("no panic before").push(received.clone());
        let Reply::Say(messages) = act(&received) else {
            return;
        };
        for message in messages {
            let length = (message.len() as u16).to_be_bytes();
            for piece in [&length[..1], &length[1..], &message[..5], &message[5..]] {
                stream.write_all(piece).expect("send");
            }
        }
    }
}

/// An event loop around a resolver; waiters are numbers.
struct Loop {
    poller: Poller,
    resolver: Resolver<u32>,
    started: Instant,
}

impl Loop {
    /// Only IPv4 addresses are requested. Unanswered queries are sent again after `resend_ms`.
    fn new(servers: &[SocketAddr], resend_ms: u64, log: ErrorLog) -> Self {
        let settings = Settings {
            servers: servers.len(),
            ipv6: false,
            resend_ms,
            ..Settings::default()
        };
        let resolver = Resolver::with_settings(servers, settings, 100, log);
        Self {
            poller: Poller::new().expect("a poller"),
            resolver: resolver.expect("random numbers"),
            started: Instant::now(),
        }
    }

    fn silent(servers: &[SocketAddr], resend_ms: u64) -> Self {
        Self::new(servers, resend_ms, ErrorLog::new(Vec::new()))
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64 + 1
    }

    fn ask(&mut self, name: &str, who: u32) -> Key {
        let (now_ms, subject) = (self.now_ms(), Subject::Addresses(name.as_bytes()));
        self.resolver
            .ask(&self.poller, now_ms, subject, 20_000, who)
    }

    /// Runs turns until there is an event.
    #[track_caller]
    fn next_event(&mut self) -> (u32, Event) {
        let mut events = Events::with_capacity(8);
        while self.started.elapsed() < Duration::from_secs(30) {
            if let Some(event) = self.resolver.event() {
                return event;
            }
            let now_ms = self.now_ms();
            let due = self.resolver.deadline().map(|at| at.saturating_sub(now_ms));
            let wait = due.unwrap_or(1_000).min(1_000);
            self.poller.wait(&mut events, Some(wait)).expect("wait");
            let now_ms = self.now_ms();
            for ready in events.iter() {
                self.resolver.ready(&self.poller, now_ms, ready);
            }
            if self.resolver.deadline().is_some_and(|at| at <= now_ms) {
                self.resolver.expire(&self.poller, now_ms);
            }
        }
        panic!("no event");
    }

    #[track_caller]
    fn address(&mut self) -> (u32, String) {
        match self.next_event() {
            (
                who,
                Event::Resolved {
                    answer: Answer::Addresses(list),
                    ..
                },
            ) => (who, list[0].to_string()),
            other => panic!("{other:?}"),
        }
    }
}

fn answers(last: u8) -> impl Fn(&Query) -> Reply + Send + Sync + 'static {
    move |received| Reply::Say(vec![received.address(last)])
}

/// A port that rejects datagrams while the socket lives: the socket is connected to another address.
fn closed() -> (SocketAddr, UdpSocket) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let address = socket.local_addr().expect("an address");
    socket.connect(address).expect("connect");
    (address, socket)
}

#[test]
fn a_name_is_resolved_once_and_the_socket_closed() {
    let server = NameServer::start(answers(1));
    let mut l = Loop::silent(&[server.address], 60_000);
    l.ask("a.test", 7);
    l.ask("a.test", 8);
    assert!(!l.resolver.is_idle());
    assert_eq!(l.address(), (7, "192.0.2.1".to_owned()));
    assert_eq!(l.address(), (8, "192.0.2.1".to_owned()));
    assert!(l.resolver.is_idle());
    l.ask("A.test.", 9);
    assert_eq!(l.address(), (9, "192.0.2.1".to_owned()));
    let received: Vec<_> = server.received().iter().map(Query::name).collect();
    assert_eq!(received, ["a.test"]);
}

#[test]
fn bursts_of_questions_leave_from_other_ports_with_other_numbers() {
    let server = NameServer::start(answers(1));
    let mut l = Loop::silent(&[server.address], 60_000);
    for n in 0..6 {
        l.ask(&format!("{n}.test"), n);
        l.next_event();
    }
    let received = server.received();
    let distinct = |mut list: Vec<u16>| {
        list.sort_unstable();
        list.dedup();
        list.len()
    };
    // Equal ports by chance are less likely than a hardware fault.
    assert!(distinct(received.iter().map(|received| received.port).collect()) > 1);
    let id = |received: &Query| u16::from_be_bytes([received.message[0], received.message[1]]);
    assert!(distinct(received.iter().map(id).collect()) > 1);
}

#[test]
fn a_truncated_answer_is_queried_over_a_stream() {
    let server = NameServer::start(|received| {
        Reply::Say(vec![if received.tcp {
            received.address(2)
        } else {
            received.truncated()
        }])
    });
    let mut l = Loop::silent(&[server.address], 60_000);
    for name in ["a.test", "b.test"] {
        l.ask(name, 1);
    }
    assert_eq!(l.address().1, "192.0.2.2");
    assert_eq!(l.address().1, "192.0.2.2");
    assert!(l.resolver.is_idle());
    let received = server.received();
    let ports: Vec<u16> = received.iter().filter(|h| h.tcp).map(|h| h.port).collect();
    assert_eq!(ports.len(), 2);
    assert_eq!(ports[0], ports[1], "one stream for both");
}

#[test]
fn a_server_that_is_not_there_is_passed_over_at_once() {
    let server = NameServer::start(answers(3));
    // The timeout of a query is longer than the test may take.
    let (nobody, _kept) = closed();
    let mut l = Loop::silent(&[nobody, server.address], 60_000);
    l.ask("a.test", 1);
    assert_eq!(l.address().1, "192.0.2.3");
}

#[test]
fn a_refused_stream_leads_to_the_next_server_at_once() {
    let (datagrams_alone, _bound) = datagrams_alone();
    let address = datagrams_alone.local_addr().expect("an address");
    let first = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        let (length, peer) = datagrams_alone.recv_from(&mut buffer).expect("receive");
        let received = Query {
            message: buffer[..length].to_vec(),
            port: peer.port(),
            tcp: false,
        };
        datagrams_alone
            .send_to(&received.truncated(), peer)
            .expect("send");
    });
    let server = NameServer::start(answers(4));
    let mut l = Loop::silent(&[address, server.address], 60_000);
    l.ask("a.test", 1);
    assert_eq!(l.address().1, "192.0.2.4");
    assert!(server.received()[0].tcp);
    first.join().expect("it has answered");
}

#[test]
fn a_stream_that_ends_without_an_answer_is_passed_over_at_once() {
    let first = NameServer::start(|received| {
        if received.tcp {
            Reply::Silence
        } else {
            Reply::Say(vec![received.truncated()])
        }
    });
    let second = NameServer::start(answers(5));
    let mut l = Loop::silent(&[first.address, second.address], 60_000);
    l.ask("a.test", 1);
    assert_eq!(l.address().1, "192.0.2.5");
}

#[test]
fn a_silent_server_is_passed_over_in_time() {
    let first = NameServer::start(|_| Reply::Silence);
    let second = NameServer::start(answers(6));
    let mut l = Loop::silent(&[first.address, second.address], 20);
    l.ask("a.test", 1);
    assert_eq!(l.address().1, "192.0.2.6");
    assert!(!first.received().is_empty());
}

#[test]
fn an_asker_waits_no_longer_than_it_said() {
    let server = NameServer::start(|_| Reply::Silence);
    let mut l = Loop::silent(&[server.address], 60_000);
    let (now_ms, subject) = (l.now_ms(), Subject::Addresses(b"a.test"));
    l.resolver.ask(&l.poller, now_ms, subject, 20, 1);
    let (who, event) = l.next_event();
    assert!(matches!(
        (who, event),
        (
            1,
            Event::Failed {
                why: Failure::TimedOut,
                ..
            }
        )
    ));
}

#[test]
fn a_cancelled_query_wakes_no_waiter() {
    let server = NameServer::start(answers(7));
    let mut l = Loop::silent(&[server.address], 60_000);
    let key = l.ask("a.test", 1);
    assert_eq!(l.resolver.cancel(key), Some(1));
    assert_eq!(l.resolver.cancel(key), None);
    l.ask("b.test", 2);
    assert_eq!(l.next_event().0, 2);
}

#[test]
fn wrong_answers_are_logged_and_the_right_one_is_used() {
    let server = NameServer::start(|received| {
        let mut forged = received.address(66);
        forged[0] ^= 1;
        Reply::Say(vec![
            forged,
            received.message[..5].to_vec(),
            received.address(8),
        ])
    });
    let path = std::env::temp_dir().join(format!("firstbyte-resolver-{}.log", std::process::id()));
    let file = File::create(&path).expect("a file");
    let log = ErrorLog::new(vec![server_base::errlog::Sink::file(
        Arc::new(file),
        Level::Error,
    )]);
    let (nobody, _kept) = closed();
    let mut l = Loop::new(&[nobody, server.address], 60_000, log);
    l.ask("a.test", 1);
    assert_eq!(l.address().1, "192.0.2.8");
    let text = std::fs::read_to_string(&path).expect("a log");
    std::fs::remove_file(&path).expect("it is there");
    for line in [
        "recv() failed (111: Connection refused) while resolving, resolver: 127.0.0.1:",
        "wrong ident",
        "short DNS response while resolving",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn settings_come_from_the_directive() {
    let address = SocketAddr::from(([127, 0, 0, 1], 53));
    let servers = NameServers {
        servers: vec![address, address],
        valid_ms: Some(1),
        ipv4: true,
        ipv6: true,
        status: None,
    };
    let log = ErrorLog::new(Vec::new());
    let resolver: Resolver<()> = Resolver::new(&servers, 8, log).expect("random numbers");
    assert_eq!(resolver.tokens(), 8..12);
    assert!(resolver.is_idle() && resolver.deadline().is_none());
}
