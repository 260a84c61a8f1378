//! Our notes about a response, between its head and its body.
//!
//! ```text
//! request-ms: 1700000000123\n        lines, of which unknown ones are ignored
//! response-ms: 1700000000456\n
//! age: 3\n
//! tags: a\tb\n
//! length of the body (8 bytes), length of the lines (2 bytes), mark (6 bytes)
//! ```
//!
//! The length of the body is unknown while a response is received: it is written at [`body_length_at`] afterwards. A file
//! that is shorter or longer is damaged, whatever its response head has.
//!
//! A response head ends with a line feed and the notes with another byte, so a head of nginx is not taken for notes.

use std::io::Write;

use super::error::Invalid;

/// The end of notes.
const MARK: &[u8; 6] = b"fbyte1";
/// Bytes of both lengths and the mark.
const TRAILER_BYTES: usize = 16;
/// Bytes of notes without tags.
pub(super) const TYPICAL_BYTES: usize = 96;
/// The length of a body that is still received.
const UNKNOWN: u64 = u64::MAX;

/// Notes about a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes<'a> {
    /// Time of the request, milliseconds since 1970 (RFC 9111 section 4.2.3, `request_time`).
    pub request_ms: Option<i64>,
    /// Time of the response head, milliseconds since 1970 (`response_time`).
    pub response_ms: Option<i64>,
    /// `Age` of the response, seconds (`age_value`).
    pub age_s: Option<u32>,
    /// Tags of the response ([`crate::tags::Tags::text`]).
    pub tags: &'a [u8],
    /// Length of the body, bytes; `None` while it is received.
    pub body_len: Option<u64>,
}

impl Notes<'_> {
    /// Appends the notes to a response head. Tags beyond 65,000 bytes are left out: [`crate::tags::Tags`] has less.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut number = |name: &str, value: Option<i64>| {
            if let Some(value) = value {
                // A vector takes all bytes.
                let _ = writeln!(out, "{name}: {value}");
            }
        };
        number("request-ms", self.request_ms);
        number("response-ms", self.response_ms);
        number("age", self.age_s.map(i64::from));
        if !self.tags.is_empty() && self.tags.len() < 65_000 {
            out.extend_from_slice(b"tags: ");
            out.extend_from_slice(self.tags);
            out.push(b'\n');
        }
        let lines = (out.len() - start) as u16;
        out.extend_from_slice(&self.body_len.unwrap_or(UNKNOWN).to_le_bytes());
        out.extend_from_slice(&lines.to_le_bytes());
        out.extend_from_slice(MARK);
    }
}

/// Returns the position of the body's length in a file with notes, for 8 little-endian bytes.
#[must_use]
pub fn body_length_at(body_start: u16) -> u64 {
    u64::from(body_start).saturating_sub(TRAILER_BYTES as u64)
}

/// Splits the bytes before a body into response head and notes.
pub(super) fn split(bytes: &[u8]) -> Result<(&[u8], Notes<'_>), Invalid> {
    let Some((rest, trailer)) = bytes.split_last_chunk::<TRAILER_BYTES>() else {
        return Ok((bytes, Notes::default()));
    };
    let [body @ .., l0, l1, _, _, _, _, _, _] = trailer;
    if !trailer.ends_with(MARK) {
        return Ok((bytes, Notes::default()));
    }
    let lines = usize::from(u16::from_le_bytes([*l0, *l1]));
    let head_len = rest.len().checked_sub(lines).ok_or(Invalid::Notes)?;
    let (head, lines) = rest.split_at(head_len);
    let mut notes = parse(lines)?;
    notes.body_len = Some(u64::from_le_bytes(*body)).filter(|len| *len != UNKNOWN);
    Ok((head, notes))
}

/// Parses the lines of notes.
fn parse(mut lines: &[u8]) -> Result<Notes<'_>, Invalid> {
    let mut notes = Notes::default();
    while !lines.is_empty() {
        let end = lines.iter().position(|byte| *byte == b'\n');
        let (line, rest) = lines.split_at(end.ok_or(Invalid::Notes)?);
        lines = &rest[1..];
        let colon = line.windows(2).position(|pair| pair == b": ");
        let (name, value) = line.split_at(colon.ok_or(Invalid::Notes)?);
        let value = &value[2..];
        match name {
            b"request-ms" => notes.request_ms = Some(number(value)?),
            b"response-ms" => notes.response_ms = Some(number(value)?),
            b"age" => notes.age_s = Some(number(value)?),
            b"tags" => notes.tags = value,
            _ => {}
        }
    }
    Ok(notes)
}

fn number<N: std::str::FromStr>(value: &[u8]) -> Result<N, Invalid> {
    let text = std::str::from_utf8(value).map_err(|_| Invalid::Notes)?;
    text.parse().map_err(|_| Invalid::Notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_trailer(lines: &[u8], declared: u16) -> Vec<u8> {
        let mut bytes = lines.to_vec();
        bytes.extend_from_slice(&7_u64.to_le_bytes());
        bytes.extend_from_slice(&declared.to_le_bytes());
        bytes.extend_from_slice(MARK);
        bytes
    }

    #[test]
    fn unknown_lines_are_ignored_and_damaged_ones_refused() {
        let bytes = with_trailer(b"HTTP/1.1 200 OK\r\n\r\nnewer: 1\nage: 5\n", 16);
        let (head, notes) = split(&bytes).expect("they are notes");
        assert_eq!(head, b"HTTP/1.1 200 OK\r\n\r\n");
        assert_eq!((notes.age_s, notes.body_len), (Some(5), Some(7)));
        for (lines, declared) in [
            (&b"age: 5"[..], 6),
            (b"age:5\n", 6),
            (b"age: x\n", 7),
            (b"age: -1\n", 8),
            (b"age: 4294967296\n", 16),
            (b"age: 5\n", 8),
        ] {
            let bytes = with_trailer(lines, declared);
            assert_eq!(split(&bytes), Err(Invalid::Notes), "{lines:?}");
        }
    }

    #[test]
    fn a_head_without_a_mark_has_no_notes() {
        for head in [
            &b""[..],
            b"fbyte1",
            b"HTTP/1.1 200 OK\r\nX: fbyte1\r\n\r\n",
            b"Status: 200\n\n",
        ] {
            assert_eq!(split(head), Ok((head, Notes::default())));
        }
    }
}
