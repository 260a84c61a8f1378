//! The far end of a connection opened by the server: actions of an upstream server that clients do not have.
//!
//! As in Linux, a peer that closes with unread bytes resets the connection. Otherwise it sends its end. Bytes sent to
//! it afterwards are not acknowledged, and a reset answers them; the server sees EPIPE after the end.

use std::io;

use super::Wire;

impl Wire {
    /// Not established yet: there are no events until [`Self::establish`] or [`Self::refuse`].
    pub fn hold(&mut self) {
        self.dialled.pending = true;
    }

    /// The connection is established.
    pub fn establish(&mut self) {
        self.dialled.pending = false;
    }

    /// The connection is refused, which is an event.
    pub fn refuse(&mut self) {
        self.dialled.pending = false;
        self.dialled.errno = Some(ECONNREFUSED);
    }

    /// Whether it is not established yet.
    pub fn is_pending(&self) -> bool {
        self.dialled.pending
    }

    /// Whether connect(2) finds it established, as it can on one host.
    pub(super) fn is_established_at_once(&mut self) -> bool {
        !self.dialled.pending && self.random.chance(500)
    }

    /// The peer closes both sides.
    pub fn leave(&mut self) {
        if self.fetched() < self.sent().len() {
            return self.reset();
        }
        self.end();
        self.dialled.left = true;
    }

    /// The peer closes just before the next bytes come: its end and they pass each other.
    pub fn leave_next(&mut self) {
        self.dialled.leaving = true;
    }

    /// Whether the peer has closed both sides.
    pub fn has_left(&self) -> bool {
        self.dialled.left
    }

    /// Bytes sent to a peer that had closed.
    pub fn lost(&self) -> &[u8] {
        &self.dialled.lost
    }

    /// Whether something was sent after the peer's end had been reported.
    pub fn is_end_ignored(&self) -> bool {
        self.dialled.ignored
    }

    pub(super) fn take_error(&mut self) -> Option<io::Error> {
        self.dialled.errno.take().map(io::Error::from_raw_os_error)
    }
}

const ECONNREFUSED: i32 = 111;
