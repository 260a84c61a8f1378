//! A string pool: each string is stored once, in one buffer. For the values of tables with a million lines.
//!
//! A string costs its bytes and those of its length, and no allocation. It is known by its offset. The records
//! serve [`crate::name_map`], too.

use crate::hash_table::HashTable;

/// Texts by their offsets.
#[derive(Debug, Default)]
pub struct StringPool {
    records: Records,
}

impl StringPool {
    /// The text at an offset.
    ///
    /// # Panics
    /// The offset is none that [`Interner::add`] gave, or one of an interner of its own.
    #[inline]
    pub fn at(&self, offset: usize) -> &[u8] {
        self.records.text(offset).0
    }
}

/// Texts while there may be more.
#[derive(Debug, Default)]
pub struct Interner {
    table: HashTable,
    pool: StringPool,
    /// The offset of the string that was added last.
    last: Option<usize>,
}

impl Interner {
    /// The offset of a text, which is added unless it is there.
    pub fn add(&mut self, text: &[u8]) -> usize {
        // Lines next to each other often have the same value.
        if let Some(last) = self.last
            && self.pool.at(last) == text
        {
            return last;
        }
        let hash = self.table.hash(text);
        let records = &mut self.pool.records;
        let known = self.table.find(hash, |at| records.text(at).0 == text);
        let offset = known.unwrap_or_else(|| {
            let offset = records.push(text);
            self.table.insert(hash, offset);
            offset
        });
        self.last = Some(offset);
        offset
    }

    /// The texts so far.
    pub fn pool(&self) -> &StringPool {
        &self.pool
    }

    /// The finished pool; the table that found equal strings is freed.
    pub fn finish(self) -> StringPool {
        let mut pool = self.pool;
        pool.records.shrink();
        pool
    }
}

/// Texts in one buffer, each preceded by its length in bytes.
#[derive(Debug, Default)]
pub(crate) struct Records(Vec<u8>);

impl Records {
    /// Adds a text; returns the offset of its record.
    pub(crate) fn push(&mut self, text: &[u8]) -> usize {
        let offset = self.0.len();
        self.push_number(text.len());
        self.0.extend_from_slice(text);
        offset
    }

    /// Adds a number: seven bits a byte, the lowest first; the top bit is set if more bytes follow.
    pub(crate) fn push_number(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// The text at an offset, and the end of its record.
    #[inline]
    pub(crate) fn text(&self, offset: usize) -> (&[u8], usize) {
        let (len, start) = self.number(offset);
        let end = start + len;
        (&self.0[start..end], end)
    }

    /// The number at an offset, and its end.
    #[inline]
    pub(crate) fn number(&self, offset: usize) -> (usize, usize) {
        let byte = self.0[offset];
        if byte < 0x80 {
            return (usize::from(byte), offset + 1);
        }
        self.long_number(offset)
    }

    fn long_number(&self, offset: usize) -> (usize, usize) {
        let (mut number, mut shift) = (0, 0);
        for (at, byte) in self.0.iter().enumerate().skip(offset) {
            number |= usize::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return (number, at + 1);
            }
            shift += 7;
        }
        unreachable!("a number ends with a byte below 128")
    }

    /// Frees unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_kept_once() {
        let mut texts = Interner::default();
        let lengths = [0, 1, 127, 128, 300, 20_000];
        let text = |len: usize| vec![b'x'; len];
        let offsets = lengths.map(|len| {
            let offset = texts.add(&text(len));
            assert_eq!(texts.add(&text(len)), offset);
            offset
        });
        assert_eq!(lengths.map(|len| texts.add(&text(len))), offsets);
        assert_ne!(texts.add(b"y"), offsets[1]);
        assert_eq!(texts.pool().at(offsets[1]), b"x");
        let texts = texts.finish();
        for (len, offset) in lengths.into_iter().zip(offsets) {
            assert_eq!(texts.at(offset), text(len));
        }
    }

    #[test]
    fn numbers_of_all_lengths_are_read_back() {
        let numbers = [0, 1, 127, 128, 16_383, 16_384, 1 << 35, usize::MAX];
        let mut records = Records::default();
        numbers.iter().for_each(|n| records.push_number(*n));
        let mut at = 0;
        for expected in numbers {
            let (number, end) = records.number(at);
            assert_eq!(number, expected);
            at = end;
        }
        assert_eq!(at, records.0.len());
    }
}
