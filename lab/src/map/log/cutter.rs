//! Cuts a stream into blocks of whole lines.
//!
//! A longer line than a block is cut to [`LINE_BYTES_MAX`] and one byte, so its reader finds it too long. The rest is dropped.

use super::LINE_BYTES_MAX;

/// Bytes of a block: room for the longest line, one more byte and the end of the line.
pub(super) const BLOCK_BYTES: usize = 256 << 10;
const _: () = assert!(BLOCK_BYTES >= LINE_BYTES_MAX + 2);

/// Bytes of a stream.
#[derive(Debug)]
pub(super) struct Block {
    bytes: Box<[u8]>,
    filled: usize,
}

impl Default for Block {
    fn default() -> Self {
        Self {
            bytes: vec![0; BLOCK_BYTES].into(),
            filled: 0,
        }
    }
}

impl Block {
    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.filled..][..bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }
}

/// Makes blocks of one stream.
#[derive(Debug, Default)]
pub(super) struct Cutter {
    block: Block,
    /// The begin of the current line is dropped, and the rest is to be.
    is_dropping: bool,
}

impl Cutter {
    /// Room for the next bytes; [`Self::filled`] adds them. It is never empty.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.block.bytes[self.block.filled..]
    }

    /// Adds the first `count` bytes of the room.
    pub(super) fn filled(&mut self, count: usize) {
        let begin = self.block.filled;
        self.block.filled += count;
        if !self.is_dropping {
            return;
        }
        // While a line is dropped the block was empty before.
        let added = begin..self.block.filled;
        match memchr::memchr(b'\n', &self.block.bytes[added.clone()]) {
            Some(end) => {
                let kept = begin + end + 1..added.end;
                self.block.filled = kept.len();
                self.block.bytes.copy_within(kept, 0);
                self.is_dropping = false;
            }
            None => self.block.filled = begin,
        }
    }

    /// Whether the block is full; then [`Self::take`] makes room.
    pub(super) fn is_full(&self) -> bool {
        self.block.filled == self.block.bytes.len()
    }

    /// Takes the whole lines; `spare` is the next block. `None`, and the spare block back, if there is no whole line.
    pub(super) fn take(&mut self, mut spare: Block) -> Result<Block, Block> {
        spare.filled = 0;
        match memchr::memrchr(b'\n', self.block.bytes()) {
            Some(end) => {
                spare.push(&self.block.bytes()[end + 1..]);
                self.block.filled = end + 1;
            }
            None if self.is_full() => {
                self.block.filled = LINE_BYTES_MAX + 1;
                self.block.push(b"\n");
                self.is_dropping = true;
            }
            None => return Err(spare),
        }
        Ok(std::mem::replace(&mut self.block, spare))
    }

    /// Takes the rest at the end of a stream: its last line may have no end. The rest of a dropped line is none.
    pub(super) fn finish(&mut self, mut spare: Block) -> Result<Block, Block> {
        spare.filled = 0;
        self.is_dropping = false;
        match self.block.filled {
            0 => Err(spare),
            _ => Ok(std::mem::replace(&mut self.block, spare)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of a text that is read in pieces of `piece` bytes.
    fn cut(text: &[u8], piece: usize, eager: bool) -> Vec<Vec<u8>> {
        let (mut cutter, mut blocks) = (Cutter::default(), Vec::new());
        let mut keep = |taken: Result<Block, Block>| {
            blocks.extend(taken.map(|block| block.bytes().to_vec()));
        };
        let mut rest = text;
        while !rest.is_empty() {
            let room = cutter.room();
            let count = piece.min(rest.len()).min(room.len());
            room[..count].copy_from_slice(&rest[..count]);
            cutter.filled(count);
            rest = &rest[count..];
            if eager || cutter.is_full() {
                keep(cutter.take(Block::default()));
            }
        }
        keep(cutter.take(Block::default()));
        keep(cutter.finish(Block::default()));
        blocks
    }

    #[test]
    fn blocks_are_whole_lines() {
        let text = b"one\ntwo\r\n\nthree";
        for piece in 1..=text.len() {
            let blocks = cut(text, piece, true);
            assert_eq!(blocks.concat(), text, "{piece}");
            let (last, before) = blocks.split_last().expect("there are some");
            assert_eq!(last, b"three");
            assert!(before.iter().all(|block| block.ends_with(b"\n")));
        }
        assert_eq!(
            cut(text, 100, false),
            [&b"one\ntwo\r\n\n"[..], &b"three"[..]]
        );
        assert!(cut(b"", 1, true).is_empty());
    }

    #[test]
    fn long_lines_are_cut_once() {
        let long = |length: usize| vec![b'a'; length];
        for (length, kept) in [
            (LINE_BYTES_MAX, LINE_BYTES_MAX),
            (BLOCK_BYTES - 1, BLOCK_BYTES - 1),
            (BLOCK_BYTES, LINE_BYTES_MAX + 1),
            (BLOCK_BYTES + 1, LINE_BYTES_MAX + 1),
            (5 * BLOCK_BYTES + 7, LINE_BYTES_MAX + 1),
        ] {
            let text = [&long(length)[..], b"\nnext\nlast"].concat();
            for piece in [BLOCK_BYTES, 4096, 1 << 20] {
                let all = cut(&text, piece, true).concat();
                let expected = [&long(kept)[..], b"\nnext\nlast"].concat();
                assert!(all == expected, "{length} in {piece}: {}", all.len());
            }
        }
        // The stream ends within a long line.
        let all = cut(&long(3 * BLOCK_BYTES + 5), 4096, true).concat();
        assert_eq!(all.len(), LINE_BYTES_MAX + 2);
    }
}
