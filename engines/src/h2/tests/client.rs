//! The client role: against the server role, and against servers that break the rules.

use super::*;
use crate::client::{Bodies, MAX_INTERIM, Malformed, SendError};
use crate::http::Fields;

/// A client and a server, and the bytes between them.
struct Both {
    client: Client,
    server: Peer,
    /// Bytes of the pieces in which they hear each other.
    cut: usize,
}

impl Both {
    fn new() -> Self {
        Self::with(Settings::default(), Bodies::Delivered)
    }

    fn with(settings: Settings, bodies: Bodies) -> Self {
        Self {
            client: Client::new(Settings::default(), bodies),
            server: Peer::silent(settings),
            cut: usize::MAX,
        }
    }

    fn request(&mut self, method: &str, more: &[(&str, &str)], ended: bool) -> u32 {
        request(&mut self.client, method, more, ended).expect("there is room")
    }

    /// Moves bytes until both are silent. A request without a body gets a long one, others a short one.
    fn run(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut up = Vec::new();
            self.client.transmit(&mut up);
            for piece in up.chunks(self.cut) {
                self.server.receive(piece);
            }
            self.serve();
            self.server.pump();
            let down = self.server.transmitted();
            for piece in down.chunks(self.cut) {
                self.client.receive(piece);
                self.client.check_invariants();
            }
            lines.extend(events(&mut self.client));
            if up.is_empty() && down.is_empty() {
                return lines;
            }
        }
    }

    fn serve(&mut self) {
        while let Some(event) = self.server.conn.event() {
            match event {
                Event::Head { stream, head } => {
                    assert_eq!(head.fault, None);
                    if head.body == BodyLength::None {
                        self.server.answer(stream, &[&[b'y'; LONG], b"end"]);
                    }
                }
                Event::Data { stream, bytes } => {
                    self.server.conn.consumed(stream, bytes.len() as u64);
                }
                Event::BodyEnd(stream) => _ = self.server.answer(stream, &[b"thanks"]),
                Event::Trailers { fields, .. } => assert_eq!(fields.fields.len(), 1),
                Event::Reset { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn request(
    client: &mut Client,
    method: &str,
    more: &[(&str, &str)],
    ended: bool,
) -> Result<u32, SendError> {
    let fields = [&with_path(method, "/")[..], more].concat();
    let fields = fields
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    client.request(fields, ended)
}

/// The events so far as lines; bytes of bodies are consumed.
fn events(client: &mut Client) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(event) = client.event() {
        if let ClientEvent::Data { stream, bytes } = &event {
            client.consumed(*stream, bytes.len() as u64);
        }
        lines.push(line(&event));
    }
    lines
}

fn line(event: &ClientEvent) -> String {
    match event {
        ClientEvent::Interim { stream, head } => format!("{stream} interim {}", head.status),
        ClientEvent::Head { stream, head, .. } => format!("{stream} {}", head.status),
        ClientEvent::Data { stream, bytes } => format!("{stream} +{}", bytes.len()),
        ClientEvent::Trailers { stream, fields } => {
            format!("{stream} trailers {}", fields.fields.len())
        }
        ClientEvent::End { stream, body_bytes } => format!("{stream} end {body_bytes}"),
        ClientEvent::Malformed { stream, what } => format!("{stream} {what:?}"),
        ClientEvent::Failed(error) => format!("{error:?}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn bodies_move_both_ways_beyond_all_windows() {
    for bodies in [Bodies::Delivered, Bodies::Counted] {
        for cut in [usize::MAX, 1000, 7] {
            let mut both = Both::with(Settings::default(), bodies);
            both.cut = cut;
            let get = both.request("GET", &[], true);
            let post = both.request("POST", &[], false);
            both.client.send(post, &[b'x'; 500_000], false);
            both.client.send(post, b"last", true);
            let put = both.request("PUT", &[("x-own", " v\t")], false);
            both.client.send(put, &[b'z'; 200_000], false);
            let mut trailers = Fields::default();
            trailers.push(b"X-Sum", b"\t1 ");
            trailers.push(b"connection", b"close");
            both.client.send_trailers(put, &trailers);
            let lines = both.run();
            for end in ["1 200", "1 end 300003", "3 end 6", "5 end 6"] {
                assert!(lines.iter().any(|line| line == end), "{end}: {lines:?}");
            }
            let told = lines.iter().any(|line| line.starts_with("1 +"));
            assert_eq!(told, bodies == Bodies::Delivered);
            assert_eq!(both.server.events(), Vec::<String>::new(), "{get} {post}");
        }
    }
}

#[test]
fn hundreds_of_streams_on_one_connection_stay_within_the_servers_limit() {
    let settings = Settings {
        max_concurrent_streams: 10,
        ..Settings::default()
    };
    let mut both = Both::with(settings, Bodies::Counted);
    both.run();
    assert!(both.client.is_settled());
    let mut ended = 0;
    while ended < 300 {
        while both.client.room() > 0 {
            both.request("GET", &[("x-n", "1")], true);
        }
        let refused = request(&mut both.client, "GET", &[], true);
        assert_eq!(refused, Err(SendError::Busy));
        ended += both
            .run()
            .iter()
            .filter(|line| line.contains("end"))
            .count();
    }
}

#[test]
fn resets_pings_and_the_end_are_told() {
    let mut both = Both::new();
    both.client.ping(7);
    let first = both.request("POST", &[], false);
    assert_eq!(both.run(), ["Pong(7)"]);
    both.server.conn.reset(first, INTERNAL_ERROR);
    let second = both.request("POST", &[], false);
    both.client.cancel(second);
    both.run();
    let third = both.request("POST", &[], false);
    both.server.conn.end_after(third - 2);
    let lines = both.run();
    let closing = "Closing { last: 3, code: 0 }";
    assert_eq!(lines, [closing, "Reset { stream: 5, code: 7 }"]);
    let refused = request(&mut both.client, "GET", &[], true);
    assert_eq!(refused, Err(SendError::Closed));
    both.client.receive_eof(true);
    assert_eq!(events(&mut both.client), ["Eof"]);
}

#[test]
fn fields_that_cannot_be_sent_are_refused_and_the_connection_goes_on() {
    let mut both = Both::new();
    for more in [("x", "a\r\nb: c"), ("X", "a"), ("x y", "a"), ("", "a")] {
        let refused = request(&mut both.client, "GET", &[("ok", "1"), more], true);
        assert_eq!(refused, Err(SendError::BadField), "{more:?}");
    }
    let mut sent = Vec::new();
    both.client.transmit(&mut sent);
    both.server.receive(&sent);
    while both.server.conn.event().is_some() {}
    let id = both.request("GET", &[("ok", "1"), ("connection", "x")], true);
    let lines = both.run();
    assert!(lines.contains(&format!("{id} end 300003")), "{lines:?}");
}

/// A server that encodes frames of its own, and a client with requests on streams 1 and 3, the second by HEAD.
struct Wrong {
    client: Client,
    encoder: Encoder,
}

impl Wrong {
    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let mut client = Client::new(settings, Bodies::Delivered);
        for method in ["GET", "HEAD"] {
            request(&mut client, method, &[], true).expect("there is room");
        }
        client.transmit(&mut Vec::new());
        client.receive(&frame_of(frame::SETTINGS, 0, 0, &[]));
        Self {
            client,
            encoder: Encoder::new(4096, true),
        }
    }

    fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        for (name, value) in fields {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            self.encoder.field(name, value, Indexing::Yes, &mut block);
        }
        block
    }

    fn head(&mut self, stream: u32, fields: &[(&str, &str)], end: bool) -> Vec<u8> {
        let block = self.block(fields);
        let flags = frame::END_HEADERS | if end { frame::END_STREAM } else { 0 };
        frame_of(frame::HEADERS, flags, stream, &block)
    }

    fn told(&mut self, bytes: &[u8]) -> Vec<String> {
        self.client.receive(bytes);
        self.client.check_invariants();
        events(&mut self.client)
    }
}

fn data_of(stream: u32, bytes: &[u8], end: bool) -> Vec<u8> {
    frame_of(frame::DATA, u8::from(end), stream, bytes)
}

#[test]
fn responses_that_break_the_rules_cost_their_stream() {
    type Fields<'a> = &'a [(&'a str, &'a str)];
    let cases: [(Fields<'_>, bool, &[u8], Malformed); 11] = [
        (&[("a", "b")], true, b"", Malformed::Status),
        (&[(":status", "20")], true, b"", Malformed::Status),
        (
            &[(":status", "200"), (":status", "200")],
            true,
            b"",
            Malformed::Status,
        ),
        (
            &[("a", "b"), (":status", "200")],
            true,
            b"",
            Malformed::Status,
        ),
        (
            &[(":status", "200"), (":path", "/")],
            true,
            b"",
            Malformed::Field,
        ),
        (
            &[(":status", "200"), ("connection", "x")],
            true,
            b"",
            Malformed::Field,
        ),
        (
            &[(":status", "200"), ("x", "a\rb")],
            true,
            b"",
            Malformed::Field,
        ),
        (&[(":status", "101")], false, b"", Malformed::Interim),
        (&[(":status", "103")], true, b"", Malformed::Interim),
        (
            &[(":status", "200"), ("content-length", "3")],
            false,
            b"abcd",
            Malformed::Length,
        ),
        (
            &[(":status", "200"), ("content-length", "+3")],
            false,
            b"",
            Malformed::Length,
        ),
    ];
    for (fields, end, body, what) in cases {
        let mut server = Wrong::new();
        let bytes = [server.head(1, fields, end), data_of(1, body, false)].concat();
        let lines = server.told(&bytes);
        assert!(
            lines.contains(&format!("1 {what:?}")),
            "{fields:?}: {lines:?}"
        );
        let good = server.head(3, &[(":status", "200"), ("content-length", "9")], true);
        assert_eq!(
            server.told(&good),
            ["3 200", "3 end 0"],
            "the connection goes on"
        );
    }
    let early = Wrong::new().told(&data_of(1, b"x", false));
    assert_eq!(early, ["1 OutOfOrder"]);
    let mut server = Wrong::new();
    let short = [
        server.head(1, &[(":status", "200"), ("content-length", "3")], false),
        data_of(1, b"ab", true),
    ];
    assert_eq!(server.told(&short.concat()), ["1 200", "1 Length"]);
}

#[test]
fn interim_responses_and_trailers_have_their_places() {
    let mut server = Wrong::new();
    let story = [
        server.head(1, &[(":status", "103"), ("link", "x")], false),
        server.head(1, &[(":status", "200")], false),
        data_of(1, b"abc", false),
        server.head(1, &[("x-sum", "1")], true),
    ];
    let expected = ["1 interim 103", "1 200", "1 +3", "1 trailers 1", "1 end 3"];
    assert_eq!(server.told(&story.concat()), expected);
    let mut server = Wrong::new();
    let story = [
        server.head(1, &[(":status", "200")], false),
        server.head(1, &[("x-sum", "1")], false),
    ];
    assert_eq!(server.told(&story.concat()), ["1 200", "1 OutOfOrder"]);
    let mut server = Wrong::new();
    for n in 0..=MAX_INTERIM {
        let interim = server.head(1, &[(":status", "103")], false);
        let expected = if n < MAX_INTERIM {
            "1 interim 103"
        } else {
            "1 Interim"
        };
        assert_eq!(server.told(&interim), [expected]);
    }
}

#[test]
fn frames_that_break_the_rules_cost_the_connection() {
    let number = |n: u32| n.to_be_bytes();
    let cases: [(u8, u8, u32, &[u8], &str); 14] = [
        (frame::PUSH_PROMISE, 4, 1, &number(2), "PushUnasked"),
        (frame::DATA, 0, 0, b"x", "WrongStream"),
        (frame::DATA, 0, 9, b"x", "BadStreamNumber"),
        (frame::DATA, 0, 2, b"x", "BadStreamNumber"),
        (frame::DATA, frame::PADDED, 1, &[9, 1], "BadPadding"),
        (frame::HEADERS, 4, 1, &[0xff; 9], "Compression(BadIndex)"),
        (frame::CONTINUATION, 4, 1, &[], "BrokenHeaderBlock"),
        (frame::SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 1], "BadSetting"),
        (frame::SETTINGS, 0, 0, &[0; 5], "FrameSize"),
        (frame::SETTINGS, 0, 1, &[], "WrongStream"),
        (frame::WINDOW_UPDATE, 0, 0, &[0; 4], "ZeroWindowUpdate"),
        (
            frame::WINDOW_UPDATE,
            0,
            0,
            &[0x7f, 255, 255, 255],
            "WindowOverflow",
        ),
        (frame::PING, 0, 0, &[0; 7], "FrameSize"),
        (frame::GOAWAY, 0, 0, &[0; 7], "FrameSize"),
    ];
    for (kind, flags, stream, payload, error) in cases {
        let mut server = Wrong::new();
        let lines = server.told(&frame_of(kind, flags, stream, payload));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        match error {
            "Compression(BadIndex)" => assert!(lines[0].starts_with("Compression("), "{lines:?}"),
            _ => assert_eq!(lines, [error], "frame {kind}"),
        }
        assert!(server.client.is_closed());
        assert_eq!(
            server.told(&frame_of(frame::PING, 0, 0, &[0; 8])),
            Vec::<String>::new()
        );
    }
    let mut client = Client::new(Settings::default(), Bodies::Delivered);
    client.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert_eq!(events(&mut client), ["BadPreface"]);
}

#[test]
fn more_than_a_window_costs_the_stream_and_floods_the_connection() {
    let settings = Settings {
        preread_bytes: 10,
        abuse_budget: 20,
        ..Settings::default()
    };
    let mut server = Wrong::with(settings.clone());
    let story = [
        server.head(1, &[(":status", "200")], false),
        data_of(1, &[b'x'; 11], false),
    ];
    assert_eq!(server.told(&story.concat()), ["1 200", "1 Window"]);
    let ping = frame_of(frame::PING, 0, 0, &[0; 8]);
    assert_eq!(
        Wrong::with(settings.clone()).told(&ping.repeat(20)),
        Vec::<String>::new()
    );
    assert_eq!(Wrong::with(settings).told(&ping.repeat(21)), ["Flood"]);
}

#[test]
fn short_continuations_of_a_response_have_a_limit() {
    let begun = frame_of(frame::HEADERS, 0, 1, &[]);
    let short = frame_of(frame::CONTINUATION, 0, 1, &[0x88]);
    for (count, said) in [(99, None), (100, Some("Flood"))] {
        let told = Wrong::new().told(&[begun.clone(), short.repeat(count)].concat());
        assert_eq!(told.last().map(String::as_str), said);
    }
}

#[test]
fn closing_inside_of_a_response_is_told() {
    let mut server = Wrong::new();
    server.client.receive_eof(true);
    assert_eq!(events(&mut server.client), ["Closed"]);
    assert_eq!(
        ProtocolError::Closed.of_server(),
        "server closed the connection inside of a response"
    );
}

#[test]
fn same_bytes_cut_anywhere_tell_the_same() {
    let mut server = Wrong::new();
    let block = server.block(&[
        (":status", "200"),
        ("content-length", "3"),
        ("x-long", "abc"),
    ]);
    let (front, back) = block.split_at(3);
    let whole = [
        frame_of(frame::HEADERS, 0, 1, front),
        frame_of(frame::CONTINUATION, frame::END_HEADERS, 1, back),
        frame_of(frame::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 9]),
        frame_of(frame::DATA, frame::PADDED, 1, b"\x02ab.."),
        server.head(3, &[(":status", "404"), ("x-long", "abc")], true),
        frame_of(frame::PING, 0, 0, b"SEE-THIS"),
        data_of(1, b"c", true),
        frame_of(frame::GOAWAY, 0, 0, &[0; 8]),
        frame_of(frame::PUSH_PROMISE, 0, 1, &[0; 4]),
    ]
    .concat();
    let expected = Wrong::new().told(&whole);
    assert_eq!(expected.len(), 8, "{expected:?}");
    for at in 0..=whole.len() {
        let mut server = Wrong::new();
        let mut lines = server.told(&whole[..at]);
        lines.extend(server.told(&whole[at..]));
        assert_eq!(lines, expected, "cut at {at}");
    }
    let mut server = Wrong::new();
    let lines: Vec<String> = whole.chunks(1).flat_map(|byte| server.told(byte)).collect();
    assert_eq!(lines, expected, "byte by byte");
}

#[test]
fn exchange_that_has_ended_has_no_other_end() {
    let mut server = Wrong::new();
    for _ in [5, 7] {
        request(&mut server.client, "POST", &[], false).expect("there is room");
    }
    for stream in [5, 7] {
        let head = server.head(stream, &[(":status", "413")], true);
        let expected = [format!("{stream} 413"), format!("{stream} end 0")];
        assert_eq!(server.told(&head), expected);
    }
    assert_eq!(server.told(&data_of(5, b"x", false)), [""; 0]);
    let lines = server.told(&frame_of(frame::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]));
    let closing = "Closing { last: 1, code: 0 }";
    assert_eq!(lines, [closing, "Reset { stream: 3, code: 7 }"]);
}

/// Bytes of a long body.
const LONG: usize = 300_000;
