//! SPDY/3.1 by prior knowledge, by the engine of servers.

use std::io;
use std::rc::Rc;

use engines::http::{BodyLength, Chunk, Front, OutputQueue, ResponseHead};
use engines::spdy::{Conn, Event, SendAction, SendOptions, Settings};

use super::{Wire, size};

pub(super) fn converse(mut wire: Wire) -> io::Result<()> {
    let mut conn = Conn::new(Rc::new(Settings::default()));
    let mut piece = [0; 2048];
    loop {
        let length = wire.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        conn.receive(&piece[..length]);
        while let Some(event) = conn.event() {
            let Event::Head { stream, head } = event else {
                continue;
            };
            let path = String::from_utf8_lossy(head.bytes(head.target)).into_owned();
            let size = size(&path);
            answer(&mut conn, stream, size);
            let response = transmitted(&mut conn);
            if path == "/flush" {
                // Somewhere inside the frame of the body: a client shows what it has of a frame.
                let (first, rest) = response.split_at(response.len() - size / 2);
                wire.respond_in_two(first, rest)?;
                continue;
            }
            wire.respond(&response, size)?;
        }
    }
}

fn transmitted(conn: &mut Conn) -> Vec<u8> {
    let mut out = OutputQueue::default();
    conn.transmit(&mut out);
    let mut bytes = Vec::new();
    while let Some(Front::Bytes(next)) = out.front() {
        let length = next.len();
        bytes.extend_from_slice(next);
        out.advance(length as u64);
    }
    bytes
}

/// A whole response, ready to be transmitted; its body is its end.
fn answer(conn: &mut Conn, stream: u32, size: usize) {
    let head = ResponseHead {
        status: 200,
        body: BodyLength::Length(size as u64),
        ..ResponseHead::default()
    };
    let plan = SendOptions {
        trailers: false,
        chunk_bytes: size,
    };
    conn.send_head(stream, &head, plan);
    let mut body = Some(vec![b'x'; size]);
    loop {
        match (conn.advance(u64::MAX, 0), body.take()) {
            (SendAction::Body(_), Some(body)) => conn.send_data(stream, Chunk::Owned(body)),
            (SendAction::Body(_), None) => conn.send_end(stream, None),
            (SendAction::Sent { .. } | SendAction::Nothing, _) => return,
        }
    }
}
