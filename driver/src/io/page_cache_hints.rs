//! Pieces of files that were recently in the page cache, so that popular files are not checked each time.
//!
//! A check of a piece's pages costs a twentieth of sending 100 KB. Recently used pages are the last to be evicted. So a
//! piece found in memory counts as cached for [`HINT_MS`]. If it is evicted, or another file has the address of a
//! closed one, the send waits for the disk, as it would without a check.

use std::rc::Rc;

use engines::http::FileRange;

use super::read_pool::LOOK_BYTES_MAX;

/// The latest cached piece for each hash value.
#[derive(Debug)]
pub struct PageCacheHints([Piece; HINTS_MAX]);

#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    /// Address of the descriptor. It is only compared, never dereferenced.
    file: usize,
    offset: u64,
    len: u64,
    until_ms: u64,
}

impl PageCacheHints {
    /// Returns how many of the first bytes of `range` were recently cached; 0 if unknown.
    #[must_use]
    pub fn cached_bytes(&self, range: &FileRange, now_ms: u64) -> u64 {
        let (file, place) = place(range);
        let piece = &self.0[place];
        if piece.file != file || range.offset < piece.offset || piece.until_ms <= now_ms {
            return 0;
        }
        (piece.offset + piece.len).saturating_sub(range.offset)
    }

    /// Records that the first `len` bytes of `range` are cached.
    pub fn record(&mut self, range: &FileRange, len: u64, now_ms: u64) {
        let (file, place) = place(range);
        self.0[place] = Piece {
            file,
            offset: range.offset,
            len,
            until_ms: now_ms + HINT_MS,
        };
    }
}

impl Default for PageCacheHints {
    fn default() -> Self {
        Self([Piece::default(); HINTS_MAX])
    }
}

fn place(range: &FileRange) -> (usize, usize) {
    let file = Rc::as_ptr(&range.file).addr();
    // Descriptors are allocations of about 32 bytes. The rest of a piece is mostly in the same block as its start.
    let mixed = (file >> 5) ^ (range.offset / LOOK_BYTES_MAX) as usize;
    (file, mixed % HINTS_MAX)
}

/// Number of recorded pieces.
const HINTS_MAX: usize = 64;
/// Lifetime of a record, milliseconds.
const HINT_MS: u64 = 100;

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn range(offset: u64, len: u64) -> FileRange {
        FileRange {
            file: Rc::new(File::open("/dev/null").expect("there is one").into()),
            offset,
            len,
        }
    }

    #[test]
    fn a_piece_counts_as_there_for_a_while() {
        let mut hints = PageCacheHints::default();
        let piece = range(4096, 1000);
        assert_eq!(hints.cached_bytes(&piece, 0), 0);
        hints.record(&piece, 1000, 7);
        assert_eq!(hints.cached_bytes(&piece, 7 + HINT_MS - 1), 1000);
        assert_eq!(hints.cached_bytes(&piece, 7 + HINT_MS), 0);
    }

    #[test]
    fn the_rest_of_a_piece_counts_without_bytes_before_or_after_it() {
        let mut hints = PageCacheHints::default();
        let piece = range(4096, 1000);
        hints.record(&piece, 1000, 0);
        for (offset, left) in [(4095, 0), (4096, 1000), (5095, 1), (5096, 0), (9999, 0)] {
            let rest = FileRange {
                offset,
                ..piece.clone()
            };
            assert_eq!(hints.cached_bytes(&rest, 0), left, "{offset}");
        }
    }

    #[test]
    fn it_is_of_one_file() {
        let mut hints = PageCacheHints::default();
        let piece = range(0, 1000);
        hints.record(&piece, 1000, 0);
        let other = range(0, 1000);
        assert_eq!(hints.cached_bytes(&other, 0), 0);
    }
}
