//! Read-ahead for the files that one connection sends: the piece being sent, and the next one.
//!
//! If a piece of a file was missing, a pool reads the file from there on, including cached pages. It reads each piece
//! before it is sent. Otherwise the kernel would start its own read-ahead at some page, and the sending thread would
//! wait for a busy disk. [`ReadAhead::step`] returns the next step after each write.
//!
//! The next piece is read once the client has taken part of the last one. So at most [`FETCH_BYTES`] are read ahead of
//! that piece, and nothing is read for a stalled client. Absent: the reads (`read_pool`), and cached files.

use std::rc::Rc;

use engines::http::FileRange;

use super::read_pool::Fetch;

/// Files of one connection that a pool reads.
#[derive(Debug, Default)]
pub struct ReadAhead {
    /// In order of their first read; the latest is the last.
    parts: Vec<Part>,
    /// Start of the current pause of writes for a read, monotonic milliseconds.
    paused_ms: Option<u64>,
}

/// A part of a file, read from its first byte on.
#[derive(Debug)]
struct Part {
    /// The piece that was read.
    read: FileRange,
    /// Offset of the last read that the client had to wait for.
    awaited: u64,
    /// The read in progress after `read`.
    next: Option<Fetch>,
}

/// Next step after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing to do. More can be sent when the socket has room.
    Send,
    /// Wait: the next bytes are being read.
    Wait,
    /// Read the next bytes.
    Read,
    /// The next bytes were read for this offset and are missing again.
    ReadHere,
    /// Read the bytes from this offset on, while those before it are sent.
    ReadAhead(u64),
}

impl ReadAhead {
    /// Returns how many of the first bytes of `range` a pool has read; `None` if no pool reads there.
    #[must_use]
    pub fn read_bytes(&self, range: &FileRange) -> Option<u64> {
        let part = self.parts.iter().find(|part| part.holds(range));
        part.map(|part| part.end() - range.offset)
    }

    /// Records that writes pause until a read is done.
    pub fn pause(&mut self, now_ms: u64) {
        self.paused_ms.get_or_insert(now_ms);
    }

    /// Returns the start of the current pause, or `None`.
    #[must_use]
    pub fn paused_ms(&self) -> Option<u64> {
        self.paused_ms
    }

    /// Ends the pause. Returns false if there was none: the read was for later, and the socket may be full.
    pub fn resume(&mut self) -> bool {
        self.take_done();
        self.paused_ms.take().is_some()
    }

    /// Adds finished reads to the bytes that may be sent.
    pub fn take_done(&mut self) {
        for part in &mut self.parts {
            part.take_done();
        }
    }

    /// Returns the next step after a write that ended before `range`. `at_missing`: it ended at missing bytes, not
    /// because the socket was full or had taken enough. One read fetches `piece_bytes`.
    pub fn step(&mut self, range: &FileRange, at_missing: bool, piece_bytes: u64) -> Step {
        let Some(part) = self.parts.iter_mut().find(|part| part.holds(range)) else {
            return match at_missing {
                true => Step::Read,
                false => Step::Send,
            };
        };
        let was_read = range.offset < part.end();
        part.take_done();
        let end = part.end();
        if range.offset == end {
            return match part.next {
                Some(_) => Step::Wait,
                None => Step::Read,
            };
        }
        if at_missing && was_read {
            return match part.awaited == range.offset {
                true => Step::ReadHere,
                false => Step::Read,
            };
        }
        let is_begun = end - range.offset < piece_bytes;
        if part.next.is_none() && is_begun && end < range.offset + range.len {
            return Step::ReadAhead(end);
        }
        Step::Send
    }

    /// Records that the first bytes of `range` are being read, and that the client waits for them.
    pub fn await_read(&mut self, range: &FileRange, fetch: Fetch) {
        match self.parts.iter_mut().find(|part| part.holds(range)) {
            Some(part) => {
                part.read.len = range.offset - part.read.offset;
                part.awaited = range.offset;
                part.next = Some(fetch);
            }
            None => {
                if self.parts.len() == PARTS_MAX {
                    self.parts.remove(0);
                }
                self.parts.push(Part {
                    read: FileRange {
                        len: 0,
                        ..range.clone()
                    },
                    awaited: range.offset,
                    next: Some(fetch),
                });
            }
        }
    }

    /// Records the read of the bytes after the finished ones, as requested by [`Step::ReadAhead`].
    pub fn read_on(&mut self, range: &FileRange, fetch: Fetch) {
        if let Some(part) = self.parts.iter_mut().find(|part| part.holds(range)) {
            part.next = Some(fetch);
        }
    }
}

impl Part {
    fn end(&self) -> u64 {
        self.read.offset + self.read.len
    }

    /// Whether `range` begins in the bytes that were read, or directly after them.
    fn holds(&self, range: &FileRange) -> bool {
        Rc::ptr_eq(&self.read.file, &range.file)
            && (self.read.offset..=self.end()).contains(&range.offset)
    }

    fn take_done(&mut self) {
        if let Some(next) = self.next.take_if(|next| next.is_done()) {
            self.read.len += next.len();
        }
    }
}

/// Maximum number of parts that a connection reads at a time. If there are more, the oldest part starts again.
const PARTS_MAX: usize = 16;

#[cfg(test)]
#[path = "read_ahead_tests.rs"]
mod tests;
