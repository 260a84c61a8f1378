//! A response head from bytes that arrive in any pieces.
//!
//! As in the server role, complete lines are parsed in place. An incomplete line stays with the
//! caller and is checked up to its last byte. Responses are read as nginx reads them: names with
//! odd bytes are kept, a line without a colon is a field without a value, a second status line is
//! skipped. Stricter: a NUL or CR anywhere, a status below 100 and ambiguous framing are refused.
//!
//! Heads of CGI (`crate::cgi`) are read here, too: they have no status line, or an optional one ([`FirstLine`]).
//!
//! Source: RFC 9112 sections 2 to 6; nginx's leniencies.

use super::super::Settings;
use super::super::framing::Framing;
use super::super::header;
use super::super::limit::LineBudget;
use super::{ConnectionOptions, ProtocolError};
use crate::client::parse_status;
use crate::http::{
    BodyLength, Fault, Field, FieldId, ResponseHead, Span, Version, find_control, has_control,
};
use std::ops::Range;

/// Parses one response head after the other.
#[derive(Debug)]
pub(crate) struct ResponseParser {
    head: Box<ResponseHead>,
    version: Version,
    first_line: FirstLine,
    in_fields: bool,
    budget: LineBudget,
    /// Leading bytes of the incomplete line that are known to have no LF.
    searched: usize,
    /// The incomplete line has a colon, so that it need not be checked from its start again.
    in_value: bool,
    framing: Framing,
    connection: ConnectionOptions,
    size_bytes: u64,
}

/// First line of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstLine {
    /// A status line of HTTP/1.
    Status,
    /// A status line of any version, or a field: CGI as SCGI and uwsgi servers answer.
    Either,
    /// A field; status lines are skipped: CGI in FastCGI.
    Field,
}

/// A head and its consequences for the connection.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) head: Box<ResponseHead>,
    pub(crate) version: Version,
    /// The connection can be reused after a body of known length.
    pub(crate) keep: bool,
    pub(crate) size_bytes: u64,
}

/// A parsed line of a response head.
enum HeadLine {
    /// The empty line: the head is complete.
    End,
    /// A further status line, as sent by some servers.
    Skipped,
    /// A field, as ranges of the line.
    Field {
        name: Range<usize>,
        value: Range<usize>,
    },
}

impl ResponseParser {
    /// `head` provides the memory.
    pub(crate) fn new(head: Box<ResponseHead>, first_line: FirstLine, settings: &Settings) -> Self {
        Self {
            head,
            version: Version::Http11,
            first_line,
            in_fields: first_line == FirstLine::Field,
            budget: LineBudget::of_head(settings),
            searched: 0,
            in_value: false,
            framing: Framing::default(),
            connection: ConnectionOptions::default(),
            size_bytes: 0,
        }
    }

    /// Drops the received part of a head.
    pub(crate) fn reset(&mut self, settings: &Settings) {
        self.head.clear();
        self.in_fields = self.first_line == FirstLine::Field;
        self.budget = LineBudget::of_head(settings);
        self.searched = 0;
        self.in_value = false;
        self.framing = Framing::default();
        self.connection = ConnectionOptions::default();
        self.size_bytes = 0;
    }

    /// Whether no byte of a head has been received.
    pub(crate) fn is_fresh(&self) -> bool {
        self.size_bytes == 0 && self.searched == 0
    }

    /// Parses the lines at the start of `input`, which begins with the bytes not consumed before. Returns the
    /// number of consumed bytes, and whether the head is complete.
    pub(crate) fn advance(&mut self, input: &[u8]) -> Result<(usize, bool), ProtocolError> {
        let mut at = 0;
        let done = loop {
            let rest = &input[at..];
            let capacity = self.budget.capacity();
            if self.in_fields
                && self.searched == 0
                && let Some(quick) = quick_field(rest)
                && quick.len <= capacity
            {
                let offset = self.head.arena.len() + at;
                self.field(rest, offset, quick.name, quick.value)?;
                at += quick.len;
                self.budget.take(quick.len);
                self.size_bytes += quick.len as u64;
                continue;
            }
            let lf = rest
                .get(self.searched..)
                .and_then(|rest| memchr::memchr(b'\n', rest))
                .map(|lf| self.searched + lf);
            let Some(lf) = lf else {
                self.check_part(rest, capacity)?;
                break false;
            };
            if lf >= capacity {
                return Err(self.too_long(&rest[..capacity]));
            }
            self.searched = 0;
            self.in_value = false;
            let line = strip_cr(&rest[..lf]);
            let done = self.line(line, self.head.arena.len() + at)?;
            at += lf + 1;
            self.budget.take(lf + 1);
            self.size_bytes += lf as u64 + 1;
            if done {
                break true;
            }
        };
        self.head.arena.extend_from_slice(&input[..at]);
        Ok((at, done))
    }

    /// Returns the head and starts over; `spare` provides the memory for the next one.
    pub(crate) fn take(
        &mut self,
        spare: Box<ResponseHead>,
        settings: &Settings,
    ) -> Result<Parsed, ProtocolError> {
        let body = self.framing.body(self.version);
        let next = Self::new(spare, self.first_line, settings);
        let done = std::mem::replace(self, next);
        let mut head = done.head;
        head.body = body.map_err(ProtocolError::Head)?;
        head.keep_alive = done.connection.keeps(done.version);
        Ok(Parsed {
            version: done.version,
            keep: head.keep_alive,
            size_bytes: done.size_bytes,
            head,
        })
    }

    fn check_part(&mut self, part: &[u8], capacity: usize) -> Result<(), ProtocolError> {
        if part.len() >= capacity {
            return Err(self.too_long(&part[..capacity]));
        }
        let before = std::mem::replace(&mut self.searched, part.len());
        if self.in_value {
            // The last byte may have been a CR, which was not checked at that time.
            let more = strip_cr(part).get(before.saturating_sub(1)..);
            return check_text(more.unwrap_or_default()).map_err(ProtocolError::Head);
        }
        self.in_value = self.is_field(part) && memchr::memchr(b':', part).is_some();
        self.check_bytes(part)
    }

    /// Whether a line with this beginning is read as a field; a part of a name may still become a status line.
    fn is_field(&self, part: &[u8]) -> bool {
        let is_either = self.first_line == FirstLine::Either;
        self.in_fields || (is_either && !part.starts_with(&PREFIX[..NAME_BYTES]))
    }

    fn check_bytes(&self, part: &[u8]) -> Result<(), ProtocolError> {
        if self.is_field(part) {
            let parsed = field_line(strip_cr(part));
            return parsed.map(drop).map_err(ProtocolError::Head);
        }
        if self.first_line == FirstLine::Either {
            return Ok(());
        }
        let known = part.len().min(PREFIX.len());
        match part.iter().zip(PREFIX).take_while(|(a, b)| a == b).count() {
            same if same == known => Ok(()),
            same if same < NAME_BYTES => Err(ProtocolError::NotHttp),
            _ => Err(ProtocolError::BadStatusLine),
        }
    }

    fn too_long(&self, part: &[u8]) -> ProtocolError {
        match self.check_bytes(part) {
            Err(error) => error,
            Ok(()) => ProtocolError::Head(Fault::HeaderTooLarge),
        }
    }

    /// Parses one line; its first byte will be at `offset` in the arena. Returns whether the head
    /// is complete.
    #[inline]
    fn line(&mut self, line: &[u8], offset: usize) -> Result<bool, ProtocolError> {
        if !self.in_fields {
            let is_status = !self.is_field(line);
            self.in_fields = true;
            if is_status {
                return self.status_line(line, offset);
            }
        }
        let (name, value) = match field_line(line).map_err(ProtocolError::Head)? {
            HeadLine::End => return Ok(true),
            HeadLine::Skipped => return Ok(false),
            HeadLine::Field { name, value } => (name, value),
        };
        self.field(line, offset, name, value)?;
        Ok(false)
    }

    fn status_line(&mut self, line: &[u8], offset: usize) -> Result<bool, ProtocolError> {
        let any_version = self.first_line == FirstLine::Either;
        let (version, status, phrase) = status_line(line, any_version)?;
        (self.version, self.head.status) = (version, status);
        if let Some(start) = phrase {
            let phrase = Span::new(offset + start, line.len() - start);
            self.head.set_phrase_span(status, phrase);
        }
        Ok(false)
    }

    /// Adds a field, as ranges of a text; the first byte of the text will be at `offset` in the
    /// arena.
    #[inline]
    fn field(
        &mut self,
        line: &[u8],
        offset: usize,
        name: Range<usize>,
        value: Range<usize>,
    ) -> Result<(), ProtocolError> {
        let id = FieldId::of(&line[name.clone()]);
        let text = &line[value.clone()];
        match id {
            FieldId::ContentLength => self.framing.content_length(text),
            FieldId::TransferEncoding => self.framing.transfer_encoding(text),
            FieldId::Connection => {
                self.connection.take(text);
                Ok(())
            }
            _ => Ok(()),
        }
        .map_err(ProtocolError::Head)?;
        self.head.fields.push(Field {
            name: Span::new(offset + name.start, name.len()),
            value: Span::new(offset + value.start, value.len()),
            id,
        });
        Ok(())
    }
}

/// The line without the CR of its line end, or without a last CR that may be part of one.
#[inline]
fn strip_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A field as most are, and its length with its line end.
struct QuickField {
    name: Range<usize>,
    value: Range<usize>,
    len: usize,
}

/// Parses a complete field at the start of `text` if every byte of it is ordinary. [`field_line`]
/// parses all other lines.
#[inline]
fn quick_field(text: &[u8]) -> Option<QuickField> {
    let name_end = header::name_end(text)?;
    let end = find_control(text, name_end + 1)?;
    let len = match text[end..] {
        [b'\r', b'\n', ..] => end + 2,
        [b'\n', ..] => end + 1,
        _ => return None,
    };
    if text.starts_with(&PREFIX[..NAME_BYTES]) {
        return None;
    }
    Some(QuickField {
        name: 0..name_end,
        value: header::trim(&text[..end], name_end + 1),
        len,
    })
}

/// Parses a line after the first, or the beginning of one.
#[inline]
fn field_line(line: &[u8]) -> Result<HeadLine, Fault> {
    if line.is_empty() {
        return Ok(HeadLine::End);
    }
    if line.starts_with(&PREFIX[..NAME_BYTES]) {
        check_text(line)?;
        return Ok(HeadLine::Skipped);
    }
    let (name_end, _) = header::scan_name(line, true)?;
    let value = header::trim(line, line.len().min(name_end + 1));
    check_text(&line[value.clone()])?;
    let name = 0..name_end;
    Ok(HeadLine::Field { name, value })
}

/// Refuses bytes that could end a line or a text for another reader.
#[inline]
fn check_text(text: &[u8]) -> Result<(), Fault> {
    if !has_control(text) {
        return Ok(());
    }
    match memchr::memchr2(b'\r', 0, text) {
        Some(_) => Err(Fault::BadHeader),
        None => Ok(()),
    }
}

/// "HTTP/1.1 200 OK". Several spaces may precede the status, a further number may follow it
/// ("403.1"), and the phrase may be absent. Also returns the start of the phrase, unless there is a
/// further number. `any_version` is for uwsgi: its servers answer with the version of the request,
/// which may be "HTTP/2.0".
fn status_line(
    line: &[u8],
    any_version: bool,
) -> Result<(Version, u16, Option<usize>), ProtocolError> {
    if !line.starts_with(&PREFIX[..NAME_BYTES]) {
        return Err(ProtocolError::NotHttp);
    }
    let bad = ProtocolError::BadStatusLine;
    let rest = match line[NAME_BYTES..] {
        [b'1'..=b'9', b'.', ref rest @ ..] if any_version => rest,
        _ => line.strip_prefix(PREFIX).ok_or(bad)?,
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (minor, rest) = rest.split_at(digits);
    let version = match minor {
        [] | [_, _, _, ..] => return Err(bad),
        [b'0'] | [b'0', b'0'] => Version::Http10,
        _ => Version::Http11,
    };
    let rest = rest.strip_prefix(b" ").ok_or(bad)?;
    let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
    let (status, phrase) = rest[spaces..].split_at_checked(3).ok_or(bad)?;
    let fits = status.iter().all(u8::is_ascii_digit)
        && matches!(phrase.first(), None | Some(b' ' | b'.'))
        && check_text(phrase).is_ok();
    if !fits {
        return Err(bad);
    }
    let status = parse_status(status).ok_or(ProtocolError::BadStatus)?;
    let phrase = match phrase {
        [] => Some(line.len()),
        [b' ', text @ ..] => Some(line.len() - text.len()),
        _ => None,
    };
    Ok((version, status, phrase))
}

/// The end of a response's body as implied by anything but its framing fields (RFC 9112 section
/// 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Now,
    After(u64),
    Chunked,
    AtClose,
}

/// The end of the body of a response with this head.
pub(crate) fn ends(head: &ResponseHead, of_head_request: bool) -> Ends {
    match (head.status, head.body) {
        _ if of_head_request => Ends::Now,
        (100..200 | 204 | 304, _) | (_, BodyLength::Length(0)) => Ends::Now,
        (_, BodyLength::Length(left)) => Ends::After(left),
        (_, BodyLength::Unknown) => Ends::Chunked,
        (_, BodyLength::None) => Ends::AtClose,
    }
}

const PREFIX: &[u8] = b"HTTP/1.";
/// Bytes of "HTTP/".
const NAME_BYTES: usize = 5;
