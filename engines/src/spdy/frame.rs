//! Frames: their heads, types and flags. Source: draft-mbelshe-httpbis-spdy-00 section 2.2.

use super::error::{self, ProtocolError};
use super::settings::DEFAULT_WINDOW;
use crate::mux::{Codes, Frames};

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    pub(super) kind: FrameKind,
    pub(super) flags: u8,
    /// Length of the payload.
    pub(super) len: usize,
}

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// Data of this stream.
    Data(u32),
    /// A control frame of this type.
    Control(u16),
    /// A control frame of another version of SPDY.
    OtherVersion,
}

impl FrameHead {
    /// Reads the head of a frame.
    #[inline]
    pub(super) fn parse(bytes: &[u8; HEAD_BYTES]) -> Self {
        let [a, b, c, d, flags, e, f, g] = *bytes;
        let word = u32::from_be_bytes([a, b, c, d]);
        let kind = if word & CONTROL == 0 {
            FrameKind::Data(word)
        } else if word >> 16 == CONTROL >> 16 | VERSION {
            FrameKind::Control(word as u16)
        } else {
            FrameKind::OtherVersion
        };
        Self {
            kind,
            flags,
            len: u32::from_be_bytes([0, e, f, g]) as usize,
        }
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends the head of a control frame.
pub(super) fn put_control(out: &mut Vec<u8>, kind: u16, flags: u8, len: usize) {
    debug_assert!(len <= MAX_LEN, "a frame is shorter than 16 MiB");
    out.extend_from_slice(&(CONTROL | VERSION << 16 | u32::from(kind)).to_be_bytes());
    out.extend_from_slice(&(u32::from(flags) << 24 | len as u32).to_be_bytes());
}

/// Appends the head of a DATA frame.
#[inline]
pub(super) fn put_data(out: &mut Vec<u8>, stream: u32, flags: u8, len: usize) {
    debug_assert!(len <= MAX_LEN, "a frame is shorter than 16 MiB");
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&stream.to_be_bytes());
    head[4..].copy_from_slice(&(u32::from(flags) << 24 | len as u32).to_be_bytes());
    out.extend_from_slice(&head);
}

/// Appends a control frame of two numbers.
pub(super) fn put_pair(out: &mut Vec<u8>, kind: u16, first: u32, second: u32) {
    put_control(out, kind, 0, 8);
    out.extend_from_slice(&first.to_be_bytes());
    out.extend_from_slice(&second.to_be_bytes());
}

/// A payload of one number.
pub(super) fn one(payload: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(payload.try_into().ok()?))
}

/// A payload of two numbers.
pub(super) fn two(payload: &[u8]) -> Option<(u32, u32)> {
    let (first, second) = payload.split_at_checked(4)?;
    Some((one(first)?, one(second)?))
}

/// The frames that both roles send alike.
#[derive(Debug)]
pub struct SpdyFrames;

impl Frames for SpdyFrames {
    type ProtocolError = ProtocolError;
    const HEAD_BYTES: usize = HEAD_BYTES;
    const DEFAULT_WINDOW: u32 = DEFAULT_WINDOW;
    const CODES: Codes = error::CODES;

    fn put_data(out: &mut Vec<u8>, stream: u32, len: usize, ended: bool) {
        put_data(out, stream, if ended { FIN } else { 0 }, len);
    }

    fn put_reset(out: &mut Vec<u8>, stream: u32, code: u32) {
        put_pair(out, RST_STREAM, stream, code);
    }

    fn put_grant(out: &mut Vec<u8>, stream: u32, bytes: u32) {
        put_pair(out, WINDOW_UPDATE, stream, bytes);
    }

    fn put_goaway(out: &mut Vec<u8>, last: u32, error: Option<&ProtocolError>) {
        let code = error.map_or(error::OK, |_| error::PROTOCOL_ERROR);
        put_pair(out, GOAWAY, last, code);
    }
}

pub(super) const HEAD_BYTES: usize = 8;
/// Longest payload that a head can announce.
pub(super) const MAX_LEN: usize = (1 << 24) - 1;
/// Largest number of a stream.
pub(super) const MAX_STREAM: u32 = (1 << 31) - 1;

pub(super) const SYN_STREAM: u16 = 1;
pub(super) const SYN_REPLY: u16 = 2;
pub(super) const RST_STREAM: u16 = 3;
pub(super) const SETTINGS: u16 = 4;
pub(super) const PING: u16 = 6;
pub(super) const GOAWAY: u16 = 7;
pub(super) const HEADERS: u16 = 8;
pub(super) const WINDOW_UPDATE: u16 = 9;

/// The sender's side of the stream ends with this frame.
pub(super) const FIN: u8 = 1;
/// Of SYN_STREAM: the receiver's side is closed from the start.
pub(super) const UNIDIRECTIONAL: u8 = 2;
/// Of SETTINGS: drop persisted values.
pub(super) const CLEAR_SETTINGS: u8 = 1;

const CONTROL: u32 = 1 << 31;
const VERSION: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_round_trip() {
        let mut out = Vec::new();
        put_control(&mut out, SYN_REPLY, FIN, MAX_LEN);
        put_data(&mut out, MAX_STREAM, FIN, 5);
        let (control, data) = out.split_first_chunk().expect("two heads");
        let expected = FrameHead {
            kind: FrameKind::Control(SYN_REPLY),
            flags: FIN,
            len: MAX_LEN,
        };
        assert_eq!(FrameHead::parse(control), expected);
        let expected = FrameHead {
            kind: FrameKind::Data(MAX_STREAM),
            flags: FIN,
            len: 5,
        };
        let data = data.first_chunk().expect("a head");
        assert_eq!(FrameHead::parse(data), expected);
    }

    #[test]
    fn other_versions_are_told_apart() {
        let kind = |version: u8| FrameHead::parse(&[0x80, version, 0, 1, 0, 0, 0, 0]).kind;
        assert_eq!(kind(2), FrameKind::OtherVersion);
        assert_eq!(kind(3), FrameKind::Control(SYN_STREAM));
        assert_eq!(kind(4), FrameKind::OtherVersion);
    }
}
