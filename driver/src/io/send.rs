//! Sends a gather in as few system calls as it can go.
//!
//! Output of one turn leaves in one call: a small file is read behind the head that goes before it, a large one
//! follows by sendfile with MSG_MORE on the head. A full socket is `Sent::blocked`, not an error. Absent: TLS, which fills
//! an output queue of its own.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use engines::http::{FileRange, Front, OutputQueue};
use sys::page_cache;
use sys::socket::{self, Sent};

use super::page_cache_hints::PageCacheHints;
use super::read_ahead::ReadAhead;
use super::read_pool::{self, LOOK_BYTES_MAX};

/// Treatment of file bytes that are not in the page cache.
#[derive(Clone, Copy, Debug)]
pub enum Missing<'a> {
    /// The call waits for the disk.
    Wait,
    /// The call ends before them, and before those that the connection's pool has not read yet; the socket is not full then.
    Stop(Option<&'a ReadAhead>),
}

impl Missing<'_> {
    /// The most bytes that may be sent of `range`.
    pub(crate) fn most(self, range: &FileRange) -> u64 {
        match self {
            Missing::Wait | Missing::Stop(None) => u64::MAX,
            Missing::Stop(Some(ahead)) => ahead.read_bytes(range).unwrap_or(u64::MAX),
        }
    }

    /// Returns how many of the first bytes of `range` can be sent now.
    fn ready(self, range: &FileRange, hints: &mut PageCacheHints, now_ms: u64) -> u64 {
        let len = range.len.min(self.most(range));
        match self {
            Missing::Stop(None) => {
                let hinted_bytes = hints.cached_bytes(range, now_ms);
                if hinted_bytes > 0 {
                    return len.min(hinted_bytes);
                }
                let len = len.min(LOOK_BYTES_MAX);
                let cached = read_pool::cached_bytes(range, len);
                if cached == len {
                    hints.record(range, len, now_ms);
                }
                cached
            }
            Missing::Stop(Some(_)) if len > 0 => read_pool::cached_bytes(range, len),
            Missing::Stop(Some(_)) | Missing::Wait => len,
        }
    }
}

/// Options of sending file pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pieces {
    /// One sendfile call takes at most this many bytes (`sendfile_max_chunk`; 0: no bound).
    pub max_bytes: u64,
    /// Data before a file leaves in one packet with the beginning of it (`tcp_nopush`), also before a large one.
    pub nopush: bool,
    /// The time, monotonic milliseconds.
    pub now_ms: u64,
}

/// Sends from the front of `gather` until it is empty, the socket is full or `limit` bytes are sent, or as `missing` says.
///
/// # Errors
/// `UnexpectedEof` when a file is shorter than its range says: the connection must be closed, the
/// promised length cannot be kept. Else the socket's or the file's error.
pub fn send_gather(
    socket: impl AsFd,
    gather: &mut OutputQueue,
    limit: u64,
    pieces: Pieces,
    missing: Missing<'_>,
    hints: &mut PageCacheHints,
) -> io::Result<Sent> {
    let chunk = match pieces.max_bytes {
        0 => u64::MAX,
        most => most,
    };
    let mut sent = Sent::default();
    let mut next = None;
    while sent.bytes < limit && !sent.blocked {
        let room = limit - sent.bytes;
        if next.is_none() {
            next = prepare_file(gather, missing, |range| {
                missing.ready(range, hints, pieces.now_ms)
            })?;
        }
        let step = match gather.front() {
            None => break,
            Some(Front::Bytes(_)) => {
                let follows = next.as_mut().is_some_and(|next| next.shares_packet(pieces));
                send_memory(socket.as_fd(), gather, room, follows)?
            }
            Some(Front::File(range)) => {
                let Some(file) = &mut next else {
                    break;
                };
                let len = range.len.min(room).min(chunk).min(file.piece());
                if len == 0 {
                    break;
                }
                let step =
                    socket::send_file(socket.as_fd(), range.file.as_ref(), range.offset, len)?;
                file.ready -= step.bytes;
                if file.ready == 0 {
                    next = None;
                }
                step
            }
        };
        gather.advance(step.bytes);
        sent.bytes += step.bytes;
        sent.blocked = step.blocked;
    }
    Ok(sent)
}

/// Reads from the beginning of a file's range into `buffer`; 0 at the end of the file.
///
/// # Errors
/// The file's error.
pub fn read_file(range: &FileRange, buffer: &mut [u8]) -> io::Result<usize> {
    socket::read_at(range.file.as_ref(), range.offset, buffer)
}

/// Reads as [`read_file`] does, as far as that does not wait.
///
/// # Errors
/// `WouldBlock` when the first byte is not in the page cache; else the file's error.
pub fn read_cached(range: &FileRange, buffer: &mut [u8]) -> io::Result<usize> {
    page_cache::read_cached(range.file.as_ref(), range.offset, buffer)
}

/// Appends the bytes of `range` to `bytes`, which is left as it was on an error.
///
/// # Errors
/// `UnexpectedEof` when the file is shorter; else the error of the read.
pub fn read_range(range: &FileRange, bytes: &mut Vec<u8>) -> io::Result<()> {
    socket::append_at(range.file.as_ref(), range.offset, range.len, bytes)
}

fn send_memory(
    socket: impl AsFd,
    gather: &OutputQueue,
    room: u64,
    follows: bool,
) -> io::Result<Sent> {
    let most = usize::try_from(room).unwrap_or(usize::MAX);
    if let Some(bytes) = gather.only_bytes() {
        // Nearly all output; a kilobyte of slices would be written for it.
        return socket::send(socket, &bytes[..bytes.len().min(most)], false);
    }
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let count = gather.slices(&mut slices);
    let whole = whole_within(&slices[..count], room);
    // A file that follows in this very call may share the last segment. Else nothing is held back.
    let more = whole.count > 0 && whole.count == count && whole.bytes < room && follows;
    if whole.count > 1 {
        return socket::send_vectored(socket, &slices[..whole.count], more);
    }
    let Some(Front::Bytes(bytes)) = gather.front() else {
        return Ok(Sent::default());
    };
    socket::send(socket, &bytes[..bytes.len().min(most)], more)
}

/// The first file piece of a gather, which is not read into the bytes before it.
struct NextFile {
    len: u64,
    /// Number of its first bytes that can be sent now.
    ready: u64,
    /// The packet that it begins in is to end soon.
    opens: bool,
}

impl NextFile {
    fn new(len: u64, ready: u64) -> Self {
        Self {
            len,
            ready,
            opens: false,
        }
    }

    /// Whether what is before it is held back until it follows. A large file's head waits for nothing, unless `tcp_nopush`
    /// says so: one segment more is nothing beside it.
    fn shares_packet(&mut self, pieces: Pieces) -> bool {
        let is_large = self.len >= HEAD_ALONE_BYTES;
        let shares = self.ready > 0 && (!is_large || pieces.nopush);
        self.opens = shares && is_large;
        shares
    }

    /// Bytes of the next call.
    fn piece(&mut self) -> u64 {
        match std::mem::take(&mut self.opens) {
            true => self.ready.min(OPENING_BYTES),
            false => self.ready,
        }
    }
}

/// Reads the first file piece into the bytes before it when it is small, so that both leave in one call; returns the piece if
/// that is not done.
fn prepare_file(
    gather: &mut OutputQueue,
    missing: Missing<'_>,
    mut ready: impl FnMut(&FileRange) -> u64,
) -> io::Result<Option<NextFile>> {
    let result = gather.inline_front_file(|range, bytes| {
        if range.len > INLINE_FILE_BYTES {
            return Err(NotInlined::Not(NextFile::new(range.len, ready(range))));
        }
        let read = match missing {
            Missing::Wait => read_range(range, bytes),
            Missing::Stop(_) if missing.most(range) < range.len => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            Missing::Stop(_) => {
                page_cache::append_cached(range.file.as_ref(), range.offset, range.len, bytes)
            }
        };
        read.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => NotInlined::Not(NextFile::new(range.len, ready(range))),
            _ => NotInlined::Failed(error),
        })
    });
    match result {
        Ok(()) => Ok(None),
        Err(NotInlined::Not(next)) => Ok(Some(next)),
        Err(NotInlined::Failed(error)) => Err(error),
    }
}

enum NotInlined {
    Not(NextFile),
    Failed(io::Error),
}

struct Whole {
    count: usize,
    bytes: u64,
}

/// The leading slices that fit in `room` bytes uncut.
fn whole_within(slices: &[IoSlice<'_>], room: u64) -> Whole {
    let mut whole = Whole { count: 0, bytes: 0 };
    for slice in slices {
        let bytes = whole.bytes + slice.len() as u64;
        if bytes > room {
            break;
        }
        whole = Whole {
            count: whole.count + 1,
            bytes,
        };
    }
    whole
}

/// Pieces of memory in one call; what is left goes in the next.
const SLICES_MAX: usize = 64;

/// Files up to this many bytes are copied behind the head instead of sent by sendfile: one system
/// call less, and one segment for head and body. To be tuned by measurement.
pub const INLINE_FILE_BYTES: u64 = 16 * 1024;

/// Before a file of at least this many bytes the head is sent for itself: the client has it before the first pages of the
/// file are looked up and sent, for one segment more among a hundred and eighty. It also costs the server less time, since
/// buffers of the kernel begin where pages begin (benches/README.md, `large/1m-h1`).
const HEAD_ALONE_BYTES: u64 = 256 << 10;

/// Bytes of a large file that leave with its head under `tcp_nopush`: those that fit into one buffer of the kernel, so that
/// the next one begins where a page begins.
const OPENING_BYTES: u64 = 60 << 10;

#[cfg(test)]
#[path = "send_tests.rs"]
mod tests;
