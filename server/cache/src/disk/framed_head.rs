//! Response heads in records of FastCGI: nginx stores them as received, with record headers and messages.
//!
//! Source: FastCGI 1.0, sections 3.3 and 5.3.

use std::borrow::Cow;

const RECORD_BYTES: usize = 8;
const VERSION: u8 = 1;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// Returns the response head in the records of a stored head; `None` if they are no such records, or end before the empty
/// line of the head.
///
/// The last record may be cut: the rest of it is body.
#[must_use]
pub fn unframe(mut records: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut head = Cow::Borrowed(&[][..]);
    while let Some((record, rest)) = records.split_first_chunk::<RECORD_BYTES>() {
        let [VERSION, kind @ (STDOUT | STDERR), _, _, l0, l1, padding, _] = *record else {
            return None;
        };
        let len = usize::from(u16::from_be_bytes([l0, l1])).min(rest.len());
        let (content, rest) = rest.split_at(len);
        records = rest.get(usize::from(padding)..).unwrap_or_default();
        if kind == STDERR {
            continue;
        }
        if head.is_empty() {
            head = Cow::Borrowed(content);
        } else {
            head.to_mut().extend_from_slice(content);
        }
    }
    let is_empty = matches!(&*head, b"\n" | b"\r\n");
    let is_whole = is_empty || head.ends_with(b"\n\n") || head.ends_with(b"\n\r\n");
    is_whole.then_some(head)
}

/// Returns a head in one record, as nginx reads it from a file.
///
/// Heads longer than 65,535 bytes cannot be stored; they are cut.
#[must_use]
pub fn frame(head: &[u8]) -> Vec<u8> {
    let head = &head[..head.len().min(usize::from(u16::MAX))];
    let [l0, l1] = (head.len() as u16).to_be_bytes();
    let mut framed = vec![VERSION, STDOUT, 0, 1, l0, l1, 0, 0];
    framed.extend_from_slice(head);
    framed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
        let len = (content.len() as u16).to_be_bytes();
        let mut record = vec![1, kind, 0, 1, len[0], len[1], padding, 0];
        record.extend_from_slice(content);
        record.extend(std::iter::repeat_n(0, usize::from(padding)));
        record
    }

    #[test]
    fn a_framed_head_is_the_same_head() {
        for head in [&b"Status: 200 OK\r\n\r\n"[..], b"A: b\n\n", b"\r\n", b"\n"] {
            assert_eq!(unframe(&frame(head)).as_deref(), Some(head));
        }
    }

    #[test]
    fn records_are_joined_and_messages_left_out() {
        let records = [
            record(7, b"warning", 1),
            record(6, b"Status: 2", 7),
            record(7, b"", 0),
            record(6, b"00\r\n\r\n", 0),
        ]
        .concat();
        let head = unframe(&records);
        assert_eq!(head.as_deref(), Some(&b"Status: 200\r\n\r\n"[..]));
    }

    #[test]
    fn the_last_record_may_continue_in_the_body() {
        let mut record = record(6, b"A: b\r\n\r\nbody", 3);
        record.truncate(8 + 8);
        let head = unframe(&record);
        assert_eq!(head.as_deref(), Some(&b"A: b\r\n\r\n"[..]));
    }

    #[test]
    fn other_bytes_are_no_head() {
        let end_request = record(3, b"12345678", 0);
        for bytes in [
            &b""[..],
            b"HTTP/1.1 200 OK\r\n\r\n",
            &record(6, b"A: b\r\n", 0),
            &end_request,
        ] {
            assert_eq!(unframe(bytes), None);
        }
    }
}
