//! Heads and bodies of CGI: typical output of servers, refused input, limits at the byte, any split.

mod bodies;
mod heads;

use super::*;
use crate::client;
use crate::http::{Fields, OutputQueue};

/// Parameters of a request with this method.
fn params(method: &str) -> Fields {
    let mut params = Fields::default();
    params.push(b"CONTENT_LENGTH", b"0");
    params.push(b"REQUEST_METHOD", method.as_bytes());
    params
}

/// A connection that has sent a request.
fn asked_with(method: &str, options: RequestOptions) -> Client {
    let mut client = Client::new();
    let begun = crate::scgi::request(&mut client, &params(method), options);
    assert_eq!(begun, Ok(1));
    client.transmit(&mut OutputQueue::default());
    client
}

fn asked(method: &str) -> Client {
    asked_with(method, RequestOptions::default())
}

fn line(event: &Event) -> String {
    match event {
        client::Event::Head { head, .. } => {
            let mut line = head.status.to_string();
            for field in &head.fields {
                let (name, value) = (head.bytes(field.name), head.bytes(field.value));
                let [name, value] = [name, value].map(String::from_utf8_lossy);
                line += &format!(" {name}={value}");
            }
            line
        }
        client::Event::Data { bytes, .. } => format!("+{}", String::from_utf8_lossy(bytes)),
        client::Event::End { body_bytes, .. } => format!("end {body_bytes}"),
        client::Event::Failed(error) => format!("{error:?}"),
        other => format!("{other:?}"),
    }
}

/// All events of a connection; pieces of a body are joined.
fn lines(client: &mut Client) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    while let Some(event) = client.event() {
        client.check_invariants();
        let new = line(&event);
        match (lines.last_mut(), new.strip_prefix('+')) {
            (Some(last), Some(more)) if last.starts_with('+') => last.push_str(more),
            _ => lines.push(new),
        }
    }
    lines
}

/// Events of a response followed by the end of the connection, which are equal wherever it is split.
fn told_to(method: &str, response: &[u8], eof: bool) -> Vec<String> {
    let run = |parts: &mut dyn Iterator<Item = &[u8]>| {
        let mut client = asked(method);
        for part in parts {
            client.receive_buffer(&mut part.to_vec());
            client.check_invariants();
        }
        if eof {
            client.receive_eof(true);
        }
        lines(&mut client)
    };
    let whole = run(&mut [response].into_iter());
    assert_eq!(whole, run(&mut response.chunks(1)), "byte by byte");
    for at in 0..=response.len().min(200) {
        let (first, second) = response.split_at(at);
        assert_eq!(
            whole,
            run(&mut [first, second].into_iter()),
            "split at {at}"
        );
    }
    whole
}

fn told(response: &str) -> Vec<String> {
    told_to("GET", response.as_bytes(), true)
}
