//! Connections to servers: their states and the memory they use. `servers` runs their turns.
//!
//! ```text
//! Connecting -> Handshaking -> Open <-> Idle
//!                              Open  -> Draining -> Idle    the exchange is gone, and little of the response is left
//! ```
//!
//! A connection in the clear has no `Handshaking`. Any state can become `Closed`. A connection is a [`Link`] (socket and
//! transport) and, while it is in use, an [`ActiveConn`] (engine, output queue and requests). An idle connection holds no
//! buffer; with streams it keeps its engine, since the peer uses its header tables.

mod available;
pub(crate) mod engine;
mod http2;
mod memory;
mod requests;

use std::sync::Arc;

use engines::http::OutputQueue;
use server_upstream::protocol::ProtocolSpec;
use server_upstream::route::{Pool, Route, ServerTls, Timeouts, UpstreamAddr};
use tls::ClientConn;

use super::disposition;
use super::readiness::SocketFlags;
use super::transport::TlsStream;
use engine::Engine;

pub use memory::{ServerMemory, Sharing};
pub(crate) use requests::{
    Attempt, Queue, Queued, Receiving, Requests, Sending, Stream, Streams, UnsentBytes,
};
pub use requests::{Group, Groups};

/// A connection to a server.
pub struct ServerConn<S> {
    pub(crate) link: Link<S>,
    pub(crate) state: State,
}

/// Socket and transport of a connection, with facts from its beginning on.
pub(crate) struct Link<S> {
    pub(crate) socket: S,
    pub(crate) transport: Transport,
    /// The settings of its TLS.
    pub(crate) tls: Option<Arc<ServerTls>>,
    /// When it was begun.
    pub(crate) since_ms: u64,
    /// Bytes of the requests before the current one.
    pub(crate) sent_before: u64,
    /// Number of requests so far, including those in progress.
    pub(crate) requests: u32,
    pub(crate) flags: SocketFlags,
    /// TCP_NODELAY has been set.
    pub(crate) nodelay: bool,
}

/// Transport of a connection's bytes.
pub(crate) enum Transport {
    /// The socket alone.
    Plain,
    /// TLS, client role.
    Tls(Box<TlsStream<ClientConn>>),
}

/// State of a connection.
pub(crate) enum State {
    /// The socket is not connected yet.
    Connecting(Box<ActiveConn>),
    /// The handshake of TLS is not complete.
    Handshaking(Box<ActiveConn>),
    /// Requests are in progress.
    Open(Box<ActiveConn>),
    /// The unwanted rest of a response is read and dropped.
    Draining(Box<ActiveConn>, Draining),
    /// It waits in its pool for the next request.
    Idle {
        /// The number of the pool.
        pool: u64,
        /// Until when.
        until_ms: u64,
        /// The engine of a connection with streams.
        kept: Option<Box<ActiveConn>>,
    },
    /// Over.
    Closed,
}

/// The limits of a response that is dropped.
pub(crate) struct Draining {
    pub(crate) left_bytes: u64,
    pub(crate) until_ms: u64,
}

/// A connection in use.
pub(crate) struct ActiveConn {
    pub(crate) io: Io,
    pub(crate) requests: Requests,
}

/// Engine and output of a connection, and the settings of its route.
pub(crate) struct Io {
    pub(crate) engine: Engine,
    pub(crate) out: OutputQueue,
    pub(crate) protocol: &'static ProtocolSpec,
    pub(crate) addr: UpstreamAddr,
    pub(crate) pool: Option<Pool>,
    pub(crate) timeouts: Timeouts,
    /// When connecting, or the handshake, began.
    pub(crate) since_ms: u64,
    /// When the socket last took something, or there was something for it first.
    pub(crate) wrote_ms: u64,
    /// The connection was idle before.
    pub(crate) reused: bool,
    /// A part of the response was acknowledged at once.
    pub(crate) acknowledged: bool,
    /// Why nothing can be written any more; input that came before is still read.
    pub(crate) unwritable: Option<i32>,
}

/// Disposition of a connection after its turn.
pub type Disposition = disposition::Disposition<PoolPlace>;

/// The place of an idle connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolPlace {
    /// The pool.
    pub pool: Pool,
    /// Its server.
    pub addr: UpstreamAddr,
}

impl Io {
    /// The engine and settings of a route, for a connection that begins now.
    pub(crate) fn new(route: &Route, now_ms: u64) -> Self {
        Self {
            engine: Engine::new(route.protocol, route.head_bytes),
            out: OutputQueue::default(),
            protocol: route.protocol,
            addr: route.addr.clone(),
            pool: route.pool,
            timeouts: route.timeouts,
            since_ms: now_ms,
            wrote_ms: now_ms,
            reused: false,
            acknowledged: false,
            unwritable: None,
        }
    }
}

impl<S> ServerConn<S> {
    /// A connection that has just been begun, for an attempt, and may be established already.
    pub fn new(socket: S, established: bool, now_ms: u64) -> Self {
        Self {
            link: Link {
                socket,
                transport: Transport::Plain,
                tls: None,
                since_ms: now_ms,
                sent_before: 0,
                requests: 0,
                flags: SocketFlags {
                    writable: established,
                    ..SocketFlags::default()
                },
                nodelay: false,
            },
            state: State::Closed,
        }
    }

    /// The number of the pool in which the connection is idle.
    pub fn idle_pool(&self) -> Option<u64> {
        match self.state {
            State::Idle { pool, .. } => Some(pool),
            _ => None,
        }
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.link.socket
    }
}

impl Transport {
    /// Whether TLS has bytes for the socket besides the output queue.
    #[inline]
    pub(crate) fn has_output(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.has_output())
    }

    /// Number of encrypted bytes that the socket did not take.
    #[inline]
    pub(crate) fn unsent_bytes(&self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Tls(tls) => tls.unsent_bytes(),
        }
    }

    /// Whether the end of the socket's input is the end that the server meant.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Self::Plain => true,
            Self::Tls(tls) => tls.session.peer_closed(),
        }
    }
}
