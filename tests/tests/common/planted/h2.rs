//! HTTP/2 by prior knowledge, just enough for a client of one request at a time: responses are whole and in order, and
//! windows are assumed to be large enough.

use std::io;

use firstbyte_tests::h2::{ACK, DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, frame};
use firstbyte_tests::hpack::{self, Reader};

use super::{Wire, body};

pub(super) fn converse(mut wire: Wire) -> io::Result<()> {
    let mut reader = Reader::default();
    let (mut buffer, mut piece) = (Vec::new(), [0; 2048]);
    let mut has_preface = false;
    // Sent with the first response: the client owes an acknowledgement for it, which would come along with nothing.
    let mut owed = [frame(SETTINGS, 0, 0, &[]), frame(SETTINGS, ACK, 0, &[])].concat();
    loop {
        let length = wire.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        buffer.extend_from_slice(&piece[..length]);
        if !has_preface && buffer.len() >= PREFACE.len() {
            buffer.drain(..PREFACE.len());
            has_preface = true;
        }
        while let Some((kind, stream, payload)) = take_frame(&mut buffer).filter(|_| has_preface) {
            if kind != HEADERS {
                continue;
            }
            let fields = reader.read(&payload);
            let path = fields.iter().find(|(name, _)| name == ":path");
            let path = path.map_or("", |(_, path)| path);
            let mut response = std::mem::take(&mut owed);
            let block = hpack::write(&[(":status", "200")]);
            response.extend(frame(HEADERS, END_HEADERS, stream, &block));
            if path == "/flush" {
                response.extend(frame(DATA, 0, stream, &[b'a'; 500]));
                let rest = frame(DATA, END_STREAM, stream, &[b'b'; 500]);
                wire.respond_in_two(&response, &rest)?;
                continue;
            }
            let body = body(path);
            let last = body.len().div_ceil(FRAME_BYTES).max(1) - 1;
            for (n, part) in body.chunks(FRAME_BYTES).enumerate() {
                let flags = if n == last { END_STREAM } else { 0 };
                response.extend(frame(DATA, flags, stream, part));
            }
            wire.respond(&response, body.len())?;
        }
    }
}

/// Takes a whole frame: its type, stream and payload.
fn take_frame(buffer: &mut Vec<u8>) -> Option<(u8, u32, Vec<u8>)> {
    let [a, b, c, kind, _, rest @ ..] = &buffer[..] else {
        return None;
    };
    let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
    let kind = *kind;
    let stream = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?) & 0x7fff_ffff;
    let payload = rest.get(4..4 + length)?.to_vec();
    buffer.drain(..9 + length);
    Some((kind, stream, payload))
}

/// The largest frame that everybody takes (RFC 9113 section 4.2).
const FRAME_BYTES: usize = 16_384;
