//! A whole response of SPDY/3.1, by the engine of servers; other crates' tests use it, too.

use engines::http::{BodyLength, Chunk, Front, OutputQueue, ResponseHead};
use engines::spdy::{Conn, SendAction, SendOptions};

/// The bytes of a response, ready to be sent; its body is their end.
pub(crate) fn response(conn: &mut Conn, stream: u32, size: usize) -> Vec<u8> {
    send(conn, stream, size);
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

fn send(conn: &mut Conn, stream: u32, size: usize) {
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
