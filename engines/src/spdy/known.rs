//! Roles of the pairs in the previous header block.
//!
//! A client repeats most of a request in the next one, in the same order. A pair that equals, byte by byte, the
//! previous one in its place gets the previous verdict.

use super::request::Note;

/// The pairs of the last block, as far as they are short and few.
#[derive(Debug, Default)]
pub(super) struct Known {
    pairs: Vec<Pair>,
    /// The place of the next pair.
    next: usize,
}

#[derive(Debug)]
struct Pair {
    /// The bytes as received, lengths included; empty if too long.
    raw: Vec<u8>,
    note: Note,
}

impl Known {
    /// Whether nothing was found out yet.
    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Begins with another block.
    pub(super) fn begin(&mut self) {
        self.next = 0;
    }

    /// Role of the next pair; determined by `judge` unless it is cached.
    #[inline]
    pub(super) fn note(&mut self, raw: &[u8], judge: impl FnOnce() -> Note) -> Note {
        let at = self.next;
        self.next += 1;
        if let Some(pair) = self.pairs.get_mut(at) {
            if pair.raw != raw {
                pair.note = judge();
                pair.raw.clear();
                if raw.len() <= MOST_BYTES {
                    pair.raw.extend_from_slice(raw);
                }
            }
            return pair.note;
        }
        let note = judge();
        if at < MOST_PAIRS {
            let kept = if raw.len() <= MOST_BYTES { raw } else { b"" };
            let raw = kept.to_vec();
            self.pairs.push(Pair { raw, note });
        }
        note
    }
}

/// Pairs of a block that are remembered.
const MOST_PAIRS: usize = 32;
/// Bytes of a pair that is remembered.
const MOST_BYTES: usize = 512;
