//! Protocols of upstream servers, with the data that generic code needs.
//!
//! The driver finds the engine of a protocol by its [`ProtocolId`]. The protocol's module makes requests.

use std::fmt;

/// A protocol of upstream servers.
pub struct ProtocolSpec {
    /// Its number.
    pub id: ProtocolId,
    /// Start of servers' URLs in variables and logs, with "://".
    pub scheme: &'static str,
    /// Default port; 0: a port is required.
    pub default_port: u16,
    /// Default of the maximum size of a response head (`*_buffer_size`), bytes.
    pub head_bytes: usize,
    /// Limits of pipelined requests on a connection; `None`: one request at a time.
    pub pipelining: Option<Pipelining>,
    /// Whether requests share a connection as streams.
    pub streams: bool,
    /// Whether an unwanted rest of a response is read, to keep the connection. For applications it is not: the process
    /// of a connection is free for the next request sooner. nginx closes such connections, too.
    pub drains: bool,
    /// Form of a request.
    pub form: RequestForm,
}

/// Numbers of protocols. They are part of pool numbers, so that a connection is never used for two protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ProtocolId {
    /// See [`HTTP1`].
    Http1,
    /// See [`FASTCGI`].
    FastCgi,
    /// See [`MEMCACHED`].
    Memcached,
    /// See [`SCGI`].
    Scgi,
    /// See [`UWSGI`].
    Uwsgi,
    /// See [`HTTP2`].
    Http2,
}

/// Limits of pipelining. Pipelined requests must be repeatable. It is used if servers answer so fast that another write
/// and read would cost more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipelining {
    /// Maximum number of requests in progress on a connection.
    pub requests_max: usize,
}

/// The form of the fields of a [`RequestSpec`](crate::request::RequestSpec).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestForm {
    /// `:method` and `:path`, then the fields in the order sent, including `Host` and `Connection`.
    Head,
    /// Parameters in their order. A field without a name is sent unchanged after the others, if the protocol can.
    Parameters,
    /// One field: its value is the escaped key.
    Key,
}

/// HTTP/1. Source: RFC 9112.
pub static HTTP1: ProtocolSpec = ProtocolSpec {
    id: ProtocolId::Http1,
    scheme: "http://",
    default_port: 80,
    head_bytes: HEAD_BYTES,
    pipelining: None,
    streams: false,
    drains: true,
    form: RequestForm::Head,
};

/// HTTP/2. Source: RFC 9113.
pub static HTTP2: ProtocolSpec = ProtocolSpec {
    id: ProtocolId::Http2,
    streams: true,
    drains: false,
    scheme: "http://",
    default_port: 80,
    head_bytes: HEAD_BYTES,
    pipelining: None,
    form: RequestForm::Head,
};

/// FastCGI, responder role. Source: FastCGI Specification 1.0.
pub static FASTCGI: ProtocolSpec = ProtocolSpec {
    id: ProtocolId::FastCgi,
    scheme: "fastcgi://",
    ..APPLICATION
};

/// The text protocol of memcached: one `get`. Source: memcached, doc/protocol.txt.
pub static MEMCACHED: ProtocolSpec = ProtocolSpec {
    id: ProtocolId::Memcached,
    scheme: "memcached://",
    pipelining: Some(Pipelining { requests_max: 16 }),
    form: RequestForm::Key,
    ..APPLICATION
};

/// SCGI. Source: SCGI: A Simple Common Gateway Interface alternative, 2008.
pub static SCGI: ProtocolSpec = ProtocolSpec {
    id: ProtocolId::Scgi,
    scheme: "scgi://",
    ..APPLICATION
};

/// uwsgi. Source: uWSGI documentation, "The uwsgi Protocol".
pub static UWSGI: ProtocolSpec = ProtocolSpec {
    id: ProtocolId::Uwsgi,
    scheme: "uwsgi://",
    ..APPLICATION
};

/// Common values of the protocols of applications.
const APPLICATION: ProtocolSpec = ProtocolSpec {
    id: ProtocolId::Http1,
    scheme: "",
    default_port: 0,
    head_bytes: HEAD_BYTES,
    pipelining: None,
    streams: false,
    drains: false,
    form: RequestForm::Parameters,
};

/// Default of the maximum size of a response head, bytes.
const HEAD_BYTES: usize = 64 << 10;

impl PartialEq for ProtocolSpec {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for ProtocolSpec {}

impl fmt::Debug for ProtocolSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}
