//! Socket operations of a connection: real sockets here, the simulator's in the crate `sim`.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use engines::http::{FileRange, OutputQueue};
use server_base::thread_pool::ThreadPool;
use server_base::waker::RemoteWaker;
use server_upstream::route::{SocketOptions, UpstreamAddr};
use sys::connect::{self, Address, ConnectError, Connecting};
use sys::socket::{self, Sent};
use sys::tcp_info::tcp_info;
use sys::timestamps::{self, Stamp};

use crate::io::page_cache_hints::PageCacheHints;
use crate::io::read_ahead::ReadAhead;
use crate::io::read_pool::{self, FETCH_BYTES, Fetch, Refused};
use crate::io::send::{self, Missing, Pieces};

/// Sockets as the worker sees them.
pub trait Net {
    /// One connection's socket; dropping it closes the connection.
    type Socket;

    /// Reads available bytes; 0 is the end.
    ///
    /// # Errors
    /// `WouldBlock` when nothing has come, else the socket's error.
    fn receive(&mut self, socket: &mut Self::Socket, buffer: &mut [u8]) -> io::Result<usize>;

    /// Reads at most `most` bytes to the end of `buffer`; 0 is the end of the stream.
    ///
    /// # Errors
    /// Those of [`Self::receive`].
    fn receive_into(
        &mut self,
        socket: &mut Self::Socket,
        buffer: &mut Vec<u8>,
        most: usize,
    ) -> io::Result<usize> {
        let before = buffer.len();
        buffer.resize(before + most, 0);
        let result = self.receive(socket, &mut buffer[before..]);
        buffer.truncate(before + result.as_ref().map_or(0, |read| *read));
        result
    }

    /// Sends from the front of `out`, at most `limit` bytes; file pieces in calls of at most `chunk` bytes.
    ///
    /// # Errors
    /// `UnexpectedEof` for a file that is shorter than promised, else the socket's error.
    fn send(
        &mut self,
        socket: &mut Self::Socket,
        out: &mut OutputQueue,
        limit: u64,
        chunk: u64,
    ) -> io::Result<Sent>;

    /// Sends as [`Self::send`] does, and ends before file bytes that are not in memory, or that a pool reads and has not
    /// read.
    ///
    /// # Errors
    /// Those of [`Self::send`].
    fn send_cached(
        &mut self,
        socket: &mut Self::Socket,
        out: &mut OutputQueue,
        limit: u64,
        pieces: Pieces,
        _: Option<&ReadAhead>,
    ) -> io::Result<Sent> {
        self.send(socket, out, limit, pieces.max_bytes)
    }

    /// Sends bytes; returns how many the socket took, 0 if it is full.
    ///
    /// # Errors
    /// The socket's error.
    fn send_bytes(&mut self, socket: &mut Self::Socket, bytes: &[u8]) -> io::Result<usize>;

    /// Reads from the beginning of a file's range; returns how many bytes, 0 at the end of the file.
    ///
    /// # Errors
    /// The file's error.
    fn read_file(&mut self, range: &FileRange, buffer: &mut [u8]) -> io::Result<usize>;

    /// Reads as [`Self::read_file`] does, bytes that are in memory.
    ///
    /// # Errors
    /// `WouldBlock` when the first of them is not, else the file's error.
    fn read_cached(&mut self, range: &FileRange, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_file(range, buffer)
    }

    /// Whether [`Self::send_cached`] and [`Self::read_cached`] do end before bytes that are not in memory.
    fn stops_at_missing(&self) -> bool {
        false
    }

    /// Has the begin of `range` read into memory by a thread of `pool`, [`Self::piece_bytes`] at most, and wakes then.
    ///
    /// # Errors
    /// Why that is not begun.
    fn fetch(&mut self, _: &FileRange, _: &ThreadPool, _: RemoteWaker) -> Result<Fetch, Refused> {
        Err(Refused::Full)
    }

    /// Bytes that one fetch reads.
    fn piece_bytes(&self) -> u64 {
        FETCH_BYTES
    }

    /// Ends our side.
    fn shutdown(&mut self, socket: &mut Self::Socket);

    /// Makes the following close a reset: unsent bytes are dropped.
    fn reset(&mut self, socket: &mut Self::Socket);

    /// Our address.
    fn local_addr(&mut self, socket: &mut Self::Socket) -> Option<SocketAddr>;

    /// Sets TCP_NODELAY, which every socket has from its listener.
    fn set_nodelay(&mut self, socket: &mut Self::Socket, on: bool);

    /// Acknowledges received bytes at once.
    fn acknowledge(&mut self, _: &mut Self::Socket) {}

    /// Enables timestamps of [`Self::send_stamped`]; false if the socket cannot.
    fn enable_stamps(&mut self, _: &mut Self::Socket) -> bool {
        false
    }

    /// Sends bytes, with more to follow at once. The last byte is timestamped when it leaves and when it is
    /// acknowledged. Returns how many bytes the socket took, 0 if it is full.
    ///
    /// # Errors
    /// The socket's error.
    fn send_stamped(&mut self, _: &mut Self::Socket, _: &[IoSlice<'_>]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the next timestamp.
    fn stamp(&mut self, _: &mut Self::Socket) -> Option<Stamp> {
        None
    }

    /// Begins a connection to a server.
    ///
    /// # Errors
    /// The call that failed, and why.
    fn connect(
        &mut self,
        _: &UpstreamAddr,
        _: &SocketOptions,
    ) -> Result<Connecting<Self::Socket>, ConnectError> {
        Err(ConnectError {
            call: "connect()",
            error: io::ErrorKind::Unsupported.into(),
        })
    }

    /// Takes the pending error of a socket: why a connection was not established, or has been reset.
    fn take_error(&mut self, _: &mut Self::Socket) -> Option<io::Error> {
        None
    }

    /// Bytes that a server has acknowledged since the begin of a connection that this side has begun; `None` if
    /// unknown.
    fn acknowledged_bytes(&mut self, _: &mut Self::Socket) -> Option<u64> {
        None
    }

    /// The number of the descriptor, for debugging messages; -1 if there is none.
    fn number(&self, _: &Self::Socket) -> i32 {
        -1
    }
}

/// Sockets of the system.
#[derive(Debug, Default)]
pub struct Sockets {
    hints: PageCacheHints,
}

impl Net for Sockets {
    type Socket = OwnedFd;

    fn receive(&mut self, socket: &mut OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
        socket::receive(socket, buffer)
    }

    fn send(
        &mut self,
        socket: &mut OwnedFd,
        out: &mut OutputQueue,
        limit: u64,
        chunk: u64,
    ) -> io::Result<Sent> {
        let pieces = Pieces {
            max_bytes: chunk,
            ..Pieces::default()
        };
        let hints = &mut self.hints;
        send::send_gather(socket, out, limit, pieces, Missing::Wait, hints)
    }

    fn send_cached(
        &mut self,
        socket: &mut OwnedFd,
        out: &mut OutputQueue,
        limit: u64,
        pieces: Pieces,
        ahead: Option<&ReadAhead>,
    ) -> io::Result<Sent> {
        let missing = Missing::Stop(ahead);
        send::send_gather(socket, out, limit, pieces, missing, &mut self.hints)
    }

    fn send_bytes(&mut self, socket: &mut OwnedFd, bytes: &[u8]) -> io::Result<usize> {
        Ok(socket::send(socket, bytes, false)?.bytes as usize)
    }

    fn read_file(&mut self, range: &FileRange, buffer: &mut [u8]) -> io::Result<usize> {
        send::read_file(range, buffer)
    }

    fn read_cached(&mut self, range: &FileRange, buffer: &mut [u8]) -> io::Result<usize> {
        send::read_cached(range, buffer)
    }

    fn stops_at_missing(&self) -> bool {
        true
    }

    fn fetch(
        &mut self,
        range: &FileRange,
        pool: &ThreadPool,
        waker: RemoteWaker,
    ) -> Result<Fetch, Refused> {
        read_pool::fetch(range, pool, waker)
    }

    fn shutdown(&mut self, socket: &mut OwnedFd) {
        // A peer that is gone already needs no end.
        let _ = socket::shutdown_write(socket);
    }

    fn reset(&mut self, socket: &mut OwnedFd) {
        // A socket without that option is closed as any other.
        let _ = socket::set_linger_reset(socket);
    }

    fn local_addr(&mut self, socket: &mut OwnedFd) -> Option<SocketAddr> {
        socket::local_addr(socket).ok().flatten()
    }

    fn set_nodelay(&mut self, socket: &mut OwnedFd, on: bool) {
        // A UNIX-domain socket has no such option.
        let _ = socket::set_nodelay(socket, on);
    }

    fn acknowledge(&mut self, socket: &mut OwnedFd) {
        // A UNIX-domain socket acknowledges nothing.
        let _ = socket::acknowledge(socket);
    }

    fn receive_into(
        &mut self,
        socket: &mut OwnedFd,
        buffer: &mut Vec<u8>,
        most: usize,
    ) -> io::Result<usize> {
        socket::receive_into(socket, buffer, most)
    }

    fn connect(
        &mut self,
        addr: &UpstreamAddr,
        options: &SocketOptions,
    ) -> Result<Connecting<OwnedFd>, ConnectError> {
        let address = match addr {
            UpstreamAddr::Inet(addr) => Address::Inet(*addr),
            UpstreamAddr::Unix(path) => Address::Unix(path),
        };
        // SO_SNDLOWAT is missing: Linux does not let it be set.
        let options = connect::Options {
            bind: options.bind,
            transparent: options.transparent,
            keepalive: options.keepalive,
            receive_buffer: options.receive_buffer,
            send_buffer: options.send_buffer,
        };
        connect::stream_to(address, &options)
    }

    fn take_error(&mut self, socket: &mut OwnedFd) -> Option<io::Error> {
        socket::so_error(socket).unwrap_or_else(Some)
    }

    fn acknowledged_bytes(&mut self, socket: &mut OwnedFd) -> Option<u64> {
        let acknowledged = tcp_info(socket.as_raw_fd())?.bytes_acked()?;
        // The segment that began the connection counts as a byte.
        Some(acknowledged.saturating_sub(1))
    }

    fn enable_stamps(&mut self, socket: &mut OwnedFd) -> bool {
        timestamps::enable(socket).is_ok()
    }

    fn send_stamped(&mut self, socket: &mut OwnedFd, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        timestamps::send(socket, bytes)
    }

    fn stamp(&mut self, socket: &mut OwnedFd) -> Option<Stamp> {
        timestamps::next(socket)
    }

    fn number(&self, socket: &OwnedFd) -> i32 {
        socket.as_raw_fd()
    }
}
