//! Sends an output queue in as few system calls as possible.
//!
//! The output of one turn is sent in one call. A small file is copied behind its head. A large file follows by
//! sendfile, with MSG_MORE on the head. A full socket is `Sent::blocked`, not an error. Absent: TLS, which fills its
//! own output queue.

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
    /// The call ends before them, and before bytes that the connection's pool has not read yet. The socket is not full
    /// then.
    Stop(Option<&'a ReadAhead>),
}

impl Missing<'_> {
    /// Returns the maximum number of bytes of `range` that may be sent.
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
    /// Maximum number of bytes per sendfile call (`sendfile_max_chunk`); 0 means no limit.
    pub max_bytes: u64,
    /// Data before a file shares a packet with the start of the file (`tcp_nopush`), even if the file is large.
    pub nopush: bool,
    /// The time, monotonic milliseconds.
    pub now_ms: u64,
}

/// Sends from the front of `gather` until it is empty, the socket is full, or `limit` bytes are sent. `missing` may end
/// it earlier.
///
/// # Errors
/// `UnexpectedEof` if a file is shorter than its range. The announced length cannot be met, so the connection must be
/// closed. Otherwise the error of the socket or the file.
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

/// Reads like [`read_file`], but only cached bytes.
///
/// # Errors
/// `WouldBlock` if the first byte is not in the page cache; otherwise the file's error.
pub fn read_cached(range: &FileRange, buffer: &mut [u8]) -> io::Result<usize> {
    page_cache::read_cached(range.file.as_ref(), range.offset, buffer)
}

/// Appends the bytes of `range` to `bytes`. An error leaves `bytes` unchanged.
///
/// # Errors
/// `UnexpectedEof` if the file is shorter; otherwise the error of the read.
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
        // Nearly all output takes this path. It avoids initializing a kilobyte of slices.
        return socket::send(socket, &bytes[..bytes.len().min(most)], false);
    }
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let count = gather.slices(&mut slices);
    let whole = whole_within(&slices[..count], room);
    // A file that follows in the same call may share the last segment. Otherwise nothing is held back.
    let more = whole.count > 0 && whole.count == count && whole.bytes < room && follows;
    if whole.count > 1 {
        return socket::send_vectored(socket, &slices[..whole.count], more);
    }
    let Some(Front::Bytes(bytes)) = gather.front() else {
        return Ok(Sent::default());
    };
    socket::send(socket, &bytes[..bytes.len().min(most)], more)
}

/// The first file piece of a queue that is not copied behind the bytes before it.
struct NextFile {
    len: u64,
    /// Number of its first bytes that can be sent now.
    ready: u64,
    /// Its first call is short, so that its first packet leaves early.
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

    /// Whether the bytes before the file wait for it. The head of a large file does not wait, unless `tcp_nopush` is
    /// set: one more segment is negligible for a large file.
    fn shares_packet(&mut self, pieces: Pieces) -> bool {
        let is_large = self.len >= HEAD_ALONE_BYTES;
        let shares = self.ready > 0 && (!is_large || pieces.nopush);
        self.opens = shares && is_large;
        shares
    }

    /// Returns the number of bytes of the next call.
    fn piece(&mut self) -> u64 {
        match std::mem::take(&mut self.opens) {
            true => self.ready.min(OPENING_BYTES),
            false => self.ready,
        }
    }
}

/// Copies a small first file behind the bytes before it, so that both leave in one call. Returns the file piece if it
/// was not copied.
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

/// Returns the leading slices that fit completely in `room` bytes.
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

/// Maximum number of memory pieces per call. The rest follows in the next call.
const SLICES_MAX: usize = 64;

/// Size of the largest file that is copied behind its head instead of sent by sendfile. It saves one system call, and
/// head and body share a segment. To be tuned by measurement.
pub const INLINE_FILE_BYTES: u64 = 16 * 1024;

/// Size of a file from which on its head is sent separately. The client has the head before the first pages of the file
/// are looked up and sent. The cost is one more segment among 180. It also saves server time, since kernel buffers
/// begin at page boundaries (benches/README.md, `large/1m-h1`).
const HEAD_ALONE_BYTES: u64 = 256 << 10;

/// Bytes of a large file that are sent with its head under `tcp_nopush`. They fit into one kernel buffer, so the next
/// buffer begins at a page boundary.
const OPENING_BYTES: u64 = 60 << 10;

#[cfg(test)]
#[path = "send_tests.rs"]
mod tests;
