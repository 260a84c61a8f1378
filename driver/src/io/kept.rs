//! Kept files by their paths: one pool of those whose bytes are in memory, one of those with a descriptor.
//!
//! Both are evicted by S3-FIFO (`server_base::s3_fifo`), one by bytes, the other by number, so that neither a scan over
//! many small files nor one over many large ones drives out what is used. An entry is what was found at a path and when
//! that was last compared with the disk.

use std::rc::Rc;

use server_base::files::{FileError, Opened};
use server_base::s3_fifo::S3Fifo;

use super::open_path::{self, Identity};

/// Entries by path.
#[derive(Debug)]
pub(crate) struct Kept(S3Fifo<Entry>);

/// What is kept of a path.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) path: Box<[u8]>,
    pub(crate) identity: Identity,
    pub(crate) opened: Rc<Opened>,
    pub(crate) used_ms: u64,
    /// The value of the reads' count when `identity` was last compared with the disk.
    pub(crate) checked: u64,
}

impl Kept {
    pub(crate) fn new(limit: u64) -> Self {
        Self(S3Fifo::new(limit))
    }

    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.0.set_limit(limit);
    }

    pub(crate) fn limit(&self) -> u64 {
        self.0.limit()
    }

    pub(crate) fn weight(&self) -> u64 {
        self.0.weight()
    }

    /// More is kept than the limit allows, since it was lowered.
    pub(crate) fn is_over(&self) -> bool {
        self.weight() > self.limit()
    }

    /// Whether an entry of that weight can be kept. Nothing can while too much is, so that no request pays for a limit that
    /// was lowered.
    pub(crate) fn takes(&self, weight: u64) -> bool {
        weight <= self.limit() && !self.is_over()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.limit());
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, path: &[u8]) -> Option<u32> {
        self.0.find(hash, |entry| *entry.path == *path)
    }

    /// The entry at a place, which counts as used.
    #[inline]
    pub(crate) fn use_at(&mut self, place: u32) -> Option<&mut Entry> {
        self.0.use_at(place)
    }

    pub(crate) fn remove(&mut self, place: u32) -> Option<Entry> {
        self.0.remove(place)
    }

    /// The entry at a place, which does not count as used.
    pub(crate) fn at(&mut self, place: u32) -> Option<&mut Entry> {
        self.0.at_mut(place)
    }

    /// Keeps an entry in the place of others, if it can be kept.
    pub(crate) fn insert(&mut self, hash: u64, weight: u64, entry: Entry) {
        if self.takes(weight) {
            let _ = self.0.insert(hash, weight, entry);
        }
    }

    /// Lets go of as many entries as are beyond a limit that was lowered, at most so many; true if more are beyond it.
    pub(crate) fn shrink(&mut self, most: usize) -> bool {
        for _ in 0..most {
            if self.0.shrink().is_none() {
                return false;
            }
        }
        self.is_over()
    }

    /// Lets go of entries that were not used for a time, at most so many; true if there may be more.
    pub(crate) fn expire(&mut self, now_ms: u64, unused_ms: u64, most: usize) -> bool {
        let mut gone = 0;
        for place in 0..self.0.slots() as u32 {
            if gone == most {
                return true;
            }
            let entry = self.0.at_mut(place);
            if entry.is_some_and(|entry| entry.used_ms + unused_ms <= now_ms) {
                self.0.remove(place);
                gone += 1;
            }
        }
        false
    }
}

impl Entry {
    /// Compares the entry with the disk, not again while nothing was read since (`heard` counts the reads): `None` where it
    /// is what it was, else what is at its path now.
    ///
    /// # Errors
    /// It cannot be looked at.
    #[inline]
    pub(crate) fn look(
        &mut self,
        heard: u64,
        call: &'static str,
    ) -> Result<Option<Identity>, FileError> {
        if self.checked == heard {
            return Ok(None);
        }
        let identity = open_path::describe_followed(&self.path, call)?;
        if identity != self.identity {
            return Ok(Some(identity));
        }
        self.checked = heard;
        Ok(None)
    }
}
