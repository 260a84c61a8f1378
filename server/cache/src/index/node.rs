//! An entry of the index, as stored in a table.

use std::sync::Arc;

use crate::fill::Fill;
use crate::key::EntryId;

/// The number of no slot.
pub(super) const NIL: u32 = u32::MAX;

/// An entry, in a slot of its table.
///
/// With its bucket, and twice that bucket's size while the table grows, it has at most [`super::ENTRY_BYTES_MAX`] bytes.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: EntryId,
    /// The id of its key, if it is known ([`Flags::KNOWN`]).
    pub(super) main: EntryId,
    /// End of freshness in seconds since 1970; 0 if it is not known. Of an error: its end.
    pub(super) valid_s: i64,
    /// Inode number of its file; 0 if it is not known.
    pub(super) uniq: u64,
    /// Purges up to this epoch do not concern the stored response or error.
    pub(super) epoch: u64,
    /// Fills that began before this epoch may not be stored.
    pub(super) not_before: u64,
    /// The fill that requests may join.
    pub(super) fill: Option<Arc<Fill>>,
    /// Last request, seconds since 1970.
    pub(super) used_s: u32,
    /// Size of its file, blocks.
    pub(super) blocks: u32,
    /// Neighbours in the order of use.
    pub(super) newer: u32,
    pub(super) older: u32,
    /// The next slot of its bucket, or of the free slots.
    pub(super) chain: u32,
    /// Number of fills in progress: an entry with some is not removed.
    pub(super) fills: u32,
    /// Number of requests, up to its maximum.
    pub(super) uses: u16,
    /// Status of a cached error; 0 for none.
    pub(super) error: u16,
    /// Position of the body; 0 if it is not known.
    pub(super) body_start: u16,
    pub(super) flags: Flags,
}

/// A file of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredFile {
    /// Its size on the disk, blocks.
    pub blocks: u32,
    /// Its inode number.
    pub uniq: u64,
    /// Position of its body.
    pub body_start: u16,
    /// End of freshness, seconds since 1970.
    pub valid_s: i64,
}

/// Properties of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(u8);

impl Flags {
    /// The slot has an entry.
    pub(super) const USED: Self = Self(1);
    /// Its file exists.
    pub(super) const EXISTS: Self = Self(2);
    /// The id of its key is known.
    pub(super) const KNOWN: Self = Self(4);
    /// It was purged softly: it is stale, whatever its file has.
    pub(super) const STALE: Self = Self(8);
    /// It is kept without a file, since its requests are counted.
    pub(super) const COUNTED: Self = Self(16);
    /// A fill renames its file to the path of the entry.
    pub(super) const PUBLISHING: Self = Self(32);

    pub(super) fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    pub(super) fn set(&mut self, flag: Self, on: bool) {
        if on {
            self.0 |= flag.0;
        } else {
            self.0 &= !flag.0;
        }
    }
}

impl Node {
    /// A slot without an entry.
    pub(super) fn vacant(chain: u32) -> Self {
        Self {
            id: EntryId::default(),
            main: EntryId::default(),
            valid_s: 0,
            uniq: 0,
            epoch: 0,
            not_before: 0,
            fill: None,
            used_s: 0,
            blocks: 0,
            newer: NIL,
            older: NIL,
            chain,
            fills: 0,
            uses: 0,
            error: 0,
            body_start: 0,
            flags: Flags::default(),
        }
    }

    /// Sets the file of an entry; its blocks are counted by the caller.
    pub(super) fn set_file(&mut self, file: StoredFile) {
        self.blocks = file.blocks;
        self.uniq = file.uniq;
        self.body_start = file.body_start;
        self.valid_s = file.valid_s;
    }

    /// Forgets its file; its blocks are counted by the caller.
    pub(super) fn clear_file(&mut self) {
        self.set_file(StoredFile::default());
        self.flags.set(Flags::EXISTS, false);
        self.flags.set(Flags::STALE, false);
    }

    /// Sets the id of the key, if it is unknown. Returns whether it was counted as unknown; the caller then calls
    /// [`super::Index::list_variant`].
    pub(super) fn set_known(&mut self, main: EntryId, is_new: bool) -> bool {
        if self.flags.has(Flags::KNOWN) {
            return false;
        }
        self.main = main;
        self.flags.set(Flags::KNOWN, true);
        !is_new
    }

    /// Forgets a cached error.
    pub(super) fn clear_error(&mut self) {
        if self.error > 0 && !self.exists() {
            (self.error, self.valid_s) = (0, 0);
        }
    }

    /// Whether its file exists.
    pub(super) fn exists(&self) -> bool {
        self.flags.has(Flags::EXISTS)
    }

    /// Whether nothing would be lost with it: no file, no fill, no error, no count.
    pub(super) fn is_empty(&self) -> bool {
        !self.exists() && self.fills == 0 && self.error == 0 && !self.flags.has(Flags::COUNTED)
    }
}
