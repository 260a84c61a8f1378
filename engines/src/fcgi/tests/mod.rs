//! The client role: requests as records, responses out of records, and faults of applications.

mod bad_input;
mod requests;
mod responses;
mod reuse;

use super::*;
use crate::http::{BodyLength, Fields, OutputQueue, ResponseHead};

const HEAD_BYTES: usize = 4096;

fn options(keep: bool) -> RequestOptions {
    RequestOptions {
        head_bytes: HEAD_BYTES,
        keep,
        body: BodyLength::None,
    }
}

fn params(list: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in list {
        fields.push(name.as_bytes(), value.as_bytes());
    }
    fields
}

/// A client after a request with this method.
fn asked_with(method: &str, options: RequestOptions) -> Client {
    let mut client = Client::new();
    let params = params(&[("REQUEST_METHOD", method)]);
    assert_eq!(client.request(&params, options), Ok(1));
    client.transmit(&mut OutputQueue::default());
    client
}

fn asked() -> Client {
    asked_with("GET", options(true))
}

/// Output that waits to be sent.
fn sent(client: &mut Client) -> Vec<u8> {
    let (mut queue, mut out) = (OutputQueue::default(), Vec::new());
    client.transmit(&mut queue);
    queue.drain_bytes(&mut out);
    out
}

/// A record of an application.
fn record(of: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    let mut bytes = vec![1, of, 0, 1, high, low, padding, 0];
    bytes.extend_from_slice(content);
    bytes.extend(std::iter::repeat_n(b'#', padding.into()));
    bytes
}

fn stdout(text: &str) -> Vec<u8> {
    record(6, text.as_bytes(), 0)
}

fn stderr(text: &str) -> Vec<u8> {
    record(7, text.as_bytes(), 3)
}

/// END_REQUEST with a protocol status, and an application status that is ignored.
fn end(status: u8) -> Vec<u8> {
    record(3, &[0, 0, 0, 9, status, 0, 0, 0], 0)
}

/// All events, one a line; pieces of a body are joined.
fn story(client: &mut Client) -> String {
    client.check_invariants();
    let (mut lines, mut data) = (Vec::<String>::new(), Vec::new());
    while let Some(event) = client.event() {
        if let Event::Data { bytes, .. } = &event {
            assert!(!bytes.is_empty(), "data is some");
            data.extend_from_slice(bytes);
            continue;
        }
        if !data.is_empty() {
            lines.push(format!("+{}", String::from_utf8_lossy(&data)));
            data.clear();
        }
        lines.push(match event {
            Event::Head { head, .. } => {
                let mut line = head.status.to_string();
                for field in &head.fields {
                    let (name, value) = (head.bytes(field.name), head.bytes(field.value));
                    let [name, value] = [name, value].map(String::from_utf8_lossy);
                    line += &format!(" {name}={value}");
                }
                line
            }
            Event::Note { text, .. } => format!("note {}", String::from_utf8_lossy(&text)),
            Event::End { body_bytes, .. } => format!("end {body_bytes}"),
            Event::Failed(error) => error.to_string(),
            other => format!("{other:?}"),
        });
    }
    if !data.is_empty() {
        lines.push(format!("+{}", String::from_utf8_lossy(&data)));
    }
    lines.join("\n")
}

/// Events of the bytes as an answer, whole, in pieces and in buffers; and whether the connection can be used again.
fn told_to(asked: impl Fn() -> Client, bytes: &[u8], eof: bool) -> (String, bool) {
    let finish = |mut client: Client| {
        if eof {
            client.receive_eof();
        }
        (story(&mut client), client.is_reusable())
    };
    let mut whole = asked();
    whole.receive(bytes);
    let result = finish(whole);
    for size in [1, 2, 3, 7, 20, 1000] {
        let (mut pieces, mut buffers, mut roomy) = (asked(), asked(), asked());
        for piece in bytes.chunks(size) {
            pieces.receive(piece);
            let mut buffer = piece.to_vec();
            buffers.receive_buffer(&mut buffer);
            assert!(buffer.is_empty());
            buffer = Vec::with_capacity(3 * size);
            buffer.extend_from_slice(piece);
            roomy.receive_buffer(&mut buffer);
            for client in [&pieces, &buffers, &roomy] {
                client.check_invariants();
            }
        }
        assert_eq!(finish(pieces), result, "in pieces of {size}");
        assert_eq!(finish(buffers), result, "in buffers of {size}");
        assert_eq!(finish(roomy), result, "in buffers with room of {size}");
    }
    result
}

/// Events as of [`told_to`], in answer to a GET with `keep`.
fn told(records: &[Vec<u8>]) -> (String, bool) {
    told_to(asked, &records.concat(), false)
}
