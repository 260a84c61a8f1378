//! Memory of a connection.

use super::Conn;

impl Conn {
    /// Bytes of memory that the connection refers to, about: received bytes, the next head, output.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
            + self.ready.data.capacity()
            + self.head.arena.capacity()
            + self.out.memory_bytes()
    }
}
