//! Buffer of a response body: received, and not pulled yet.
//!
//! All of it can be pulled at once: buffering only means that the server is read ahead of the client. Up to a limit
//! the bytes are in memory. Older bytes go to a temporary file when more come, up to the size limit of the file.
//! Then the server is not read any more ([`UpstreamRequest::set_window`]).
//!
//! No file is made before a response has been held back for [`HOLD_MS`]: until then the server is not read, and its
//! bytes wait in the socket. Otherwise clients a little slower than the server, as all are in bursts, would cost a
//! file per response.
//!
//! Source: nginx documentation, `proxy_buffers`, `proxy_max_temp_file_size`, `proxy_limit_rate`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use engines::http::{Chunk, FileHandle, FileRange};
use server_base::files::{FileError, TempFile};
use server_upstream::request::{UpstreamEvent, UpstreamRequest, WINDOW_BYTES};

use crate::exchange::{BodyRead, BodySource, Ctx, Wait};

/// The limits of reading ahead of the client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes in memory from which on the server is not read, or the buffer goes to a file.
    pub(super) memory: u64,
    /// Maximum size of the file, bytes; 0 for none.
    pub(super) file: u64,
    /// Bytes that are read at a time while the file grows.
    pub(super) ahead: u64,
    /// Bytes a second that are read; 0 for no limit.
    pub(super) rate: u64,
    /// Bytes in memory and in the client's queue from which on the server is not read while the client takes
    /// nothing, unless new bytes go to a file.
    pub(super) stalled: u64,
}

impl Limits {
    /// No more is read than this, and nothing goes to a file.
    pub(super) fn unbuffered(bytes: u64) -> Self {
        Self {
            memory: bytes.max(1),
            file: 0,
            ahead: 0,
            rate: 0,
            stalled: 0,
        }
    }
}

/// The received part of a response body that has not been pulled.
pub(super) struct ResponseBuffer {
    /// Gone when the response is complete or given up.
    attempt: Option<UpstreamRequest>,
    pieces: VecDeque<Chunk>,
    /// Bytes of them that are in memory.
    memory_bytes: u64,
    /// The client has taken all that was there, and waits for more.
    is_awaited: bool,
    /// Bytes in the client's queue, while it takes none of them.
    unsent_bytes: u64,
    limits: Limits,
    file: Overflow,
    /// The file of a cache that has all bytes of the body already.
    backing: Option<Backing>,
    /// The reader has gone, and a cache receives the rest.
    is_unread: bool,
    /// Bytes of the body that have come.
    received: u64,
    began_ms: u64,
    /// When the server was first not read since memory was full, monotonic milliseconds.
    held_ms: Option<u64>,
    end: Option<Ended>,
    pub(super) is_tunnel: bool,
}

/// A file that has all bytes of the body, from a position on.
struct Backing {
    file: FileHandle,
    start: u64,
}

/// The temporary file.
enum Overflow {
    None,
    Open(TempFile),
    /// It could not be made or written to.
    Broken,
}

/// The ways in which a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Whole,
    Broken,
}

impl ResponseBuffer {
    /// For the response of an attempt.
    pub(super) fn new(
        attempt: UpstreamRequest,
        limits: Limits,
        is_tunnel: bool,
        now_ms: u64,
    ) -> Self {
        let mut buffer = Self {
            attempt: Some(attempt),
            pieces: VecDeque::new(),
            memory_bytes: 0,
            is_awaited: true,
            unsent_bytes: 0,
            limits,
            file: Overflow::None,
            backing: None,
            is_unread: false,
            received: 0,
            began_ms: now_ms,
            held_ms: None,
            end: None,
            is_tunnel,
        };
        buffer.set_window(now_ms);
        buffer
    }

    /// Names the file of a cache that gets each piece before [`Self::push`]: the server is read as fast as it sends, whatever the
    /// client takes.
    pub(super) fn set_backing(&mut self, file: FileHandle, start: u64) {
        self.backing = Some(Backing { file, start });
    }

    /// The file of the cache gets no more pieces.
    pub(super) fn drop_backing(&mut self) {
        self.backing = None;
        if self.is_unread {
            self.end(Ended::Broken);
        }
    }

    /// The attempt, while more may come.
    pub(super) fn attempt(&self) -> Option<&UpstreamRequest> {
        self.attempt.as_ref()
    }

    /// The next thing that the server did.
    pub(super) fn event(&self) -> Option<UpstreamEvent> {
        self.attempt.as_ref()?.next()
    }

    /// Bytes of the body that have come.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Sets the number of bytes that wait for a client which reads nothing now; 0: it reads.
    pub(super) fn set_unsent(&mut self, bytes: u64) {
        self.unsent_bytes = bytes;
        self.is_awaited &= bytes == 0;
    }

    /// A piece has come.
    pub(super) fn push(&mut self, mut chunk: Chunk) {
        self.is_awaited = false;
        if self.unsent_bytes > 0
            && let Chunk::Owned(bytes) = &mut chunk
        {
            // It may wait for long.
            bytes.shrink_to_fit();
        }
        self.received += chunk.len();
        if self.is_unread {
            return;
        }
        self.memory_bytes += chunk.bytes().len() as u64;
        self.pieces.push_back(chunk);
        if self.backing.is_some() && self.memory_bytes >= self.limits.memory {
            self.leave_to_backing();
        }
    }

    /// Drops the part in memory, which is read from the file of the cache.
    fn leave_to_backing(&mut self) {
        let Some(backing) = &self.backing else {
            return;
        };
        let mut end = self.received;
        for piece in self.pieces.iter_mut().rev() {
            let (begin, len) = (end - piece.len(), piece.len());
            if !piece.bytes().is_empty() {
                *piece = Chunk::File(FileRange {
                    file: Rc::clone(&backing.file),
                    offset: backing.start + begin,
                    len,
                });
            }
            end = begin;
        }
        self.memory_bytes = 0;
        self.join_ranges();
    }

    /// Nothing more comes.
    pub(super) fn end(&mut self, how: Ended) {
        self.end.get_or_insert(how);
        self.attempt = None;
    }

    /// Whether memory is to be written to the file before more comes.
    pub(super) fn overflows(&self, now_ms: u64) -> bool {
        self.backing.is_none()
            && self.memory_bytes >= self.limits.memory
            && self.file_has_room()
            && self.may_write(now_ms)
    }

    /// Whether the client has been slower for long enough to write to a file.
    fn may_write(&self, now_ms: u64) -> bool {
        let held = self.held_ms;
        held.is_some_and(|held_ms| now_ms >= held_ms.saturating_add(HOLD_MS))
    }

    fn file_has_room(&self) -> bool {
        let used = match &self.file {
            Overflow::None => 0,
            Overflow::Open(file) => file.len,
            Overflow::Broken => return false,
        };
        // The part in memory goes to the file as a whole.
        self.limits.file >= used.saturating_add(self.memory_bytes)
    }

    /// Whether there is a file yet.
    pub(super) fn has_file(&self) -> bool {
        matches!(self.file, Overflow::Open(..))
    }

    /// Assigns a file to it.
    pub(super) fn set_file(&mut self, file: TempFile) {
        self.file = Overflow::Open(file);
    }

    /// The file cannot be used: its content can still be pulled, and nothing is added.
    pub(super) fn break_file(&mut self) {
        self.file = Overflow::Broken;
    }

    /// Writes the part in memory to the file. If that fails it stays in memory.
    ///
    /// # Errors
    /// With the name of the file.
    pub(super) fn write_out(&mut self) -> Result<(), (FileError, Vec<u8>)> {
        let Overflow::Open(file) = &mut self.file else {
            return Ok(());
        };
        for piece in &mut self.pieces {
            if piece.bytes().is_empty() {
                continue;
            }
            let (offset, len) = (file.len, piece.len());
            if let Err(error) = file.append(piece.bytes()) {
                let name = file.path.clone();
                return Err((error, name));
            }
            self.memory_bytes -= len;
            *piece = Chunk::File(FileRange {
                file: Rc::clone(&file.file),
                offset,
                len,
            });
        }
        self.join_ranges();
        Ok(())
    }

    /// Makes one range of those that follow each other in the file.
    fn join_ranges(&mut self) {
        let mut joined: VecDeque<Chunk> = VecDeque::with_capacity(self.pieces.len());
        for piece in self.pieces.drain(..) {
            match (joined.back_mut(), piece) {
                (Some(Chunk::File(last)), Chunk::File(next))
                    if last.offset + last.len == next.offset =>
                {
                    last.len += next.len;
                }
                (_, piece) => joined.push_back(piece),
            }
        }
        self.pieces = joined;
    }

    /// Sets the number of bytes that the server may send; returns when more may come, if the rate forbids it now.
    pub(super) fn set_window(&mut self, now_ms: u64) -> Option<u64> {
        let room = self.room(now_ms);
        let attempt = self.attempt.as_ref()?;
        if room == 0 && self.file_has_room() && !self.may_write(now_ms) {
            let held_ms = *self.held_ms.get_or_insert(now_ms);
            attempt.wake_at(held_ms.saturating_add(HOLD_MS));
        }
        let limits = self.limits;
        if limits.rate == 0 {
            attempt.set_window(room);
            return None;
        }
        let elapsed_ms = now_ms.saturating_sub(self.began_ms);
        let earned = u128::from(limits.rate) * u128::from(elapsed_ms + 1000) / 1000;
        let earned = u64::try_from(earned).unwrap_or(u64::MAX);
        let allowed = earned.saturating_sub(self.received);
        attempt.set_window(room.min(allowed));
        (allowed < room).then(|| {
            let missing = (self.received + 1)
                .saturating_sub(earned)
                .max(RATE_STEP.min(limits.rate / 10));
            now_ms + missing.saturating_mul(1000) / limits.rate + 1
        })
    }

    /// Number of bytes that memory still allows.
    fn room(&self, now_ms: u64) -> u64 {
        let limits = self.limits;
        if self.backing.is_some() {
            return limits.memory.max(WINDOW_BYTES);
        }
        if self.is_awaited {
            // It leaves at once: it is read in large pieces, whatever the size of buffers is.
            return match limits.file {
                0 => limits.memory,
                _ => limits.memory.max(WINDOW_BYTES),
            };
        }
        if self.unsent_bytes > 0 && limits.file == 0 {
            let held = self.memory_bytes.saturating_add(self.unsent_bytes);
            return limits.stalled.saturating_sub(held);
        }
        match limits.memory.saturating_sub(self.memory_bytes) {
            0 if self.file_has_room() && self.may_write(now_ms) => limits.ahead,
            room => room,
        }
    }

    /// The next piece to be pulled.
    fn pull(&mut self, now_ms: u64) -> BodyRead {
        self.unsent_bytes = 0;
        if let Some(chunk) = self.pieces.pop_front() {
            self.memory_bytes -= chunk.bytes().len() as u64;
            self.set_window(now_ms);
            return BodyRead::Chunk(chunk);
        }
        match self.end {
            Some(Ended::Whole) => BodyRead::End,
            Some(Ended::Broken) => BodyRead::Broken,
            None => {
                self.is_awaited = true;
                let due_ms = self.set_window(now_ms);
                BodyRead::Pending(Wait::woken_or_until(due_ms.unwrap_or(u64::MAX)))
            }
        }
    }

    /// The reader has gone.
    fn give_up(&mut self) {
        self.pieces.clear();
        self.memory_bytes = 0;
        if self.backing.is_some() && self.end.is_none() {
            self.is_unread = true;
            return;
        }
        self.end(Ended::Broken);
    }
}

/// The buffer as the source of a body.
pub(super) struct Source(pub(super) Rc<RefCell<ResponseBuffer>>);

impl BodySource for Source {
    fn next(&mut self, cx: &mut Ctx<'_>) -> BodyRead {
        self.0.borrow_mut().pull(cx.clock.mono_ms)
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.0.borrow_mut().give_up();
    }
}

/// Time from the first pause of reading until a file is made, milliseconds. Most responses to fast clients are over
/// by then, and a server notices no such pause.
pub(super) const HOLD_MS: u64 = 20;
/// Minimum number of bytes to wait for if a rate limits the server, or a tenth of a second's.
const RATE_STEP: u64 = 4 << 10;
