//! One header or trailer field, as spans into the arena of its head.

use super::FieldId;
use std::ops::Range;

/// A range of bytes in an arena; heads stay far below 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte, counted from the start of the arena.
    pub start: u32,
    /// Length in bytes.
    pub len: u32,
}

impl Span {
    /// The span of `start..start + len`, in bytes.
    #[inline]
    #[must_use]
    pub const fn new(start: usize, len: usize) -> Self {
        Self {
            start: start as u32,
            len: len as u32,
        }
    }

    /// The span as an index range.
    #[inline]
    #[must_use]
    pub const fn range(self) -> Range<usize> {
        let start = self.start as usize;
        start..start + self.len as usize
    }

    /// Whether the span has no byte.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The bytes in `arena`; empty if the span is not within it.
    #[inline]
    pub(crate) fn of(self, arena: &[u8]) -> &[u8] {
        arena.get(self.range()).unwrap_or_default()
    }
}

/// A span or none, in the size of a span. The empty span at 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OptionalSpan(Span);

impl OptionalSpan {
    /// Returns the span, if there is one.
    #[inline]
    #[must_use]
    pub fn get(self) -> Option<Span> {
        (self != Self::default()).then_some(self.0)
    }
}

impl From<Option<Span>> for OptionalSpan {
    #[inline]
    fn from(span: Option<Span>) -> Self {
        Self(span.unwrap_or_default())
    }
}

/// A field line: name, value, and the number of a well-known name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// The name as received or set, case kept.
    pub name: Span,
    /// The value without surrounding white space.
    pub value: Span,
    /// The name as a number; [`FieldId::Other`] for an unknown name.
    pub id: FieldId,
}

/// The memory of a list, emptied.
pub(crate) fn emptied<T>(list: &mut Vec<T>) -> Vec<T> {
    let mut list = std::mem::take(list);
    list.clear();
    list
}

/// The first value of the known field `id`.
pub(crate) fn first<'a>(arena: &'a [u8], fields: &[Field], id: FieldId) -> Option<&'a [u8]> {
    fields
        .iter()
        .find(|field| field.id == id)
        .map(|field| field.value.of(arena))
}

/// All values of the known field `id`, in order.
pub(crate) fn by_id<'a>(
    arena: &'a [u8],
    fields: &'a [Field],
    id: FieldId,
) -> impl Iterator<Item = &'a [u8]> {
    fields
        .iter()
        .filter(move |field| field.id == id)
        .map(|field| field.value.of(arena))
}

/// All values of the field called `name`, compared without case, in order.
pub(crate) fn named<'a>(
    arena: &'a [u8],
    fields: &'a [Field],
    name: &'a [u8],
) -> impl Iterator<Item = &'a [u8]> {
    fields
        .iter()
        .filter(move |field| field.name.of(arena).eq_ignore_ascii_case(name))
        .map(|field| field.value.of(arena))
}
