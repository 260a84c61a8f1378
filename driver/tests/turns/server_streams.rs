//! Connections to servers over HTTP/2 and TLS: several exchanges on one connection, each with its own end.
//!
//! The handler is that of `servers`. The simulation sets HTTP/2, or TLS, for its routes.

use std::rc::Rc;
use std::sync::Arc;

use engines::h2::{self, INTERNAL_ERROR};
use engines::http::{BodyLength, Chunk, OutputQueue, ResponseHead};
use engines::mux::{Event, SendAction, SendOptions};
use server_upstream::protocol::HTTP2;
use server_upstream::route::ServerTls;

use sim::Wire;

use super::secure::{Pair, Secure};
use super::servers::{NONE, REQUEST, UpstreamServers, accept, ok, talk};
use super::site::{TestConnection, body, get};

/// An HTTP/2 server on one connection.
pub(crate) struct Server {
    at: usize,
    engine: h2::Conn,
    secure: Option<Secure>,
    read: usize,
    /// Streams with a request, in order.
    asked: Vec<u32>,
    bodies: Vec<(u32, Vec<u8>)>,
}

impl Server {
    pub(crate) fn new(at: usize, secure: Option<Secure>) -> Self {
        let settings = h2::Settings {
            max_concurrent_streams: 32,
            ..h2::Settings::default()
        };
        Self {
            at,
            engine: h2::Conn::new(Rc::new(settings)),
            secure,
            read: 0,
            asked: Vec::new(),
            bodies: Vec::new(),
        }
    }

    /// Reads received bytes and answers.
    pub(crate) fn act(&mut self, behind: &UpstreamServers) {
        let (sent, fetched) = behind.with(self.at, |wire| {
            wire.fetch(usize::MAX);
            (wire.sent().to_vec(), wire.fetched())
        });
        let came = match &mut self.secure {
            Some(secure) => {
                let out = secure.receive(&sent[..fetched]).expect("it is TLS");
                behind.push(self.at, out);
                secure.came.clone()
            }
            None => sent,
        };
        self.engine.receive(&came[self.read..]);
        self.read = came.len();
        while let Some(event) = self.engine.event() {
            match event {
                Event::Head { stream, head } => {
                    assert_eq!(head.bytes(head.target), b"/");
                    self.asked.push(stream);
                }
                Event::Failed(error) => panic!("{error}"),
                _ => {}
            }
        }
        loop {
            match self.engine.advance(u64::MAX, 1) {
                SendAction::Body(id) => {
                    let of = self.bodies.iter().position(|(of, _)| *of == id);
                    match of.map(|at| self.bodies.remove(at)) {
                        Some((_, body)) => self.engine.send_data(id, Chunk::Owned(body)),
                        None => self.engine.send_end(id, None),
                    }
                }
                SendAction::Sent { .. } => {}
                SendAction::Nothing => break,
            }
        }
        let (mut queue, mut out) = (OutputQueue::default(), Vec::new());
        self.engine.transmit(&mut queue);
        queue.drain_bytes(&mut out);
        match &mut self.secure {
            Some(secure) => behind.push(self.at, secure.seal(&out)),
            None => behind.push(self.at, out),
        }
    }

    fn answer(&mut self, behind: &UpstreamServers, id: u32, text: &str) {
        let head = ResponseHead {
            status: 200,
            body: BodyLength::Unknown,
            ..ResponseHead::default()
        };
        let options = SendOptions {
            trailers: false,
            chunk_bytes: 1 << 14,
        };
        self.engine.send_head(id, &head, options);
        self.bodies.push((id, text.as_bytes().to_vec()));
        self.act(behind);
    }
}

/// A client, HTTP/2 servers, and the indices of further clients.
pub(crate) fn streams(
    clients: usize,
    tls: Option<Arc<ServerTls>>,
) -> (TestConnection, UpstreamServers, Vec<usize>) {
    let (mut talk, behind) = talk();
    talk.world.adjust = Some(Box::new(move |route| {
        route.protocol = &HTTP2;
        route.tls.clone_from(&tls);
    }));
    let others = (0..clients).map(|_| accept(&mut talk)).collect();
    (talk, behind, others)
}

fn ask(talk: &mut TestConnection, others: &[usize]) {
    for other in others {
        let wire = Rc::clone(&talk.world.links[*other].wire);
        wire.borrow_mut().push(get("/passed/2/9999").as_bytes());
    }
    talk.turn();
}

fn got(talk: &TestConnection, other: usize) -> String {
    let wire = talk.world.links[other].wire.borrow();
    String::from_utf8_lossy(wire.sent()).into_owned()
}

#[test]
fn requests_share_a_connection_and_are_answered_in_any_order() {
    let (mut talk, behind, others) = streams(32, None);
    ask(&mut talk, &others);
    assert_eq!(behind.count(), 1);
    let mut server = Server::new(0, None);
    server.act(&behind);
    assert_eq!(server.asked.len(), 32);
    for id in server.asked.clone().into_iter().rev() {
        server.answer(&behind, id, &format!("stream {id}"));
        talk.turn();
    }
    let last = |other: &usize| {
        let text = got(&talk, *other);
        let (_, id) = text.rsplit_once("stream ").unwrap_or_default();
        id.parse::<u32>().ok()
    };
    let mut told: Vec<_> = others.iter().map(last).collect();
    told.sort_unstable();
    let all: Vec<_> = server.asked.iter().map(|id| Some(*id)).collect();
    assert_eq!(told, all, "each to one client");
    assert_eq!(behind.open(), [0], "it is idle");
    ask(&mut talk, &others[..1]);
    server.act(&behind);
    assert_eq!((behind.count(), server.asked.len()), (1, 33));
}

#[test]
fn a_stream_that_is_reset_fails_alone() {
    let (mut talk, behind, others) = streams(2, None);
    ask(&mut talk, &others);
    let mut server = Server::new(0, None);
    server.act(&behind);
    server.engine.reset(server.asked[0], INTERNAL_ERROR);
    server.act(&behind);
    talk.turn();
    assert!(got(&talk, others[0]).contains("upstream reset the stream with error 2"));
    assert_eq!(got(&talk, others[1]), "");
    server.answer(&behind, server.asked[1], "whole");
    talk.turn();
    assert!(got(&talk, others[1]).ends_with("whole"));
}

#[test]
fn after_goaway_streams_continue_and_new_requests_use_another_connection() {
    let (mut talk, behind, others) = streams(3, None);
    ask(&mut talk, &others[..1]);
    let mut server = Server::new(0, None);
    server.act(&behind);
    server.engine.end();
    server.act(&behind);
    talk.turn();
    ask(&mut talk, &others[1..2]);
    assert_eq!(behind.open(), [0, 1]);
    server.answer(&behind, server.asked[0], "last");
    talk.turn();
    assert!(got(&talk, others[0]).ends_with("last"));
    assert_eq!(behind.open(), [1], "it has no stream any more");
    ask(&mut talk, &others[2..]);
    assert_eq!(behind.count(), 2);
}

#[test]
fn more_than_the_server_takes_at_once_go_to_another_connection() {
    let (mut talk, behind, others) = streams(34, None);
    ask(&mut talk, &others[..1]);
    let mut server = Server::new(0, None);
    server.act(&behind);
    talk.turn();
    ask(&mut talk, &others[1..]);
    server.act(&behind);
    assert_eq!((behind.count(), server.asked.len()), (2, 32));
}

#[test]
fn streams_opened_before_settings_are_refused_beyond_the_limit_of_the_server() {
    let (mut talk, behind, others) = streams(34, None);
    ask(&mut talk, &others);
    let mut server = Server::new(0, None);
    server.act(&behind);
    talk.turn();
    assert_eq!((behind.count(), server.asked.len()), (1, 32));
    let refused = "upstream reset the stream with error 7";
    let is_refused = |other: &&usize| got(&talk, **other).contains(refused);
    assert_eq!(others.iter().filter(is_refused).count(), 2);
}

#[test]
fn an_idle_connection_reads_and_answers_until_the_server_says_that_it_ends() {
    let (mut talk, behind, others) = streams(1, None);
    ask(&mut talk, &others);
    let mut server = Server::new(0, None);
    server.act(&behind);
    server.answer(&behind, 1, "x");
    talk.turn();
    // PING.
    behind.push(0, [&[0, 0, 8, 6, 0, 0, 0, 0, 0][..], b"12345678"].concat());
    let before = behind.with(0, |wire| wire.sent().len());
    talk.turn();
    let after = behind.with(0, |wire| wire.sent()[before..].to_vec());
    assert_eq!(
        after,
        [&[0, 0, 8, 6, 1, 0, 0, 0, 0][..], b"12345678"].concat()
    );
    assert_eq!(behind.open(), [0]);
    server.engine.end();
    server.act(&behind);
    talk.turn();
    assert_eq!(behind.open(), NONE);
}

/// SETTINGS that allow no stream (RFC 9113 section 6.5.2).
const NO_STREAMS: [u8; 15] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0];

#[test]
fn a_server_that_allows_no_stream_gets_no_further_request() {
    for is_idle in [false, true] {
        let (mut talk, behind, others) = streams(2, None);
        ask(&mut talk, &others[..1]);
        let mut server = Server::new(0, None);
        server.act(&behind);
        if !is_idle {
            behind.push(0, NO_STREAMS);
            talk.turn();
        }
        server.answer(&behind, 1, "first");
        talk.turn();
        assert!(got(&talk, others[0]).ends_with("first"));
        if is_idle {
            behind.push(0, NO_STREAMS);
            talk.turn();
        }
        ask(&mut talk, &others[1..]);
        assert_eq!((behind.count(), behind.open()), (2, vec![1]));
    }
}

#[test]
fn late_and_unwanted_streams_do_not_affect_others() {
    let (mut talk, behind, others) = streams(2, None);
    ask(&mut talk, &others[..1]);
    let mut server = Server::new(0, None);
    server.act(&behind);
    talk.pass(2000);
    ask(&mut talk, &others[1..]);
    server.act(&behind);
    talk.pass(1000);
    assert!(got(&talk, others[0]).ends_with("TimedOut"));
    assert_eq!(
        (got(&talk, others[1]).as_str(), behind.open()),
        ("", vec![0])
    );
    talk.world.links[others[1]].wire.borrow_mut().reset();
    talk.turn();
    assert_eq!(behind.open(), [0], "its streams are reset");
    let frames = behind.with(0, |wire| wire.sent().to_vec());
    let resets = frames.windows(9).filter(|head| head[..4] == [0, 0, 4, 3]);
    assert_eq!(resets.count(), 2);
}

/// A client with a request over TLS, and the server's end. HTTP/2 is offered by ALPN (`offers`) or configured.
pub(crate) fn secured(offers: bool, speaks: bool) -> (TestConnection, UpstreamServers, Secure) {
    let pair = Pair::new();
    let tls = pair.client(offers);
    let (mut talk, behind) = talk();
    talk.world.adjust = Some(Box::new(move |route| {
        if speaks {
            route.protocol = &HTTP2;
        }
        route.tls = Some(Arc::clone(&tls));
    }));
    talk.send(get("/passed/2/9999"));
    (talk, behind, pair.accept())
}

/// Transfers TLS bytes both ways. Returns the bytes received by the client.
fn shake(talk: &mut TestConnection, behind: &UpstreamServers, secure: &mut Secure) -> String {
    let mut received = String::new();
    for _ in 0..4 {
        let sent = behind.with(0, |wire| {
            wire.fetch(usize::MAX);
            wire.sent().to_vec()
        });
        behind.push(0, secure.receive(&sent).expect("it is TLS"));
        received += &talk.turn();
    }
    received
}

#[test]
fn requests_over_tls_wait_for_the_handshake_and_the_connection_is_used_again() {
    let (mut talk, behind, mut secure) = secured(false, false);
    let hello = behind.with(0, |wire| wire.sent().to_vec());
    assert_eq!(hello[..3], [22, 3, 1], "a ClientHello");
    assert_eq!(shake(&mut talk, &behind, &mut secure), "");
    assert_eq!(secure.came, REQUEST.as_bytes());
    behind.push(0, secure.seal(ok("first").as_bytes()));
    assert_eq!(body(&talk.turn()), "first");
    talk.send(get("/passed/2/9999"));
    shake(&mut talk, &behind, &mut secure);
    assert_eq!(secure.came, REQUEST.repeat(2).as_bytes());
    assert_eq!(behind.open(), [0]);
}

#[test]
fn streams_over_tls_are_those_of_the_protocol_that_was_agreed_on() {
    let (mut talk, behind, secure) = secured(true, true);
    let mut server = Server::new(0, Some(secure));
    for _ in 0..4 {
        server.act(&behind);
        assert_eq!(talk.turn(), "");
    }
    server.answer(&behind, 1, "whole");
    assert_eq!(body(&talk.turn()), "whole");
    let (mut talk, behind, mut secure) = secured(false, true);
    let received = shake(&mut talk, &behind, &mut secure);
    assert!(body(&received).starts_with("Handshake("), "{received}");
    assert_eq!(behind.open(), NONE);
}

#[test]
fn a_handshake_has_the_time_of_a_connection() {
    let (mut talk, behind, _) = secured(false, false);
    assert_eq!(talk.pass(999), "");
    assert_eq!(behind.open(), [0]);
    assert_eq!(body(&talk.pass(1)), "TimedOut");
    assert_eq!(behind.open(), NONE);
}

#[test]
fn a_server_without_tls_is_told_why() {
    let (mut talk, behind, _) = secured(false, false);
    let before = behind.with(0, |wire| wire.sent().len());
    behind.push(0, "HTTP/1.1 400 Bad Request\r\n\r\n");
    let received = talk.turn();
    assert!(body(&received).starts_with("Handshake("), "{received}");
    let alert = behind.with(0, |wire| wire.sent()[before..].to_vec());
    assert_eq!(alert.first(), Some(&21), "an alert");
}

#[test]
fn a_body_that_ends_with_the_connection_is_whole_if_tls_says_so() {
    for announced in [true, false] {
        let (mut talk, behind, mut secure) = secured(false, false);
        shake(&mut talk, &behind, &mut secure);
        behind.push(0, secure.seal(b"HTTP/1.1 200 OK\r\n\r\nhalf"));
        assert_eq!(talk.turn(), "");
        if announced {
            behind.push(0, secure.close());
        }
        behind.with(0, Wire::end);
        let expected = if announced { "half" } else { "Closed" };
        assert_eq!(body(&talk.turn()), expected);
    }
}

#[test]
fn plaintext_before_a_broken_record_reaches_no_other_connection() {
    let (mut talk, behind, mut secure) = secured(false, false);
    shake(&mut talk, &behind, &mut secure);
    let mut records = secure.seal(ok("first").as_bytes());
    let mut broken = secure.seal(b"more");
    *broken.last_mut().expect("it has a tag") ^= 1;
    records.extend(broken);
    behind.push(0, records);
    let received = talk.turn();
    assert!(body(&received).starts_with("Handshake("), "{received}");
    talk.world.adjust = None;
    talk.send(get("/passed/2/9999"));
    behind.push(1, ok("second"));
    assert_eq!(body(&talk.turn()), "second");
}

#[test]
fn the_end_behind_a_part_of_a_record_is_seen() {
    let (mut talk, behind, mut secure) = secured(false, false);
    shake(&mut talk, &behind, &mut secure);
    let record = secure.seal(ok("first").as_bytes());
    behind.push(0, &record[..10]);
    behind.with(0, Wire::end);
    assert_eq!(body(&talk.turn()), "Closed");
}
