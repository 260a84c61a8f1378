//! A record as bytes: nginx's line `2026/11/21 03:41:18 [error] PID#TID: *1 text, client: ...`, or a JSON object.
//!
//! Text that comes from a peer is escaped, so that no terminal sequence or line break of an attacker reaches the log
//! (CVE-2009-4487). A JSON line is printable ASCII alone, whatever a client sent: other characters are `\uXXXX`, and
//! bytes that are no UTF-8 are U+FFFD.
//!
//! Source: nginx documentation, `error_log`; RFC 8259, section 7; RFC 3339.

use std::fmt::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use engines::http::{Civil, civil};

use super::{Details, Level, Record, THREAD};
use crate::clock::utc_offset_s;

/// nginx's line, with its end.
pub(super) fn text(record: &Record<'_>) -> Vec<u8> {
    let (seconds, _) = now();
    let Civil {
        year: y,
        month: mo,
        day: d,
        hour: h,
        minute: mi,
        second: s,
        ..
    } = civil(seconds + i64::from(utc_offset_s()));
    let (pid, thread) = ids();
    let mut line = format!(
        "{y:04}/{mo:02}/{d:02} {h:02}:{mi:02}:{s:02} [{}] {pid}#{thread}: ",
        record.level.name()
    );
    let start = line.len();
    if let Some(connection) = record.connection {
        let _ = write!(line, "*{connection} ");
    }
    let _ = fmt::write(&mut line, record.message);
    if let Some(details) = told(record) {
        push_details(details, &mut line);
    }
    let mut bytes = line.into_bytes();
    bytes.truncate(MAX_LINE_BYTES);
    for b in &mut bytes[start..] {
        if *b < 0x20 || *b == 0x7f {
            *b = b' ';
        }
    }
    bytes.push(b'\n');
    bytes
}

/// `, client: 127.0.0.1, server: localhost, request: "GET / HTTP/1.1", host: "localhost"`.
fn push_details(details: &Details<'_>, line: &mut String) {
    let _ = write!(line, ", client: {}, server: ", details.client);
    escape(details.server, line);
    for (name, value) in quoted(details) {
        let Some(value) = value else { continue };
        let _ = write!(line, ", {name}: \"");
        escape(value, line);
        line.push('"');
    }
}

/// A JSON object with its end of line.
pub(super) fn json(record: &Record<'_>) -> Vec<u8> {
    let (seconds, ms) = now();
    let (pid, thread) = ids();
    let mut line = String::with_capacity(512);
    let _ = write!(
        line,
        "{{\"time\":\"{}\",\"level\":\"{}\",\"pid\":{pid},\"thread\":{thread}",
        Rfc3339 {
            seconds,
            ms,
            offset_s: utc_offset_s()
        },
        record.level.name()
    );
    if let Some(connection) = record.connection {
        let _ = write!(line, ",\"connection\":{connection}");
    }
    let message = record.message.to_string();
    push_member("message", message.as_bytes(), JSON_LONG_BYTES, &mut line);
    if let Some(details) = told(record) {
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
        let broken = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
        for c in chunk.valid().chars().chain(broken) {
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
                out.truncate(before);
                return;
            }
        }
    }
}

/// Appends `text` with control bytes and bytes above 0x7e written as `\xHH`.
pub fn escape(text: &[u8], out: &mut String) {
    // A String takes everything.
    let _ = write!(out, "{}", Shown(text));
}

/// Bytes of a peer, shown with control bytes and bytes above 0x7e as `\xHH`.
pub struct Shown<'a>(
    /// The bytes.
    pub &'a [u8],
);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &b in self.0 {
            if (0x20..0x7f).contains(&b) {
                f.write_char(char::from(b))?;
            } else {
                write!(f, "\\x{b:02X}")?;
            }
        }
        Ok(())
    }
}

/// What the record tells of its request: as in nginx, debugging messages tell nothing.
fn told<'a>(record: &Record<'a>) -> Option<&'a Details<'a>> {
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

/// `2026-11-21T03:41:18.123+01:00`.
struct Rfc3339 {
    seconds: i64,
    ms: u32,
    offset_s: i32,
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = civil(self.seconds + i64::from(self.offset_s));
        let sign = if self.offset_s < 0 { '-' } else { '+' };
        let minutes = self.offset_s.unsigned_abs() / 60;
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}{sign}{:02}:{:02}",
            t.year,
            t.month,
            t.day,
            t.hour,
            t.minute,
            t.second,
            self.ms,
            minutes / 60,
            minutes % 60
        )
    }
}

/// The wall clock: seconds since 1970, and milliseconds.
pub(crate) fn now() -> (i64, u32) {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or((0, 0), |d| (d.as_secs() as i64, d.subsec_millis()))
}

/// The numbers of this process and thread.
fn ids() -> (u32, u32) {
    let pid = std::process::id();
    match THREAD.get() {
        0 => (pid, pid),
        thread => (pid, thread),
    }
}

/// Longest line written, as nginx's NGX_MAX_ERROR_STR.
pub const MAX_LINE_BYTES: usize = 2048;
/// Most bytes of the message and of the request line in a JSON line, escaped.
const JSON_LONG_BYTES: usize = 2048;
/// Most bytes of any other value a client has its hand in.
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
        let mut out = String::new();
        escape(b"a\x1b\xff", &mut out);
        assert_eq!(out, "a\\x1B\\xFF");
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
        assert!(line.contains(" !\\\"#") && line.contains("[\\\\]") && line.contains("\\ufffd"));
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

    #[test]
    fn times_have_milliseconds_and_an_offset() {
        let time = |ms, offset_s| {
            let seconds = 784_111_777;
            Rfc3339 {
                seconds,
                ms,
                offset_s,
            }
            .to_string()
        };
        assert_eq!(time(7, 0), "1994-11-06T08:49:37.007+00:00");
        assert_eq!(time(999, -12_600), "1994-11-06T05:19:37.999-03:30");
    }
}
