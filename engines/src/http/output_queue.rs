//! What leaves in one turn, in order: runs of bytes, shared memory and file ranges.
//!
//! Small pieces are copied into one byte run, so that a response head and a
//! small body are one contiguous write; large pieces are kept as they are and
//! never copied. Bytes enter by `push*`, leave by `front`, `slices` and
//! `advance`. The driver reads files; this type only carries their ranges.

use super::{Chunk, FileRange};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Bytes and file ranges waiting to be sent, in order.
#[derive(Debug, Default)]
pub struct OutputQueue {
    /// All copied bytes in order; the first `run_sent` of them are gone.
    run: Vec<u8>,
    run_sent: usize,
    pieces: VecDeque<Piece>,
    len: u64,
}

/// The first contiguous piece of a [`OutputQueue`].
#[derive(Debug)]
pub enum Front<'a> {
    /// Bytes in memory.
    Bytes(&'a [u8]),
    /// A range of a file.
    File(&'a FileRange),
}

#[derive(Debug)]
enum Piece {
    /// The next bytes of the run: how many.
    Run(usize),
    /// Memory that is not copied, and how many of its bytes are gone.
    Memory(Chunk, usize),
    File(FileRange),
}

impl OutputQueue {
    /// Whether nothing is waiting.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes waiting, file ranges included.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Appends a copy of `bytes`.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.push_with(|run| run.extend_from_slice(bytes));
    }

    /// Appends what `write` appends to the byte run; `write` must not touch
    /// the bytes already there.
    #[inline]
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.compact();
        let before = self.run.len();
        write(&mut self.run);
        debug_assert!(self.run.len() >= before, "push_with only appends");
        self.grown(self.run.len().saturating_sub(before));
    }

    /// Appends a piece. Memory up to 4096 bytes is copied into the run.
    pub fn push(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::File(range) => {
                if range.len > 0 {
                    self.len += range.len;
                    self.pieces.push_back(Piece::File(range));
                }
            }
            memory => {
                let bytes = memory.bytes();
                if bytes.len() <= COPY_BYTES {
                    return self.push_bytes(bytes);
                }
                self.len += bytes.len() as u64;
                self.pieces.push_back(Piece::Memory(memory, 0));
            }
        }
    }

    /// Moves everything of `other` to the end of this one; a swap if this one
    /// is empty.
    pub fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            self.clear();
            std::mem::swap(self, other);
            return;
        }
        let mut at = other.run_sent;
        for piece in other.pieces.drain(..) {
            match piece {
                Piece::Run(len) => {
                    self.push_bytes(&other.run[at..at + len]);
                    at += len;
                }
                Piece::Memory(chunk, sent) => {
                    self.len += (chunk.bytes().len() - sent) as u64;
                    self.pieces.push_back(Piece::Memory(chunk, sent));
                }
                Piece::File(range) => {
                    self.len += range.len;
                    self.pieces.push_back(Piece::File(range));
                }
            }
        }
        other.clear();
    }

    /// Drops everything and keeps the memory, up to 64 KiB.
    pub fn clear(&mut self) {
        self.run.clear();
        self.run.shrink_to(KEEP_BYTES);
        self.run_sent = 0;
        self.pieces.clear();
        self.len = 0;
    }

    /// The first contiguous piece.
    #[must_use]
    pub fn front(&self) -> Option<Front<'_>> {
        Some(match self.pieces.front()? {
            Piece::Run(len) => Front::Bytes(&self.run[self.run_sent..self.run_sent + len]),
            Piece::Memory(chunk, sent) => Front::Bytes(&chunk.bytes()[*sent..]),
            Piece::File(range) => Front::File(range),
        })
    }

    /// Fills `out` with the memory pieces up to the first file piece and gives
    /// how many were filled.
    pub fn slices<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        let mut at = self.run_sent;
        let mut filled = 0;
        for (piece, slot) in self.pieces.iter().zip(out) {
            *slot = match piece {
                Piece::Run(len) => {
                    at += len;
                    IoSlice::new(&self.run[at - len..at])
                }
                Piece::Memory(chunk, sent) => IoSlice::new(&chunk.bytes()[*sent..]),
                Piece::File(_) => break,
            };
            filled += 1;
        }
        filled
    }

    /// Moves the bytes up to the first file piece to the end of `out`.
    pub fn drain_bytes(&mut self, out: &mut Vec<u8>) {
        while let Some(Front::Bytes(bytes)) = self.front() {
            let len = bytes.len() as u64;
            debug_assert!(len > 0, "no piece is empty");
            out.extend_from_slice(bytes);
            self.advance(len);
        }
    }

    /// Whether a file piece follows the leading memory pieces, so that a write
    /// of them is better sent with MSG_MORE.
    #[must_use]
    pub fn file_after(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, Piece::File(_)))
    }

    /// Drops `n` bytes from the front; at most what is there.
    pub fn advance(&mut self, n: u64) {
        let mut left = n.min(self.len);
        self.len -= left;
        while left > 0 {
            let Some(piece) = self.pieces.front_mut() else {
                break;
            };
            let taken = piece.take(left);
            if matches!(piece, Piece::Run(_)) {
                self.run_sent += taken as usize;
            }
            if piece.is_empty() {
                self.pieces.pop_front();
            }
            left -= taken;
        }
        if self.pieces.is_empty() {
            self.clear();
        }
    }

    /// Replaces the first file piece by bytes that `read` appends to the run.
    /// `read` gets the range and must append exactly its length, or fail; on
    /// failure everything is as before. Without a file piece nothing happens.
    ///
    /// # Errors
    /// What `read` returns.
    pub fn inline_front_file<E>(
        &mut self,
        read: impl FnOnce(&FileRange, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(index) = self
            .pieces
            .iter()
            .position(|piece| matches!(piece, Piece::File(_)))
        else {
            return Ok(());
        };
        let tail = self.split_run_after(index);
        let Piece::File(range) = &self.pieces[index] else {
            return Ok(());
        };
        let (before, file_len) = (self.run.len(), range.len);
        let result = read(range, &mut self.run);
        if result.is_err() {
            self.run.truncate(before);
        } else {
            let read_len = self.run.len() - before;
            debug_assert_eq!(read_len as u64, file_len, "a file piece is read whole");
            self.len = self.len - file_len + read_len as u64;
            self.replace_piece(index, read_len);
        }
        self.run.extend_from_slice(&tail);
        result
    }

    /// Cuts off and returns the run bytes of the pieces after `index`.
    fn split_run_after(&mut self, index: usize) -> Vec<u8> {
        let after: usize = self.pieces.iter().skip(index + 1).map(Piece::run_len).sum();
        if after == 0 {
            return Vec::new();
        }
        self.run.split_off(self.run.len() - after)
    }

    /// Makes the piece at `index` a run of `len` bytes, merged with run
    /// neighbours.
    fn replace_piece(&mut self, index: usize, len: usize) {
        self.pieces[index] = Piece::Run(len);
        self.merge_into_previous(index + 1);
        self.merge_into_previous(index);
        self.pieces.retain(|piece| !piece.is_empty());
    }

    fn merge_into_previous(&mut self, index: usize) {
        if index == 0 {
            return;
        }
        let (Some(Piece::Run(len)), Some(Piece::Run(before))) =
            (self.pieces.get(index), self.pieces.get(index - 1))
        else {
            return;
        };
        self.pieces[index - 1] = Piece::Run(before + len);
        self.pieces.remove(index);
    }

    /// Accounts for `len` bytes just appended to the run.
    #[inline]
    fn grown(&mut self, len: usize) {
        if len == 0 {
            return;
        }
        self.len += len as u64;
        match self.pieces.back_mut() {
            Some(Piece::Run(run)) => *run += len,
            _ => self.pieces.push_back(Piece::Run(len)),
        }
    }

    /// Drops sent bytes from the run once they are most of it, so that a
    /// queue that never empties does not grow.
    #[inline]
    fn compact(&mut self) {
        if self.run_sent > COPY_BYTES && self.run_sent > self.run.len() / 2 {
            self.run.drain(..self.run_sent);
            self.run_sent = 0;
        }
    }
}

impl Piece {
    /// Drops up to `n` bytes from the front and gives how many.
    fn take(&mut self, n: u64) -> u64 {
        match self {
            Self::Run(len) => {
                let taken = n.min(*len as u64);
                *len -= taken as usize;
                taken
            }
            Self::Memory(chunk, sent) => {
                let taken = n.min((chunk.bytes().len() - *sent) as u64);
                *sent += taken as usize;
                taken
            }
            Self::File(range) => {
                let taken = n.min(range.len);
                range.offset += taken;
                range.len -= taken;
                taken
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Run(len) => *len == 0,
            Self::Memory(chunk, sent) => chunk.bytes().len() == *sent,
            Self::File(range) => range.len == 0,
        }
    }

    fn run_len(&self) -> usize {
        match self {
            Self::Run(len) => *len,
            _ => 0,
        }
    }
}

/// Memory pieces up to this size are copied into the byte run.
const COPY_BYTES: usize = 4096;

/// Capacity of the byte run that an empty queue keeps.
const KEEP_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;
    use std::rc::Rc;

    /// A file range; any descriptor will do, since nothing reads it.
    fn file(offset: u64, len: u64) -> Chunk {
        let (reader, _) = std::io::pipe().unwrap();
        Chunk::File(FileRange {
            file: Rc::new(OwnedFd::from(reader)),
            offset,
            len,
        })
    }

    /// What would be sent: bytes as text, file ranges as "<offset+len>".
    fn drain(queue: &mut OutputQueue) -> String {
        let mut out = Vec::new();
        loop {
            queue.drain_bytes(&mut out);
            let Some(Front::File(range)) = queue.front() else {
                break;
            };
            let len = range.len;
            out.extend(format!("<{}+{len}>", range.offset).bytes());
            queue.advance(len);
        }
        assert_eq!(queue.len(), 0);
        String::from_utf8(out).unwrap()
    }

    fn head_and_file() -> OutputQueue {
        let mut queue = OutputQueue::default();
        queue.push_bytes(b"head ");
        queue.push(file(7, 4));
        queue
    }

    #[test]
    fn small_pieces_become_one_run_and_large_ones_are_not_copied() {
        let mut queue = OutputQueue::default();
        queue.push_bytes(b"a");
        queue.push(Chunk::Owned(vec![b'b'; COPY_BYTES]));
        assert!(
            matches!(queue.front(), Some(Front::Bytes(bytes)) if bytes.len() == COPY_BYTES + 1)
        );
        let large: Rc<[u8]> = Rc::from(vec![b'c'; COPY_BYTES + 1]);
        queue.push(Chunk::from(Rc::clone(&large)));
        queue.push(Chunk::Static(b""));
        assert_eq!(queue.pieces.len(), 2);
        assert_eq!(queue.len(), 2 * COPY_BYTES as u64 + 2);
        queue.advance(COPY_BYTES as u64 + 1);
        let Some(Front::Bytes(front)) = queue.front() else {
            panic!("memory is left")
        };
        assert!(std::ptr::eq(front, &*large));
    }

    #[test]
    fn pieces_leave_in_order_in_steps_of_any_size() {
        for step in 1..12 {
            let mut queue = head_and_file();
            queue.push_bytes(b" tail");
            let mut left = 14;
            while left > 0 {
                assert_eq!(queue.len(), left);
                queue.advance(step);
                left = left.saturating_sub(step);
            }
            assert!(queue.is_empty() && queue.front().is_none());
        }
        let mut queue = head_and_file();
        queue.advance(6);
        assert_eq!(drain(&mut queue), "<8+3>");
        queue.advance(99);
        assert!(queue.is_empty());
    }

    #[test]
    fn slices_are_the_memory_before_the_first_file() {
        let mut queue = OutputQueue::default();
        queue.push_bytes(b"head ");
        queue.push(Chunk::Owned(vec![b'x'; COPY_BYTES + 1]));
        queue.push_bytes(b"more");
        assert!(!queue.file_after());
        queue.push(file(0, 1));
        queue.push_bytes(b"tail");
        assert!(queue.file_after());
        queue.advance(2);
        let mut slices = [IoSlice::new(&[]); 8];
        assert_eq!(queue.slices(&mut slices), 3);
        assert_eq!(
            (&*slices[0], slices[1].len(), &*slices[2]),
            (&b"ad "[..], COPY_BYTES + 1, &b"more"[..])
        );
        let mut few = [IoSlice::new(&[]); 1];
        assert_eq!(queue.slices(&mut few), 1);
    }

    #[test]
    fn append_moves_everything_behind_what_is_there() {
        let mut first = OutputQueue::default();
        let mut second = head_and_file();
        second.push_bytes(b" tail");
        second.advance(2);
        first.append(&mut second);
        assert!(second.is_empty());
        let mut third = head_and_file();
        third.push(Chunk::Owned(vec![b'x'; COPY_BYTES + 1]));
        first.append(&mut third);
        assert!(third.is_empty());
        let wanted = format!("ad <7+4> tailhead <7+4>{}", "x".repeat(COPY_BYTES + 1));
        assert_eq!(drain(&mut first), wanted);
    }

    #[test]
    fn the_first_file_can_be_replaced_by_its_bytes() {
        let read = |range: &FileRange, run: &mut Vec<u8>| {
            run.extend(std::iter::repeat_n(b'f', range.len as usize));
            Ok::<(), ()>(())
        };
        let mut queue = head_and_file();
        assert_eq!(queue.inline_front_file(read), Ok(()));
        assert_eq!(queue.pieces.len(), 1, "head and file are one run");
        assert_eq!(drain(&mut queue), "head ffff");

        let mut queue = head_and_file();
        queue.push_bytes(b" middle ");
        queue.push(file(0, 2));
        queue.push_bytes(b" tail");
        queue.advance(1);
        assert_eq!(queue.inline_front_file(read), Ok(()));
        assert_eq!(queue.len(), 23);
        assert_eq!(drain(&mut queue), "ead ffff middle <0+2> tail");
        assert_eq!(
            queue.inline_front_file(read),
            Ok(()),
            "without a file nothing happens"
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_stays() {
        let mut queue = head_and_file();
        queue.push_bytes(b" tail");
        let result = queue.inline_front_file(|_, run| {
            run.extend_from_slice(b"half");
            Err("cannot read")
        });
        assert_eq!(result, Err("cannot read"));
        assert_eq!(drain(&mut queue), "head <7+4> tail");
    }

    #[test]
    fn a_gather_that_never_empties_does_not_grow() {
        let mut queue = OutputQueue::default();
        queue.push_bytes(&[b'x'; 100]);
        for _ in 0..10_000 {
            queue.push_bytes(&[b'y'; 100]);
            queue.advance(100);
        }
        assert_eq!(queue.len(), 100);
        assert!(queue.run.len() < 4 * COPY_BYTES);
    }
}
