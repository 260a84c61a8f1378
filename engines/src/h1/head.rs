//! A request head from bytes that arrive in any pieces.
//!
//! Complete lines are parsed in place and copied to the head's arena in one go. An incomplete line
//! stays with the caller, is checked up to its last byte, and is never searched twice for its end.
//! The first fault ends the head: the part before it is delivered, the rest is not read. Source:
//! RFC 9112 sections 2 to 6; limits and answers as nginx's.

use super::Settings;
use super::blame;
use super::framing::Framing;
use super::header::{self, FieldLine};
use super::limit::LineBudget;
use super::line::{self, RequestLine, Stop, Target};
use crate::http::{
    Fault, Field, FieldId, Method, RequestHead, Span, Version, check_host, expects_continue,
};
use std::ops::Range;

/// Parses one request head after the other.
#[derive(Debug)]
pub(super) struct HeadParser {
    head: RequestHead,
    stage: Stage,
    budget: LineBudget,
    /// Leading bytes of the incomplete line that are known to have no LF.
    searched: usize,
    /// The known fields seen, as [`FieldId::bit`]s.
    seen: u64,
    framing: Framing,
}

/// Kind of line that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Line ends before the request line do not count as its beginning, but as received bytes.
    RequestLine {
        skipped: bool,
    },
    Fields,
}

/// Result of [`HeadParser::advance`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The head is not complete; the bytes not consumed are needed again.
    More,
    /// The head is complete, or has a fault: [`HeadParser::take`] it.
    Done,
}

impl HeadParser {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            head: RequestHead {
                version: FIRST_VERSION,
                ..RequestHead::default()
            },
            stage: Stage::RequestLine { skipped: false },
            budget: LineBudget::of_head(settings),
            searched: 0,
            seen: 0,
            framing: Framing::default(),
        }
    }

    /// Whether no byte of a request has been received.
    pub(super) fn is_fresh(&self) -> bool {
        self.stage == Stage::RequestLine { skipped: false } && self.searched == 0
    }

    /// Swaps the head with `spare`, which provides the memory for the next one, and starts over.
    #[inline(always)] // The other caller is for heads that end unfinished.
    pub(super) fn take(&mut self, spare: &mut RequestHead, settings: &Settings) {
        spare.clear();
        spare.version = FIRST_VERSION;
        std::mem::swap(&mut self.head, spare);
        self.start_over(settings);
    }

    /// Starts over and drops the received part of a head.
    pub(super) fn reset(&mut self, settings: &Settings) {
        if !self.is_fresh() {
            self.head.clear();
            self.head.version = FIRST_VERSION;
        }
        self.start_over(settings);
    }

    #[inline]
    fn start_over(&mut self, settings: &Settings) {
        self.stage = Stage::RequestLine { skipped: false };
        self.budget = LineBudget::of_head(settings);
        self.searched = 0;
        self.seen = 0;
        self.framing = Framing::default();
    }

    /// Parses the lines at the start of `input`, which begins with the bytes not consumed before. Returns the
    /// number of consumed bytes.
    pub(super) fn advance(&mut self, input: &[u8], settings: &Settings) -> (usize, Progress) {
        let start = self.skip_line_ends(input);
        let (mut at, mut refused) = (start, 0);
        let result = loop {
            let rest = &input[at..];
            let capacity = self.budget.capacity();
            let Some(lf) = find_line_end(rest, self.searched) else {
                break self.check_part(rest, capacity).map(|()| Progress::More);
            };
            if lf >= capacity {
                break Err(self.too_long(&rest[..capacity]));
            }
            self.searched = 0;
            let offset = self.head.arena.len() + at - start;
            let done = match self.line(strip_cr(&rest[..lf]), offset, settings) {
                Ok(done) => done,
                Err(fault) => {
                    if self.is_of_field(fault) {
                        // The line is part of the head, as in nginx.
                        refused = lf + 1;
                        self.head.size_bytes += refused as u64;
                    }
                    break Err(fault);
                }
            };
            at += lf + 1;
            self.budget.take(lf + 1);
            self.head.size_bytes += lf as u64 + 1;
            if done {
                break Ok(Progress::Done);
            }
        };
        self.head
            .arena
            .extend_from_slice(&input[start..at + refused]);
        match result {
            Ok(Progress::More) => (at, Progress::More),
            Ok(Progress::Done) => {
                self.complete_target();
                (at, Progress::Done)
            }
            Err(fault) => {
                self.fail(fault, &input[at..], settings);
                (input.len(), Progress::Done)
            }
        }
    }

    /// Whether the line with `fault` could be parsed as a field.
    #[cold]
    fn is_of_field(&self, fault: Fault) -> bool {
        !self.head.line.is_empty() && fault != Fault::BadHeader
    }

    /// Swaps the received part of an incomplete head with `spare`, as [`HeadParser::take`] does. `held` are the bytes not
    /// consumed. Returns false if no byte has come.
    pub(super) fn take_unfinished(
        &mut self,
        held: &[u8],
        spare: &mut RequestHead,
        settings: &Settings,
    ) -> bool {
        if self.is_fresh() {
            return false;
        }
        if self.head.line.is_empty() {
            self.store_line(held);
        }
        self.complete_target();
        self.take(spare, settings);
        true
    }

    /// Keeps the beginning of an unparsable request line.
    fn store_line(&mut self, rest: &[u8]) {
        let len = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        self.head.line = self.head.store(&rest[..len.min(LOGGED_BYTES)]);
    }

    /// Ends the head with `fault`, which is in a line at the start of `rest`.
    fn fail(&mut self, fault: Fault, rest: &[u8], settings: &Settings) {
        if self.head.line.is_empty() {
            self.store_line(rest);
            // The answer to a refused HEAD has no body either.
            if rest.starts_with(b"HEAD ") {
                self.head.method = Method::Head;
            }
        } else {
            blame::header_line(&mut self.head, fault, rest, settings);
        }
        self.complete_target();
        self.head.fault = Some(fault);
        self.head.close = true;
    }

    /// Puts "/" before a target without a path.
    fn complete_target(&mut self) {
        let target = self.head.target;
        let has_path = !matches!(self.head.bytes(target).first(), None | Some(b'?'));
        if self.head.authority.get().is_none() || has_path {
            return;
        }
        let start = self.head.arena.len();
        self.head.arena.push(b'/');
        self.head.arena.extend_from_within(target.range());
        self.head.target = Span::new(start, self.head.arena.len() - start);
    }

    /// Skips line ends before a request line (RFC 9112 section 2.2).
    fn skip_line_ends(&mut self, input: &[u8]) -> usize {
        let Stage::RequestLine { skipped } = &mut self.stage else {
            return 0;
        };
        let len = input
            .iter()
            .take_while(|byte| matches!(byte, b'\r' | b'\n'))
            .count();
        if len > 0 {
            *skipped = true;
            self.budget.skip(len);
        }
        len
    }

    /// Checks the received part of a line, so that neither garbage nor a drip of bytes is held longer than needed.
    fn check_part(&mut self, part: &[u8], capacity: usize) -> Result<(), Fault> {
        if part.len() >= capacity {
            return Err(self.too_long(&part[..capacity]));
        }
        self.searched = part.len();
        self.check_bytes(part)
    }

    fn check_bytes(&self, part: &[u8]) -> Result<(), Fault> {
        match self.stage {
            Stage::RequestLine { .. } => match line::parse(strip_cr(part), false) {
                Err(Stop::Fault(fault)) => Err(fault),
                _ => Ok(()),
            },
            Stage::Fields => header::check_part(part),
        }
    }

    /// The fault of a line that fills the buffers with `part`: a bad byte in it takes precedence.
    fn too_long(&self, part: &[u8]) -> Fault {
        match (self.check_bytes(part), self.stage) {
            (Err(fault), _) => fault,
            (Ok(()), Stage::Fields) => Fault::HeaderTooLarge,
            (Ok(()), Stage::RequestLine { .. }) if !part.contains(&b' ') => Fault::MethodTooLong,
            (Ok(()), Stage::RequestLine { .. }) => Fault::UriTooLong,
        }
    }

    /// Parses one line; its first byte will be at `offset` in the arena. Returns whether the head
    /// is complete.
    #[inline]
    fn line(&mut self, line: &[u8], offset: usize, settings: &Settings) -> Result<bool, Fault> {
        if matches!(self.stage, Stage::RequestLine { .. }) {
            return self.request_line(line, offset, settings);
        }
        match header::parse(line, settings)? {
            FieldLine::Field { id, name, value } => {
                self.field(line, id, (name, value), offset, settings)
            }
            FieldLine::OddName { .. } | FieldLine::NoColon if settings.ignore_invalid_headers => {
                self.head.note_dropped(Span::new(offset, line.len()));
                Ok(false)
            }
            FieldLine::OddName { name, value } => {
                self.field(line, FieldId::Other, (name, value), offset, settings)
            }
            FieldLine::NoColon => Err(Fault::BadHeader),
            FieldLine::End => self.end_of_fields(settings).map(|()| true),
        }
    }

    fn request_line(
        &mut self,
        line: &[u8],
        offset: usize,
        settings: &Settings,
    ) -> Result<bool, Fault> {
        let parsed = match line::parse(line, true) {
            Ok(parsed) => parsed,
            Err(Stop::Fault(fault)) => {
                if fault == Fault::MethodInHttp09 {
                    self.head.version = Version::Http09;
                }
                return Err(fault);
            }
            Err(Stop::Partial) => return Err(Fault::BadRequestLine),
        };
        if parsed.version == Version::Http09 && !settings.allow_http09 {
            return Err(Fault::BadVersion);
        }
        self.set_line(line, offset, &parsed)?;
        self.stage = Stage::Fields;
        self.head.close = parsed.version < Version::Http11;
        Ok(parsed.version == Version::Http09)
    }

    fn set_line(&mut self, line: &[u8], offset: usize, parsed: &RequestLine) -> Result<(), Fault> {
        let span = |range: &Range<usize>| Span::new(offset + range.start, range.len());
        let head = &mut self.head;
        match &parsed.target {
            Target::Origin(path) => head.target = span(path),
            Target::Authority(authority) => {
                check_host(&line[authority.clone()]).map_err(|_| Fault::BadHost)?;
                head.authority = Some(span(authority)).into();
            }
            Target::Absolute {
                scheme,
                authority,
                path,
            } => {
                head.scheme = Some(span(scheme)).into();
                head.authority = Some(span(authority)).into();
                head.target = span(path);
            }
        }
        head.line = Span::new(offset, line.len());
        head.method = parsed.method;
        head.method_name = Span::new(offset, parsed.method_end);
        head.version = parsed.version;
        match &parsed.target {
            Target::Absolute { authority, .. } if check_host(&line[authority.clone()]).is_err() => {
                // The request has no valid host, but the log shows everything else.
                head.blame(&[b"client sent invalid host in request line"]);
                Err(Fault::BadHost)
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn field(
        &mut self,
        line: &[u8],
        id: FieldId,
        (name, value): (Range<usize>, Range<usize>),
        offset: usize,
        settings: &Settings,
    ) -> Result<bool, Fault> {
        if self.head.fields.len() >= settings.max_headers as usize {
            return Err(Fault::TooManyHeaders);
        }
        if id != FieldId::Other
            && let Err(fault) = self.known_field(id, &line[value.clone()])
        {
            return self.refuse_field(fault, id, (name, value), offset);
        }
        self.head.fields.push(Field {
            name: Span::new(offset + name.start, name.len()),
            value: Span::new(offset + value.start, value.len()),
            id,
        });
        Ok(false)
    }

    /// Ends the head for the fault of a field. The log shows a bad host.
    #[cold]
    #[inline(never)] // It would take registers of each field.
    fn refuse_field(
        &mut self,
        fault: Fault,
        id: FieldId,
        (name, value): (Range<usize>, Range<usize>),
        offset: usize,
    ) -> Result<bool, Fault> {
        if fault == Fault::BadHost {
            self.head.fields.push(Field {
                name: Span::new(offset + name.start, name.len()),
                value: Span::new(offset + value.start, value.len()),
                id,
            });
        }
        Err(fault)
    }

    /// Applies a known field to the connection, and checks whether it may occur here.
    fn known_field(&mut self, id: FieldId, value: &[u8]) -> Result<(), Fault> {
        let repeated = self.seen & id.bit() != 0;
        self.seen |= id.bit();
        match id {
            FieldId::Host if repeated => Err(Fault::DuplicateHost),
            FieldId::Host => check_host(value).map(drop).map_err(|_| Fault::BadHost),
            FieldId::ContentLength => self.framing.content_length(value),
            FieldId::TransferEncoding => self.framing.transfer_encoding(value),
            FieldId::Connection => {
                self.connection(value);
                Ok(())
            }
            _ if repeated && ONCE & id.bit() != 0 => Err(Fault::DuplicateHeader),
            FieldId::Expect => {
                self.head.expect_continue |=
                    self.head.version >= Version::Http11 && expects_continue(value);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The options of a Connection field (RFC 9112 section 9.3); "close" wins.
    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|&byte| byte == b',') {
            let option = option.trim_ascii();
            if option.eq_ignore_ascii_case(b"close") {
                self.seen |= SAID_CLOSE;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                self.head.keep_alive = true;
            }
        }
        self.head.close = self.seen & SAID_CLOSE != 0
            || (self.head.version < Version::Http11 && !self.head.keep_alive);
    }

    /// The checks that need all fields, in nginx's order.
    fn end_of_fields(&mut self, settings: &Settings) -> Result<(), Fault> {
        let head = &mut self.head;
        if head.version >= Version::Http11 && self.seen & FieldId::Host.bit() == 0 {
            return Err(Fault::MissingHost);
        }
        head.body = self.framing.body(head.version)?;
        match head.method {
            Method::Connect => Err(Fault::ConnectForbidden),
            Method::Trace if !settings.allow_trace => Err(Fault::TraceForbidden),
            _ => Ok(()),
        }
    }
}

/// Position of the first LF; the first `searched` bytes have none.
#[inline]
fn find_line_end(rest: &[u8], searched: usize) -> Option<usize> {
    memchr::memchr(b'\n', rest.get(searched..)?).map(|at| searched + at)
}

/// The line without the CR of its line end.
#[inline]
fn strip_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The version of a response to a request line without a version: nginx answers with a head.
const FIRST_VERSION: Version = Version::Http10;

/// Bytes of a bad request line kept for the log.
const LOGGED_BYTES: usize = 2048;

/// The bit of [`HeadParser::seen`] without a field: "close" was received.
const SAID_CLOSE: u64 = FieldId::Other.bit();

/// Fields that may occur once, besides those with a fault of their own. Several fields of a list are one list (RFC
/// 9110 section 5.3): `If-Match`, `If-None-Match` and `Expect` may be repeated.
const ONCE: u64 = FieldId::IfModifiedSince.bit()
    | FieldId::IfUnmodifiedSince.bit()
    | FieldId::IfRange.bit()
    | FieldId::ContentRange.bit()
    | FieldId::Authorization.bit()
    | FieldId::ProxyAuthorization.bit();
