//! Header blocks to fields. Source: RFC 7541 sections 3, 6.

use super::dynamic::Table;
use super::statics::STATIC;
use super::{huffman, integer};

/// A violation of HPACK by a header block; each ends the connection (RFC 9113 section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The block ends inside of a field.
    Truncated,
    /// A number that is larger than any length or index can be.
    TooLong,
    /// An index that no entry has.
    BadIndex,
    /// A Huffman text that is none.
    BadHuffman,
    /// A table size above the announced limit, or one after a field.
    BadTableSize,
    /// The table size had to be reduced at the beginning of this block and was not.
    MissingTableSize,
}

/// Decodes the header blocks of one direction of one connection. The caller's note about a pair (`N`) is kept with
/// the entry of the pair, so that it is computed once and not with each block.
#[derive(Clone, Debug)]
pub struct Decoder<N = ()> {
    table: Table<N>,
    /// Notes about the entries of the static table.
    statics: [N; STATIC.len()],
    /// Maximum table size that our settings allow, in bytes.
    allowed_bytes: usize,
    /// The settings were lowered: the next block must begin with a table size update.
    must_lower: bool,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl<N: Copy + Default> Decoder<N> {
    /// Bytes of memory of its table and buffers, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.size_bytes() + self.name.capacity() + self.value.capacity()
    }

    /// A decoder with a table of at most this many bytes; until a peer knows of another size, that is
    /// [`DEFAULT_TABLE_BYTES`](super::DEFAULT_TABLE_BYTES).
    #[must_use]
    pub fn new(allowed_bytes: usize) -> Self {
        Self {
            table: Table::new(allowed_bytes),
            statics: [N::default(); STATIC.len()],
            allowed_bytes,
            must_lower: false,
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// The peer has acknowledged settings with another table size.
    pub fn set_allowed_bytes(&mut self, allowed_bytes: usize) {
        self.must_lower = allowed_bytes < self.table.max_bytes();
        self.allowed_bytes = allowed_bytes;
    }

    /// Decodes one block and passes each field to `sink`.
    ///
    /// # Errors
    /// The block breaks HPACK; the connection cannot continue, since the tables differ now.
    pub fn decode(
        &mut self,
        block: &[u8],
        mut sink: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Fault> {
        self.decode_noting(block, |name, value, _| sink(name, value))
    }

    /// Decodes one block; `sink` also gets its note about the pair, at first the default, and may change it.
    ///
    /// # Errors
    /// As those of [`Self::decode`].
    pub fn decode_noting(
        &mut self,
        block: &[u8],
        mut sink: impl FnMut(&[u8], &[u8], &mut N),
    ) -> Result<(), Fault> {
        let mut rest = block;
        let mut fields = 0_usize;
        while let Some(first) = rest.first() {
            if first & 0xe0 == 0x20 {
                if fields > 0 {
                    return Err(Fault::BadTableSize);
                }
                self.change_size(take_integer(&mut rest, 5)?)?;
                continue;
            }
            if self.must_lower {
                return Err(Fault::MissingTableSize);
            }
            fields += 1;
            if first & 0x80 != 0 {
                let index = take_integer(&mut rest, 7)?;
                let (name, value, note) = self.entry(index)?;
                sink(name, value, note);
                continue;
            }
            let indexed = first & 0x40 != 0;
            let index = take_integer(&mut rest, if indexed { 6 } else { 4 })?;
            self.literal(index, &mut rest)?;
            let mut note = N::default();
            sink(&self.name, &self.value, &mut note);
            if indexed {
                self.table.add(&self.name, &self.value, note);
            }
        }
        if self.must_lower {
            return Err(Fault::MissingTableSize);
        }
        Ok(())
    }

    /// Panics if the table contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&self) {
        self.table.check_invariants();
    }

    fn change_size(&mut self, bytes: usize) -> Result<(), Fault> {
        if bytes > self.allowed_bytes {
            return Err(Fault::BadTableSize);
        }
        self.must_lower = false;
        self.table.set_max_bytes(bytes);
        Ok(())
    }

    #[inline]
    fn entry(&mut self, index: usize) -> Result<(&[u8], &[u8], &mut N), Fault> {
        let below = index.checked_sub(1).ok_or(Fault::BadIndex)?;
        if let (Some((name, value)), Some(note)) = (STATIC.get(below), self.statics.get_mut(below))
        {
            return Ok((name.as_bytes(), value.as_bytes(), note));
        }
        let entry = self.table.at_mut(below - STATIC.len());
        Ok(entry.ok_or(Fault::BadIndex)?.parts())
    }

    /// Reads a literal field into `name` and `value`; its name is that of an entry, or a text if the index is 0.
    fn literal(&mut self, index: usize, rest: &mut &[u8]) -> Result<(), Fault> {
        let mut name = std::mem::take(&mut self.name);
        name.clear();
        let named = if index == 0 {
            take_text(rest, &mut name)
        } else {
            self.entry(index)
                .map(|(entry, ..)| name.extend_from_slice(entry))
        };
        self.name = name;
        named?;
        self.value.clear();
        take_text(rest, &mut self.value)
    }
}

fn take_integer(rest: &mut &[u8], prefix_bits: u32) -> Result<usize, Fault> {
    let (number, used) = integer::decode(rest, prefix_bits).map_err(|why| match why {
        integer::Broken::Truncated => Fault::Truncated,
        integer::Broken::TooLong => Fault::TooLong,
    })?;
    *rest = &rest[used..];
    Ok(number)
}

fn take_text(rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let len = take_integer(rest, 7)?;
    let (text, after) = rest.split_at_checked(len).ok_or(Fault::Truncated)?;
    *rest = after;
    if !coded {
        out.extend_from_slice(text);
        return Ok(());
    }
    if huffman::decode(text, out) {
        Ok(())
    } else {
        Err(Fault::BadHuffman)
    }
}
