//! The response head in a cache's file: parsed for a hit, encoded for a fill.
//!
//! nginx stores heads as received from servers. So its leniencies are accepted here: lines that end with LF alone, a missing
//! reason phrase, repeated status lines, lines without a colon. A line is left out if its name is no token, as by
//! [`ResponseHead::push`]. Heads with NUL, folded lines, contradictory lengths or bytes behind their end are refused.
//!
//! Absent: the choice of fields to store or to send (`rfc9111/stored_fields.rs`), and the rest of a file ([`crate::disk`]).
//!
//! Source: RFC 9112 sections 4 and 5; RFC 3875 section 6; nginx 1.31.4's parsers of upstream heads.

use engines::http::{
    BodyLength, Escape, Field, FieldId, ResponseHead, Span, escape, is_token, parse_decimal,
    parse_length, push_decimal, reason_phrase, trim_ows,
};

use crate::disk::framed_head::{frame, unframe};
use crate::rfc9111::FieldList;

/// The form of a head, which depends on the protocol spoken with the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeadFormat {
    /// A status line and fields: `proxy_pass`. The empty head is a response of HTTP/0.9.
    #[default]
    Http,
    /// Fields, and the status in a status line or in `Status`: `scgi_pass`, `uwsgi_pass`. Encoded with a status line.
    Cgi,
    /// Fields with the status in `Status`, in records of FastCGI: `fastcgi_pass`.
    Fcgi,
}

/// Parses a stored head; `None` if it is damaged, or no head that nginx accepts from a server.
///
/// `body` has the length in the framing fields. It is `None` without one, and `Unknown` with `chunked`, although stored bodies
/// are decoded: the length of the body in the file is decisive. Names and values are spans of the head as stored.
#[must_use]
pub fn parse(head: &[u8], format: HeadFormat) -> Option<ResponseHead> {
    match format {
        HeadFormat::Fcgi => parse_lines(&unframe(head)?, format),
        HeadFormat::Http if head.is_empty() => Some(ResponseHead {
            status: OK,
            ..ResponseHead::default()
        }),
        HeadFormat::Http | HeadFormat::Cgi => parse_lines(head, format),
    }
}

/// Encodes a head: status and reason phrase of `head`, and `fields`.
///
/// Fields are left out if their name is no token. CR, LF and NUL in a value become `%0D`, `%0A` and `%00`. In formats of CGI, a
/// field `Status` is left out, because the status of `head` replaces it. A head of FastCGI must be shorter than 65,536
/// bytes, as each head in a file is.
#[must_use]
pub fn encode(head: &ResponseHead, fields: FieldList<'_>, format: HeadFormat) -> Vec<u8> {
    let mut out = Vec::with_capacity(TYPICAL_BYTES);
    let is_http = format == HeadFormat::Http;
    // nginx reads both forms of CGI, but sends a stored `Status` of uwsgi to its clients.
    let begin = match format {
        HeadFormat::Http | HeadFormat::Cgi => "HTTP/1.1 ",
        HeadFormat::Fcgi => "Status: ",
    };
    out.extend_from_slice(begin.as_bytes());
    push_decimal(&mut out, u64::from(head.status));
    let phrase = match head.phrase() {
        phrase if phrase.iter().any(ends_text) => reason_phrase(head.status).as_bytes(),
        phrase => phrase,
    };
    out.push(b' ');
    out.extend_from_slice(phrase);
    out.extend_from_slice(b"\r\n");
    for (id, name, value) in fields.iter() {
        let is_left_out = id == FieldId::Other && (!is_token(name) || !is_http && is_status(name));
        if !is_left_out {
            out.extend_from_slice(name);
            out.extend_from_slice(b": ");
            escape(value, Escape::LineEnds, &mut out);
            out.extend_from_slice(b"\r\n");
        }
    }
    out.extend_from_slice(b"\r\n");
    match format {
        HeadFormat::Fcgi => frame(&out),
        HeadFormat::Http | HeadFormat::Cgi => out,
    }
}

/// Parses the lines of a head, up to an empty line at its end.
fn parse_lines(text: &[u8], format: HeadFormat) -> Option<ResponseHead> {
    if text.contains(&0) {
        return None;
    }
    let mut parser = Parser::new(text);
    let mut lines = text.split_inclusive(|byte| *byte == b'\n').peekable();
    if format != HeadFormat::Fcgi {
        let first = *lines.peek()?;
        if parser.status_line(first) {
            lines.next();
            parser.at = first.len();
        } else if format == HeadFormat::Http {
            return None;
        }
    }
    for line in lines {
        let start = parser.at;
        parser.at += line.len();
        // The last line of a cut head has no end.
        let line = line.strip_suffix(b"\n")?;
        if matches!(line, b"" | b"\r") {
            let is_last = parser.at == text.len();
            return is_last.then(|| parser.finish(format)).flatten();
        }
        parser.field_line(line, start)?;
    }
    None
}

/// A head during its parsing.
struct Parser {
    /// The arena has the whole text.
    head: ResponseHead,
    /// End of the lines parsed so far.
    at: usize,
    /// The first `Status`.
    status: Option<Span>,
}

impl Parser {
    fn new(text: &[u8]) -> Self {
        let head = ResponseHead {
            arena: text.to_vec(),
            ..ResponseHead::default()
        };
        let (at, status) = (0, None);
        Self { head, at, status }
    }

    /// Takes the first line, with its end, if it is a status line; returns whether it is one.
    fn status_line(&mut self, line: &[u8]) -> bool {
        let Some((status, phrase)) = status_line(line) else {
            return false;
        };
        self.head.status = status;
        if let Some(phrase) = phrase {
            self.head.phrase_status = status;
            self.head.phrase_text = phrase;
        }
        true
    }

    /// Takes a line without its LF, which begins at `start`; `None` if nginx refuses it.
    fn field_line(&mut self, line: &[u8], start: usize) -> Option<()> {
        // Some servers repeat the status line.
        if line.starts_with(b"HTTP/") {
            return Some(());
        }
        let crs = line.iter().rev().take_while(|byte| **byte == b'\r').count();
        let line = &line[..line.len() - crs];
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        if name.is_empty() || name.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
            return None;
        }
        let behind_colon = value.get(1..).unwrap_or_default();
        let value = trim_ows(behind_colon);
        if value.contains(&b'\r') {
            return None;
        }
        let id = FieldId::of(name);
        if id == FieldId::Other && !is_token(name) {
            return Some(());
        }
        let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t');
        let spaces = behind_colon.iter().take_while(is_space).count();
        let value_start = line.len() - behind_colon.len() + spaces;
        let field = Field {
            name: Span::new(start, name.len()),
            value: Span::new(start + value_start, value.len()),
            id,
        };
        if id == FieldId::Other && self.status.is_none() && is_status(name) {
            self.status = Some(field.value);
        }
        self.framing_field(id, value)?;
        self.head.fields.push(field);
        Some(())
    }

    /// Takes the value of a framing field; `None` if the fields contradict each other.
    fn framing_field(&mut self, id: FieldId, value: &[u8]) -> Option<()> {
        let body = match id {
            FieldId::ContentLength => BodyLength::Length(parse_length(value)?),
            FieldId::TransferEncoding if value.eq_ignore_ascii_case(b"chunked") => {
                BodyLength::Unknown
            }
            FieldId::TransferEncoding => return None,
            _ => return Some(()),
        };
        if self.head.body != BodyLength::None {
            return None;
        }
        self.head.body = body;
        Some(())
    }

    /// Returns the head, with the status of a head of CGI; `None` if the status is invalid or interim.
    fn finish(mut self, format: HeadFormat) -> Option<ResponseHead> {
        // No reader of CGI decodes a transfer coding (RFC 3875 section 6.3.4).
        if format != HeadFormat::Http && self.head.body == BodyLength::Unknown {
            return None;
        }
        if self.head.status == 0 {
            match self.status {
                Some(value) => self.status_field(value)?,
                None if self.head.get(FieldId::Location).is_some() => self.head.status = FOUND,
                None => self.head.status = OK,
            }
        }
        (self.head.status >= OK).then_some(self.head)
    }

    /// Takes "404 Not Found", or "404" alone: then the phrase is the usual one.
    fn status_field(&mut self, value: Span) -> Option<()> {
        let text = self.head.bytes(value);
        let (digits, rest) = text.split_at_checked(STATUS_DIGITS)?;
        let status = status_of(digits)?;
        match rest {
            [] => {}
            [b' ', phrase @ ..] => {
                let start = value.range().end - phrase.len();
                self.head.phrase_text = Span::new(start, phrase.len());
                self.head.phrase_status = status;
            }
            _ => return None,
        }
        self.head.status = status;
        Some(())
    }
}

/// Parses "HTTP/1.1 200 OK" with its line end. Spaces may precede the status, a further number may follow it ("403.1"), and
/// the phrase may be absent. Returns the status, and the span of the phrase unless there is a further number.
fn status_line(line: &[u8]) -> Option<(u16, Option<Span>)> {
    let line = line.strip_suffix(b"\n")?;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let version = line.strip_prefix(b"HTTP/")?;
    let (major, rest) = digits(version);
    let (minor, rest) = digits(rest.strip_prefix(b".")?);
    let is_version = |digits: &[u8]| (1..=VERSION_DIGITS).contains(&digits.len());
    if !is_version(major) || !is_version(minor) || major[0] == b'0' {
        return None;
    }
    let rest = rest.strip_prefix(b" ")?;
    let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
    let (status, rest) = rest[spaces..].split_at_checked(STATUS_DIGITS)?;
    let status = status_of(status)?;
    if rest.contains(&b'\r') {
        return None;
    }
    let phrase = match rest {
        [] => rest,
        [b' ', phrase @ ..] => phrase,
        [b'.', ..] => return Some((status, None)),
        _ => return None,
    };
    let start = line.len() - phrase.len();
    Some((status, Some(Span::new(start, phrase.len()))))
}

/// Splits text behind its leading digits.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.split_at(len)
}

/// Returns the status of three digits, from 100 on.
fn status_of(text: &[u8]) -> Option<u16> {
    let number: Option<u16> = parse_decimal(text);
    number.filter(|status| text.len() == STATUS_DIGITS && *status >= 100)
}

/// Whether a name is that of the field with the status of CGI.
fn is_status(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"Status")
}

/// Whether a byte could end a text for its reader.
fn ends_text(byte: &u8) -> bool {
    matches!(byte, b'\r' | b'\n' | 0)
}

/// Status of a head of CGI with neither `Status` nor `Location`, and of HTTP/0.9; the least status of a final response.
const OK: u16 = 200;
/// Status of a head of CGI with `Location` alone.
const FOUND: u16 = 302;
/// Digits of a status.
const STATUS_DIGITS: usize = 3;
/// Most digits of a number in a version, as in nginx.
const VERSION_DIGITS: usize = 3;
/// Bytes of most heads.
const TYPICAL_BYTES: usize = 512;

#[cfg(test)]
#[path = "response_head_tests.rs"]
mod tests;
