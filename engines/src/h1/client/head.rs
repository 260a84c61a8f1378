//! A response head from bytes that arrive in any pieces.
//!
//! As in the server role, complete lines are parsed where they lie, an incomplete one stays with the caller and is checked
//! as far as it came; lines, framing fields and limits are the same code. Stricter than a request: a line without a colon
//! ends the connection.
//!
//! Source: RFC 9112 sections 2 to 6.

use super::super::Settings;
use super::super::framing::Framing;
use super::super::header::{self, Line};
use super::super::limit::LineBudget;
use super::ProtocolError;
use crate::client::parse_status;
use crate::http::{BodyLength, Fault, Field, FieldId, ResponseHead, Span, Version};

/// Parses one response head after the other.
#[derive(Debug)]
pub(super) struct ResponseParser {
    head: Box<ResponseHead>,
    version: Version,
    in_fields: bool,
    budget: LineBudget,
    /// Leading bytes of the incomplete line that are known to have no LF.
    searched: usize,
    framing: Framing,
    said_close: bool,
    said_keep_alive: bool,
    size_bytes: u64,
}

/// A head, and what it means for the connection.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) head: Box<ResponseHead>,
    /// The connection may be used again after a body whose end is known.
    pub(super) keep: bool,
    pub(super) size_bytes: u64,
}

impl ResponseParser {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            head: Box::default(),
            version: Version::Http11,
            in_fields: false,
            budget: LineBudget::of_head(settings),
            searched: 0,
            framing: Framing::default(),
            said_close: false,
            said_keep_alive: false,
            size_bytes: 0,
        }
    }

    /// Whether no byte of a head has been seen.
    pub(super) fn is_fresh(&self) -> bool {
        !self.in_fields && self.searched == 0
    }

    /// Parses the lines at the start of `input`, which begins with the bytes not consumed before. Gives how many bytes are
    /// consumed, and whether the head is complete; `spare` gives the memory for the next one.
    pub(super) fn advance(
        &mut self,
        input: &[u8],
        settings: &Settings,
    ) -> Result<(usize, bool), ProtocolError> {
        let mut at = 0;
        let done = loop {
            let rest = &input[at..];
            let capacity = self.budget.capacity();
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
            let line = &rest[..lf];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let offset = self.head.arena.len() + at;
            let done = self.line(line, offset, settings)?;
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

    /// Hands out the head and starts over; `spare` gives the memory for the next one.
    pub(super) fn take(
        &mut self,
        spare: Box<ResponseHead>,
        settings: &Settings,
    ) -> Result<Parsed, ProtocolError> {
        let body = self
            .framing
            .body(self.version)
            .map_err(ProtocolError::Head)?;
        let mut head = std::mem::replace(&mut self.head, spare);
        head.body = body;
        let keep = match self.version {
            Version::Http11 => !self.said_close,
            _ => self.said_keep_alive && !self.said_close,
        };
        head.keep_alive = keep;
        let parsed = Parsed {
            head,
            keep,
            size_bytes: self.size_bytes,
        };
        let head = std::mem::take(&mut self.head);
        *self = Self {
            head,
            ..Self::new(settings)
        };
        Ok(parsed)
    }

    fn check_part(&mut self, part: &[u8], capacity: usize) -> Result<(), ProtocolError> {
        if part.len() >= capacity {
            return Err(self.too_long(&part[..capacity]));
        }
        self.searched = part.len();
        self.check_bytes(part)
    }

    fn check_bytes(&self, part: &[u8]) -> Result<(), ProtocolError> {
        if self.in_fields {
            return header::check_part(part).map_err(ProtocolError::Head);
        }
        let known = part.len().min(PREFIX.len());
        if part[..known] == PREFIX[..known] {
            Ok(())
        } else {
            Err(ProtocolError::BadStatusLine)
        }
    }

    fn too_long(&self, part: &[u8]) -> ProtocolError {
        match self.check_bytes(part) {
            Err(error) => error,
            Ok(()) => ProtocolError::Head(Fault::HeaderTooLarge),
        }
    }

    /// Takes one line, whose first byte will be at `offset` in the arena. Gives whether the head is complete.
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        offset: usize,
        settings: &Settings,
    ) -> Result<bool, ProtocolError> {
        if !self.in_fields {
            let (version, status) = status_line(line).ok_or(ProtocolError::BadStatusLine)?;
            self.version = version;
            self.head.status = status;
            self.in_fields = true;
            return Ok(false);
        }
        let (name, value) = match header::parse(line, settings).map_err(ProtocolError::Head)? {
            Line::End => return Ok(true),
            Line::NoColon => return Err(ProtocolError::Head(Fault::BadHeader)),
            Line::OddName { .. } if settings.ignore_invalid_headers => return Ok(false),
            Line::OddName { name, value } | Line::Field { name, value } => (name, value),
        };
        if self.head.fields.len() >= settings.max_headers as usize {
            return Err(ProtocolError::Head(Fault::TooManyHeaders));
        }
        let id = FieldId::of(&line[name.clone()]);
        let text = &line[value.clone()];
        match id {
            FieldId::ContentLength => self
                .framing
                .content_length(text)
                .map_err(ProtocolError::Head)?,
            FieldId::TransferEncoding => {
                self.framing
                    .transfer_encoding(text)
                    .map_err(ProtocolError::Head)?;
            }
            FieldId::Connection => self.connection(text),
            _ => {}
        }
        self.head.fields.push(Field {
            name: Span::new(offset + name.start, name.len()),
            value: Span::new(offset + value.start, value.len()),
            id,
        });
        Ok(false)
    }

    /// The options of a Connection field (RFC 9112 section 9.3).
    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',') {
            let option = option.trim_ascii();
            self.said_close |= option.eq_ignore_ascii_case(b"close");
            self.said_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
}

/// "HTTP/1.1 200 OK"; the phrase, and with it the space before, may be missing.
fn status_line(line: &[u8]) -> Option<(Version, u16)> {
    let rest = line.strip_prefix(PREFIX)?;
    let (minor, rest) = rest.split_first()?;
    let version = match minor {
        b'0' => Version::Http10,
        b'1'..=b'9' => Version::Http11,
        _ => return None,
    };
    let (status, phrase) = rest.strip_prefix(b" ")?.split_at_checked(3)?;
    let control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    let fits = matches!(phrase.first(), None | Some(b' ')) && !phrase.iter().any(control);
    fits.then_some((version, parse_status(status)?))
}

/// Where the body of a response ends, besides its framing fields (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Now,
    After(u64),
    Chunked,
    AtClose,
}

/// Where the body of a response with this head ends.
pub(super) fn ends(head: &ResponseHead, of_head_request: bool) -> Ends {
    match (head.status, head.body) {
        _ if of_head_request => Ends::Now,
        (100..200 | 204 | 304, _) | (_, BodyLength::Length(0)) => Ends::Now,
        (_, BodyLength::Length(left)) => Ends::After(left),
        (_, BodyLength::Unknown) => Ends::Chunked,
        (_, BodyLength::None) => Ends::AtClose,
    }
}

const PREFIX: &[u8] = b"HTTP/1.";
