//! A borrowed view of the fields of a message, and the elements of list fields.
//!
//! Source: RFC 9110 sections 5.2, 5.3, 5.6.1, 5.6.4.

use engines::http::{Field, FieldId, Fields, RequestHead, ResponseHead, Span, trim_ows};

/// The fields of a request, response or stored head, in the order received.
#[derive(Clone, Copy, Debug)]
pub struct FieldList<'a> {
    arena: &'a [u8],
    fields: &'a [Field],
}

impl<'a> FieldList<'a> {
    /// Makes a view of fields with their text in `arena`.
    #[must_use]
    pub const fn new(arena: &'a [u8], fields: &'a [Field]) -> Self {
        Self { arena, fields }
    }

    /// Number, name and value of each field.
    pub fn iter(self) -> impl Iterator<Item = (FieldId, &'a [u8], &'a [u8])> {
        let fields = self.fields.iter();
        fields.map(move |field| (field.id, self.bytes(field.name), self.bytes(field.value)))
    }

    /// All values of the known field `id`.
    pub fn by_id(self, id: FieldId) -> impl Iterator<Item = &'a [u8]> {
        let fields = self.fields.iter().filter(move |field| field.id == id);
        fields.map(move |field| self.bytes(field.value))
    }

    /// All values of the field called `name`, compared without case.
    pub fn named(self, name: &[u8]) -> impl Iterator<Item = &'a [u8]> {
        let fields = self.iter();
        fields
            .filter(move |(_, other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, _, value)| value)
    }

    /// The first value of the known field `id`.
    #[must_use]
    pub fn first(self, id: FieldId) -> Option<&'a [u8]> {
        self.by_id(id).next()
    }

    /// Whether there is a field with the number `id`.
    #[must_use]
    pub fn has(self, id: FieldId) -> bool {
        self.first(id).is_some()
    }

    /// The bytes of a span; empty if it is not within the arena.
    fn bytes(self, span: Span) -> &'a [u8] {
        self.arena.get(span.range()).unwrap_or_default()
    }
}

impl<'a> From<&'a Fields> for FieldList<'a> {
    fn from(fields: &'a Fields) -> Self {
        Self::new(&fields.arena, &fields.fields)
    }
}

impl<'a> From<&'a RequestHead> for FieldList<'a> {
    fn from(head: &'a RequestHead) -> Self {
        Self::new(&head.arena, &head.fields)
    }
}

impl<'a> From<&'a ResponseHead> for FieldList<'a> {
    fn from(head: &'a ResponseHead) -> Self {
        Self::new(&head.arena, &head.fields)
    }
}

/// The elements of a list field: split at commas outside of quoted strings, without white space, never empty.
///
/// A quotation mark without its partner is an ordinary byte. The text behind it is still split, so that no directive
/// hides behind a broken quoted string.
#[derive(Clone, Debug)]
pub(super) struct Elements<'a> {
    rest: &'a [u8],
    /// Quoted strings are recognised; false after an unclosed one, which also bounds the work to two passes.
    quotes: bool,
}

impl<'a> Elements<'a> {
    pub(super) const fn new(value: &'a [u8]) -> Self {
        Self {
            rest: value,
            quotes: true,
        }
    }

    /// The position of the next comma outside of a quoted string, or the length of the rest.
    fn end(&mut self) -> usize {
        let mut at = 0;
        while let Some(byte) = self.rest.get(at) {
            match byte {
                b',' => break,
                b'"' if self.quotes => match quoted_len(&self.rest[at..]) {
                    Some(len) => at += len,
                    None => {
                        self.quotes = false;
                        at += 1;
                    }
                },
                _ => at += 1,
            }
        }
        at
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let end = self.end();
            let element = trim_ows(&self.rest[..end]);
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if !element.is_empty() {
                return Some(element);
            }
        }
        None
    }
}

/// The length of the quoted string at the start of `text`, with both marks; `None` if it is not closed.
pub(super) fn quoted_len(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The text of a quoted string without marks and backslashes; `None` if `text` is not exactly one.
pub(super) fn unquoted(text: &[u8]) -> Option<Vec<u8>> {
    if text.first() != Some(&b'"') || quoted_len(text) != Some(text.len()) {
        return None;
    }
    let mut out = Vec::with_capacity(text.len());
    let mut inner = text[1..text.len() - 1].iter();
    while let Some(&byte) = inner.next() {
        let escaped = (byte == b'\\').then(|| inner.next()).flatten();
        out.push(*escaped.unwrap_or(&byte));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(value: &str) -> Vec<&str> {
        let text = |element| std::str::from_utf8(element).expect("a test's text is UTF-8");
        Elements::new(value.as_bytes()).map(text).collect()
    }

    /// RFC 9110 section 5.6.1: empty elements are ignored, and white space around elements.
    #[test]
    fn lists_are_split_at_commas() {
        assert_eq!(elements(""), [""; 0]);
        assert_eq!(elements(" ,\t, "), [""; 0]);
        assert_eq!(elements("a"), ["a"]);
        assert_eq!(elements(" a ,,\tb c,"), ["a", "b c"]);
    }

    /// RFC 9110 section 5.6.4.
    #[test]
    fn quoted_strings_keep_their_commas() {
        assert_eq!(elements(r#"a="b,c", d"#), [r#"a="b,c""#, "d"]);
        assert_eq!(elements(r#"a="b\",c", d"#), [r#"a="b\",c""#, "d"]);
        assert_eq!(elements(r#"a="b\\", d"#), [r#"a="b\\""#, "d"]);
        assert_eq!(elements(r#""", d"#), [r#""""#, "d"]);
    }

    #[test]
    fn an_unclosed_quoted_string_hides_no_element() {
        assert_eq!(elements(r#"a="b, no-store"#), [r#"a="b"#, "no-store"]);
        assert_eq!(elements(r#"a="b\", c"#), [r#"a="b\""#, "c"]);
        assert_eq!(elements("a, \""), ["a", "\""]);
        assert_eq!(elements(r#""\"#), [r#""\"#]);
    }

    /// Each escaped mark could begin a quoted string; only the first one is followed to the end.
    #[test]
    fn broken_marks_cost_linear_time() {
        let value = r#"\""#.repeat(200_000);
        assert_eq!(elements(&value).len(), 1);
    }

    #[test]
    fn quoted_strings_are_unescaped() {
        assert_eq!(unquoted(br#""a\"b\\c""#).as_deref(), Some(&br#"a"b\c"#[..]));
        assert_eq!(unquoted(br#""""#).as_deref(), Some(&b""[..]));
        for text in [&b"a"[..], b"", b"\"", br#""a"b"#, br#""a\""#, br#"a"b""#] {
            assert_eq!(unquoted(text), None, "{text:?}");
        }
    }

    /// RFC 9110 section 5.1: names are compared without case.
    #[test]
    fn fields_are_found_by_number_and_name() {
        let mut fields = Fields::default();
        fields.push(b"Vary", b"a");
        fields.push(b"X-A", b"1");
        fields.push(b"vary", b"b");
        let list = FieldList::from(&fields);
        assert_eq!(list.by_id(FieldId::Vary).collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(list.named(b"x-a").collect::<Vec<_>>(), [b"1"]);
        assert_eq!(list.first(FieldId::Vary), Some(&b"a"[..]));
        assert!(list.has(FieldId::Vary) && !list.has(FieldId::Date));
        assert_eq!(list.iter().count(), 3);
    }

    #[test]
    fn heads_of_requests_and_responses_are_viewed() {
        let (mut request, mut response) = (RequestHead::default(), ResponseHead::default());
        request.push(b"Pragma", b"no-cache");
        response.push(b"Age", b"1");
        let pragma = FieldList::from(&request).first(FieldId::Pragma);
        assert_eq!(pragma, Some(&b"no-cache"[..]));
        let list = FieldList::from(&response);
        assert_eq!(list.named(b"age").collect::<Vec<_>>(), [b"1"]);
    }
}
