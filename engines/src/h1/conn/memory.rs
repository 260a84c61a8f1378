//! Memory of a connection.

use super::Conn;

impl Conn {
    /// Approximate memory of the connection, bytes: received bytes, the next head, output.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
            + self.ready.data.capacity()
            + self.head.arena.capacity()
            + self.out.memory_bytes()
    }
}
