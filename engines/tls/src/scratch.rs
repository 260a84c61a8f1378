//! Reusable memory for repeated writes.
//!
//! A writer gets a slice. Bytes of earlier writes are not zeroed first, unlike in a resized `Vec`: with records of
//! 16 KB that costs as much as a copy of them.

/// Bytes at the front of memory that only grows.
#[derive(Debug, Default)]
pub struct Scratch {
    memory: Vec<u8>,
    filled: usize,
}

impl Scratch {
    /// The bytes that were filled in.
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        &self.memory[..self.filled]
    }

    /// Returns the number of bytes filled in.
    #[must_use]
    pub fn len(&self) -> usize {
        self.filled
    }

    /// Whether no byte was filled in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Room for `bytes` more, with arbitrary earlier content.
    pub fn room(&mut self, bytes: usize) -> &mut [u8] {
        let end = self.filled + bytes;
        if self.memory.len() < end {
            self.memory.resize(end, 0);
        }
        &mut self.memory[self.filled..end]
    }

    /// Counts bytes of the last room as written; at most its length.
    pub fn fill(&mut self, bytes: usize) {
        self.filled = self.memory.len().min(self.filled + bytes);
    }

    /// Appends bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.fill(bytes.len());
    }

    /// Inserts bytes before those written from `start` on.
    pub(crate) fn insert(&mut self, start: usize, bytes: &[u8]) {
        let _ = self.room(bytes.len());
        self.memory
            .copy_within(start..self.filled, start + bytes.len());
        self.memory[start..start + bytes.len()].copy_from_slice(bytes);
        self.fill(bytes.len());
    }

    /// Empties it, and releases memory above `keep_bytes`.
    pub fn clear(&mut self, keep_bytes: usize) {
        self.filled = 0;
        self.memory.truncate(keep_bytes);
        self.memory.shrink_to(keep_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_filled_in_whatever_was_there_before() {
        let mut scratch = Scratch::default();
        scratch.extend(b"before");
        scratch.clear(100);
        assert!(scratch.is_empty());
        let room = scratch.room(4);
        assert_eq!(room, b"befo");
        room[..2].copy_from_slice(b"ab");
        scratch.fill(2);
        scratch.extend(b"cd");
        scratch.insert(2, b"--");
        assert_eq!(scratch.filled(), b"ab--cd");
        scratch.fill(1000);
        assert!(scratch.len() <= 10, "no more than there was room for");
        scratch.clear(3);
        assert_eq!(scratch.room(5), b"ab-\0\0");
    }
}
