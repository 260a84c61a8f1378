//! Stream sockets: accept, receive, send from memory and from files.
//!
//! Bytes enter in [`receive`] and leave in [`send`], [`send_vectored`] and [`send_file`], each one system call. All
//! sockets are non-blocking; a full socket is [`Sent::blocked`], not an error.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny, SocketFlags, ipproto,
    sockopt,
};

use super::{check, retry};

/// Result of a send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes the socket took.
    pub bytes: u64,
    /// The socket took no more; an edge-triggered poller will report it writable again.
    pub blocked: bool,
}

/// Takes one connection from a listener, non-blocking and closed on exec. The peer's address is `None` on a
/// UNIX-domain socket.
///
/// # Errors
/// `WouldBlock` if none waits; EMFILE, ENFILE, ENOMEM if the system has no room; ECONNABORTED if the client is gone
/// already.
pub fn accept(listener: impl AsFd) -> io::Result<(OwnedFd, Option<SocketAddr>)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (socket, address) = retry(|| rustix::net::acceptfrom_with(listener.as_fd(), flags))?;
    Ok((socket, address.and_then(inet_of)))
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
/// `WouldBlock` if nothing has arrived; the socket's error otherwise.
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let flags = rustix::net::RecvFlags::empty();
    let (received, _) = retry(|| rustix::net::recv(socket.as_fd(), &mut *buffer, flags))?;
    Ok(received)
}

/// Receives at most `most` bytes and appends them to `buffer`; 0 is the end of the stream.
///
/// # Errors
/// Those of [`receive`].
pub fn receive_into(socket: impl AsFd, buffer: &mut Vec<u8>, most: usize) -> io::Result<usize> {
    buffer.reserve(most);
    let flags = rustix::net::RecvFlags::empty();
    let before = buffer.len();
    let received = retry(|| {
        let room = &mut buffer.spare_capacity_mut()[..most];
        rustix::net::recv(socket.as_fd(), room, flags).map(|((bytes, _), _)| bytes.len())
    })?;
    // SAFETY: recv has initialized the first `received` bytes of the spare capacity.
    unsafe { buffer.set_len(before + received) };
    Ok(received)
}

/// Sends from the front of `bytes` in one call. `more` announces that other bytes follow at once: the kernel may
/// wait for them to fill a segment.
///
/// # Errors
/// The socket's error.
pub fn send(socket: impl AsFd, bytes: &[u8], more: bool) -> io::Result<Sent> {
    let sent = retry(|| rustix::net::send(socket.as_fd(), bytes, send_flags(more)));
    sent_of(bytes.len(), sent)
}

/// Sends from the front of `slices` in one call; `more` as in [`send`].
///
/// # Errors
/// The socket's error; EINVAL for more slices than IOV_MAX.
pub fn send_vectored(socket: impl AsFd, slices: &[IoSlice<'_>], more: bool) -> io::Result<Sent> {
    let mut control = SendAncillaryBuffer::default();
    let flags = send_flags(more);
    let sent = retry(|| rustix::net::sendmsg(socket.as_fd(), slices, &mut control, flags));
    sent_of(slices.iter().map(|slice| slice.len()).sum(), sent)
}

/// Sends at most `len` bytes of a file from `offset` in one call of sendfile; the offset of the descriptor is
/// unchanged.
///
/// # Errors
/// `UnexpectedEof` when the file ends before `offset`; else the socket's or the file's error.
pub fn send_file(socket: impl AsFd, file: impl AsFd, offset: u64, len: u64) -> io::Result<Sent> {
    let len = usize::try_from(len.min(SENDFILE_BYTES_MAX)).unwrap_or(usize::MAX);
    let mut offset = offset;
    match retry(|| rustix::fs::sendfile(socket.as_fd(), file.as_fd(), Some(&mut offset), len)) {
        Ok(0) => Err(short_file()),
        // A count below `len` does not tell a full socket from a short read of the file.
        Ok(taken) => sent_of(taken, Ok(taken)),
        Err(error) => sent_of(len, Err(error)),
    }
}

fn send_flags(more: bool) -> SendFlags {
    match more {
        true => SendFlags::NOSIGNAL | SendFlags::MORE,
        false => SendFlags::NOSIGNAL,
    }
}

fn sent_of(asked: usize, result: Result<usize, Errno>) -> io::Result<Sent> {
    let taken = match result {
        Err(Errno::AGAIN) => 0,
        other => other?,
    };
    Ok(Sent {
        bytes: taken as u64,
        blocked: taken < asked,
    })
}

/// Reads a file from `offset` into `buffer`; 0 at the end of the file.
///
/// # Errors
/// The file's error.
pub fn read_at(file: impl AsFd, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(retry(|| {
        rustix::io::pread(file.as_fd(), &mut *buffer, offset)
    })?)
}

/// Appends `len` bytes of a file from `offset` to `bytes`, which is unchanged on an error.
///
/// # Errors
/// `UnexpectedEof` when the file is shorter; else the error of the read.
pub fn append_at(file: impl AsFd, offset: u64, len: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    let start = bytes.len();
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
    bytes.reserve(len);
    while bytes.len() - start < len {
        let filled = bytes.len() - start;
        let room = &mut bytes.spare_capacity_mut()[..len - filled];
        let at = offset + filled as u64;
        let read = match retry(|| {
            rustix::io::pread(file.as_fd(), &mut *room, at).map(|(read, _)| read.len())
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

fn short_file() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "file is shorter than its length said",
    )
}

/// Ends our side of the stream; the peer reads the end after all sent bytes.
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

/// Acknowledges at once the bytes received and read, and the next segments as they arrive (TCP_QUICKACK).
///
/// # Errors
/// Not a TCP socket.
pub fn acknowledge(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_tcp_quickack(socket, true)?)
}

/// The local address; `None` for a UNIX-domain socket.
///
/// # Errors
/// `socket` is not a socket.
pub fn local_addr(socket: impl AsFd) -> io::Result<Option<SocketAddr>> {
    Ok(inet_of(rustix::net::getsockname(socket)?))
}

/// Returns whether the socket was opened for Multipath TCP (RFC 8684); false for a socket of another kind.
pub fn is_multipath(socket: impl AsFd) -> bool {
    let protocol = sockopt::socket_protocol(socket);
    protocol == Ok(Some(ipproto::MPTCP))
}

/// The peer's address; `None` for a UNIX-domain socket.
///
/// # Errors
/// `socket` is not connected.
pub fn peer_addr(socket: impl AsFd) -> io::Result<Option<SocketAddr>> {
    Ok(rustix::net::getpeername(socket)?.and_then(inet_of))
}

/// Sets TCP_FASTOPEN: the length of the queue of connections with data in their handshake.
///
/// # Errors
/// Not a TCP socket.
pub fn set_tcp_fastopen(socket: impl AsFd, queue: i32) -> io::Result<()> {
    set_tcp_int(socket, libc::TCP_FASTOPEN, queue)
}

/// Sets TCP_DEFER_ACCEPT: the time for which a listener holds back a connection without data, seconds; 0 to
/// disable.
///
/// # Errors
/// Not a TCP socket.
pub fn set_tcp_defer_accept(socket: impl AsFd, seconds: i32) -> io::Result<()> {
    set_tcp_int(socket, libc::TCP_DEFER_ACCEPT, seconds)
}

/// Sets TCP_QUICKACK: whether received data is acknowledged at once, or together with the next sent data or on a
/// timer of the kernel. The kernel changes it by itself later.
///
/// # Errors
/// Not a TCP socket.
pub fn set_tcp_quickack(socket: impl AsFd, on: bool) -> io::Result<()> {
    set_tcp_int(socket, libc::TCP_QUICKACK, i32::from(on))
}

/// Diverts new connections from a listener to another socket with its address, such as one of a wildcard address.
/// Handshakes in progress end at this listener, and its waiting connections can still be accepted.
///
/// The socket is bound to a network interface that does not exist (SO_BINDTOIFINDEX).
///
/// # Errors
/// Linux before 5.7 permits that only with CAP_NET_RAW; EPERM if it was done before and the capability is missing.
pub fn divert_new_connections(listener: impl AsFd) -> io::Result<()> {
    let index: libc::c_int = NO_INTERFACE;
    // SAFETY: `index` is an int that outlives the call, and its size is the length given.
    check(unsafe {
        libc::setsockopt(
            listener.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_BINDTOIFINDEX,
            (&raw const index).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })?;
    Ok(())
}

fn set_tcp_int(socket: impl AsFd, option: libc::c_int, value: i32) -> io::Result<()> {
    // SAFETY: `value` is an int that outlives the call, and its size is the length given.
    check(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })?;
    Ok(())
}

/// Takes the pending error of `socket`, the reason why a poller reported it closed.
///
/// # Errors
/// `socket` is not a socket.
pub fn so_error(socket: impl AsFd) -> io::Result<Option<io::Error>> {
    Ok(sockopt::socket_error(socket)?.err().map(io::Error::from))
}

fn inet_of(address: SocketAddrAny) -> Option<SocketAddr> {
    match address.address_family() {
        AddressFamily::INET | AddressFamily::INET6 => SocketAddr::try_from(address).ok(),
        _ => None,
    }
}

/// The index of no network interface: the kernel counts them from 1.
const NO_INTERFACE: libc::c_int = libc::c_int::MAX;

/// The most bytes of one sendfile call on Linux, rounded down to pages.
const SENDFILE_BYTES_MAX: u64 = 0x7fff_f000;

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
