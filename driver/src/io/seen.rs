//! Files recently seen in the page cache, so that popular files are not checked each time.
//!
//! A look at the pages of a piece costs a twentieth of sending 100 KB, and pages that were used a moment ago are the last to
//! be dropped. A piece that is found in memory counts as being there for [`SEEN_MS`]. Where it is not, or another file has
//! got the place of one that was closed, the send waits for the disk as it would without a look.

use std::rc::Rc;

use engines::http::FileRange;

/// Pieces of files that were in memory; the latest of each place.
#[derive(Debug)]
pub struct Seen([Piece; PLACES]);

#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    /// Where the descriptor lies, which is not looked at.
    file: usize,
    offset: u64,
    len: u64,
    until_ms: u64,
}

impl Seen {
    /// Whether the first `len` bytes of `range` were in memory a moment ago.
    #[must_use]
    pub fn holds(&self, range: &FileRange, len: u64, now_ms: u64) -> bool {
        let (file, place) = place(range);
        let piece = &self.0[place];
        piece.file == file
            && piece.offset == range.offset
            && len <= piece.len
            && now_ms < piece.until_ms
    }

    /// Notes that the first `len` bytes of `range` are in memory.
    pub fn note(&mut self, range: &FileRange, len: u64, now_ms: u64) {
        let (file, place) = place(range);
        self.0[place] = Piece {
            file,
            offset: range.offset,
            len,
            until_ms: now_ms + SEEN_MS,
        };
    }
}

impl Default for Seen {
    fn default() -> Self {
        Self([Piece::default(); PLACES])
    }
}

fn place(range: &FileRange) -> (usize, usize) {
    let file = Rc::as_ptr(&range.file).addr();
    // Descriptors are allocations of some 32 bytes; pieces begin where a socket was full.
    let mixed = (file >> 5) ^ (range.offset >> 12) as usize;
    (file, mixed % PLACES)
}

/// Pieces that are known.
const PLACES: usize = 64;
/// For how long what was in memory counts as being there.
const SEEN_MS: u64 = 100;

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
        let mut seen = Seen::default();
        let piece = range(4096, 1000);
        assert!(!seen.holds(&piece, 1000, 0));
        seen.note(&piece, 1000, 7);
        assert!(seen.holds(&piece, 1000, 7 + SEEN_MS - 1));
        assert!(!seen.holds(&piece, 1000, 7 + SEEN_MS));
        assert!(!seen.holds(&piece, 1001, 7), "no more than was looked at");
    }

    #[test]
    fn it_is_of_one_file_and_place() {
        let mut seen = Seen::default();
        let piece = range(0, 1000);
        seen.note(&piece, 1000, 0);
        let other = range(0, 1000);
        assert!(!seen.holds(&other, 1000, 0));
        let behind = FileRange {
            offset: 1,
            ..piece.clone()
        };
        assert!(!seen.holds(&behind, 999, 0));
    }
}
