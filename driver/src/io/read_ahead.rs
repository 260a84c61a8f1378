//! Read-ahead of the files that one connection sends: the piece being sent, and the next one.
//!
//! A file of which a piece was missing is read by a pool from there on, also where its pages are in memory: the pool passes
//! over each piece before it is sent. So no page of it is left on which the kernel would begin to read ahead, for which the
//! sending thread would wait while the disk has much to do. [`ReadAhead::step`] says after each write what is to be done.
//!
//! The next piece is read once the client has taken something of the last, so at most [`FETCH_BYTES`] lie ahead of that
//! piece, and nothing is read for a client that takes nothing. Absent: the reads (`read_pool`), files that are in memory.

use std::rc::Rc;

use engines::http::FileRange;

use super::read_pool::Fetch;

/// The files of a connection that pools read.
#[derive(Debug, Default)]
pub struct ReadAhead {
    /// The latest is the last.
    parts: Vec<Part>,
    /// Since when nothing is written until a read is done, milliseconds.
    paused_ms: Option<u64>,
}

/// A part of a file, read from its begin on.
#[derive(Debug)]
struct Part {
    /// The piece that was read.
    read: FileRange,
    /// Where the last read began for which the client had to wait.
    awaited: u64,
    /// The piece being read behind it.
    next: Option<Fetch>,
}

/// Next step after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: more can be sent when the socket has room.
    Send,
    /// The next bytes are being read.
    Wait,
    /// The next bytes have to be read.
    Read,
    /// The next bytes were read for this very place and are missing again.
    ReadHere,
    /// The bytes from here on are to be read while those before them are sent.
    ReadAhead(u64),
}

impl ReadAhead {
    /// Returns how many of the first bytes of `range` a pool has read; `None` where no pool reads there.
    #[must_use]
    pub fn read_bytes(&self, range: &FileRange) -> Option<u64> {
        let part = self.parts.iter().find(|part| part.holds(range));
        part.map(|part| part.end() - range.offset)
    }

    /// Notes that nothing is written until a read is done.
    pub fn pause(&mut self, now_ms: u64) {
        self.paused_ms.get_or_insert(now_ms);
    }

    /// Since when nothing is written because a read is not done.
    #[must_use]
    pub fn paused_ms(&self) -> Option<u64> {
        self.paused_ms
    }

    /// Ends the pause; false if there was none: what was read is for later, and the socket may be full.
    pub fn resume(&mut self) -> bool {
        self.take_done();
        self.paused_ms.take().is_some()
    }

    /// Counts reads that are done to what may be sent.
    pub fn take_done(&mut self) {
        for part in &mut self.parts {
            part.take_done();
        }
    }

    /// Returns the next step after a write that ended before `range`; `at_missing`: at missing bytes, not because the
    /// socket is full or has taken enough. One read fetches `piece_bytes`.
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

    /// Notes that the first bytes of `range` are being read, and that the client waits for them.
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

    /// Notes that the bytes behind those that were read are being read as well, as [`Step::ReadAhead`] said of `range`.
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

    /// Whether `range` begins in what was read, or right behind it.
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

/// Parts of files that a connection's streams are sent from at a time; of more the oldest begins anew.
const PARTS_MAX: usize = 16;

#[cfg(test)]
#[path = "read_ahead_tests.rs"]
mod tests;
