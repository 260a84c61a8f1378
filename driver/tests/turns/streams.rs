//! An HTTP/2 connection: its streams, timeouts, abuse budget and end.

use driver::worker::readiness::{Readiness, SocketFlags, TurnCause};

use super::frames::{
    CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Frames, HEADERS,
    INTERNAL_ERROR, NO_ERROR, PING, PROTOCOL_ERROR, REFUSED_STREAM, RESET, Received, frame,
};
use super::site::{TestConnection, get, log_entries, logged, statuses};

/// An HTTP/2 client that has sent its preface.
pub(crate) struct Client {
    pub(crate) talk: TestConnection,
    pub(crate) frames: Frames,
}

impl Client {
    pub(crate) fn new(server: &str) -> Self {
        Self::of(TestConnection::new(&format!("http2 on; {server}")))
    }

    /// Makes a client that reads nothing. The wire has room for `room` bytes.
    pub(crate) fn deaf(server: &str, room: usize) -> Self {
        Self::of(TestConnection::deaf(&format!("http2 on; {server}"), room))
    }

    fn of(talk: TestConnection) -> Self {
        let (frames, hello) = Frames::begin();
        let mut client = Self { talk, frames };
        assert_eq!(client.send(&hello), []);
        client
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Vec<Received> {
        self.talk.push(bytes);
        self.turn()
    }

    pub(crate) fn get(&mut self, stream: u32, target: &str) -> Vec<Received> {
        let request = self.frames.get(stream, target);
        self.send(&request)
    }

    pub(crate) fn turn(&mut self) -> Vec<Received> {
        let bytes = self.talk.turn_bytes();
        self.frames.receive(&bytes)
    }

    pub(crate) fn pass(&mut self, ms: u64) -> Vec<Received> {
        self.talk.world.advance(ms);
        self.turn()
    }

    fn pings(&mut self, number: usize) -> Vec<Received> {
        self.send(&frame(PING, 0, 0, &[0; 8]).repeat(number))
    }
}

pub(crate) fn head(stream: u32) -> Received {
    Received::Head(stream, "200".to_owned())
}

#[test]
fn a_connection_that_may_speak_http2_speaks_http1_to_those_who_do() {
    for at in [0, 1, 2, 10] {
        let mut talk = TestConnection::new("http2 on;");
        // The request begins with the same byte as the preface.
        let request = "PRI /text HTTP/1.1\r\nHost: a\r\n\r\n".replace("PRI /", "PUT /");
        talk.send(&request[..at]);
        assert_eq!(statuses(&talk.send(&request[at..])), ["200"], "{at}");
    }
    let mut late = TestConnection::new("http2 on;");
    late.send("P");
    assert_eq!(
        statuses(&late.send("OST /text HTTP/1.1\r\nHost: a\r\n\r\n")),
        ["200"]
    );
}

#[test]
fn a_preface_may_come_in_pieces() {
    let (mut frames, hello) = Frames::begin();
    for at in 1..hello.len() {
        let mut talk = TestConnection::new("http2 on;");
        talk.send(&hello[..at]);
        talk.push(&hello[at..]);
        talk.push(frames.get(1, "/text"));
        let bytes = talk.turn_bytes();
        let received = Frames::begin().0.receive(&bytes);
        assert_eq!(received.last(), Some(&Received::End(1)), "{at}");
    }
}

#[test]
fn a_body_is_counted_with_its_request() {
    let mut client = Client::new("");
    let head_frame = client.frames.post(1, "/body");
    assert_eq!(client.send(&head_frame), []);
    assert_eq!(client.send(&frame(DATA, 0, 1, b"he")), []);
    let received = client.send(&frame(DATA, END_STREAM, 1, b"llo"));
    assert_eq!(received, [head(1), Received::Data(1, 7), Received::End(1)]);
    let with = log_entries().remove(0);
    client.get(3, "/body");
    let without = log_entries().remove(0);
    // "POST" is in the static table, like "GET".
    assert_eq!(with.request_bytes, without.request_bytes + 5);
}

#[test]
fn a_client_that_resets_a_stream_is_logged_as_gone_where_it_had_no_answer() {
    let mut client = Client::deaf("", 1 << 20);
    client.get(1, "/wait/5000");
    client.send(&frame(RESET, 0, 1, &CANCEL.to_be_bytes()));
    assert_eq!(logged(), [499]);
    // Its window is full before the end.
    client.get(3, "/pieces/100/1000");
    client.send(&frame(RESET, 0, 3, &CANCEL.to_be_bytes()));
    let entry = log_entries().remove(0);
    assert_eq!((entry.status, entry.completed), (200, false));
    client.get(5, "/wait/5000");
    client.talk.end();
    assert!(client.talk.is_closed());
    assert_eq!(logged(), [499]);
}

/// Maximum number of exchanges that outlive their streams on one connection.
const DETACHED_MAX: u32 = 128;

#[test]
fn streams_are_refused_while_enough_exchanges_outlive_theirs() {
    let mut client = Client::new("");
    for stream in (1..2 * DETACHED_MAX).step_by(2) {
        let answer = client.get(stream, "/pass/never/ignore");
        assert_eq!(answer, [], "{stream}");
        client.send(&frame(RESET, 0, stream, &CANCEL.to_be_bytes()));
    }
    assert!(logged().is_empty());
    let next = 2 * DETACHED_MAX + 1;
    assert_eq!(
        client.get(next, "/next"),
        [Received::Reset(next, REFUSED_STREAM)]
    );
    client.talk.end();
    assert!(!client.talk.is_closed(), "they also outlive the connection");
    assert!(logged().is_empty());
}

#[test]
fn a_request_without_an_answer_is_reset_and_the_others_go_on() {
    let mut client = Client::new("client_body_timeout 3s;");
    client.get(1, "/wait/9000");
    assert_eq!(
        client.get(3, "/status/444"),
        [Received::Reset(3, INTERNAL_ERROR)]
    );
    let body = client.frames.post(5, "/body");
    assert_eq!(client.send(&body), []);
    // As in nginx: the client did not send the announced body.
    assert_eq!(client.pass(3000), [Received::Reset(5, PROTOCOL_ERROR)]);
    assert_eq!(logged(), [444, 408]);
    assert_eq!(client.pass(6000).first(), Some(&head(1)));
}

#[test]
fn a_connection_ends_with_its_last_request() {
    let mut client = Client::new("keepalive_requests 2;");
    assert_eq!(
        client.get(1, "/a"),
        [head(1), Received::Data(1, 2), Received::End(1)]
    );
    let last = client.get(3, "/b");
    assert!(last.contains(&Received::Goaway(3, NO_ERROR)), "{last:?}");
    assert!(last.contains(&Received::End(3)));
    assert!(!client.talk.is_open());
}

#[test]
fn the_last_request_says_how_the_connection_is_closed() {
    for (rule, lingers) in [("on", true), ("off", false)] {
        let mut client = Client::new(&format!("keepalive_requests 1; lingering_close {rule};"));
        client.get(1, "/a");
        assert!(!client.talk.is_open());
        assert_eq!(client.talk.is_closed(), !lingers, "lingering_close {rule}");
    }
    let mut client = Client::new("keepalive_requests 1; lingering_timeout 2s; lingering_time 3s;");
    client.get(1, "/a");
    client.pass(1999);
    assert!(!client.talk.is_closed());
    client.pings(1);
    client.pass(1000);
    assert!(!client.talk.is_closed(), "what comes gives it time");
    client.pass(1);
    assert!(client.talk.is_closed(), "but not more than lingering_time");
}

/// The budget is twenty frames; the preface has used some.
#[test]
fn the_abuse_budget_recovers_a_frame_per_second() {
    let calm = |received: Vec<Received>| {
        !received
            .iter()
            .any(|received| matches!(received, Received::Goaway(_, ENHANCE_YOUR_CALM)))
    };
    let server = "http2_abuse_budget 20;";
    let mut at_once = Client::new(server);
    assert!(!calm(at_once.pings(30)));

    let mut patient = Client::new(server);
    assert!(calm(patient.pings(15)));
    for _ in 0..10 {
        assert!(calm(patient.pass(1500)));
        assert!(calm(patient.pings(1)), "fractions of a second are not lost");
    }
    assert!(calm(patient.pings(5)));

    let mut hasty = Client::new(server);
    assert!(calm(hasty.pings(15)));
    hasty.pass(5999);
    let calmed = (0..30).take_while(|_| calm(hasty.pings(1))).count();
    assert!((5..12).contains(&calmed), "a second counts once: {calmed}");
}

#[test]
fn a_header_block_has_its_time_from_its_begin() {
    let mut client = Client::new("client_header_timeout 2s; keepalive_timeout 60s;");
    client.get(1, "/a");
    log_entries();
    let block = client.frames.block("GET", "/b");
    client.send(&frame(HEADERS, END_STREAM, 3, &block[..2]));
    client.pass(1500);
    client.send(&frame(CONTINUATION, 0, 3, &block[2..3]));
    assert_eq!(client.pass(499), []);
    let received = client.pass(1);
    assert!(
        matches!(received[..], [Received::Reset(3, _)]),
        "{received:?}"
    );
    assert_eq!(logged(), [408]);
    client.send(&frame(CONTINUATION, END_HEADERS, 3, &block[3..]));
    assert_eq!(
        client.get(5, "/c").first(),
        Some(&head(5)),
        "the others go on"
    );
}

#[test]
fn each_header_block_has_its_own_time() {
    let mut client = Client::new("client_header_timeout 2s; keepalive_timeout 60s;");
    for stream in [1, 3, 5] {
        let block = client.frames.block("GET", "/a");
        client.send(&frame(HEADERS, END_STREAM, stream, &block[..2]));
        assert_eq!(client.pass(1500), []);
        let received = client.send(&frame(CONTINUATION, END_HEADERS, stream, &block[2..]));
        assert_eq!(received.first(), Some(&head(stream)));
    }
}

/// HTTP/2 has no other timeout for frames. SPDY has one.
#[test]
fn a_frame_of_spdy_has_its_time_from_the_last_of_it() {
    let mut talk = TestConnection::spdy("spdy_recv_timeout 2s; spdy_keepalive_timeout 60s;");
    talk.send(SPDY_PING);
    assert!(talk.pass(30_000).is_empty() && talk.is_open());
    talk.send(&SPDY_PING[..5]);
    talk.pass(1500);
    talk.send(&SPDY_PING[5..6]);
    talk.pass(1999);
    assert!(talk.is_open());
    talk.pass(1);
    assert!(!talk.is_open());
}

/// A SPDY/3.1 PING with the number 1.
const SPDY_PING: [u8; 12] = [0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1];

#[test]
fn a_response_that_was_waited_for_has_all_of_send_timeout() {
    // The wire has room for the server's first frames, and for no byte more.
    let mut talk = TestConnection::new("http2 on;");
    talk.push(Frames::begin().1);
    let room = talk.turn_bytes().len();
    let mut client = Client::deaf("send_timeout 2s;", room);
    client.get(1, "/wait/5000");
    client.pass(5000);
    client.pass(1999);
    assert!(client.talk.is_open());
    client.pass(1);
    assert!(!client.talk.is_open());
    assert_eq!(log_entries().len(), 1);
}

#[test]
fn a_client_that_takes_nothing_has_send_timeout_whatever_it_sends() {
    let mut client = Client::deaf("send_timeout 3s;", 100);
    client.get(1, "/pieces/20/1000");
    for stream in [3, 5] {
        client.pass(1400);
        assert!(client.talk.is_open());
        client.get(stream, "/a");
    }
    client.pass(200);
    assert!(client.talk.is_closed(), "more to be sent gives it no time");
}

#[test]
fn a_client_that_reads_nothing_is_not_read_from_for_ever() {
    let mut client = Client::deaf("http2_abuse_budget 1000000;", 100);
    for _ in 0..400 {
        client.talk.push(frame(PING, 0, 0, &[0; 8]).repeat(1000));
        client.talk.turn();
    }
    let waiting = client.talk.wire(|wire| wire.waiting());
    assert!(
        waiting > 100_000,
        "{waiting} bytes are left with the client"
    );
}

#[test]
fn a_rate_is_each_streams_own() {
    let mut client = Client::new("location /pieces/ { limit_rate 2000; }");
    let bytes = |received: &[Received], stream: u32| -> usize {
        let of = received.iter().filter_map(|received| match received {
            Received::Data(id, len) if *id == stream => Some(*len),
            _ => None,
        });
        of.sum()
    };
    let request = [
        client.frames.get(1, "/pieces/1/9000"),
        client.frames.get(3, "/pieces/1/9000"),
    ]
    .concat();
    let first = client.send(&request);
    let mut so_far = [bytes(&first, 1), bytes(&first, 3)];
    for second in 2..=4 {
        let received = client.pass(1000);
        for (at, stream) in [1, 3].into_iter().enumerate() {
            so_far[at] += bytes(&received, stream);
            let most = 2000 * second;
            assert!(
                (most - 200..=most).contains(&so_far[at]),
                "{so_far:?} after {second} s"
            );
        }
    }
}

#[test]
fn heads_are_counted_apart_from_bodies() {
    let mut client = Client::new("");
    let request = client.frames.get(1, "/a");
    client.talk.push(request);
    let bytes = client.talk.turn_bytes();
    let entry = log_entries().remove(0);
    // HEADERS, and a DATA frame with two bytes.
    assert_eq!(entry.bytes_sent, bytes.len() as u64);
    assert_eq!(entry.header_bytes, (bytes.len() - 11) as u64);
}

#[test]
fn http1_beside_it_is_served_as_ever() {
    let mut talk = TestConnection::new("http2 on;");
    assert_eq!(statuses(&talk.send(get("/a") + &get("/b"))), ["200", "200"]);
}

/// Room and the deadline come in the same turn. The server has ended its side; further input is dropped.
#[test]
fn a_goaway_that_leaves_in_the_last_moment_is_not_followed_by_a_close() {
    let server = "keepalive_timeout 5s; lingering_timeout 2s;";
    let mut first = Client::new(server);
    first.get(1, "/a");
    let room = first.talk.wire(|wire| wire.sent().len());
    // The response fills the wire.
    let mut client = Client::deaf(server, room);
    client.get(1, "/a");
    assert_eq!(client.pass(5000), []);
    client.talk.world.advance(2000);
    client.talk.wire(|wire| wire.fetch(usize::MAX));
    let ready = Readiness {
        socket: SocketFlags {
            writable: true,
            ..SocketFlags::default()
        },
        cause: TurnCause::Expired,
        ..Readiness::default()
    };
    client.talk.world.spurious(0, ready);
    assert!(!client.talk.is_open() && !client.talk.is_closed());
    assert_eq!(client.turn(), [Received::Goaway(1, NO_ERROR)]);
    client.pass(2000);
    assert!(client.talk.is_closed());
}
