//! A head of CGI from bytes that arrive in any pieces: the HTTP/1 parser in a mode for CGI, and the field `Status`.

use super::ProtocolError;
use crate::client::parse_status;
use crate::h1::{FirstLine, ResponseParser, Settings};
use crate::http::{BodyLength, FieldId, Fields, ResponseHead, Span};

/// Parses one head after the other.
#[derive(Debug)]
pub struct HeadParser {
    parser: ResponseParser,
    settings: Settings,
}

/// Treatment of an HTTP status line at the start of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusLine {
    /// It sets the status, and the field `Status` is ignored: SCGI, uwsgi.
    Taken,
    /// It is skipped: FastCGI.
    Skipped,
}

/// A head.
#[derive(Debug)]
pub struct Parsed {
    /// The head, with its status and the field `Status` as it was sent; its `body` is a `Length`, or `None` if the end of the
    /// connection or of its stream ends the body.
    pub head: Box<ResponseHead>,
    /// Its bytes.
    pub size_bytes: u64,
}

impl HeadParser {
    /// A parser of heads of at most `head_bytes`.
    #[must_use]
    pub fn new(head_bytes: usize, line: StatusLine) -> Self {
        let first_line = match line {
            StatusLine::Taken => FirstLine::Either,
            StatusLine::Skipped => FirstLine::Field,
        };
        let settings = settings(head_bytes);
        Self {
            parser: ResponseParser::new(Box::default(), first_line, &settings),
            settings,
        }
    }

    /// Drops the received part of a head; the next one has at most `head_bytes`.
    pub fn reset(&mut self, head_bytes: usize) {
        self.settings = settings(head_bytes);
        self.parser.reset(&self.settings);
    }

    /// Whether no byte of a head has been received.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.parser.is_fresh()
    }

    /// Parses the lines at the start of `input`, which begins with the bytes not consumed before. Returns the
    /// number of consumed bytes, and whether the head is complete: [`Self::take`] it.
    ///
    /// # Errors
    /// The head is malformed or too large; nothing more is parsed until [`Self::reset`].
    pub fn advance(&mut self, input: &[u8]) -> Result<(usize, bool), ProtocolError> {
        self.parser.advance(input).map_err(ProtocolError::of_head)
    }

    /// Returns the complete head and starts over; `spare` provides the memory for the next one.
    ///
    /// # Errors
    /// The head has a `Transfer-Encoding`, an invalid `Content-Length`, or no valid status.
    pub fn take(&mut self, spare: Box<ResponseHead>) -> Result<Parsed, ProtocolError> {
        let parsed = self.parser.take(spare, &self.settings);
        let parsed = parsed.map_err(ProtocolError::of_head)?;
        let mut head = parsed.head;
        // No CGI reader decodes a transfer coding (RFC 3875 section 6.3.4).
        if head.body == BodyLength::Unknown {
            return Err(ProtocolError::TransferEncoding);
        }
        let said = status_field(&head)?;
        if head.status == 0 {
            match said {
                Some(value) => set_status(&mut head, value)?,
                None if head.get(FieldId::Location).is_some() => head.status = 302,
                None => head.status = 200,
            }
        }
        // There is one response: 101 is the only status permitted below 200.
        if head.status < 200 && head.status != 101 {
            return Err(ProtocolError::BadStatus);
        }
        Ok(Parsed {
            head,
            size_bytes: parsed.size_bytes,
        })
    }
}

/// Whether the parameters of a request specify the method HEAD, so that the response has no body.
#[must_use]
pub fn is_head(params: &Fields) -> bool {
    // Of two, applications see the last.
    let mut backwards = params.fields.iter().rev();
    let method = backwards.find(|field| params.bytes(field.name) == METHOD);
    method.is_some_and(|field| params.bytes(field.value) == b"HEAD")
}

/// Returns the position of the value of the field `Status`. Gateways hide the field as nginx does.
fn status_field(head: &ResponseHead) -> Result<Option<Span>, ProtocolError> {
    let mut all = head.fields.iter().filter(|field| {
        field.id == FieldId::Other && head.bytes(field.name).eq_ignore_ascii_case(b"Status")
    });
    let first = all.next().map(|field| field.value);
    match all.next() {
        Some(_) => Err(ProtocolError::DuplicateStatus),
        None => Ok(first),
    }
}

/// Takes "404 Not Found", or "404" alone: then the phrase is the usual one.
fn set_status(head: &mut ResponseHead, value: Span) -> Result<(), ProtocolError> {
    let text = head.bytes(value);
    let (digits, rest) = text.split_at_checked(3).ok_or(ProtocolError::BadStatus)?;
    let status = parse_status(digits).ok_or(ProtocolError::BadStatus)?;
    let has_phrase = match rest {
        [] => false,
        [b' ', ..] => true,
        _ => return Err(ProtocolError::BadStatus),
    };
    let phrase = Span::new(value.range().start + 4, rest.len().saturating_sub(1));
    head.status = status;
    if has_phrase {
        head.set_phrase_span(status, phrase);
    }
    Ok(())
}

/// Limits of a head.
fn settings(head_bytes: usize) -> Settings {
    Settings {
        header_buffer_bytes: head_bytes,
        large_header_buffers: (0, head_bytes),
        ..Settings::default()
    }
}

/// The parameter with the method (RFC 3875 section 4.1.12).
const METHOD: &[u8] = b"REQUEST_METHOD";
