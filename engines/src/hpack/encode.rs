//! Fields to header blocks.
//!
//! Fields that repeat from response to response enter the dynamic table and cost one byte from then on. Fields that
//! differ each time, or must not be guessed from sizes, are sent as literals. An entry is found by a hash of name
//! and value, stored with its insertion number.
//!
//! Source: RFC 7541 sections 6, 7.1.

use super::dynamic::Table;
use super::statics::{self, STATIC};
use super::{DEFAULT_TABLE_BYTES, ENTRY_OVERHEAD_BYTES, huffman, integer};

/// How a field may be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// By the dynamic table.
    Yes,
    /// Not, since it differs each time.
    No,
    /// Never indexed, not by intermediaries either: its value is a secret (RFC 7541 section 7.1.3).
    Never,
}

/// A name in lower case, and its index in the static table.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    text: &'a [u8],
    /// 0: it does not have it.
    index: usize,
}

impl<'a> Name<'a> {
    /// Looks a name up; constant names are looked up at compile time.
    #[must_use]
    pub const fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            index: statics::of_name(text),
        }
    }

    /// Whether an entry with this note and text has this name.
    #[inline]
    fn is(self, note: Note, text: &[u8]) -> bool {
        note.index == self.index && (self.index > 0 || text == self.text)
    }
}

/// Key of an entry in the lookup table.
#[derive(Clone, Copy, Debug)]
struct Note {
    hash: u32,
    /// See [`Name`].
    index: usize,
}

/// Encodes the header blocks of one direction of one connection.
#[derive(Debug)]
pub struct Encoder {
    table: Table<Note>,
    /// Our own limit, bytes, regardless of the peer's.
    own_max_bytes: usize,
    /// The table size was changed since the last block: the smallest one and the last one.
    resized: Option<(usize, usize)>,
    /// By a hash of name and value: the numbers of the entries added last.
    slots: [[u64; WAYS]; SLOTS],
    huffman: bool,
    /// Number of changes and announcements of the table's size.
    resizes: u64,
}

impl Encoder {
    /// Bytes of memory of its table, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.size_bytes()
    }

    /// An encoder that uses at most this many bytes of the peer's table. `huffman` shortens texts if that helps, at
    /// some CPU cost.
    #[must_use]
    pub fn new(own_max_bytes: usize, huffman: bool) -> Self {
        let bytes = own_max_bytes.min(DEFAULT_TABLE_BYTES);
        Self {
            table: Table::new(bytes),
            own_max_bytes,
            resized: (bytes < DEFAULT_TABLE_BYTES).then_some((bytes, bytes)),
            slots: [[0; WAYS]; SLOTS],
            huffman,
            resizes: 0,
        }
    }

    /// The peer allows a table of this many bytes.
    pub fn set_allowed_bytes(&mut self, allowed_bytes: usize) {
        let bytes = allowed_bytes.min(self.own_max_bytes);
        if bytes == self.table.max_bytes() {
            return;
        }
        let smallest = self
            .resized
            .map_or(bytes, |(smallest, _)| smallest.min(bytes));
        self.resized = Some((smallest, bytes));
        self.resizes += 1;
        self.table.set_max_bytes(bytes);
    }

    /// Begins a block with the size of the table, if that changed.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some((smallest, last)) = self.resized.take() {
            self.resizes += 1;
            if smallest < last {
                integer::encode(out, 0x20, 5, smallest);
            }
            integer::encode(out, 0x20, 5, last);
        }
    }

    /// A number that changes whenever the same fields could make another block.
    #[must_use]
    pub fn state(&self) -> u64 {
        self.table.added() + self.resizes
    }

    /// Appends `:status`.
    #[inline]
    pub fn status(&mut self, status: u16, out: &mut Vec<u8>) {
        let index = match status {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                let digits = [
                    b'0' + (status / 100 % 10) as u8,
                    b'0' + (status / 10 % 10) as u8,
                    b'0' + (status % 10) as u8,
                ];
                return self.named(STATUS, &digits, Indexing::Yes, out);
            }
        };
        out.push(0x80 | index);
    }

    /// Appends a field; `name` is in lower case.
    pub fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        self.named(Name::new(name), value, indexing, out);
    }

    /// Appends a field with a name that has been looked up.
    #[inline]
    pub fn named(&mut self, name: Name<'_>, value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        let hash = hash(name, value);
        if indexing == Indexing::Yes
            && let Some(index) = self.known(hash, name, value)
        {
            integer::encode(out, 0x80, 7, index);
            return;
        }
        self.unknown(hash, name, value, indexing, out);
    }

    /// Appends a field that is not in the dynamic table.
    fn unknown(
        &mut self,
        hash: u32,
        name: Name<'_>,
        value: &[u8],
        indexing: Indexing,
        out: &mut Vec<u8>,
    ) {
        let Name { text, index } = name;
        if indexing != Indexing::Never
            && let Some(whole) = statics::of_pair(index, value)
        {
            integer::encode(out, 0x80, 7, whole);
            return;
        }
        // An entry that would evict most others is not worth its place.
        let fits = (text.len() + value.len() + ENTRY_OVERHEAD_BYTES) * 2 <= self.table.max_bytes();
        match indexing {
            Indexing::Yes if fits => {
                integer::encode(out, 0x40, 6, index);
                self.table.add(text, value, Note { hash, index });
                let slot = &mut self.slots[hash as usize % SLOTS];
                slot.rotate_right(1);
                slot[0] = self.table.added();
            }
            Indexing::Never => integer::encode(out, 0x10, 4, index),
            Indexing::Yes | Indexing::No => integer::encode(out, 0, 4, index),
        }
        if index == 0 {
            self.text(text, out);
        }
        self.text(value, out);
    }

    /// The index of a pair in the dynamic table, if it is there.
    #[inline]
    fn known(&self, hash: u32, name: Name<'_>, value: &[u8]) -> Option<usize> {
        self.slots[hash as usize % SLOTS].iter().find_map(|number| {
            let age = usize::try_from(self.table.added() - number).ok()?;
            let entry = self.table.at(age)?;
            let note = entry.note;
            let same = note.hash == hash && entry.value() == value && name.is(note, entry.name());
            same.then_some(STATIC.len() + 1 + age)
        })
    }

    /// Panics if the table contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&self) {
        self.table.check_invariants();
    }

    fn text(&self, text: &[u8], out: &mut Vec<u8>) {
        if self.huffman {
            let len = huffman::encoded_len(text);
            if len < text.len() {
                integer::encode(out, 0x80, 7, len);
                huffman::encode(text, out);
                return;
            }
        }
        integer::encode(out, 0, 7, text.len());
        out.extend_from_slice(text);
    }
}

/// A hash that need not resist attacks: the fields are the server's own, and a collision only costs bytes.
#[inline]
fn hash(name: Name<'_>, value: &[u8]) -> u32 {
    let seed = match name.index {
        0 => mix(name.text.len() as u64, name.text),
        index => (index as u64) << 32,
    };
    (mix(seed ^ value.len() as u64, value) >> 32) as u32
}

#[inline]
fn mix(seed: u64, text: &[u8]) -> u64 {
    let (words, tail) = text.as_chunks::<8>();
    let step = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(MULTIPLIER);
    let hash = words
        .iter()
        .fold(seed, |hash, word| step(hash, u64::from_le_bytes(*word)));
    // The last bytes overlap those before, which avoids a loop over single bytes.
    let last = match (text.last_chunk(), text.last_chunk(), tail) {
        (Some(eight), ..) => u64::from_le_bytes(*eight),
        (None, Some(four), _) => u64::from(u32::from_le_bytes(*four)) ^ first_bytes(text) << 32,
        (None, None, _) => tail
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    step(hash, last)
}

/// The first four bytes, if there are as many.
#[inline]
fn first_bytes(text: &[u8]) -> u64 {
    text.first_chunk()
        .map_or(0, |four| u64::from(u32::from_le_bytes(*four)))
}

const STATUS: Name<'_> = Name::new(b":status");
/// Slots of the index, and entries of each: together more than a table of 4096 bytes holds. If more fields of one
/// head share a slot than it has entries, they evict each other and are sent as literals each time.
const SLOTS: usize = 32;
const WAYS: usize = 4;
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
