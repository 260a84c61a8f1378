//! Reading and writing of a connection to a server, in the clear or with TLS.

use std::io;

use engines::http::OutputQueue;
use server_upstream::request::Failure;
use sys::socket::Sent;
use tls::ClientConn;

use super::outcome::{Ending, errno};
use crate::io::send::Missing;
use crate::worker::net::Net;
use crate::worker::readiness::WRITE_BYTES;
use crate::worker::server_state::{Io, Link, Transport};
use crate::worker::shared::Shared;
use crate::worker::transport::TlsStream;

/// Result of one read; the bytes are in the thread's buffer.
pub(super) struct Input {
    /// Number of bytes; 0 is the end.
    pub(super) bytes: usize,
    /// The socket has no more for now.
    pub(super) is_all: bool,
}

/// Reads at most `most` bytes as [`receive`] does, and updates the flags of the socket; `None` if nothing has come.
///
/// # Errors
/// The failure of the read, or of the last write if nothing came before the connection broke.
#[inline]
pub(super) fn read<N: Net>(
    link: &mut Link<N::Socket>,
    io: &Io,
    sh: &mut Shared<N>,
    most: usize,
) -> Result<Option<Input>, Ending> {
    match receive(link, sh, most) {
        Ok(input) => {
            // A file that the server has just written must be visible if its response names one.
            sh.files.input_received();
            let is_end = input.bytes == 0;
            link.flags.readable = !is_end && (!input.is_all || link.flags.hung_up);
            Ok(Some(input))
        }
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
            (link.flags.readable, link.flags.hung_up) = (false, false);
            io.unwritable
                .map_or(Ok(None), |errno| Err(Ending::broken(errno)))
        }
        Err(e) => Err(Ending::failed("recv()", &e)),
    }
}

/// Reads at most `most` bytes; with TLS up to one record more.
///
/// # Errors
/// `WouldBlock` if nothing has come, else the error of the socket or of TLS.
#[inline]
pub(super) fn receive<N: Net>(
    link: &mut Link<N::Socket>,
    sh: &mut Shared<N>,
    most: usize,
) -> io::Result<Input> {
    match &mut link.transport {
        Transport::Plain => {
            let buffer = &mut sh.attempts.buffer;
            let bytes = sh.net.receive_into(&mut link.socket, buffer, most)?;
            Ok(Input {
                bytes,
                is_all: bytes < most,
            })
        }
        Transport::Tls(tls) => receive_tls(tls, &mut link.socket, sh, most),
    }
}

/// Reads records until there is plaintext.
fn receive_tls<N: Net>(
    tls: &mut TlsStream<ClientConn>,
    socket: &mut N::Socket,
    sh: &mut Shared<N>,
    most: usize,
) -> io::Result<Input> {
    let most = most.clamp(1, sh.scratch.len());
    while !tls.session.peer_closed() {
        let input = &mut sh.scratch[..most];
        let read = sh.net.receive(socket, input)?;
        let plain = &mut sh.attempts.buffer;
        // A body may have taken the memory: one allocation for all records of the read.
        plain.reserve(read);
        let opened = tls.open(&mut input[..read], plain);
        opened.map_err(io::Error::other)?;
        let counted = tls.count_empty(read, plain.is_empty());
        counted.map_err(io::Error::other)?;
        // The announced end is read next, though no further event may come.
        let is_all = read < most && !tls.session.peer_closed();
        if read == 0 || !plain.is_empty() {
            return Ok(Input {
                bytes: plain.len(),
                is_all,
            });
        }
    }
    Ok(Input {
        bytes: 0,
        is_all: true,
    })
}

/// Writes from the front of `out`.
///
/// # Errors
/// Those of [`Net::send`].
#[inline]
pub(super) fn send<N: Net>(
    link: &mut Link<N::Socket>,
    out: &mut OutputQueue,
    sh: &mut Shared<N>,
) -> io::Result<Sent> {
    match &mut link.transport {
        Transport::Plain => sh.net.send(&mut link.socket, out, WRITE_BYTES, 0),
        Transport::Tls(tls) => {
            let before = out.len();
            let mut sent = sh.send_tls(tls, &mut link.socket, out, Missing::Wait)?;
            // A server may have read the first records of a flight while its last one is unsent.
            sent.bytes = before - out.len();
            Ok(sent)
        }
    }
}

/// Ends our side.
pub(super) fn shutdown<N: Net>(link: &mut Link<N::Socket>, sh: &mut Shared<N>) {
    if let Transport::Tls(tls) = &mut link.transport {
        tls.session.close();
        // A full socket loses the alert: the end of the bytes follows all the same.
        let _ = send(link, &mut OutputQueue::default(), sh);
    }
    sh.net.shutdown(&mut link.socket);
}

/// Result of [`flush`].
#[derive(Default)]
pub(super) struct Flushed {
    /// Number of bytes that the socket took.
    pub(super) bytes: u64,
    /// The connection broke after these bytes: input from before is read first.
    pub(super) is_broken: bool,
}

/// Writes the output queue as far as the socket takes it. One that `may_be_alone` is the first write of the connection and
/// the only one of its request: Nagle's algorithm cannot delay it.
///
/// # Errors
/// A file of the request has become shorter.
#[inline]
pub(super) fn flush<N: Net>(
    link: &mut Link<N::Socket>,
    io: &mut Io,
    sh: &mut Shared<N>,
    may_be_alone: bool,
) -> Result<Flushed, Ending> {
    if io.unwritable.is_some() {
        io.out.clear();
        return Ok(Flushed::default());
    }
    if !link.flags.writable || (io.out.is_empty() && !link.transport.has_output()) {
        return Ok(Flushed::default());
    }
    let is_alone = may_be_alone && link.sent_before == 0 && io.out.len() <= ONE_WRITE_BYTES;
    if !is_alone && !link.nodelay {
        sh.net.set_nodelay(&mut link.socket, true);
        link.nodelay = true;
    }
    let unsent = link.transport.unsent_bytes();
    let before = io.out.len();
    match send(link, &mut io.out, sh) {
        Ok(sent) => {
            link.flags.writable = !sent.blocked;
            // Records from before may leave without new ones behind them.
            if sent.bytes > 0 || link.transport.unsent_bytes() < unsent {
                io.wrote_ms = sh.clock.mono_ms;
            }
            Ok(Flushed {
                bytes: sent.bytes,
                is_broken: false,
            })
        }
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            Err(Ending::Failed(Failure::Unsendable(SHORT_FILE)))
        }
        Err(e) => {
            // The server may have answered before it closed: that is read first.
            io.unwritable = Some(errno(&e));
            // The write may be several calls; the last one failed.
            let bytes = before - io.out.len();
            io.out.clear();
            link.flags.readable = true;
            Ok(Flushed {
                bytes,
                is_broken: true,
            })
        }
    }
}

/// Whether the socket has taken all output, or takes nothing more.
#[inline]
pub(super) fn is_flushed<S>(link: &Link<S>, io: &Io) -> bool {
    io.out.is_empty() && (!link.transport.has_output() || io.unwritable.is_some())
}

/// Bytes that the server has acknowledged; `None` if they cannot be compared with those of requests.
pub(super) fn acknowledged_bytes<N: Net>(
    link: &mut Link<N::Socket>,
    sh: &mut Shared<N>,
) -> Option<u64> {
    match link.transport {
        Transport::Plain => sh.net.acknowledged_bytes(&mut link.socket),
        Transport::Tls(_) => None,
    }
}

/// Whether nothing has come on an idle connection.
pub(super) fn is_silent<N: Net>(link: &mut Link<N::Socket>, sh: &mut Shared<N>) -> bool {
    let most = match link.transport {
        Transport::Plain => 1,
        // Messages of TLS itself may come.
        Transport::Tls(_) => READ_BYTES,
    };
    let silent = match receive(link, sh, most) {
        Err(e) => e.kind() == io::ErrorKind::WouldBlock,
        Ok(_) => false,
    };
    sh.attempts.buffer.clear();
    (link.flags.readable, link.flags.hung_up) = (false, false);
    silent
}

/// Bytes of one read.
pub(super) const READ_BYTES: usize = 64 << 10;
/// Bytes that a new socket takes in one write, in any pieces: a buffer of 16 KiB is the least that systems are set to.
const ONE_WRITE_BYTES: u64 = 8 << 10;
/// Error of a request with a body in a file that has become shorter.
pub(super) const SHORT_FILE: &str = "the file with the request body was truncated";
