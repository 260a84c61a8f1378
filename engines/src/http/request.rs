//! The head of a request: request line and fields, as spans into one arena.
//!
//! Engines fill it, the server reads it. A head with a [`Fault`] holds as much
//! as was parsed before the fault, so that error pages and logs have something
//! to show.

use super::field::{self, Field, Span, emptied};
use super::{Fault, FieldId, Method, Version};

/// Length of a message body, as its head announces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no body.
    #[default]
    None,
    /// Exactly this many bytes.
    Length(u64),
    /// The end is marked in the body itself: a chunked request, or a response
    /// whose length is not known yet.
    Unknown,
}

/// A request head, whole or up to its fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHead {
    /// The text all spans point into.
    pub arena: Vec<u8>,
    /// The request line without its line end: nginx's `$request`. With a fault
    /// in the line itself this is what had arrived of it.
    pub line: Span,
    /// The method.
    pub method: Method,
    /// The method's name as sent.
    pub method_name: Span,
    /// Path and query as sent, nginx's `$request_uri`: origin form always. Of an absolute-form target its path part
    /// ("/" if empty, "http://h?x" becomes "/?x"); "*" is kept for `OPTIONS *`; "/" for CONNECT.
    pub target: Span,
    /// `host[:port]` of an absolute-form target; it wins over `Host`
    /// (RFC 9112 section 3.2.2).
    pub authority: Option<Span>,
    /// The scheme of an absolute-form target.
    pub scheme: Option<Span>,
    /// The protocol version of the request.
    pub version: Version,
    /// The fields in the order received.
    pub fields: Vec<Field>,
    /// Length of the body.
    pub body: BodyLength,
    /// Error in the head: answer `Fault::status` and close.
    pub fault: Option<Fault>,
    /// Bytes of request line and header section received.
    pub size_bytes: u64,
    /// The priority that a stream of SPDY was opened with, 0 to 7.
    pub priority: Option<u8>,
    /// The peer does not want, or cannot have, a persistent connection.
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

    /// The request line as HTTP/1 would have it, for logs and `$request`; for engines without one.
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

    /// Appends a field as it is; for engines and tests.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.push_id(FieldId::of(name), name, value);
    }

    /// Appends a field whose number is known and returns the span of its value; for engines.
    #[inline]
    pub fn push_id(&mut self, id: FieldId, name: &[u8], value: &[u8]) -> Span {
        let value = self.store(value);
        self.push_span(id, name, value);
        value
    }

    /// Appends a field whose number is known and whose value is in the arena; for engines.
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

#[cfg(test)]
mod tests {
    use super::*;

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
