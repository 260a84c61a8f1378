//! The typed data of MaxMind DB files: a value at a path, without building the containers around it.
//!
//! A field is a byte of type and size, then its content; a pointer refers to a field elsewhere in the section. Nothing
//! is copied. Depth, pointers and the number of skipped fields are limited, so that a broken or hostile file costs a
//! bounded time.
//!
//! Source: MaxMind DB File Format Specification, version 2.0, "Output Data Section".

/// A section of data.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a>(&'a [u8]);

/// A value. Of maps and arrays only the presence is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// UTF-8, unchecked.
    Text(&'a [u8]),
    /// Bytes without a meaning.
    Bytes(&'a [u8]),
    /// A number of 64 bits.
    Double(f64),
    /// A number of 32 bits.
    Float(f32),
    /// A number of 16, 32 or 64 bits.
    Unsigned(u64),
    /// A number of 128 bits.
    Wide(u128),
    /// A number of 32 bits with a sign.
    Signed(i32),
    /// Yes or no.
    Bool(bool),
    /// A map; paths select its entries.
    Map,
    /// An array; paths select its elements.
    Array,
}

/// The head of a field, with the offset of its content.
#[derive(Debug, Clone, Copy)]
struct Head {
    kind: u8,
    /// Bytes of the content, number of entries, or the value of a boolean.
    size: usize,
    content: usize,
}

impl<'a> Data<'a> {
    /// Takes the bytes of a section.
    #[must_use]
    pub fn new(section: &'a [u8]) -> Self {
        Self(section)
    }

    /// Returns the value at a path inside the field at an offset.
    pub fn find<P: AsRef<[u8]>>(&self, offset: usize, path: &[P]) -> Option<Value<'a>> {
        let mut budget = FIELDS_MAX;
        let mut head = self.resolve(offset)?.0;
        for step in path {
            let at = match head.kind {
                MAP => self.entry(head, step.as_ref(), &mut budget)?,
                ARRAY => self.element(head, step.as_ref(), &mut budget)?,
                _ => return None,
            };
            head = self.resolve(at)?.0;
        }
        self.value(head)
    }

    /// Returns the offset of a key's value.
    fn entry(&self, map: Head, key: &[u8], budget: &mut usize) -> Option<usize> {
        let mut at = map.content;
        for _ in 0..map.size {
            *budget = budget.checked_sub(1)?;
            let (head, after) = self.resolve(at)?;
            if head.kind != TEXT {
                return None;
            }
            if self.content(head)? == key {
                return Some(after);
            }
            at = self.skip(after, 0, budget)?;
        }
        None
    }

    /// Returns the offset of an element.
    fn element(&self, array: Head, index: &[u8], budget: &mut usize) -> Option<usize> {
        let index: i64 = std::str::from_utf8(index).ok()?.parse().ok()?;
        let index = match usize::try_from(index) {
            Ok(index) => index,
            Err(_) => array
                .size
                .checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
        };
        if index >= array.size {
            return None;
        }
        let mut at = array.content;
        for _ in 0..index {
            at = self.skip(at, 0, budget)?;
        }
        Some(at)
    }

    /// Returns the head at an offset, or of a pointer's target, and the offset of the next field. For maps and arrays
    /// the next field is the first entry.
    fn resolve(&self, at: usize) -> Option<(Head, usize)> {
        let head = self.head(at)?;
        if head.kind != POINTER {
            return Some((head, head.end()?));
        }
        let target = self.head(head.size)?;
        // Pointers to pointers are not allowed, so pointers cannot form circles.
        (target.kind != POINTER).then_some((target, head.content))
    }

    /// Returns the head at an offset. The size of a pointer is the offset of its target.
    fn head(&self, at: usize) -> Option<Head> {
        let control = *self.0.get(at)?;
        let mut content = at + 1;
        let mut kind = control >> 5;
        if kind == POINTER {
            let length = usize::from(control >> 3 & 3) + 1;
            let high = if length == 4 {
                0
            } else {
                u64::from(control & 7)
            };
            let low = self.number(content, length)?;
            let base = [0, 2048, 526_336, 0][length - 1];
            let target = ((high << (8 * length)) | low) + base;
            return Some(Head {
                kind,
                size: usize::try_from(target).ok()?,
                content: content + length,
            });
        }
        if kind == EXTENDED {
            kind = self.0.get(content)?.checked_add(7)?;
            content += 1;
        }
        let mut size = usize::from(control & 0x1f);
        if let Some(length) = size.checked_sub(28).filter(|length| *length > 0) {
            let more = self.number(content, length)?;
            size = usize::try_from(more).ok()? + [29, 285, 65_821][length - 1];
            content += length;
        }
        Some(Head {
            kind,
            size,
            content,
        })
    }

    /// Returns the offset of the field after the one at an offset.
    fn skip(&self, at: usize, depth: usize, budget: &mut usize) -> Option<usize> {
        *budget = budget.checked_sub(1)?;
        let head = self.head(at)?;
        let fields = match head.kind {
            MAP => head.size.checked_mul(2)?,
            ARRAY => head.size,
            _ => return head.end(),
        };
        if depth >= DEPTH_MAX {
            return None;
        }
        let mut next = head.content;
        for _ in 0..fields {
            next = self.skip(next, depth + 1, budget)?;
        }
        Some(next)
    }

    fn value(&self, head: Head) -> Option<Value<'a>> {
        let content = || self.content(head);
        Some(match (head.kind, head.size) {
            (TEXT, _) => Value::Text(content()?),
            (BYTES, _) => Value::Bytes(content()?),
            (DOUBLE, 8) => Value::Double(f64::from_bits(self.number(head.content, 8)?)),
            (FLOAT, 4) => Value::Float(f32::from_bits(self.number(head.content, 4)? as u32)),
            (U16, size @ 0..=2) | (U32, size @ 0..=4) | (U64, size @ 0..=8) => {
                Value::Unsigned(self.number(head.content, size)?)
            }
            (U128, 0..=16) => {
                let digits = content()?.iter();
                Value::Wide(digits.fold(0, |number, byte| (number << 8) | u128::from(*byte)))
            }
            (I32, size @ 0..=4) => Value::Signed(self.number(head.content, size)? as u32 as i32),
            (BOOL, value @ 0..=1) => Value::Bool(value == 1),
            (MAP, _) => Value::Map,
            (ARRAY, _) => Value::Array,
            _ => return None,
        })
    }

    fn content(&self, head: Head) -> Option<&'a [u8]> {
        self.0
            .get(head.content..head.content.checked_add(head.size)?)
    }

    /// A big-endian number of up to eight bytes.
    fn number(&self, at: usize, length: usize) -> Option<u64> {
        let digits = self.0.get(at..at.checked_add(length)?)?.iter();
        Some(digits.fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }
}

impl Head {
    /// Returns the offset of the end of a field without entries.
    fn end(self) -> Option<usize> {
        match self.kind {
            POINTER | BOOL | MAP | ARRAY => Some(self.content),
            _ => self.content.checked_add(self.size),
        }
    }
}

const EXTENDED: u8 = 0;
const POINTER: u8 = 1;
const TEXT: u8 = 2;
const DOUBLE: u8 = 3;
const BYTES: u8 = 4;
const U16: u8 = 5;
const U32: u8 = 6;
const MAP: u8 = 7;
const I32: u8 = 8;
const U64: u8 = 9;
const U128: u8 = 10;
const ARRAY: u8 = 11;
const BOOL: u8 = 14;
const FLOAT: u8 = 15;

/// Maximum number of fields examined for one value: known records have about a hundred.
pub const FIELDS_MAX: usize = 65_536;
/// Maximum depth of skipped maps and arrays: known records have four.
pub const DEPTH_MAX: usize = 64;
