//! Received bytes of an incomplete line or frame.
//!
//! ```text
//! let all = self.partial.join(input);
//! match self.frames(&all) {
//!     Ok(used) => self.partial.keep(all, used),
//!     Err(error) => self.fail(error),
//! }
//! ```

use std::borrow::Cow;

/// The bytes of an incomplete line or frame.
#[derive(Debug, Default)]
pub(crate) struct ReassemblyBuffer(Vec<u8>);

impl ReassemblyBuffer {
    /// Joins the retained bytes with new input; copies nothing if none were retained.
    #[inline]
    pub(crate) fn join<'a>(&mut self, input: &'a [u8]) -> Cow<'a, [u8]> {
        if self.0.is_empty() {
            return Cow::Borrowed(input);
        }
        let mut all = std::mem::take(&mut self.0);
        all.extend_from_slice(input);
        Cow::Owned(all)
    }

    /// Keeps the bytes behind the used ones, and only as much memory as they need.
    #[inline]
    pub(crate) fn keep(&mut self, all: Cow<'_, [u8]>, used: usize) {
        match all {
            Cow::Borrowed(all) => self.0.extend_from_slice(&all[used..]),
            Cow::Owned(mut all) => {
                all.drain(..used);
                if !all.is_empty() {
                    if all.capacity() > 2 * KEEP_BYTES && all.len() <= KEEP_BYTES {
                        all.shrink_to(KEEP_BYTES);
                    }
                    self.0 = all;
                }
            }
        }
    }

    /// Drops the bytes.
    pub(crate) fn clear(&mut self) {
        self.0 = Vec::new();
    }

    /// Bytes of memory that are held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.capacity()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Capacity that is kept.
const KEEP_BYTES: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_held_until_they_are_used() {
        let mut held = ReassemblyBuffer::default();
        for (input, all, used) in [
            ("abc", "abc", 2),
            ("d", "cd", 0),
            ("e", "cde", 3),
            ("f", "f", 1),
        ] {
            let joined = held.join(input.as_bytes());
            assert_eq!(joined, all.as_bytes());
            held.keep(joined, used);
            assert_eq!(held.bytes(), &all.as_bytes()[used..]);
        }
        held.keep(Cow::Owned(vec![0; 3 * KEEP_BYTES]), 3 * KEEP_BYTES - 1);
        assert!(
            held.0.capacity() < 2 * KEEP_BYTES,
            "one byte needs little memory"
        );
    }
}
