//! The client role and the server role against each other.

use super::*;
use crate::client::{Bodies, Malformed, SendError};

/// A client and a server, and the bytes between them.
struct Both {
    client: Client,
    server: Peer,
}

impl Both {
    fn new(level: u8, server_level: u8) -> Self {
        Self {
            client: client(level),
            server: Peer::silent(Settings {
                headers_level: server_level,
                ..Settings::default()
            }),
        }
    }

    fn request(&mut self, method: &str, path: &str, ended: bool) -> u32 {
        request(&mut self.client, method, path, ended)
    }

    /// Moves bytes until both are silent; the answer to a request is its body, backwards.
    fn run(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut up = Vec::new();
            self.client.transmit(&mut up);
            self.server.receive(&up);
            self.serve();
            self.server.pump();
            let down = self.server.transmitted();
            self.client.receive(&down);
            self.client.check_invariants();
            while let Some(event) = self.client.event() {
                if let ClientEvent::Data { stream, bytes } = &event {
                    self.client.consumed(*stream, bytes.len() as u64);
                }
                lines.push(line(&event));
            }
            if up.is_empty() && down.is_empty() {
                return lines;
            }
        }
    }

    fn serve(&mut self) {
        while let Some(event) = self.server.conn.event() {
            match event {
                Event::Head { stream, head } => {
                    if head.body == BodyLength::None {
                        let body = [b'y'; 300_000];
                        self.server.answer(stream, &[&body, b"end"]);
                    }
                }
                Event::Data { stream, bytes } => {
                    self.server.conn.consumed(stream, bytes.len() as u64);
                }
                Event::BodyEnd(stream) => _ = self.server.answer(stream, &[b"thanks"]),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn request(client: &mut Client, method: &str, path: &str, ended: bool) -> u32 {
    let fields = with_path(method, path);
    let fields = fields
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    client.request(fields, ended).expect("there is room")
}

/// A client with one request.
fn asked(method: &str, ended: bool) -> Client {
    let mut client = client(0);
    request(&mut client, method, "/", ended);
    client
}

/// The events so far.
fn events(client: &mut Client) -> Vec<String> {
    client.check_invariants();
    std::iter::from_fn(|| client.event())
        .map(|event| line(&event))
        .collect()
}

fn client(level: u8) -> Client {
    let settings = Settings {
        headers_level: level,
        ..Settings::default()
    };
    Client::new(settings, Bodies::Delivered)
}

fn line(event: &ClientEvent) -> String {
    match event {
        ClientEvent::Head { stream, head, .. } => format!("{stream} {}", head.status),
        ClientEvent::Data { stream, bytes } => format!("{stream} +{}", bytes.len()),
        ClientEvent::End { stream, .. } => format!("{stream} end"),
        other => format!("{other:?}"),
    }
}

fn received(lines: &[String], stream: u32) -> usize {
    let start = format!("{stream} +");
    let lens = lines.iter().filter_map(|line| line.strip_prefix(&start));
    lens.map(|len| len.parse::<usize>().expect("a number"))
        .sum()
}

#[test]
fn bodies_move_both_ways_beyond_all_windows() {
    for (level, server_level) in [(0, 0), (9, 1), (1, 9)] {
        let mut both = Both::new(level, server_level);
        let get = both.request("GET", "/", true);
        let post = both.request("POST", "/", false);
        both.client.send(post, &[b'x'; 500_000], false);
        both.client.send(post, b"last", true);
        let lines = both.run();
        assert_eq!(received(&lines, get), 300_003);
        assert_eq!(received(&lines, post), 6);
        for end in ["1 200", "3 200", "1 end", "3 end"] {
            assert!(lines.iter().any(|line| line == end), "{end}");
        }
    }
}

#[test]
fn hundred_streams_are_answered() {
    let mut both = Both::new(6, 6);
    for n in 0..100 {
        both.request("GET", &format!("/{n}"), true);
    }
    let lines = both.run();
    for stream in (1..200).step_by(2) {
        assert_eq!(received(&lines, stream), 300_003, "stream {stream}");
    }
}

#[test]
fn resets_pings_and_the_end_are_told() {
    let mut both = Both::new(0, 0);
    both.client.ping(7);
    let id = both.request("POST", "/", false);
    assert_eq!(both.run(), ["Pong(7)"]);
    both.server.conn.reset(id, INTERNAL_ERROR);
    let other = both.request("POST", "/", false);
    both.client.cancel(other);
    both.server.conn.end();
    let lines = both.run();
    assert_eq!(
        lines,
        [
            "Reset { stream: 1, code: 6 }",
            "Closing { last: 1, code: 0 }"
        ]
    );
    let fields = [(&b":method"[..], &b"GET"[..])];
    assert_eq!(both.client.request(fields, true), Err(SendError::Closed));
}

/// Events of a client with one request for these bytes.
fn told(bytes: &[u8]) -> Vec<String> {
    let mut client = asked("GET", true);
    client.receive(bytes);
    events(&mut client)
}

fn reply(fields: &[(&str, &str)], end: bool) -> Vec<u8> {
    let block = Peer::new().block_of(fields);
    let payload = [&numbers(&[1])[..], &block].concat();
    control(frame::SYN_REPLY, u8::from(end), &payload)
}

#[test]
fn replies_that_break_the_rules_cost_their_stream() {
    let good = [(":status", "200 OK"), (":version", "HTTP/1.1")];
    assert_eq!(told(&reply(&good, true)), ["1 200", "1 end"]);
    let length = [(":status", "200"), ("content-length", "3")];
    let whole = [reply(&length, false), data_frame(1, b"abc", true)].concat();
    assert_eq!(told(&whole), ["1 200", "1 +3", "1 end"]);
    let short = [reply(&length, false), data_frame(1, b"ab", true)].concat();
    let long = [reply(&length, false), data_frame(1, b"abcd", true)].concat();
    let malformed = |what: Malformed| format!("Malformed {{ stream: 1, what: {what:?} }}");
    for (bytes, what) in [
        (short, Malformed::Length),
        (long, Malformed::Length),
        (reply(&length, true), Malformed::Length),
        (reply(&[("a", "b")], true), Malformed::Status),
        (reply(&[(":status", "99")], true), Malformed::Status),
        (
            reply(&[(":status", "200"), ("A", "b")], true),
            Malformed::Field,
        ),
        (
            reply(&[(":status", "200"), ("a", "b\r")], true),
            Malformed::Field,
        ),
        (data_frame(1, b"early", false), Malformed::OutOfOrder),
    ] {
        let lines = told(&bytes);
        assert_eq!(lines.last(), Some(&malformed(what)), "{lines:?}");
    }
}

#[test]
fn same_bytes_cut_anywhere_tell_the_same() {
    let length = [(":status", "200"), ("content-length", "3")];
    let whole = [
        control(frame::SETTINGS, 0, &numbers(&[1, 4, 7])),
        reply(&length, false),
        control(frame::PING, 0, &numbers(&[2])),
        data_frame(1, b"abc", true),
        control(frame::GOAWAY, 0, &numbers(&[1, 0])),
        vec![0x80, 9, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    let expected = told(&whole);
    assert_eq!(
        expected.last().map(String::as_str),
        Some("Failed(BadVersion)")
    );
    for at in 0..whole.len() {
        let mut client = asked("GET", true);
        client.receive(&whole[..at]);
        client.receive(&whole[at..]);
        assert_eq!(events(&mut client), expected, "cut at {at}");
    }
}

#[test]
fn counted_bodies_open_windows_by_themselves() {
    let mut both = Both::new(6, 6);
    both.client = Client::new(Settings::default(), Bodies::Counted);
    both.request("GET", "/", true);
    assert_eq!(both.run(), ["1 200", "1 end"]);
}

#[test]
fn pushed_streams_are_refused_and_nonsense_ends_it() {
    let mut client = client(0);
    client.transmit(&mut Vec::new());
    let block = Peer::new().block_of(&with_path("GET", "/"));
    client.receive(&syn_frame(2, 0, &block, true));
    let mut sent = Vec::new();
    client.transmit(&mut sent);
    let told = wire::frame_lines(&sent, &mut Inflater::default());
    assert_eq!(told, ["2 RST REFUSED_STREAM"]);
    client.receive(b"HTTP/1.1 400 Bad Request");
    assert_eq!(client.event(), None, "a long frame may still come");
    client.receive_eof(true);
    assert_eq!(client.event(), Some(ClientEvent::Eof));
}

#[test]
fn exchange_that_has_ended_has_no_other_end() {
    let mut client = asked("POST", false);
    client.receive(&reply(&[(":status", "413")], true));
    client.receive(&data_frame(1, b"x", false));
    client.receive(&control(frame::GOAWAY, 0, &numbers(&[0, 0])));
    let closing = "Closing { last: 0, code: 0 }";
    assert_eq!(events(&mut client), ["1 413", "1 end", closing]);
}

#[test]
fn end_while_only_a_request_is_under_way_breaks_no_response() {
    for (answered, expected) in [(true, "Eof"), (false, "Failed(Closed)")] {
        let mut client = asked("POST", false);
        if answered {
            client.receive(&reply(&[(":status", "413")], true));
        }
        client.receive_eof(true);
        let lines = events(&mut client);
        assert_eq!(lines.last().map(String::as_str), Some(expected));
    }
}
