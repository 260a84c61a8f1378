//! Queue of output, in order: runs of bytes, shared memory and file ranges.
//!
//! Small pieces are copied into one byte run, so that a response head and a small body are one contiguous write;
//! large pieces are never copied. Bytes enter by `push*`, leave by `front`, `slices` and `advance`. The driver
//! reads files; this type only stores their ranges.

use super::{Chunk, FileRange};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Bytes and file ranges waiting to be sent, in order.
#[derive(Debug, Default)]
pub struct OutputQueue {
    /// All copied bytes in order; the first `run_sent` of them were sent.
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
    /// The next bytes of the run; their number.
    Run(usize),
    /// Memory that is not copied, and the number of its sent bytes.
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

    /// Bytes of memory that the queue holds, without file ranges.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Memory(chunk, _) => chunk.len() as usize,
            Piece::Run(_) | Piece::File(_) => 0,
        });
        let list = self.pieces.capacity() * size_of::<Piece>();
        self.run.capacity() + list + pieces.sum::<usize>()
    }

    /// Appends a copy of `bytes`.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.push_with(|run| run.extend_from_slice(bytes));
    }

    /// Lets `write` append to the byte run; `write` must not touch the bytes already there.
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

    /// Moves all pieces of `other` to the end of this queue; a swap if this one is empty.
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
    #[inline]
    pub fn clear(&mut self) {
        self.run.clear();
        self.run.shrink_to(KEEP_BYTES);
        self.run_sent = 0;
        self.pieces.clear();
        self.len = 0;
    }

    /// Releases memory not needed for queued data, which may wait for long; that copies large pieces.
    pub fn shrink(&mut self) {
        self.run.drain(..self.run_sent);
        self.run_sent = 0;
        self.run.shrink_to_fit();
        for piece in &mut self.pieces {
            if let Piece::Memory(Chunk::Owned(bytes), sent) = piece {
                bytes.drain(..std::mem::take(sent));
                bytes.shrink_to_fit();
            }
        }
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

    /// The bytes of the queue, if it holds a single piece of memory.
    pub fn only_bytes(&self) -> Option<&[u8]> {
        match self.front()? {
            Front::Bytes(bytes) if self.pieces.len() == 1 => Some(bytes),
            Front::Bytes(_) | Front::File(_) => None,
        }
    }

    /// Fills `out` with the memory pieces up to the first file piece and returns the number of filled slices.
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

    /// Drops `n` bytes from the front, or all if there are fewer.
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

    /// Replaces the first file piece by bytes that `read` appends to the run. `read` gets the range and must append
    /// exactly its length, or fail; on failure the queue is unchanged. Without a file piece there is no effect.
    ///
    /// # Errors
    /// Those of `read`.
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
    /// Drops up to `n` bytes from the front and returns the number.
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
#[path = "output_queue_tests.rs"]
mod tests;
