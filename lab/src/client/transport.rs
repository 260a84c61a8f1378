//! A socket, and TLS over it if there is any.
//!
//! Plaintext goes to `plain`; [`Transport::flush`] encrypts and sends it. Absent: receiving, since loads and records of
//! events need different data of it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use sys::tcp_info::{self, TcpInfo};
use sys::{connect, socket};
use tls::{ClientConn, Fault, Scratch};

/// Transport of one connection, or an empty one with memory for reuse.
#[derive(Default)]
pub(crate) struct Transport {
    fd: Option<OwnedFd>,
    pub(crate) tls: Option<ClientConn>,
    /// Plaintext to send.
    pub(crate) plain: Vec<u8>,
    /// Encrypted records for the socket.
    sealed: Scratch,
    /// Bytes of the output that have been sent.
    sent: usize,
    /// Bytes that were sent, those of TLS included, on all connections of this place.
    pub(crate) sent_bytes: u64,
}

/// Why nothing more can be sent.
#[derive(Debug)]
pub(crate) enum Broken {
    Tls(Fault),
    Write(io::Error),
}

impl Transport {
    /// Begins a connection in place of the one before; returns its socket, for a poller.
    pub(crate) fn dial(&mut self, address: SocketAddr) -> io::Result<&OwnedFd> {
        self.close();
        let fd = connect::stream(address)?;
        socket::set_nodelay(&fd, true)?;
        Ok(self.fd.insert(fd))
    }

    /// Its socket; `None` once it is closed.
    pub(crate) fn socket(&self) -> Option<&OwnedFd> {
        self.fd.as_ref()
    }

    /// How connecting has ended, once the socket can be written.
    ///
    /// # Errors
    /// There is no connection.
    pub(crate) fn connected(&self) -> io::Result<()> {
        let error = self.fd.as_ref().map(socket::so_error).transpose()?;
        error.flatten().map_or(Ok(()), Err)
    }

    /// Sends pending output. Returns whether all of it was sent; otherwise the socket is full.
    ///
    /// # Errors
    /// TLS or the socket is broken.
    #[inline]
    pub(crate) fn flush(&mut self) -> Result<bool, Broken> {
        let Some(fd) = &self.fd else { return Ok(true) };
        let out = match &mut self.tls {
            None => self.plain.as_slice(),
            Some(tls) => {
                if !self.plain.is_empty() {
                    let result = tls.encrypt(&self.plain, RECORD_BYTES, &mut self.sealed);
                    self.plain.clear();
                    result.map_err(Broken::Tls)?;
                }
                self.sealed.extend(&tls.take_output());
                self.sealed.filled()
            }
        };
        while self.sent < out.len() {
            match socket::send(fd, &out[self.sent..], false) {
                Ok(sent) if sent.bytes == 0 => return Ok(false),
                Ok(sent) => {
                    self.sent += sent.bytes as usize;
                    self.sent_bytes += sent.bytes;
                }
                Err(error) => return Err(Broken::Write(error)),
            }
        }
        self.discard_output();
        Ok(true)
    }

    /// The kernel's figures of its connection.
    pub(crate) fn info(&self) -> Option<TcpInfo> {
        tcp_info::tcp_info(self.fd.as_ref()?.as_raw_fd())
    }

    pub(crate) fn close(&mut self) {
        self.fd = None;
        self.tls = None;
        self.discard_output();
    }

    fn discard_output(&mut self) {
        self.plain.clear();
        self.sealed.clear(SEALED_BYTES_KEPT);
        self.sent = 0;
    }
}

/// Memory for records kept by a connection between flushes, bytes.
const SEALED_BYTES_KEPT: usize = 64 << 10;
/// Plaintext of a record, bytes (RFC 8446 section 5.1).
const RECORD_BYTES: usize = 16 << 10;
