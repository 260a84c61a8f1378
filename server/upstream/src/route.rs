//! The route to a server: address, protocol, connection pool, and timeouts of an attempt.
//!
//! Absent: establishing a connection, which belongs to the driver.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;

use server_base::files::Files;
use server_base::hash::Fnv;
use tls::{ClientConfig, PolicyDigest, ServerName};

use crate::protocol::ProtocolSpec;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamAddr {
    /// An address and a port.
    Inet(SocketAddr),
    /// The path of a UNIX-domain socket.
    Unix(Arc<[u8]>),
}

impl UpstreamAddr {
    /// Makes a copy that shares no memory.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        match self {
            Self::Inet(addr) => Self::Inet(*addr),
            Self::Unix(path) => Self::Unix(Arc::from(&**path)),
        }
    }

    /// Returns the text in `$upstream_addr`.
    pub fn name(&self) -> Vec<u8> {
        match self {
            Self::Unix(path) => [b"unix:", &**path].concat(),
            Self::Inet(addr) => addr.to_string().into_bytes(),
        }
    }
}

impl fmt::Display for UpstreamAddr {
    /// As in `$upstream_addr`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inet(addr) => write!(f, "{addr}"),
            Self::Unix(path) => write!(f, "unix:{}", String::from_utf8_lossy(path)),
        }
    }
}

/// Route of an attempt to its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The server.
    pub addr: UpstreamAddr,
    /// The protocol of the connection.
    pub protocol: &'static ProtocolSpec,
    /// Maximum size of a response head, bytes.
    pub head_bytes: usize,
    /// A digest of the group; sessions of TLS are of one group. 0: there is none.
    pub group: u64,
    /// TLS below the protocol.
    pub tls: Option<Arc<ServerTls>>,
    /// The pool that the connection is taken from and returned to; `None`: it is new, and closed after the request.
    pub pool: Option<Pool>,
    /// Options of a new connection's socket.
    pub options: SocketOptions,
    /// Timeouts of the attempt.
    pub timeouts: Timeouts,
}

/// TLS of connections to a server, client role.
#[derive(Debug)]
pub struct ServerTls {
    /// Settings of its handshakes.
    pub config: HandshakeConfig,
    /// A digest of all settings, equal after a reload that did not change them, unless files are named by variables. Idle
    /// connections are reused by it.
    pub digest: PolicyDigest,
    /// The name for SNI, verification and sessions. The settings determine its use.
    pub name: ServerName<'static>,
    pool_digest: u64,
}

/// Settings of handshakes, with the sessions for resumption.
#[derive(Debug)]
pub enum HandshakeConfig {
    /// Made with the configuration.
    Made(ClientConfig),
    /// Made for each handshake: a request on an idle connection loads nothing.
    Loaded(Box<dyn LoadConfig>),
}

/// Makes the settings of a handshake that depend on files.
pub trait LoadConfig: fmt::Debug + Send + Sync {
    /// Reads the files. `now_ms` is monotonic, in milliseconds.
    ///
    /// # Errors
    /// They cannot be used: the text for the log.
    fn load(&self, files: &mut dyn Files, now_ms: u64) -> Result<ClientConfig, String>;
}

impl From<ClientConfig> for HandshakeConfig {
    fn from(config: ClientConfig) -> Self {
        Self::Made(config)
    }
}

impl ServerTls {
    /// Settings with a digest of everything in them but the name.
    pub fn new(config: HandshakeConfig, digest: PolicyDigest, name: ServerName<'static>) -> Self {
        // Requests need the digest each time, so it is computed once.
        let mut hash = Fnv::default();
        (digest, &name).hash(&mut hash);
        Self {
            config,
            digest,
            name,
            pool_digest: hash.finish(),
        }
    }

    /// Returns a digest of settings and name, for the number of a pool.
    pub(crate) fn pool_digest(&self) -> u64 {
        self.pool_digest
    }
}

impl PartialEq for ServerTls {
    /// Connections are exchangeable if digest and name are equal.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || (self.digest == other.digest && self.name == other.name)
    }
}

impl Eq for ServerTls {}

/// A pool of idle connections of one thread, and its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Digest of all properties that its connections share besides the server's address: the group's name, the location
    /// if pools are `local`, the protocol, the TLS settings and the local address ([`Pool::for_connections`]). It names no
    /// configuration, so idle connections outlive a reload.
    pub id: u64,
    /// Digest of the group's name. Idle connections of all pools of the group share the limit `connections`. A client with
    /// connections of its own (`ntlm`) has a limit of its own.
    pub group: u64,
    /// `keepalive`: maximum number of idle connections of the group, to all servers.
    pub connections: usize,
    /// `keepalive_requests`.
    pub requests: u64,
    /// `keepalive_time`, milliseconds.
    pub time_ms: u64,
    /// `keepalive_timeout`, milliseconds.
    pub timeout_ms: u64,
    /// The digest of the group's name if its idle connections are counted ([`crate::idle_counts`]); 0: they are not.
    pub counted: u64,
}

/// Options of the socket of a new connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// The local address; with port 0 the system chooses the port.
    pub bind: Option<SocketAddr>,
    /// IP_TRANSPARENT: the local address may be any.
    pub transparent: bool,
    /// SO_KEEPALIVE.
    pub keepalive: bool,
    /// SO_RCVBUF, bytes.
    pub receive_buffer: Option<u32>,
    /// SO_SNDBUF, bytes.
    pub send_buffer: Option<u32>,
}

/// Timeouts of an attempt, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start until the connection is established.
    pub connect_ms: u64,
    /// Between two writes, while there are bytes to write.
    pub send_ms: u64,
    /// Between two reads, while a response is expected and may be read.
    pub read_ms: u64,
}
