//! Connections to servers: bytes sent and received in one turn, the choice of a connection, and closes.
//!
//! The handler of `/passed/CONNECTIONS/WINDOW` passes a request on over a pool of CONNECTIONS (0: without one). It
//! reads WINDOW bytes at a time, and reports the complete response.

use std::cell::RefCell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use engines::http::Fields;
use server_http::exchange::{Ctx, Exchange, Peer, State, Wait};
use server_upstream::protocol::HTTP1;
use server_upstream::request::{RequestSpec, UpstreamEvent, UpstreamRequest};
use server_upstream::route::{Pool, Route, SocketOptions, Timeouts, UpstreamAddr};
use sim::{Command, Faults, Hands, Random, Servers, Wire};

use super::site::{TestConnection, body, generation, get};

/// An attempt and the received body.
struct ProxiedRequest {
    request: UpstreamRequest,
    received: Vec<u8>,
}

/// Passes the request on. Returns its result once it is known.
pub(crate) fn pass(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    connections: u64,
    window: u64,
) -> Option<String> {
    let mut proxied = match x.extensions.take::<ProxiedRequest>() {
        Some(proxied) => proxied,
        None => {
            let waker = x.waker(cx);
            let request = cx.connector.call(route(connections), spec(), waker);
            request.set_window(window);
            ProxiedRequest {
                request,
                received: Vec::new(),
            }
        }
    };
    while let Some(event) = proxied.request.next() {
        match event {
            UpstreamEvent::Data(chunk) => {
                assert!(chunk.len() <= window);
                proxied.received.extend_from_slice(chunk.bytes());
            }
            UpstreamEvent::End => return String::from_utf8(proxied.received).ok(),
            UpstreamEvent::Failed(error) => return Some(format!("{:?}", error.failure)),
            _ => {}
        }
    }
    x.extensions.push(proxied);
    x.progress.state = State::Waiting(Wait::woken());
    None
}

pub(crate) fn route(connections: u64) -> Route {
    Route {
        addr: UpstreamAddr::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 81))),
        protocol: &HTTP1,
        head_bytes: 4096,
        group: 0,
        tls: None,
        pool: (connections > 0).then_some(Pool {
            id: 1,
            group: 1,
            connections: connections as usize,
            requests: 1000,
            time_ms: 3_600_000,
            timeout_ms: 60_000,
            counted: 0,
        }),
        options: SocketOptions::default(),
        timeouts: Timeouts {
            connect_ms: 1000,
            send_ms: 2000,
            read_ms: 3000,
        },
    }
}

pub(crate) fn spec() -> RequestSpec {
    let mut fields = Fields::default();
    fields.push(b":method", b"GET");
    fields.push(b":path", b"/");
    fields.push(b"Host", b"b");
    RequestSpec {
        fields,
        ..RequestSpec::default()
    }
}

pub(crate) const REQUEST: &str = "GET / HTTP/1.1\r\nHost: b\r\n\r\n";

/// The wires of all connections to servers so far.
#[derive(Clone, Default)]
pub(crate) struct UpstreamServers {
    wires: Rc<RefCell<Vec<Rc<RefCell<Wire>>>>>,
    hands: Rc<Hands>,
}

impl Servers for UpstreamServers {
    fn connect(&mut self, _: &UpstreamAddr) -> io::Result<Rc<RefCell<Wire>>> {
        let (hands, dice) = (Rc::clone(&self.hands), Random::new(5));
        let wire = Wire::new(hands, dice, Faults::default(), 1 << 20);
        let wire = Rc::new(RefCell::new(wire));
        self.wires.borrow_mut().push(Rc::clone(&wire));
        Ok(wire)
    }
}

impl UpstreamServers {
    pub(crate) fn count(&self) -> usize {
        self.wires.borrow().len()
    }

    pub(crate) fn with<T>(&self, at: usize, act: impl FnOnce(&mut Wire) -> T) -> T {
        act(&mut self.wires.borrow()[at].borrow_mut())
    }

    pub(crate) fn push(&self, at: usize, bytes: impl AsRef<[u8]>) {
        self.with(at, |wire| wire.push(bytes.as_ref()));
    }

    /// Returns the number of requests received by a server.
    fn requests(&self, at: usize) -> usize {
        self.with(at, |wire| {
            let text = String::from_utf8_lossy(wire.sent()).into_owned();
            assert_eq!(text.replace(REQUEST, ""), "");
            text.len() / REQUEST.len()
        })
    }

    /// Returns the open connections.
    pub(crate) fn open(&self) -> Vec<usize> {
        let is_open = |at: &usize| self.with(*at, |wire| !wire.closed);
        (0..self.count()).filter(is_open).collect()
    }
}

pub(crate) fn ok(text: &str) -> String {
    let length = text.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{text}")
}

/// Makes a client and its servers.
pub(crate) fn talk() -> (TestConnection, UpstreamServers) {
    let mut talk = TestConnection::new("");
    let behind = UpstreamServers {
        wires: Rc::default(),
        hands: Rc::clone(&talk.world.hands),
    };
    talk.world.shared.net.servers = Some(Box::new(behind.clone()));
    (talk, behind)
}

/// Makes a connection like [`talk`], with an idle connection to a server.
fn idle() -> (TestConnection, UpstreamServers) {
    let (mut talk, behind) = talk();
    assert_eq!(talk.send(get("/passed/2/9999")), "");
    behind.push(0, ok("first"));
    assert_eq!(body(&talk.turn()), "first");
    (talk, behind)
}

/// Accepts another client; returns its index in the world.
pub(crate) fn accept(talk: &mut TestConnection) -> usize {
    let (hands, dice) = (Rc::clone(&talk.world.hands), Random::new(3));
    let wire = Wire::new(hands, dice, Faults::default(), 1 << 20);
    let peer = Peer::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 40_001)));
    talk.world.accept(wire, 0, peer)
}

#[test]
fn a_request_and_its_response_leave_in_the_turn_in_which_they_come() {
    let (mut talk, behind) = idle();
    talk.push(get("/passed/2/9999"));
    talk.world.poll(1000);
    assert_eq!((behind.count(), behind.requests(0)), (1, 2));
    behind.push(0, ok("second"));
    talk.world.poll(1000);
    let received = talk.received();
    assert_eq!(body(&String::from_utf8_lossy(&received)), "second");
}

#[test]
fn a_connection_that_ends_in_the_turn_of_a_request_is_not_used() {
    for surplus in [false, true] {
        let (mut talk, behind) = idle();
        talk.push(get("/passed/2/9999"));
        match surplus {
            true => behind.push(0, "HTTP/1.1 408 Request Timeout\r\n\r\n"),
            false => behind.with(0, Wire::end),
        }
        talk.turn();
        assert_eq!((behind.count(), behind.requests(0)), (2, 1));
        assert_eq!((behind.open(), behind.requests(1)), (vec![1], 1));
    }
}

#[test]
fn the_one_used_last_is_used_first_and_no_more_are_kept_than_may_be() {
    let (mut talk, behind) = talk();
    let others = [accept(&mut talk), accept(&mut talk)];
    talk.send(get("/passed/2/9999"));
    for other in others {
        let wire = Rc::clone(&talk.world.links[other].wire);
        wire.borrow_mut().push(get("/passed/2/9999").as_bytes());
        talk.turn();
    }
    assert_eq!(behind.open(), [0, 1, 2]);
    for at in 0..3 {
        behind.push(at, ok("x"));
        talk.pass(10);
    }
    assert_eq!(behind.open(), [1, 2], "the first has been idle for longest");
    talk.send(get("/passed/2/9999"));
    assert_eq!((behind.requests(2), behind.requests(1)), (2, 1));
}

#[test]
fn an_idle_connection_is_closed_in_time_and_over_a_reload_it_stays() {
    let (mut talk, behind) = idle();
    let old = Rc::downgrade(&talk.world.shared.generation.http);
    talk.pass(59_000);
    let (next, _) = generation("listen 127.0.0.1:8000;", 2);
    talk.world.command(Command::Configure {
        generation: next,
        keep: false,
        timeout_ms: None,
    });
    talk.turn();
    talk.pass(900);
    assert!(talk.is_closed());
    assert_eq!(behind.open(), [0]);
    assert!(old.upgrade().is_none(), "it holds no configuration");
    let other = accept(&mut talk);
    let wire = Rc::clone(&talk.world.links[other].wire);
    wire.borrow_mut().push(get("/passed/2/9999").as_bytes());
    talk.turn();
    assert_eq!((behind.count(), behind.requests(0)), (1, 2));
    behind.push(0, ok("x"));
    talk.turn();
    talk.pass(59_999);
    assert_eq!(behind.open(), [0]);
    talk.pass(1);
    assert_eq!(behind.open(), NONE);
}

#[test]
fn a_worker_that_ends_closes_idle_connections_and_finishes_others() {
    let (mut talk, behind) = idle();
    let other = accept(&mut talk);
    let wire = Rc::clone(&talk.world.links[other].wire);
    wire.borrow_mut().push(get("/passed/2/9999").as_bytes());
    talk.send(get("/passed/2/9999"));
    assert_eq!(behind.open(), [0, 1]);
    behind.push(0, ok("x"));
    talk.turn();
    talk.world.command(Command::Quit);
    talk.turn();
    assert_eq!(behind.open(), [1]);
    behind.push(1, ok("last"));
    talk.turn();
    assert_eq!(behind.open(), NONE, "none is kept any more");
    let sent = wire.borrow().sent().to_vec();
    assert!(sent.ends_with(b"last") || talk.received().ends_with(b"last"));
}

#[test]
fn no_more_is_read_than_the_window_and_a_turn_of_the_loop_has_a_limit() {
    let (mut talk, behind) = talk();
    talk.send(get("/passed/1/10"));
    let text = "0123456789".repeat(100);
    behind.push(0, ok(&text));
    talk.world.poll(1000);
    let taken = behind.with(0, |wire| wire.taken());
    assert!((40..400).contains(&taken), "{taken}");
    assert_eq!(body(&talk.turn()), text);
}

#[test]
fn an_exchange_without_room_stops_the_server_for_as_long_as_it_likes() {
    let (mut talk, behind) = talk();
    talk.send(get("/passed/1/0"));
    behind.push(0, ok("x"));
    assert_eq!(talk.pass(1_000_000), "");
    assert_eq!(behind.with(0, |wire| wire.taken()), 0);
    assert_eq!(behind.open(), [0], "the time for reading does not count");
}

#[test]
fn a_client_that_leaves_takes_its_connection_along() {
    let (mut talk, behind) = talk();
    talk.send(get("/passed/1/9999"));
    assert_eq!(behind.open(), [0]);
    talk.end();
    talk.turn();
    assert_eq!(behind.open(), NONE);
}

#[test]
fn an_unwanted_rest_is_awaited_if_it_is_short() {
    for (length, kept) in [(65_536, true), (65_537, false)] {
        let (mut talk, behind) = talk();
        talk.send(get("/passed/1/9999"));
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        behind.push(0, head);
        talk.turn();
        talk.end();
        assert_eq!(behind.open() == [0], kept);
        talk.pass(999);
        assert_eq!(behind.open() == [0], kept);
        talk.pass(1);
        assert_eq!(behind.open(), NONE);
    }
}

#[test]
fn times_end_connections_that_do_nothing() {
    let (mut talk, behind) = talk();
    talk.send(get("/passed/1/9999"));
    assert_eq!(talk.pass(2999), "");
    behind.push(0, "HTTP/1.1 200 OK\r\n");
    assert_eq!(talk.turn(), "");
    assert_eq!(talk.pass(2999), "");
    assert_eq!(body(&talk.pass(1)), "TimedOut");
    assert_eq!(behind.open(), NONE);
}

#[test]
fn connections_without_a_pool_are_closed_and_refusals_told() {
    let (mut talk, behind) = talk();
    talk.send(get("/passed/0/9999"));
    behind.push(0, ok("x"));
    assert_eq!(body(&talk.turn()), "x");
    assert_eq!(behind.open(), NONE);
    talk.world.shared.net.servers = None;
    let received = talk.send(get("/passed/0/9999"));
    assert!(
        body(&received).starts_with("Socket { call: \"connect()\""),
        "{received}"
    );
}

/// No connection.
pub(crate) const NONE: [usize; 0] = [];
