//! The client role: responses in, requests out, and both roles against each other.

mod bodies;
mod buffers;
mod heads;
mod requests;
mod reuse;
mod tunnels;

use super::super::{Client, ClientEvent, ProtocolError, RequestOptions};
use super::*;
use crate::client::{Bodies, MAX_INTERIM, SendError};
use crate::http::Fields;

/// The fields of a request, the line first.
fn fields<'a>(
    method: &'a str,
    more: &'a [(&'a str, &'a str)],
) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let own = [(":method", method), (":path", "/a"), ("Host", "h")];
    let all = own.into_iter().chain(more.iter().copied());
    all.map(|(name, value)| (name.as_bytes(), value.as_bytes()))
}

fn body(body: BodyLength) -> RequestOptions {
    RequestOptions {
        body,
        ..RequestOptions::default()
    }
}

fn upgrade() -> RequestOptions {
    RequestOptions {
        upgrade: true,
        ..RequestOptions::default()
    }
}

/// A client that has sent a request.
fn asked_with(method: &str, more: &[(&str, &str)], options: RequestOptions) -> Client {
    let mut client = Client::new(Bodies::Delivered);
    let result = client.request(fields(method, more), options);
    assert_eq!(result, Ok(1));
    client.transmit(&mut OutputQueue::default());
    client
}

/// A client after a request without a body.
fn asked(method: &str) -> Client {
    asked_with(method, &[], RequestOptions::default())
}

/// Output that waits to be sent.
fn text(client: &mut Client) -> String {
    let (mut queue, mut out) = (OutputQueue::default(), Vec::new());
    client.transmit(&mut queue);
    queue.drain_bytes(&mut out);
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

/// Events of `client` for `input`: equal whole, cut anywhere, byte by byte, and out of buffers.
fn told_by(client: impl Fn() -> Client, input: &str) -> Vec<String> {
    let whole = told_to(client(), input);
    for at in 0..=input.len() {
        let (before, after) = input.as_bytes().split_at(at);
        let (mut slices, mut buffers) = (client(), client());
        for piece in [before, after] {
            slices.receive(piece);
            buffers.receive_buffer(&mut piece.to_vec());
        }
        assert_eq!(events(&mut slices), whole, "{input:?} cut at {at}");
        assert_eq!(events(&mut buffers), whole, "{input:?} cut at {at}");
    }
    let (mut slices, mut buffers) = (client(), client());
    for byte in input.as_bytes().chunks(1) {
        slices.receive(byte);
        buffers.receive_buffer(&mut byte.to_vec());
    }
    assert_eq!(events(&mut slices), whole, "{input:?} byte by byte");
    assert_eq!(events(&mut buffers), whole, "{input:?} byte by byte");
    whole
}

/// Events of a client that has sent a GET.
fn told(input: &str) -> Vec<String> {
    told_by(|| asked("GET"), input)
}

/// The words for how the response ended; it is a failure.
fn failure(input: &str) -> String {
    let mut client = asked("GET");
    client.receive(input.as_bytes());
    let last = std::iter::from_fn(|| client.event()).last();
    match last {
        Some(ClientEvent::Failed(error)) => error.to_string(),
        other => panic!("{input:?}: {other:?}"),
    }
}

/// Both roles: the client role reports the server role's answers, cut anywhere.
#[test]
fn both_roles_understand_each_other() {
    for cut in 1..80 {
        let (mut client, mut server) = (Client::new(Bodies::Delivered), conn());
        for round in 1..=3 {
            let more = [("x-a", "b"), ("Transfer-Encoding", "chunked")];
            let id = client.request(fields("POST", &more), body(BodyLength::Unknown));
            assert_eq!(id, Ok(round));
            client.send(Chunk::Static(b"some "));
            client.send(Chunk::Static(b"body"));
            client.end(None);
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
                .for_each(|piece| client.receive_buffer(&mut piece.to_vec()));
            let lines = events(&mut client);
            let own = "200 Transfer-Encoding=chunked Connection=keep-alive";
            assert_eq!(lines, ["103", own, "+an answer", "end 9"]);
        }
    }
}
