//! Stories of whole connections, over the public interface.

mod body;
mod client;
mod differential;
mod head;
mod keep_alive;
mod limits;
mod response;
mod unfinished;

use super::{Conn, Event, Next, Settings};
use crate::http::{
    BodyLength, Chunk, Fault, FieldId, Front, OutputQueue, RequestHead, ResponseHead,
};
use std::rc::Rc;

/// A connection with nginx's default settings.
fn conn() -> Conn {
    conn_with(Settings::default())
}

fn conn_with(settings: Settings) -> Conn {
    Conn::new(Rc::new(settings))
}

/// A connection that has received `input`.
fn after(input: &str) -> Conn {
    let mut conn = conn();
    conn.receive(input.as_bytes());
    conn
}

/// The head that must be the next event.
fn next_head(conn: &mut Conn) -> RequestHead {
    match conn.event() {
        Some(Event::Head(head)) => head,
        other => panic!("a head is due, not {other:?}"),
    }
}

/// The head of `input`, which must be without fault.
fn head(input: &str) -> RequestHead {
    let head = next_head(&mut after(input));
    assert_eq!(head.fault, None, "{input:?}");
    head
}

/// The fault of the head in `input`; `None` if it is good.
fn fault_with(input: &[u8], settings: Settings) -> Option<Fault> {
    let mut conn = conn_with(settings);
    conn.receive(input);
    conn.check_invariants();
    let head = next_head(&mut conn);
    if head.fault.is_some() {
        assert!(head.close, "a fault ends the connection");
        assert_eq!(conn.event(), None, "nothing follows a fault");
    }
    head.fault
}

fn fault(input: &str) -> Option<Fault> {
    fault_with(input.as_bytes(), Settings::default())
}

/// The fault of a GET of "/" over HTTP/1.1 with Host and these lines.
fn fault_of_lines(lines: &str) -> Option<Fault> {
    fault(&format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n\r\n"))
}

/// Everything waiting to be sent.
fn sent(conn: &mut Conn) -> String {
    let mut gather = OutputQueue::default();
    conn.transmit(&mut gather);
    let mut out = Vec::new();
    while let Some(front) = gather.front() {
        let Front::Bytes(bytes) = front else {
            panic!("no files in these stories")
        };
        out.extend_from_slice(bytes);
        let len = bytes.len() as u64;
        gather.advance(len);
    }
    String::from_utf8(out).unwrap()
}

/// A 200 with the body "ok" and its length.
fn ok_head() -> ResponseHead {
    let mut response = ResponseHead {
        status: 200,
        body: BodyLength::Length(2),
        keep_alive: true,
        ..ResponseHead::default()
    };
    response.push_id(FieldId::ContentLength, b"Content-Length", b"2");
    response
}

/// Answers the current request with [`ok_head`] and finishes it.
fn answer_ok(conn: &mut Conn) -> Next {
    conn.send_head(&ok_head());
    conn.send_data(Chunk::Static(b"ok"));
    conn.send_end(None);
    conn.finish()
}

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
