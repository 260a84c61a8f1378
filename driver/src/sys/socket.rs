//! Stream sockets: accept, receive, and one gather out in as few system calls as it can go.
//!
//! Bytes enter in `receive` and leave in `send_gather`. What is ready in one turn leaves in one
//! call: a small file is read behind the head that goes before it, a large one follows by sendfile
//! with MSG_MORE on the head. All sockets are non-blocking; a full socket is `Sent::blocked`, not an
//! error. Absent: TLS, which fills a gather of its own.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use engines::http::{FileRange, Front, Gather};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny, SocketFlags, sockopt,
};
use server_core::exchange::Peer;

use super::retry;

/// What `send_gather` did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes the socket took.
    pub bytes: u64,
    /// The socket took no more; with an edge-triggered poller its next writable event will come.
    pub blocked: bool,
}

/// Takes one connection from a listener, non-blocking and closed on exec.
///
/// # Errors
/// `WouldBlock` when none waits; EMFILE, ENFILE, ENOMEM when the system has no room;
/// ECONNABORTED when the client is gone already.
pub fn accept(listener: impl AsFd) -> io::Result<(OwnedFd, Peer)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (socket, address) = retry(|| rustix::net::acceptfrom_with(listener.as_fd(), flags))?;
    Ok((socket, address.map_or(Peer::Unix, peer_of)))
}

/// Whether a connection waits at a listener.
#[must_use]
pub fn is_waiting(listener: impl AsFd) -> bool {
    let listener = listener.as_fd();
    let mut fds = [PollFd::new(&listener, PollFlags::IN)];
    let now = Timespec::default();
    matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(1..))
}

/// Receives into `buffer`; 0 is the end of the stream.
///
/// # Errors
/// `WouldBlock` when nothing has come; the socket's error otherwise.
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let flags = rustix::net::RecvFlags::empty();
    let (received, _) = retry(|| rustix::net::recv(socket.as_fd(), &mut *buffer, flags))?;
    Ok(received)
}

/// Sends from the front of `gather` until it is empty, the socket is full or `limit` bytes are sent.
/// One sendfile call takes at most `sendfile_max_chunk` bytes (0: no bound).
///
/// # Errors
/// `UnexpectedEof` when a file is shorter than its range says: the connection must be closed, the
/// promised length cannot be kept. Else the socket's or the file's error.
pub fn send_gather(
    socket: impl AsFd,
    gather: &mut Gather,
    limit: u64,
    sendfile_max_chunk: u64,
) -> io::Result<Sent> {
    let mut sent = Sent::default();
    while sent.bytes < limit && !sent.blocked {
        let room = limit - sent.bytes;
        inline_small_file(gather)?;
        let step = match gather.front() {
            None => break,
            Some(Front::Bytes(_)) => send_memory(socket.as_fd(), gather, room)?,
            Some(Front::File(range)) => send_file(socket.as_fd(), range, room, sendfile_max_chunk)?,
        };
        gather.advance(step.bytes);
        sent.bytes += step.bytes;
        sent.blocked = step.blocked;
    }
    Ok(sent)
}

/// Sends from the front of `bytes`; gives how many the socket took, 0 where it is full.
///
/// # Errors
/// The socket's error.
pub fn send_bytes(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    match retry(|| rustix::net::send(socket.as_fd(), bytes, SendFlags::NOSIGNAL)) {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
        other => Ok(other?),
    }
}

/// Reads from the beginning of a file's range into `buffer`; 0 at the end of the file.
///
/// # Errors
/// The file's error.
pub fn read_file(range: &FileRange, buffer: &mut [u8]) -> io::Result<usize> {
    let file = range.file.as_ref();
    Ok(retry(|| {
        rustix::io::pread(file, &mut *buffer, range.offset)
    })?)
}

/// Ends our side of the stream; the peer reads the end after all that was sent.
///
/// # Errors
/// The socket is not connected any more.
pub fn shutdown_write(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::shutdown(socket, Shutdown::Write)?)
}

/// Makes the close of `socket` a reset that frees its memory at once.
///
/// # Errors
/// Not a stream socket.
pub fn set_linger_reset(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(socket, Some(Duration::ZERO))?)
}

/// Sets TCP_NODELAY.
///
/// # Errors
/// Not a TCP socket.
pub fn set_nodelay(socket: impl AsFd, on: bool) -> io::Result<()> {
    Ok(sockopt::set_tcp_nodelay(socket, on)?)
}

/// The local address; `None` for a UNIX-domain socket.
///
/// # Errors
/// `socket` is not a socket.
pub fn local_addr(socket: impl AsFd) -> io::Result<Option<SocketAddr>> {
    let address = rustix::net::getsockname(socket)?;
    Ok(match peer_of(address) {
        Peer::Inet(address) => Some(address),
        Peer::Unix => None,
    })
}

/// Takes the pending error of `socket`, which says why a poller reported it closed.
///
/// # Errors
/// `socket` is not a socket.
pub fn so_error(socket: impl AsFd) -> io::Result<Option<io::Error>> {
    Ok(sockopt::socket_error(socket)?.err().map(io::Error::from))
}

fn peer_of(address: SocketAddrAny) -> Peer {
    match address.address_family() {
        AddressFamily::INET | AddressFamily::INET6 => {
            SocketAddr::try_from(address).map_or(Peer::Unix, Peer::Inet)
        }
        _ => Peer::Unix,
    }
}

fn send_memory(socket: impl AsFd, gather: &Gather, room: u64) -> io::Result<Sent> {
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let count = gather.slices(&mut slices);
    let whole = whole_within(&slices[..count], room);
    // A file that follows in this very call may share the last segment. Else nothing is held back.
    let file_follows =
        whole.count > 0 && whole.count == count && whole.bytes < room && gather.file_after();
    let more = if file_follows {
        SendFlags::MORE
    } else {
        SendFlags::empty()
    };
    let flags = SendFlags::NOSIGNAL | more;
    let (asked, result) = if whole.count <= 1 {
        let Some(Front::Bytes(bytes)) = gather.front() else {
            return Ok(Sent::default());
        };
        let part = &bytes[..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        let send = || rustix::net::send(socket.as_fd(), part, flags);
        (part.len() as u64, retry(send))
    } else {
        let used = &slices[..whole.count];
        let mut control = SendAncillaryBuffer::default();
        let send = || rustix::net::sendmsg(socket.as_fd(), used, &mut control, flags);
        (whole.bytes, retry(send))
    };
    match result {
        Ok(taken) => Ok(Sent {
            bytes: taken as u64,
            blocked: (taken as u64) < asked,
        }),
        Err(Errno::AGAIN) => Ok(Sent {
            bytes: 0,
            blocked: true,
        }),
        Err(error) => Err(error.into()),
    }
}

fn send_file(
    socket: impl AsFd,
    range: &FileRange,
    room: u64,
    sendfile_max_chunk: u64,
) -> io::Result<Sent> {
    let chunk = if sendfile_max_chunk == 0 {
        SENDFILE_BYTES_MAX
    } else {
        sendfile_max_chunk
    };
    let count = range.len.min(room).min(chunk).min(SENDFILE_BYTES_MAX);
    let mut offset = range.offset;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    match retry(|| {
        rustix::fs::sendfile(
            socket.as_fd(),
            range.file.as_ref(),
            Some(&mut offset),
            count,
        )
    }) {
        Ok(0) => Err(short_file()),
        Ok(taken) => Ok(Sent {
            bytes: taken as u64,
            blocked: false,
        }),
        Err(Errno::AGAIN) => Ok(Sent {
            bytes: 0,
            blocked: true,
        }),
        Err(error) => Err(error.into()),
    }
}

/// Reads the first file piece into the bytes before it when it is small, so that both leave in one call.
fn inline_small_file(gather: &mut Gather) -> io::Result<()> {
    let result = gather.inline_front_file(|range, bytes| {
        if range.len > INLINE_FILE_BYTES {
            return Err(NotInlined::TooLarge);
        }
        read_range(range, bytes).map_err(NotInlined::Failed)
    });
    match result {
        Ok(()) | Err(NotInlined::TooLarge) => Ok(()),
        Err(NotInlined::Failed(error)) => Err(error),
    }
}

enum NotInlined {
    TooLarge,
    Failed(io::Error),
}

/// Appends the bytes of `range` to `bytes`, which is left as it was on an error.
///
/// # Errors
/// `UnexpectedEof` when the file is shorter; else the error of the read.
pub fn read_range(range: &FileRange, bytes: &mut Vec<u8>) -> io::Result<()> {
    let start = bytes.len();
    let len = usize::try_from(range.len).map_err(|_| io::ErrorKind::InvalidInput)?;
    bytes.reserve(len);
    while bytes.len() - start < len {
        let filled = bytes.len() - start;
        let room = &mut bytes.spare_capacity_mut()[..len - filled];
        let at = range.offset + filled as u64;
        let read = match retry(|| {
            rustix::io::pread(range.file.as_ref(), &mut *room, at).map(|(read, _)| read.len())
        }) {
            Ok(read) => read,
            Err(error) => {
                bytes.truncate(start);
                return Err(error.into());
            }
        };
        if read == 0 {
            bytes.truncate(start);
            return Err(short_file());
        }
        // SAFETY: pread has initialized the first `read` bytes of the spare capacity.
        unsafe { bytes.set_len(start + filled + read) };
    }
    Ok(())
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

fn short_file() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "file is shorter than its length said",
    )
}

/// Pieces of memory in one call; what is left goes in the next.
const SLICES_MAX: usize = 64;

/// Files up to this many bytes are copied behind the head instead of sent by sendfile: one system
/// call less, and one segment for head and body. To be tuned by measurement.
pub const INLINE_FILE_BYTES: u64 = 16 * 1024;

/// The most one sendfile call moves on Linux, rounded down to pages.
const SENDFILE_BYTES_MAX: u64 = 0x7fff_f000;

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
