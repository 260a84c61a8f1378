//! A list of fields without a start line: a trailer section.

use super::FieldId;
use super::field::{self, Field, Span};

/// Fields and the arena their text is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// The text of all fields.
    pub arena: Vec<u8>,
    /// The fields in the order received.
    pub fields: Vec<Field>,
}

impl Fields {
    /// Appends a field; `name` and `value` are stored verbatim.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.push_id(FieldId::of(name), name, value);
    }

    /// Appends a field with a known number; see [`Self::push`].
    pub fn push_id(&mut self, id: FieldId, name: &[u8], value: &[u8]) {
        let at = self.arena.len();
        self.arena.extend_from_slice(name);
        self.arena.extend_from_slice(value);
        self.fields.push(Field {
            name: Span::new(at, name.len()),
            value: Span::new(at + name.len(), value.len()),
            id,
        });
    }

    /// The bytes of a span of this list.
    #[must_use]
    pub fn bytes(&self, span: Span) -> &[u8] {
        span.of(&self.arena)
    }

    /// The first value of the known field `id`.
    #[must_use]
    pub fn field(&self, id: FieldId) -> Option<&[u8]> {
        field::first(&self.arena, &self.fields, id)
    }

    /// All values of the field called `name`, compared without case.
    pub fn named<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        field::named(&self.arena, &self.fields, name)
    }

    /// Whether there is no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Removes all fields and keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.fields.clear();
    }
}
