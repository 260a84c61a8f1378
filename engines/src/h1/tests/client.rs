//! The client role: responses in, requests out, and both roles against each other.

use super::super::{Client, ClientEvent, ProtocolError};
use super::*;
use crate::client::{Bodies, MAX_INTERIM, Refusal};
use crate::http::Fields;

fn client() -> Client {
    client_with(Settings::default())
}

fn client_with(settings: Settings) -> Client {
    Client::new(settings, Bodies::Told, true)
}

/// The fields of a request, pseudo-fields first.
fn fields<'a>(
    method: &'a str,
    more: &'a [(&'a str, &'a str)],
) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let own = [(":method", method), (":path", "/a"), (":authority", "h")];
    let all = own.into_iter().chain(more.iter().copied());
    all.map(|(name, value)| (name.as_bytes(), value.as_bytes()))
}

/// A client that has sent a request without a body.
fn asked(method: &str, more: &[(&str, &str)]) -> Client {
    let mut client = client();
    client
        .request(fields(method, more), true)
        .expect("it is idle");
    client.transmit(&mut Vec::new());
    client
}

fn text(client: &mut Client) -> String {
    let mut out = Vec::new();
    client.transmit(&mut out);
    String::from_utf8(out).expect("text")
}

fn line(event: &ClientEvent) -> String {
    match event {
        ClientEvent::Interim { head, .. } => format!("{}", head.status),
        ClientEvent::Head { head, .. } => {
            let mut line = head.status.to_string();
            for field in &head.fields {
                let (name, value) = (head.bytes(field.name), head.bytes(field.value));
                let [name, value] = [name, value].map(String::from_utf8_lossy);
                line += &format!(" {name}={value}");
            }
            line
        }
        ClientEvent::Data { bytes, .. } => format!("+{}", String::from_utf8_lossy(bytes)),
        ClientEvent::Trailers { fields, .. } => format!("trailers {}", fields.fields.len()),
        ClientEvent::End { body_bytes, .. } => format!("end {body_bytes}"),
        ClientEvent::Failed(error) => format!("{error:?}"),
        other => format!("{other:?}"),
    }
}

/// The events so far; pieces of a body are joined.
fn events(client: &mut Client) -> Vec<String> {
    client.check_invariants();
    let mut lines: Vec<String> = Vec::new();
    while let Some(event) = client.event() {
        let line = line(&event);
        match (lines.last_mut(), line.strip_prefix('+')) {
            (Some(last), Some(more)) if last.starts_with('+') => last.push_str(more),
            _ => lines.push(line),
        }
    }
    lines
}

fn told_to(mut client: Client, input: &str) -> Vec<String> {
    client.receive(input.as_bytes());
    events(&mut client)
}

/// What a client that has sent a GET tells of `input`, which is also cut everywhere.
fn told(input: &str) -> Vec<String> {
    let whole = told_to(asked("GET", &[]), input);
    for at in 0..=input.len() {
        let mut client = asked("GET", &[]);
        let (before, after) = input.as_bytes().split_at(at);
        client.receive(before);
        client.receive(after);
        assert_eq!(events(&mut client), whole, "{input:?} cut at {at}");
    }
    let mut client = asked("GET", &[]);
    for byte in input.as_bytes().chunks(1) {
        client.receive(byte);
    }
    assert_eq!(events(&mut client), whole, "{input:?} byte by byte");
    whole
}

#[test]
fn requests_are_encoded_with_the_engines_framing() {
    let mut client = client();
    let more = [("accept", "*/*"), ("Connection", "x"), ("host", "other")];
    assert_eq!(client.request(fields("GET", &more), true), Ok(1));
    assert_eq!(
        text(&mut client),
        "GET /a HTTP/1.1\r\nHost: h\r\naccept: */*\r\n\r\n"
    );
    assert_eq!(client.request(fields("GET", &[]), true), Err(Refusal::Busy));
    client.receive(b"HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(client.request(fields("POST", &[]), true), Ok(2));
    assert!(text(&mut client).ends_with("\r\nContent-Length: 0\r\n\r\n"));
    client.receive(b"HTTP/1.1 204 No Content\r\n\r\n");
    client
        .request(fields("PUT", &[("content-length", "3")]), false)
        .expect("it is idle");
    client.send(3, b"ab", false);
    client.send(3, b"cd", true);
    assert!(text(&mut client).ends_with("content-length: 3\r\n\r\nabc"));
    client.receive(b"HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(
        client.request(fields("GET", &[]), true),
        Err(Refusal::Closed),
        "too much was sent"
    );
}

#[test]
fn bodies_without_a_length_are_chunked_and_may_have_trailers() {
    let mut client = client();
    client
        .request(fields("POST", &[]), false)
        .expect("it is idle");
    client.send(1, b"hello", false);
    client.send(1, b"", false);
    let mut trailers = Fields::default();
    trailers.push(b"x-sum", b"1");
    trailers.push(b"x-bad", b"1\r\n2");
    trailers.push(b"content-length", b"9");
    client.send_trailers(1, &trailers);
    client.send(1, b"late", true);
    assert_eq!(
        text(&mut client),
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n"
    );
}

/// Nothing that a user gave can end a line or begin another request.
#[test]
fn fields_that_cannot_be_sent_are_refused() {
    for more in [
        [("x", "a\r\nb: c")],
        [("x", "a\0")],
        [("x y", "a")],
        [("", "a")],
        [(":path", "/late\n")],
        [("content-length", "1")],
        [("content-length", "x")],
    ] {
        let mut client = client();
        let refused = client.request(fields("GET", &more), true);
        assert_eq!(refused, Err(Refusal::BadField), "{more:?}");
        assert_eq!(text(&mut client), "", "{more:?}");
        assert_eq!(client.request(fields("GET", &[]), true), Ok(1));
    }
    for path in [&b""[..], b"/a b", b"/\r\nx", b"/\x7f"] {
        let fields = [(&b":method"[..], &b"GET"[..]), (b":path", path)];
        assert_eq!(client().request(fields, true), Err(Refusal::BadField));
    }
}

#[test]
fn bodies_end_where_their_framing_says() {
    let ok = "HTTP/1.1 200 OK\r\n";
    assert_eq!(
        told(&format!("{ok}Content-Length: 3\r\n\r\nabc")),
        ["200 Content-Length=3", "+abc", "end 3"]
    );
    assert_eq!(
        told("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"),
        ["200 Content-Length=0", "end 0"]
    );
    assert_eq!(
        told(&format!(
            "{ok}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\na: b\r\n\r\n"
        )),
        [
            "200 Transfer-Encoding=chunked",
            "+abc",
            "trailers 1",
            "end 3"
        ]
    );
    assert_eq!(
        told("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n"),
        ["304 Content-Length=7", "end 0"]
    );
    let head = told_to(
        asked("HEAD", &[]),
        &format!("{ok}Content-Length: 9\r\n\r\n"),
    );
    assert_eq!(head, ["200 Content-Length=9", "end 0"]);
    let head = told_to(
        asked("HEAD", &[]),
        &format!("{ok}Transfer-Encoding: chunked\r\n\r\n"),
    );
    assert_eq!(head, ["200 Transfer-Encoding=chunked", "end 0"]);
}

#[test]
fn bodies_without_framing_end_with_the_connection_if_its_end_is_whole() {
    for (whole, last) in [(true, "end 3"), (false, "Truncated")] {
        let mut client = asked("GET", &[]);
        client.receive(b"HTTP/1.1 200 OK\r\n\r\nabc");
        client.receive_eof(whole);
        assert_eq!(events(&mut client), ["200", "+abc", last]);
        assert!(client.is_closed());
    }
}

#[test]
fn ends_are_told_apart_by_what_was_under_way() {
    let mut idle = client();
    idle.receive_eof(true);
    assert_eq!(events(&mut idle), ["Eof"]);
    for (input, error) in [
        ("", "NoResponse"),
        ("HTTP/1.1 200 OK\r\n", "Truncated"),
        ("H", "Truncated"),
        ("HTTP/1.1 100 Continue\r\n\r\n", "Truncated"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx", "Truncated"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            "Truncated",
        ),
    ] {
        let mut client = asked("GET", &[]);
        client.receive(input.as_bytes());
        client.receive_eof(true);
        let last = events(&mut client).pop();
        assert_eq!(last.as_deref(), Some(error), "{input:?}");
    }
}

#[test]
fn connections_are_kept_as_both_sides_say() {
    let kept = |request: &[(&str, &str)], response: &str| {
        let mut client = asked("GET", request);
        client.receive(response.as_bytes());
        events(&mut client);
        !client.is_closed()
    };
    let length = "Content-Length: 0\r\n\r\n";
    assert!(kept(&[], &format!("HTTP/1.1 200 OK\r\n{length}")));
    assert!(!kept(
        &[("connection", "close")],
        &format!("HTTP/1.1 200 OK\r\n{length}")
    ));
    assert!(!kept(
        &[],
        &format!("HTTP/1.1 200 OK\r\nConnection: a, close\r\n{length}")
    ));
    assert!(!kept(&[], &format!("HTTP/1.0 200 OK\r\n{length}")));
    assert!(kept(
        &[],
        &format!("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n{length}")
    ));
    let mut closing = Client::new(Settings::default(), Bodies::Told, false);
    closing
        .request(fields("GET", &[]), true)
        .expect("it is idle");
    assert!(text(&mut closing).ends_with("\r\nConnection: close\r\n\r\n"));
}

#[test]
fn interim_responses_come_before_the_response_and_are_bounded() {
    let early = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    assert_eq!(
        told(&format!("{early}HTTP/1.1 204 No Content\r\n\r\n")),
        ["103", "204", "end 0"]
    );
    let limit = MAX_INTERIM as usize;
    let last = |times: usize| told_to(asked("GET", &[]), &early.repeat(times)).pop();
    assert_eq!(last(limit).as_deref(), Some("103"));
    assert_eq!(last(limit + 1).as_deref(), Some("TooManyInterim"));
}

#[test]
fn upgrades_need_to_be_asked_for() {
    let switching = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nhi";
    assert_eq!(told(switching), ["UnaskedUpgrade"]);
    let mut client = asked("GET", &[("upgrade", "websocket")]);
    client.receive(switching.as_bytes());
    assert_eq!(
        events(&mut client),
        ["101 Upgrade=websocket", "Upgraded(1)", "+hi"]
    );
    client.send(1, b"raw", false);
    assert_eq!(text(&mut client), "raw");
    let connect = told_to(asked("CONNECT", &[]), "HTTP/1.1 200 OK\r\n\r\ntunnel");
    assert_eq!(connect, ["200", "Upgraded(1)", "+tunnel"]);
}

/// What two readers could understand in two ways ends the connection.
#[test]
fn framing_that_can_be_read_in_two_ways_is_refused() {
    for (lines, error) in [
        (
            "Content-Length: 1\r\nContent-Length: 1",
            "Head(DuplicateContentLength)",
        ),
        ("Content-Length: 1, 1", "Head(BadContentLength)"),
        ("Content-Length: +1", "Head(BadContentLength)"),
        (
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Head(LengthAndEncoding)",
        ),
        ("Transfer-Encoding: gzip, chunked", "Head(UnknownEncoding)"),
        ("Transfer-Encoding: identity", "Head(UnknownEncoding)"),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Head(DuplicateEncoding)",
        ),
        ("Content-Length : 1", "Head(BadHeader)"),
        ("X: a\r\n folded", "Head(BadHeader)"),
        ("X: a\rb", "Head(BadHeader)"),
        ("X: a\0", "Head(BadHeader)"),
        ("no colon", "Head(BadHeader)"),
    ] {
        let input = format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n");
        assert_eq!(told(&input), [error], "{lines:?}");
    }
    let old = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(told(old), ["Head(EncodingInHttp10)"]);
    let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in ["0x1\r\n", "1\nx\r\n", "1\r\nxXX", "0\r\nno colon\r\n\r\n"] {
        let lines = told(&format!("{chunk}{body}"));
        assert!(
            lines.last().is_some_and(|last| last.starts_with("Body(")),
            "{body:?}: {lines:?}"
        );
    }
}

#[test]
fn status_lines_have_one_form() {
    assert_eq!(
        told("HTTP/1.1 418 \r\nContent-Length: 0\r\n\r\n"),
        ["418 Content-Length=0", "end 0"]
    );
    for line in [
        "HTTP/2 200 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1 099 Low",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 200OK",
        "HTTP/1.x 200 OK",
        "http/1.1 200 OK",
        "HTTP/1.1 200 O\x01K",
        "",
        "hello",
    ] {
        assert_eq!(
            told(&format!("{line}\r\n\r\n")),
            ["BadStatusLine"],
            "{line:?}"
        );
    }
}

#[test]
fn bytes_that_nobody_asked_for_end_the_connection() {
    let mut idle = client();
    idle.receive(b"HTTP/1.1 408 Request Timeout\r\n\r\n");
    assert_eq!(events(&mut idle), ["Unasked"]);
    let twice = "HTTP/1.1 204 No Content\r\n\r\n".repeat(2);
    assert_eq!(told(&twice), ["204", "end 0", "Unasked"]);
    assert_eq!(
        told("HTTP/1.1 204 No Content\r\n\r\nbody").pop().as_deref(),
        Some("Unasked")
    );
}

#[test]
fn heads_are_limited_at_the_byte() {
    let told = |bytes: usize, fields: u32| {
        let settings = Settings {
            header_buffer_bytes: bytes,
            large_header_buffers: (0, 0),
            max_headers: fields,
            ..Settings::default()
        };
        let mut client = client_with(settings);
        client
            .request(self::fields("GET", &[]), true)
            .expect("it is idle");
        client.receive(b"HTTP/1.1 204 No\r\nA: b\r\nC: d\r\n\r\n");
        events(&mut client).pop()
    };
    assert_eq!(told(31, 2).as_deref(), Some("end 0"));
    assert_eq!(told(30, 2).as_deref(), Some("Head(HeaderTooLarge)"));
    assert_eq!(told(31, 1).as_deref(), Some("Head(TooManyHeaders)"));
}

#[test]
fn giving_up_closes_and_early_responses_wait_for_the_request() {
    let mut client = client();
    client
        .request(fields("POST", &[]), false)
        .expect("it is idle");
    client.receive(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(events(&mut client), ["413 Content-Length=0", "end 0"]);
    assert_eq!(client.request(fields("GET", &[]), true), Err(Refusal::Busy));
    client.send(1, b"", true);
    assert_eq!(client.room(), 1);
    client
        .request(fields("GET", &[]), true)
        .expect("it is idle");
    client.cancel(2);
    assert!(client.is_closed());
    client.receive(b"HTTP/1.1 200 OK\r\n\r\n");
    assert_eq!(events(&mut client), Vec::<String>::new());
}

/// Both roles: what the server role answers is what the client role tells, cut anywhere.
#[test]
fn both_roles_understand_each_other() {
    for cut in 1..80 {
        let (mut client, mut server) = (client(), conn());
        for round in 1..=3 {
            let id = client.request(fields("POST", &[("x-a", "b")]), false);
            assert_eq!(id, Ok(round));
            client.send(round, b"some ", false);
            client.send(round, b"body", true);
            let up = text(&mut client);
            up.as_bytes()
                .chunks(cut)
                .for_each(|piece| server.receive(piece));
            let head = next_head(&mut server);
            assert_eq!((head.fault, head.body), (None, BodyLength::Unknown));
            let mut body = Vec::new();
            while let Some(event) = server.event() {
                match event {
                    Event::Data(bytes) => body.extend_from_slice(&bytes),
                    Event::BodyEnd => {}
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(body, b"some body");
            server.send_interim(103, None);
            let response = ResponseHead {
                status: 200,
                body: BodyLength::Unknown,
                keep_alive: true,
                ..ResponseHead::default()
            };
            server.send_head(&response);
            server.send_data(Chunk::Static(b"an answer"));
            server.send_end(None);
            let down = sent(&mut server);
            assert_eq!(server.finish(), Next::KeepAlive);
            down.as_bytes()
                .chunks(cut)
                .for_each(|piece| client.receive(piece));
            let lines = events(&mut client);
            let own = "200 Transfer-Encoding=chunked Connection=keep-alive";
            assert_eq!(lines, ["103", own, "+an answer", "end 9"]);
        }
    }
}

#[test]
fn counted_bodies_are_not_told() {
    let mut client = Client::new(Settings::default(), Bodies::Counted, true);
    client
        .request(fields("GET", &[]), true)
        .expect("it is idle");
    client.receive(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    assert_eq!(
        events(&mut client),
        ["200 Transfer-Encoding=chunked", "end 3"]
    );
    assert_eq!(
        ProtocolError::Truncated.to_string(),
        ProtocolError::Truncated.message()
    );
}

#[test]
fn exchange_given_up_inside_of_a_head_holds_nothing_back() {
    let mut client = asked("GET", &[]);
    client.receive(b"HTTP/1.1 200 OK\r\nContent-Le");
    client.cancel(1);
    client.receive(b"ngth: 3\r\n\r\nabc");
    assert_eq!(events(&mut client), Vec::<String>::new());
}
