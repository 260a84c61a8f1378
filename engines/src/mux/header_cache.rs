//! The last encoded response head, with its header block: the block is sent again if the next head is equal.

use crate::http::{Field, ResponseHead};

/// A response head and its block.
#[derive(Debug, Default)]
pub(crate) struct HeaderCache {
    status: u16,
    arena: Vec<u8>,
    fields: Vec<Field>,
    block: Vec<u8>,
    /// The encoder's state before and after.
    state: u64,
}

impl HeaderCache {
    /// Bytes of memory that are held.
    pub(crate) fn memory_bytes(&self) -> usize {
        let fields = self.fields.capacity() * size_of::<Field>();
        self.arena.capacity() + self.block.capacity() + fields
    }

    /// The block of this head, if it was kept in this state of the encoder.
    #[inline]
    pub(crate) fn block(&self, status: u16, head: &ResponseHead, state: u64) -> Option<&[u8]> {
        let same = self.state == state
            && self.status == status
            && self.arena == head.arena
            && self.fields == head.fields;
        (same && !self.block.is_empty()).then_some(&self.block)
    }

    /// Keeps a block that has not changed the encoder's state; a long head is not kept.
    pub(crate) fn keep(&mut self, status: u16, head: &ResponseHead, block: &[u8], state: u64) {
        if head.arena.len() > MOST_BYTES {
            return;
        }
        (self.status, self.state) = (status, state);
        self.arena.clear();
        self.arena.extend_from_slice(&head.arena);
        self.fields.clear();
        self.fields.extend_from_slice(&head.fields);
        self.block.clear();
        self.block.extend_from_slice(block);
    }
}

/// Longer heads are encoded anew each time.
const MOST_BYTES: usize = 1024;
