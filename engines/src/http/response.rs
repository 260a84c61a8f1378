//! The head of a response, built by the server and encoded by an engine.
//!
//! `push` keeps every field in HTTP/1's wire form in the arena ("Name: value" and a line end), so
//! the HTTP/1 engine copies all fields at once and other engines use the spans. A value can never
//! end its line: CR, LF and NUL are percent-encoded when it is pushed, regardless of its origin.
//! They are not removed, because the bytes on both sides of one must not become adjacent.

use super::class::is_token;
use super::escape::{Escape, escape};
use super::field::{self, Field, Span, emptied};
use super::{BodyLength, FieldId, reason_phrase};

/// A response head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code, 100 to 999.
    pub status: u16,
    /// A status with an unusual reason phrase; 0 for none.
    pub phrase_status: u16,
    /// That phrase; see [`Self::phrase`].
    pub phrase_text: Span,
    /// The text all spans point into.
    pub arena: Vec<u8>,
    /// The fields in the order they are sent.
    pub fields: Vec<Field>,
    /// Length of the body. `Length`: the server has pushed Content-Length itself. `Unknown`: the engine frames it.
    pub body: BodyLength,
    /// The server's wish; an engine may still close.
    pub keep_alive: bool,
    /// Seconds announced as "Keep-Alive: timeout=N".
    pub keep_alive_hint_s: Option<u64>,
    /// `chunked_transfer_encoding off`: a body of unknown length ends with the
    /// connection. HTTP/1 only.
    pub forbid_chunked: bool,
}

impl ResponseHead {
    /// Empties the head and keeps its memory.
    pub fn clear(&mut self) {
        *self = Self {
            arena: emptied(&mut self.arena),
            fields: emptied(&mut self.fields),
            ..Self::default()
        };
    }

    /// Sets the reason phrase of a status; it is ignored if the status changes. One with a CR, LF or NUL is
    /// refused.
    pub fn set_phrase(&mut self, status: u16, phrase: &[u8]) {
        if memchr::memchr3(b'\r', b'\n', 0, phrase).is_none() {
            let start = self.arena.len();
            self.arena.extend_from_slice(phrase);
            self.set_phrase_span(status, Span::new(start, phrase.len()));
        }
    }

    /// Sets the reason phrase to text in the arena.
    pub(crate) fn set_phrase_span(&mut self, status: u16, phrase: Span) {
        self.phrase_status = status;
        self.phrase_text = phrase;
    }

    /// The reason phrase: the one set for the status, else the usual one.
    #[inline]
    #[must_use]
    pub fn phrase(&self) -> &[u8] {
        let own = self.own_phrase();
        own.unwrap_or_else(|| reason_phrase(self.status).as_bytes())
    }

    /// The reason phrase set for the status, usual or not.
    #[inline]
    #[must_use]
    pub fn own_phrase(&self) -> Option<&[u8]> {
        let is_own = self.phrase_status == self.status && self.status != 0;
        is_own.then(|| self.bytes(self.phrase_text))
    }

    /// Appends a field. CR, LF and NUL in `value` become `%0D`, `%0A` and `%00`; a
    /// `name` that is not a token is skipped with its value.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.push_id(FieldId::of(name), name, value);
    }

    /// Appends a field with a known number; see [`Self::push`].
    pub fn push_id(&mut self, id: FieldId, name: &[u8], value: &[u8]) {
        if let Some(start) = self.store(id, name, value) {
            let field = self.last_line(id, start, name.len());
            self.fields.push(field);
        }
    }

    /// Appends a field made by this server; `name` has its colon and blank, `value` no byte below 0x20, which is
    /// not checked again.
    #[inline]
    pub fn push_own(&mut self, id: FieldId, name: &'static [u8], value: &[u8]) {
        debug_assert!(name.ends_with(b": ") && !has_control(value));
        let arena = &mut self.arena;
        let start = arena.len();
        arena.reserve(name.len() + value.len() + 2);
        arena.extend_from_slice(name);
        arena.extend_from_slice(value);
        arena.extend_from_slice(b"\r\n");
        let field = self.last_line(id, start, name.len() - 2);
        self.fields.push(field);
    }

    /// Appends a field of another head; see [`Self::push`].
    pub fn push_field(&mut self, from: &Self, field: &Field) {
        let (name, value) = (from.bytes(field.name), from.bytes(field.value));
        let line = Span {
            start: field.name.start,
            len: field.name.len + 2 + field.value.len,
        };
        let line = from.bytes(line);
        let is_whole = field.value.start == field.name.start + field.name.len + 2
            && line.get(name.len()..name.len() + 2) == Some(b": ");
        if !is_whole || has_control(value) {
            return self.push_id(field.id, name, value);
        }
        if field.id == FieldId::Other && !is_token(name) {
            return;
        }
        // The common form of most servers is the wire form: one copy.
        let start = self.arena.len();
        self.arena.reserve(line.len() + 2);
        self.arena.extend_from_slice(line);
        self.arena.extend_from_slice(b"\r\n");
        let field = self.last_line(field.id, start, name.len());
        self.fields.push(field);
    }

    /// Replaces the first field called `name` and removes the others, or appends it.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        let id = FieldId::of(name);
        let Some(start) = self.store(id, name, value) else {
            return;
        };
        let field = self.last_line(id, start, name.len());
        let arena = &self.arena;
        let mut replacement = Some(field);
        self.fields.retain_mut(|old| {
            if !old.name.of(arena).eq_ignore_ascii_case(name) {
                return true;
            }
            match replacement.take() {
                Some(new) => {
                    *old = new;
                    true
                }
                None => false,
            }
        });
        self.fields.extend(replacement);
    }

    /// Replaces the value of the field at an index; see [`Self::push`].
    pub fn replace_value(&mut self, index: usize, value: &[u8]) {
        let Some(&Field { name, id, .. }) = self.fields.get(index) else {
            return;
        };
        let name = name.of(&self.arena).to_vec();
        if let Some(start) = self.store(id, &name, value) {
            self.fields[index] = self.last_line(id, start, name.len());
        }
    }

    /// Removes every field with the number `id`.
    pub fn remove(&mut self, id: FieldId) {
        self.fields.retain(|field| field.id != id);
    }

    /// The first value of the known field `id`.
    #[must_use]
    pub fn get(&self, id: FieldId) -> Option<&[u8]> {
        field::first(&self.arena, &self.fields, id)
    }

    /// All values of the field called `name` (compared without case), in order.
    pub fn named<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        field::named(&self.arena, &self.fields, name)
    }

    /// The bytes of a span of this head.
    #[inline]
    #[must_use]
    pub fn bytes(&self, span: Span) -> &[u8] {
        span.of(&self.arena)
    }

    /// Writes the field line to the arena, or nothing if `name` is no token; returns its start.
    fn store(&mut self, id: FieldId, name: &[u8], value: &[u8]) -> Option<usize> {
        // The names of known fields are tokens.
        if id == FieldId::Other && !is_token(name) {
            return None;
        }
        let arena = &mut self.arena;
        let start = arena.len();
        arena.reserve(name.len() + value.len() + 4);
        arena.extend_from_slice(name);
        arena.extend_from_slice(b": ");
        if has_control(value) {
            escape(value, Escape::LineEnds, arena);
        } else {
            arena.extend_from_slice(value);
        }
        arena.extend_from_slice(b"\r\n");
        Some(start)
    }

    /// The field of the last line in the arena.
    #[inline]
    fn last_line(&self, id: FieldId, start: usize, name_len: usize) -> Field {
        let value_start = start + name_len + 2;
        Field {
            name: Span::new(start, name_len),
            value: Span::new(value_start, self.arena.len() - 2 - value_start),
            id,
        }
    }
}

/// Marks, by its high bit, each byte of a word that is below `limit`, which is at most 0x80. A borrow can also mark
/// bytes behind a marked one, never before.
#[inline]
pub(crate) fn bytes_below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(EACH_BYTE * u64::from(limit)) & !word & (EACH_BYTE * 0x80)
}

/// 1 in each byte of a word.
pub(crate) const EACH_BYTE: u64 = 0x0101_0101_0101_0101;

/// Whether a byte is below 0x20; eight at a time.
#[inline]
pub(crate) fn has_control(text: &[u8]) -> bool {
    let below = |word| bytes_below(word, 0x20) != 0;
    let (words, tail) = text.as_chunks::<8>();
    // The last eight bytes overlap earlier ones, which avoids a loop over single bytes.
    words.iter().any(|word| below(u64::from_le_bytes(*word)))
        || match text.last_chunk() {
            Some(last) => below(u64::from_le_bytes(*last)),
            None => tail.iter().any(|byte| *byte < 0x20),
        }
}

/// Position of the first byte below 0x20, from `start` on; eight at a time.
#[inline]
pub(crate) fn find_control(text: &[u8], start: usize) -> Option<usize> {
    let (words, tail) = text.get(start..)?.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let below = bytes_below(u64::from_le_bytes(*word), 0x20);
        if below != 0 {
            return Some(start + at * 8 + below.trailing_zeros() as usize / 8);
        }
    }
    let at = tail.iter().position(|byte| *byte < 0x20)?;
    Some(start + words.len() * 8 + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_control_is_found() {
        for len in 0..40 {
            for at in 0..len {
                for control in [0, 9, 0x1f] {
                    let mut text = vec![0x80_u8; len];
                    text[at] = control;
                    // Another one behind it is not the first.
                    text[len - 1] = text[len - 1].min(0x7f) & 0x1f;
                    for start in 0..=at {
                        assert_eq!(find_control(&text, start), Some(at.min(len - 1)));
                    }
                }
            }
            let plain = vec![b' '; len];
            assert_eq!(find_control(&plain, 0), None);
        }
        assert_eq!(find_control(b"a", 2), None);
    }

    #[test]
    fn a_field_of_another_head_is_copied_as_it_is_sent() {
        let arena = b"A: 1\r\nB:2\r\nc d: 3\r\nDate: x\ty\r\n".to_vec();
        let span = |text: &[u8]| {
            let at = arena.windows(text.len()).position(|part| part == text);
            Span::new(at.expect("it is there"), text.len())
        };
        let field = |name: &[u8], value: &[u8]| Field {
            name: span(name),
            value: span(value),
            id: FieldId::of(name),
        };
        let from = ResponseHead {
            fields: vec![
                field(b"A", b"1"),
                field(b"B", b"2"),
                field(b"c d", b"3"),
                field(b"Date", b"x\ty"),
            ],
            arena: arena.clone(),
            ..ResponseHead::default()
        };
        let mut head = ResponseHead::default();
        for field in &from.fields {
            head.push_field(&from, field);
        }
        assert_eq!(head.arena, b"A: 1\r\nB: 2\r\nDate: x\ty\r\n");
        let shown = |field: &Field| (head.bytes(field.name), head.bytes(field.value));
        let shown: Vec<_> = head.fields.iter().map(shown).collect();
        assert_eq!(
            shown,
            [(&b"A"[..], &b"1"[..]), (b"B", b"2"), (b"Date", b"x\ty")]
        );
    }

    /// A value built from decoded user input cannot start a second field.
    #[test]
    fn line_ends_and_nul_are_encoded_in_values() {
        let mut head = ResponseHead::default();
        head.push(b"Location", b"/a\r\nSet-Cookie: x=1\0");
        assert_eq!(
            head.get(FieldId::Location),
            Some(&b"/a%0D%0ASet-Cookie: x=1%00"[..])
        );
        assert_eq!(head.get(FieldId::SetCookie), None);
    }

    #[test]
    fn a_name_that_is_no_token_is_skipped() {
        let mut head = ResponseHead::default();
        for name in [&b""[..], b"a b", b"a\r\n", b"a:", b"\xc3\xa4"] {
            head.push(name, b"x");
            head.set(name, b"x");
        }
        assert!(head.fields.is_empty());
        assert!(head.arena.is_empty());
    }

    #[test]
    fn set_replaces_in_place_and_removes_duplicates() {
        let mut head = ResponseHead::default();
        head.push(b"Vary", b"a");
        head.push(b"Server", b"x");
        head.push(b"vary", b"b");
        head.set(b"Vary", b"c");
        head.set(b"Date", b"now");
        let names: Vec<_> = head
            .fields
            .iter()
            .map(|field| head.bytes(field.name))
            .collect();
        assert_eq!(names, [&b"Vary"[..], b"Server", b"Date"]);
        assert_eq!(head.named(b"vary").collect::<Vec<_>>(), [b"c"]);
    }

    #[test]
    fn remove_takes_all_of_a_name() {
        let mut head = ResponseHead::default();
        head.push(b"Set-Cookie", b"a");
        head.push(b"X-Y", b"b");
        head.push(b"Set-Cookie", b"c");
        head.remove(FieldId::SetCookie);
        assert_eq!(head.fields.len(), 1);
        assert_eq!(head.named(b"X-Y").collect::<Vec<_>>(), [b"b"]);
    }
}
