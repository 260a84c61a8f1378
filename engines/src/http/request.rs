//! The head of a request: request line and fields, as spans into one arena.
//!
//! Engines fill it, the server reads it. A head with a [`Fault`] holds the part parsed before the fault, so that
//! error pages and logs can show it.

use super::field::{self, Field, OptionalSpan, Span, emptied};
use super::{Fault, FieldId, Method, Version};

/// Length of a message body, as its head announces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no body.
    #[default]
    None,
    /// Exactly this many bytes.
    Length(u64),
    /// The body itself marks its end: a chunked request, or a response of unknown length.
    Unknown,
}

/// Details of a request head for the error log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadNotes {
    /// The message about the fault, with bytes of the peer verbatim; empty if [`Fault::message`] is sufficient.
    pub fault: Vec<u8>,
    /// The header lines, or in HTTP/2 the names, that were dropped as invalid.
    pub dropped: Vec<Span>,
}

/// A request head, whole or up to its fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHead {
    /// The text all spans point into.
    pub arena: Vec<u8>,
    /// The request line without its line end: nginx's `$request`. If the line itself is faulty, its
    /// received part.
    pub line: Span,
    /// The method.
    pub method: Method,
    /// The method's name as sent.
    pub method_name: Span,
    /// Path and query as sent, nginx's `$request_uri`: origin form always. Of an absolute-form target its path part
    /// ("/" if empty, "http://h?x" becomes "/?x"); "*" is kept for `OPTIONS *`; "/" for CONNECT.
    pub target: Span,
    /// `host[:port]` of an absolute-form target; it takes precedence over `Host` (RFC 9112 section 3.2.2).
    pub authority: OptionalSpan,
    /// The scheme of an absolute-form target.
    pub scheme: OptionalSpan,
    /// The protocol version of the request.
    pub version: Version,
    /// The fields in the order received.
    pub fields: Vec<Field>,
    /// Length of the body.
    pub body: BodyLength,
    /// Error in the head: answer `Fault::status` and close.
    pub fault: Option<Fault>,
    /// Details for the error log; nearly all heads have none.
    pub notes: Option<Box<HeadNotes>>,
    /// Bytes of request line and header section received.
    pub size_bytes: u64,
    /// The priority that a stream of SPDY was opened with, 0 to 7.
    pub priority: Option<u8>,
    /// The connection ends after this request, by the peer's wish or its version.
    pub close: bool,
    /// "Connection: keep-alive" was sent.
    pub keep_alive: bool,
    /// "Expect: 100-continue" was sent, over HTTP/1.1 or later.
    pub expect_continue: bool,
}

impl RequestHead {
    /// Empties the head and keeps its memory.
    pub fn clear(&mut self) {
        *self = Self {
            arena: emptied(&mut self.arena),
            fields: emptied(&mut self.fields),
            ..Self::default()
        };
    }

    /// The message about the fault, in nginx's words, with bytes of the peer verbatim; empty without a fault.
    #[must_use]
    pub fn fault_message(&self) -> &[u8] {
        match (&self.notes, self.fault) {
            (Some(notes), _) if !notes.fault.is_empty() => &notes.fault,
            (_, Some(fault)) => fault.message().as_bytes(),
            (_, None) => b"",
        }
    }

    /// Records the message about the fault, unless there is one: the first counts.
    #[cold]
    pub(crate) fn blame(&mut self, parts: &[&[u8]]) {
        let notes = self.notes.get_or_insert_default();
        if notes.fault.is_empty() {
            notes.fault = parts.concat();
        }
    }

    /// Notes that a field came before.
    #[cold]
    pub(crate) fn blame_repeated(&mut self, kind: &[u8], name: &[u8], value: &[u8]) {
        let id = FieldId::of(name);
        let Some(before) = self.fields.iter().find(|field| field.id == id) else {
            return;
        };
        let [old_name, old_value] =
            [before.name, before.value].map(|span| self.bytes(span).to_vec());
        let (again, was) = (
            [name, value].join(&b": "[..]),
            [old_name, old_value].join(&b": "[..]),
        );
        let parts = [b"client sent duplicate ", kind, b": \"", &again];
        self.blame(&[&parts.concat(), b"\", previous value: \"", &was, b"\""]);
    }

    /// Notes a header line that is dropped.
    #[cold]
    pub(crate) fn note_dropped(&mut self, line: Span) {
        let dropped = &mut self.notes.get_or_insert_default().dropped;
        if dropped.len() < MAX_DROPPED {
            dropped.push(line);
        }
    }

    /// Sets the request line in HTTP/1's form, for logs and `$request`; for engines without one.
    pub(crate) fn set_line(&mut self, method: Span, target: Span) {
        let start = self.arena.len();
        for span in [method, target] {
            self.arena.extend_from_within(span.range());
            self.arena.push(b' ');
        }
        self.arena
            .extend_from_slice(self.version.as_str().as_bytes());
        self.line = Span::new(start, self.arena.len() - start);
        (self.method_name, self.target) = (method, target);
    }

    /// The bytes of a span of this head.
    #[inline]
    #[must_use]
    pub fn bytes(&self, span: Span) -> &[u8] {
        span.of(&self.arena)
    }

    /// The first value of the known field `id`.
    #[must_use]
    pub fn field(&self, id: FieldId) -> Option<&[u8]> {
        field::first(&self.arena, &self.fields, id)
    }

    /// All values of the known field `id`, in order.
    pub fn fields_by_id(&self, id: FieldId) -> impl Iterator<Item = &[u8]> {
        field::by_id(&self.arena, &self.fields, id)
    }

    /// All values of the field called `name` (compared without case), in order.
    pub fn named<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        field::named(&self.arena, &self.fields, name)
    }

    /// Appends a field verbatim; for engines and tests.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.push_id(FieldId::of(name), name, value);
    }

    /// Appends a field with a known number and returns the span of its value; for engines.
    #[inline]
    pub fn push_id(&mut self, id: FieldId, name: &[u8], value: &[u8]) -> Span {
        let value = self.store(value);
        self.push_span(id, name, value);
        value
    }

    /// Appends a field with a known number and a value in the arena; for engines.
    #[inline]
    pub fn push_span(&mut self, id: FieldId, name: &[u8], value: Span) {
        let name = self.store(name);
        self.fields.push(Field { name, value, id });
    }

    /// Appends `bytes` to the arena and returns their span; for engines and tests.
    pub fn store(&mut self, bytes: &[u8]) -> Span {
        let span = Span::new(self.arena.len(), bytes.len());
        self.arena.extend_from_slice(bytes);
        span
    }
}

/// Most dropped header lines recorded of one head.
const MAX_DROPPED: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_message_about_a_fault_counts() {
        let mut head = RequestHead::default();
        assert_eq!(head.fault_message(), b"");
        head.fault = Some(Fault::BadHost);
        assert_eq!(head.fault_message(), b"client sent invalid host header");
        head.blame(&[b"the ", b"first"]);
        head.blame(&[b"the second"]);
        assert_eq!(head.fault_message(), b"the first");
    }

    #[test]
    fn so_many_dropped_lines_are_noted() {
        let mut head = RequestHead::default();
        let line = head.store(b"X(Y): 1");
        for _ in 0..=MAX_DROPPED {
            head.note_dropped(line);
        }
        let notes = head.notes.expect("lines were dropped");
        assert_eq!(notes.dropped.len(), MAX_DROPPED);
    }

    #[test]
    fn fields_are_found_by_number_and_by_name() {
        let mut head = RequestHead::default();
        head.push(b"Host", b"example.com");
        head.push(b"X-A", b"1");
        head.push(b"x-a", b"2");
        assert_eq!(head.field(FieldId::Host), Some(&b"example.com"[..]));
        assert_eq!(head.field(FieldId::Cookie), None);
        assert_eq!(head.named(b"x-a").collect::<Vec<_>>(), [b"1", b"2"]);
        assert_eq!(head.fields_by_id(FieldId::Other).count(), 2);
    }

    #[test]
    fn clear_keeps_the_memory_and_nothing_else() {
        let mut head = RequestHead {
            close: true,
            ..RequestHead::default()
        };
        head.push(b"Host", &[b'a'; 500]);
        let capacity = head.arena.capacity();
        head.clear();
        assert_eq!(head, RequestHead::default());
        assert_eq!(head.arena.capacity(), capacity);
    }
}
