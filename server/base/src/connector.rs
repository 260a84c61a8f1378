//! Connections to the servers behind this one, as handlers see them.
//!
//! A handler never opens a socket itself. It asks a [`Connector`] for an attempt with one server, and gets an
//! [`UpstreamRequest`]: pieces go in, events come out, a waker announces them. The driver implements the trait with
//! sockets, a pool of idle connections and its resolver; the simulator and the tests of modules have their own.
//!
//! Source: nginx documentation, `ngx_http_proxy_module`, `ngx_http_upstream_module`.

use std::cell::RefCell;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use engines::http::{Fields, ResponseHead};

use crate::name_servers::NameServers;
use crate::upstream_request::{
    AttemptWatch, Failure, RequestSpec, UpstreamError, UpstreamEvent, UpstreamRequest, attempt,
};
use crate::waker::{WakeQueue, Waker};

/// Connects to servers and resolves names.
pub trait Connector {
    /// Begins an attempt with a server, over an idle connection of the route's pool or over a new one. It never blocks and
    /// never fails: what goes wrong is an event of the request.
    fn call(&mut self, route: Route, request: RequestSpec, waker: Waker) -> UpstreamRequest;

    /// Takes back the memory of an attempt that is over.
    fn recycle(&mut self, _: AttemptWatch) {}

    /// Takes back the memory of a response's head.
    fn recycle_head(&mut self, _: Box<ResponseHead>) {}

    /// An empty list of fields, for a request.
    fn fields(&mut self) -> Fields {
        Fields::default()
    }

    /// Looks up the addresses of a name, at these name servers or those of the system. A cached answer is returned at
    /// once; otherwise the waker wakes when the answer is there, after `timeout_ms` milliseconds at the latest (0: no
    /// limit).
    fn resolve(
        &mut self,
        servers: Option<&Arc<NameServers>>,
        name: &str,
        timeout_ms: u64,
        waker: Waker,
    ) -> Lookup;
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamAddr {
    /// An address and a port.
    Inet(SocketAddr),
    /// The path of a UNIX-domain socket.
    Unix(Arc<[u8]>),
}

impl fmt::Display for UpstreamAddr {
    /// As `$upstream_addr` shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inet(addr) => write!(f, "{addr}"),
            Self::Unix(path) => write!(f, "unix:{}", String::from_utf8_lossy(path)),
        }
    }
}

/// How an attempt reaches its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The server.
    pub addr: UpstreamAddr,
    /// The protocol of the connection.
    pub protocol: UpstreamProtocol,
    /// Where the connection comes from and goes to when it is idle; `None`: it is new, and closed after the request.
    pub pool: Option<Pool>,
    /// Options of a new connection's socket.
    pub options: SocketOptions,
    /// Time limits of the attempt.
    pub timeouts: Timeouts,
}

/// A protocol spoken with servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamProtocol {
    /// HTTP/1.
    Http1 {
        /// Maximum size of a response head, bytes; 64 KiB unless the configuration says otherwise.
        head_bytes: usize,
    },
    /// FastCGI, responder role.
    FastCgi {
        /// Maximum size of a response head, bytes.
        head_bytes: usize,
        /// `fastcgi_keep_conn`: FCGI_KEEP_CONN is asked for.
        keep: bool,
    },
    /// SCGI.
    Scgi {
        /// Maximum size of a response head, bytes.
        head_bytes: usize,
    },
    /// uwsgi.
    Uwsgi {
        /// Maximum size of a response head, bytes.
        head_bytes: usize,
        /// `uwsgi_modifier1` and `uwsgi_modifier2`.
        modifiers: [u8; 2],
    },
    /// The text protocol of memcached: one `get`.
    Memcached {
        /// Maximum size of the line before a value, bytes.
        line_bytes: usize,
    },
}

/// A pool of idle connections of one thread, and its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// A digest of all that connections of the pool have in common besides the server's address: the name of the group, the
    /// location where pools are `local`, the address they are bound to. It names no configuration, so that idle connections
    /// outlive a reload.
    pub id: u64,
    /// `keepalive`: idle connections kept, of all servers together.
    pub connections: usize,
    /// `keepalive_requests`.
    pub requests: u64,
    /// `keepalive_time`, milliseconds.
    pub time_ms: u64,
    /// `keepalive_timeout`, milliseconds.
    pub timeout_ms: u64,
}

/// Options of the socket of a new connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// The local address; a port of 0 leaves the choice to the system.
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

/// Time limits of an attempt, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the call until the connection stands.
    pub connect_ms: u64,
    /// Between two writes, while there is something to write.
    pub send_ms: u64,
    /// Between two reads, while something is waited for and may be read.
    pub read_ms: u64,
}

/// A name being resolved. Dropping it takes the question back.
#[derive(Clone, Debug, Default)]
pub struct Lookup(Rc<RefCell<Option<Result<Resolved, String>>>>);

/// The addresses of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The addresses, at least one.
    pub addresses: Rc<[IpAddr]>,
    /// Until when they are valid, monotonic milliseconds.
    pub valid_until_ms: u64,
}

impl Lookup {
    /// A lookup whose answer is still to come.
    #[must_use]
    pub fn pending() -> Self {
        Self::default()
    }

    /// The answer, if it is there; an error is as the log words it, such as "3: Host not found".
    pub fn answer(&self) -> Option<Result<Resolved, String>> {
        self.0.borrow().clone()
    }

    /// Whether the answer is there.
    pub fn is_answered(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Sets the answer; called by the connector, which wakes the exchange then.
    pub fn complete(&self, answer: Result<Resolved, String>) {
        *self.0.borrow_mut() = Some(answer);
    }

    /// Whether the exchange has dropped its copy of the lookup; for the connector, which holds the other copy.
    pub fn is_abandoned(&self) -> bool {
        Rc::strong_count(&self.0) == 1
    }
}

/// A connector that reaches no server: every attempt fails, no name is found.
#[derive(Debug, Default)]
pub struct NoServers;

impl Connector for NoServers {
    fn call(&mut self, _: Route, request: RequestSpec, waker: Waker) -> UpstreamRequest {
        let (ours, theirs) = attempt(request, waker, &WakeQueue::default(), 0);
        theirs.tell(UpstreamEvent::Failed(UpstreamError {
            failure: Failure::Socket {
                call: "connect()",
                errno: ENETUNREACH,
            },
            sent_bytes: 0,
            reused: false,
            untouched: true,
        }));
        ours
    }

    fn resolve(&mut self, _: Option<&Arc<NameServers>>, _: &str, _: u64, waker: Waker) -> Lookup {
        let lookup = Lookup::pending();
        lookup.complete(Err("3: Host not found".to_owned()));
        waker.wake();
        lookup
    }
}

/// No way to the network.
const ENETUNREACH: i32 = 101;
