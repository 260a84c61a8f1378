//! Invariants of a connection, checked by tests and fuzzing alone.

use super::super::event::Next;
use super::super::send::Sending;
use super::{Conn, Receiving};

impl Conn {
    /// Panics if the connection contradicts itself; for tests and fuzzing.
    pub fn check_invariants(&self) {
        assert!(
            self.start <= self.buffer.len(),
            "more is consumed than was received"
        );
        match self.receiving {
            Receiving::Head => {
                let (_, large) = self.settings.large_header_buffers;
                let limit = large.max(self.settings.header_buffer_bytes);
                assert!(
                    self.buffered() <= limit,
                    "a part of a line exceeds its limit"
                );
                assert!(!self.is_head_ready, "a head is ready before it is received");
                assert_eq!(
                    self.sending,
                    Sending::Waiting,
                    "a response without a request"
                );
            }
            Receiving::Length { left } => assert!(left > 0, "a complete body is not recognised"),
            Receiving::Chunked(ref decoder) => assert!(!decoder.is_done(), "a body has ended"),
            Receiving::Over(next) => {
                assert!(!self.has_buffered(), "bytes are held that nobody reads");
                assert!(matches!(next, Next::Linger | Next::Close));
            }
            Receiving::Complete | Receiving::Tunnel => {}
        }
        assert!(
            !self.discarding || self.ready.data.is_empty(),
            "discarded data is told"
        );
    }
}
