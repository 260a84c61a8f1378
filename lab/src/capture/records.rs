//! Records of TLS in a direction's payload: their heads are in the clear.
//!
//! Source: RFC 8446 section 5.1, RFC 5246 section 6.2.

use super::stream::{Part, Stream};

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) kind: u8,
    /// Place of its head.
    pub(super) begin: usize,
    /// Its bytes with the head.
    pub(super) bytes: usize,
    /// The packets with which its first and its last byte were there.
    pub(super) first: Part,
    pub(super) last: Part,
}

/// The whole records of a direction, from its beginning to the first thing that is none.
pub(super) fn of(stream: &Stream) -> Vec<Record> {
    let mut found = Vec::new();
    let mut begin = 0;
    while found.len() < RECORDS_MAX
        && let Some([kind, 3, 0..=4, high, low]) = stream.bytes.get(begin..begin + HEAD_BYTES)
        && matches!(*kind, CHANGE_CIPHER_SPEC..=APPLICATION_DATA)
    {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let bytes = HEAD_BYTES + length;
        let parts = (stream.part(begin), stream.part(begin + bytes - 1));
        let (Some(first), Some(last)) = parts else {
            break;
        };
        if length > LENGTH_MAX {
            break;
        }
        found.push(Record {
            kind: *kind,
            begin,
            bytes,
            first,
            last,
        });
        begin += bytes;
    }
    found
}

/// The head of a record.
pub(super) const HEAD_BYTES: usize = 5;
/// Types of records.
pub(super) const CHANGE_CIPHER_SPEC: u8 = 20;
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const APPLICATION_DATA: u8 = 23;
/// The most that a record holds in TLS 1.2, which allows more than TLS 1.3.
const LENGTH_MAX: usize = (1 << 14) + 2048;
/// The most records of a direction that are looked at.
const RECORDS_MAX: usize = 100_000;
