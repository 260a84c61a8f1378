//! Frames: their heads, types and flags. Source: RFC 9113 sections 4.1 and 6.

use super::error::{self, ProtocolError};
use super::settings::DEFAULT_WINDOW;
use crate::mux::{Codes, Frames};

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// Length of the payload.
    pub(super) len: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHead {
    /// Reads the head of a frame.
    #[inline]
    pub(super) fn parse(bytes: &[u8; HEAD_BYTES]) -> Self {
        let number = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Self {
            len: (number(0) >> 8) as usize,
            kind: bytes[3],
            flags: bytes[4],
            stream: number(5) & MAX_STREAM,
        }
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends the head of a frame.
#[inline]
pub(super) fn put_head(out: &mut Vec<u8>, len: usize, kind: u8, flags: u8, stream: u32) {
    debug_assert!(len < 1 << 24, "a frame is shorter than 16 MiB");
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&((len as u32) << 8 | u32::from(kind)).to_be_bytes());
    head[4] = flags;
    head[5..].copy_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(&head);
}

/// Appends a frame of one number.
pub(super) fn put_number(out: &mut Vec<u8>, kind: u8, stream: u32, number: u32) {
    put_head(out, 4, kind, 0, stream);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Appends a header block: HEADERS, and CONTINUATION if a frame of `most` bytes is too small.
pub(super) fn put_block(
    out: &mut Vec<u8>,
    block: &[u8],
    most: usize,
    end_stream: bool,
    stream: u32,
) {
    let (first, mut rest) = block.split_at(block.len().min(most));
    let ended = |rest: &[u8]| if rest.is_empty() { END_HEADERS } else { 0 };
    let flags = if end_stream { END_STREAM } else { 0 };
    put_head(out, first.len(), HEADERS, flags | ended(rest), stream);
    out.extend_from_slice(first);
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.len().min(most));
        put_head(out, piece.len(), CONTINUATION, ended(more), stream);
        out.extend_from_slice(piece);
        rest = more;
    }
}

/// The first four bytes of a payload as a number.
pub(super) fn number(payload: &[u8]) -> Option<u32> {
    payload
        .first_chunk()
        .map(|bytes| u32::from_be_bytes(*bytes))
}

/// The payload without padding (RFC 9113 section 6.1); `None` if the padding is longer than the payload.
pub(super) fn unpadded(head: FrameHead, payload: &[u8]) -> Option<&[u8]> {
    if !head.has(PADDED) {
        return Some(payload);
    }
    let (pad, rest) = payload.split_first()?;
    let len = rest.len().checked_sub(usize::from(*pad))?;
    Some(&rest[..len])
}

/// The frames that both roles send alike.
#[derive(Debug)]
pub struct Http2Frames;

impl Frames for Http2Frames {
    type ProtocolError = ProtocolError;
    const HEAD_BYTES: usize = HEAD_BYTES;
    const DEFAULT_WINDOW: u32 = DEFAULT_WINDOW;
    const CODES: Codes = error::CODES;

    fn put_data(out: &mut Vec<u8>, stream: u32, len: usize, ended: bool) {
        let flags = if ended { END_STREAM } else { 0 };
        put_head(out, len, DATA, flags, stream);
    }

    fn put_reset(out: &mut Vec<u8>, stream: u32, code: u32) {
        put_number(out, RST_STREAM, stream, code);
    }

    fn put_grant(out: &mut Vec<u8>, stream: u32, bytes: u32) {
        put_number(out, WINDOW_UPDATE, stream, bytes);
    }

    fn put_goaway(out: &mut Vec<u8>, last: u32, error: Option<&ProtocolError>) {
        let code = error.map_or(error::NO_ERROR, |error| error.code());
        put_head(out, 8, GOAWAY, 0, 0);
        out.extend_from_slice(&last.to_be_bytes());
        out.extend_from_slice(&code.to_be_bytes());
    }
}

pub(super) const HEAD_BYTES: usize = 9;
/// Largest number of a stream.
pub(super) const MAX_STREAM: u32 = (1 << 31) - 1;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
/// RFC 9218 section 7.1.
pub(super) const PRIORITY_UPDATE: u8 = 16;

pub(super) const END_STREAM: u8 = 1;
pub(super) const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;
/// Flag of HEADERS: five bytes of the obsolete priorities come first.
pub(super) const HAS_PRIORITY: u8 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_round_trips() {
        let mut out = Vec::new();
        put_head(
            &mut out,
            0x0001_0203,
            HEADERS,
            END_STREAM | END_HEADERS,
            MAX_STREAM,
        );
        let head = FrameHead::parse(out.first_chunk().expect("nine bytes"));
        let expected = FrameHead {
            len: 0x0001_0203,
            kind: HEADERS,
            flags: 5,
            stream: MAX_STREAM,
        };
        assert_eq!(head, expected);
    }

    #[test]
    fn padding_is_taken_off() {
        let head = FrameHead {
            len: 0,
            kind: DATA,
            flags: PADDED,
            stream: 1,
        };
        assert_eq!(unpadded(head, &[2, b'a', 0, 0]), Some(&b"a"[..]));
        assert_eq!(unpadded(head, &[3, b'a', 0, 0]), Some(&b""[..]));
        assert_eq!(unpadded(head, &[4, b'a', 0, 0]), None);
        assert_eq!(unpadded(head, &[]), None);
    }
}
