//! A record as bytes: nginx's line `2026/11/21 03:41:18 [error] PID#TID: *1 text, client: ...`, or a JSON object.
//!
//! Text that comes from a peer is escaped, so that no terminal sequence or line break of an attacker reaches the log
//! (CVE-2009-4487). A JSON line is printable ASCII alone, whatever a client sent: other characters are `\uXXXX`, and
//! bytes that are not UTF-8 are the text `\xHH`; JSON doubles its backslash.
//!
//! Source: nginx documentation, `error_log`; RFC 8259, section 7; RFC 3339.

use std::cell::Cell;
use std::fmt::{self, Write};

use engines::http::push_decimal;

use super::printable::{message_text, restore_bytes};
use super::stamp::{Rfc3339, ids, push_local};
use super::{Details, Level, Record};

/// Appends nginx's line, with its end, to an empty buffer. `now` is the wall clock in seconds.
///
/// In a storm of errors this is most of a line's cost besides its write. So each part is appended in place, and the time text
/// is cached for all lines of a second.
pub(super) fn text(record: &Record<'_>, now: i64, line: &mut Vec<u8>) {
    push_local(now, line);
    line.extend_from_slice(b" [");
    line.extend_from_slice(record.level.name().as_bytes());
    line.extend_from_slice(b"] ");
    let (pid, thread) = ids();
    push_decimal(line, pid.into());
    line.push(b'#');
    push_decimal(line, thread.into());
    line.extend_from_slice(b": ");
    let start = line.len();
    if let Some(connection) = record.connection {
        line.push(b'*');
        push_decimal(line, connection);
        line.push(b' ');
    }
    let message = line.len();
    let _ = fmt::write(&mut Bytes(line), record.message);
    restore_bytes(line, message);
    if let Some(details) = request_details(record) {
        push_details(details, line);
    }
    line.truncate(MAX_LINE_BYTES);
    for b in &mut line[start..] {
        if *b < 0x20 || *b == 0x7f {
            *b = b' ';
        }
    }
    line.push(b'\n');
}

/// Takes the thread's reusable buffer for a line.
pub(super) fn take_buffer() -> Vec<u8> {
    // At the end of a thread its buffer may be freed already.
    LINE.try_with(Cell::take).unwrap_or_default()
}

/// Returns the buffer of a line to the thread, unless a long message has made it large.
pub(super) fn return_buffer(mut line: Vec<u8>) {
    if line.capacity() <= LINE_KEPT_BYTES {
        line.clear();
        let _ = LINE.try_with(|kept| kept.set(line));
    }
}

/// Bytes as a target of formatters.
struct Bytes<'a>(&'a mut Vec<u8>);

impl Write for Bytes<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// `, client: 127.0.0.1, server: localhost, request: "GET / HTTP/1.1", host: "localhost"`.
fn push_details(details: &Details<'_>, line: &mut Vec<u8>) {
    line.extend_from_slice(b", client: ");
    details.client.push(line);
    line.extend_from_slice(b", server: ");
    push_escaped(details.server, line);
    for (name, value) in quoted(details) {
        let Some(value) = value else { continue };
        line.extend_from_slice(b", ");
        line.extend_from_slice(name.as_bytes());
        line.extend_from_slice(b": \"");
        push_escaped(value, line);
        line.push(b'"');
    }
}

fn push_escaped(text: &[u8], line: &mut Vec<u8>) {
    // Writing to bytes cannot fail.
    let _ = write_shown(text, &mut Bytes(line));
}

/// A JSON object with its end of line.
pub(super) fn json(record: &Record<'_>, (seconds, ms): (i64, u32)) -> Vec<u8> {
    let (pid, thread) = ids();
    let mut line = String::with_capacity(512);
    let _ = write!(
        line,
        "{{\"time\":\"{}\",\"level\":\"{}\",\"pid\":{pid},\"thread\":{thread}",
        Rfc3339::local(seconds, ms),
        record.level.name()
    );
    if let Some(connection) = record.connection {
        let _ = write!(line, ",\"connection\":{connection}");
    }
    let message = message_text(record.message);
    push_member("message", message.as_bytes(), JSON_LONG_BYTES, &mut line);
    if let Some(details) = request_details(record) {
        let client = details.client.to_string();
        push_member("client", client.as_bytes(), JSON_SHORT_BYTES, &mut line);
        push_member("server", details.server, JSON_SHORT_BYTES, &mut line);
        for (name, value) in quoted(details) {
            let most = match name {
                "request" => JSON_LONG_BYTES,
                _ => JSON_SHORT_BYTES,
            };
            if let Some(value) = value {
                push_member(name, value, most, &mut line);
            }
        }
    }
    line.push_str("}\n");
    line.into_bytes()
}

fn push_member(name: &str, value: &[u8], most: usize, line: &mut String) {
    let _ = write!(line, ",\"{name}\":\"");
    push_json(value, most, line);
    line.push('"');
}

/// Appends a JSON string's inside, at most `most` bytes of it, cut between characters.
fn push_json(value: &[u8], most: usize, out: &mut String) {
    let end = out.len() + most;
    for chunk in value.utf8_chunks() {
        for c in chunk.valid().chars() {
            let before = out.len();
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                ' '..='~' => out.push(c),
                _ => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
            }
            if out.len() > end {
                return out.truncate(before);
            }
        }
        for byte in chunk.invalid() {
            let before = out.len();
            let _ = write!(out, "\\\\x{byte:02X}");
            if out.len() > end {
                return out.truncate(before);
            }
        }
    }
}

/// Appends `text` with control bytes and bytes above 0x7e written as `\xHH`.
pub fn escape(text: &[u8], out: &mut String) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{}", Shown(text));
}

/// Bytes of a peer, shown with control bytes and bytes above 0x7e as `\xHH`.
pub struct Shown<'a>(
    /// The bytes.
    pub &'a [u8],
);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_shown(self.0, f)
    }
}

/// Writes runs of printable bytes whole, since most texts are one.
fn write_shown(mut text: &[u8], out: &mut impl Write) -> fmt::Result {
    let is_plain = |b: &u8| (0x20..0x7f).contains(b);
    while !text.is_empty() {
        let end = text.iter().position(|b| !is_plain(b));
        let (plain, rest) = text.split_at(end.unwrap_or(text.len()));
        // ASCII is valid UTF-8.
        out.write_str(std::str::from_utf8(plain).unwrap_or_default())?;
        text = rest;
        if let Some((b, rest)) = text.split_first() {
            write!(out, "\\x{b:02X}")?;
            text = rest;
        }
    }
    Ok(())
}

/// The request fields of a record; `None` for debugging messages, as in nginx.
fn request_details<'a>(record: &Record<'a>) -> Option<&'a Details<'a>> {
    record.request.filter(|_| record.level != Level::Debug)
}

fn quoted<'a>(details: &Details<'a>) -> [(&'static str, Option<&'a [u8]>); 5] {
    [
        ("request", details.request),
        ("subrequest", details.subrequest),
        ("upstream", details.upstream),
        ("host", details.host),
        ("referrer", details.referrer),
    ]
}

thread_local! {
    static LINE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Maximum memory that a thread keeps for its next line, bytes.
const LINE_KEPT_BYTES: usize = 4 * MAX_LINE_BYTES;

/// Longest line written, as nginx's NGX_MAX_ERROR_STR.
pub const MAX_LINE_BYTES: usize = 2048;
/// Maximum size of the message and of the request line in a JSON line, escaped, bytes.
const JSON_LONG_BYTES: usize = 2048;
/// Maximum size of any other value that a client controls, bytes.
const JSON_SHORT_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errlog::Topics;
    use crate::peer::Peer;

    fn record<'a>(message: fmt::Arguments<'a>, request: Option<&'a Details<'a>>) -> Record<'a> {
        Record {
            level: Level::Error,
            topics: Topics::NONE,
            connection: request.map(|_| 5),
            message,
            request,
            everywhere: false,
        }
    }

    fn text(record: &Record<'_>) -> Vec<u8> {
        let mut line = take_buffer();
        super::text(record, 784_111_777, &mut line);
        let text = line.clone();
        return_buffer(line);
        text
    }

    fn json(record: &Record<'_>) -> Vec<u8> {
        super::json(record, (784_111_777, 0))
    }

    fn details<'a>(bytes: &'a [u8]) -> Details<'a> {
        Details {
            client: Peer::Unix,
            server: b"localhost",
            request: Some(bytes),
            subrequest: None,
            upstream: None,
            host: Some(bytes),
            referrer: None,
        }
    }

    #[test]
    fn control_bytes_never_reach_the_log() {
        let line = text(&record(format_args!("a\x1b[31mb\nc"), None));
        assert!(!line[..line.len() - 1].iter().any(|b| *b < 0x20));
        assert!(line.ends_with(b"a [31mb c\n"));
    }

    #[test]
    fn a_line_is_bounded() {
        for length in [5000, MAX_LINE_BYTES] {
            let line = text(&record(format_args!("{}", "x".repeat(length)), None));
            assert_eq!(line.len(), MAX_LINE_BYTES + 1);
        }
    }

    #[test]
    fn escape_writes_hex() {
        for (bytes, shown) in [
            (&b"a\x1b\xff"[..], "a\\x1B\\xFF"),
            (b"\x1fa~\x7f\x80b c", "\\x1Fa~\\x7F\\x80b c"),
            (b"", ""),
        ] {
            let mut out = String::new();
            escape(bytes, &mut out);
            assert_eq!(out, shown);
        }
    }

    #[test]
    fn the_memory_of_a_long_line_is_not_kept() {
        let long = text(&record(
            format_args!("{}", "x".repeat(LINE_KEPT_BYTES)),
            None,
        ));
        assert_eq!(long.len(), MAX_LINE_BYTES + 1);
        assert!(take_buffer().capacity() <= LINE_KEPT_BYTES);
    }

    #[test]
    fn a_line_tells_of_its_request_unless_it_is_for_debugging() {
        let details = details(b"GET /\x07 HTTP/1.1");
        let mut record = record(format_args!("said"), Some(&details));
        let line = String::from_utf8(text(&record)).expect("escaped");
        let tail = "*5 said, client: unix:, server: localhost, request: \"GET /\\x07 HTTP/1.1\", \
                    host: \"GET /\\x07 HTTP/1.1\"\n";
        assert!(line.ends_with(tail), "{line}");
        record.level = Level::Debug;
        assert!(text(&record).ends_with(b"*5 said\n"));
        assert!(json(&record).ends_with(b"\"connection\":5,\"message\":\"said\"}\n"));
    }

    #[test]
    fn a_json_line_is_ascii_and_escaped_whatever_it_holds() {
        let every_byte: Vec<u8> = (0..=255).collect();
        let details = details(&every_byte);
        let line = json(&record(format_args!("\u{1f980}\"\\\n"), Some(&details)));
        assert!(line.ends_with(b"\"}\n"));
        let inside = &line[..line.len() - 1];
        assert!(inside.iter().all(|b| (0x20..0x7f).contains(b)));
        let line = String::from_utf8(line).expect("ASCII");
        assert!(
            line.contains("\"message\":\"\\ud83e\\udd80\\\"\\\\\\u000a\",\"client\":\"unix:\""),
            "{line}"
        );
        assert!(line.contains("\"request\":\"\\u0000\\u0001"), "{line}");
        assert!(line.contains(" !\\\"#") && line.contains("[\\\\]") && line.contains("\\\\xFF"));
    }

    #[test]
    fn a_json_value_is_cut_between_characters() {
        let mut out = String::new();
        push_json(&[b'x'; JSON_LONG_BYTES], JSON_LONG_BYTES, &mut out);
        assert_eq!(out.len(), JSON_LONG_BYTES);
        out.clear();
        push_json(&[b'x'; JSON_LONG_BYTES + 1], JSON_LONG_BYTES, &mut out);
        assert_eq!(out.len(), JSON_LONG_BYTES);
        out.clear();
        push_json("xx\u{1f980}".as_bytes(), 13, &mut out);
        assert_eq!(out, "xx");
        out.clear();
        push_json("xx\u{1f980}".as_bytes(), 14, &mut out);
        assert_eq!(out, "xx\\ud83e\\udd80");
    }
}
