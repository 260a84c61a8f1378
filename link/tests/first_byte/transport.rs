//! Transport of the sweep's peers: a connection of TCP, plain or with TLS.
//!
//! Absent on purpose: resumption, so that each connection of a sweep is like the others.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConnection, StreamOwned};

use crate::tls::{self, Version};

/// The requested server name.
pub(crate) const NAME: &str = "server.example.org";

/// Timeout of a read; far above the link's holds.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum overhead of a coding in bytes: heads, checksums, marks of blocks.
const CODING_BYTES: usize = 64;

/// A server's address, and the transport to it.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    server: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    /// Codings of later connections, the next one first; empty for identity.
    codings: Vec<&'static str>,
}

/// A connection, of either end.
pub(crate) enum Wire {
    Plain(TcpStream),
    Client(Box<StreamOwned<ClientConnection, TcpStream>>),
    Server(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Transport {
    /// To the server at this address, by TLS if there is a version; `alpn` is the protocol to agree on.
    pub(crate) fn new(server: SocketAddr, version: Option<Version>, alpn: &str) -> Self {
        let tls = version.map(|version| Arc::new(tls::client(version, &[alpn])));
        let codings = Vec::new();
        Self {
            server,
            tls,
            codings,
        }
    }

    /// Makes connections request these codings in turn.
    pub(crate) fn asking_for(mut self, codings: &[&'static str]) -> Self {
        self.codings = codings.to_vec();
        self
    }

    /// The coding requested by the current connection.
    pub(crate) fn coding(&self) -> Option<&'static str> {
        self.codings.first().copied()
    }

    /// Selects the coding of the next connection.
    pub(crate) fn turn(&mut self) {
        if !self.codings.is_empty() {
            self.codings.rotate_left(1);
        }
    }

    /// Checks a response: it has the size of the file, or the requested coding and at most the overhead of
    /// incompressible bodies.
    pub(crate) fn check(
        &self,
        asked_bytes: usize,
        came_bytes: usize,
        coding: Option<&str>,
    ) -> io::Result<()> {
        let right = match self.coding() {
            None => coding.is_none() && came_bytes == asked_bytes,
            asked => coding == asked && came_bytes > 0 && came_bytes <= asked_bytes + CODING_BYTES,
        };
        if right {
            return Ok(());
        }
        let what = format!("{came_bytes} bytes, coded {coding:?}, for {asked_bytes}");
        Err(io::Error::new(ErrorKind::InvalidData, what))
    }

    /// Connects, and shakes hands.
    pub(crate) fn open(&self) -> io::Result<Wire> {
        let mut stream = TcpStream::connect(self.server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        let Some(config) = &self.tls else {
            return Ok(Wire::Plain(stream));
        };
        let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(config), name);
        let mut connection = connection.map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        let agreed = connection.alpn_protocol();
        if agreed != config.alpn_protocols.first().map(Vec::as_slice) {
            let what = format!("the server speaks {agreed:?}");
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        let stream = StreamOwned::new(connection, stream);
        Ok(Wire::Client(Box::new(stream)))
    }
}

impl Wire {
    /// The scheme of requests over it.
    pub(crate) fn scheme(&self) -> &'static str {
        match self {
            Self::Plain(_) => "http",
            Self::Client(_) | Self::Server(_) => "https",
        }
    }

    /// Reads the available bytes; an end is an error.
    pub(crate) fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.read(buffer)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            length => Ok(length),
        }
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Client(stream) => stream.read(buffer),
            Self::Server(stream) => stream.read(buffer),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Client(stream) => stream.write(bytes),
            Self::Server(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Client(stream) => stream.flush(),
            Self::Server(stream) => stream.flush(),
        }
    }
}
