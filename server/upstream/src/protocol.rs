//! Protocols spoken with servers, one row each: the data that generic code needs.
//!
//! The driver finds the engine of a protocol by its [`ProtocolId`]; requests are made by the protocol's module.

use std::fmt;

/// A protocol spoken with servers.
pub struct ProtocolSpec {
    /// Its number.
    pub id: ProtocolId,
    /// The begin of servers' URLs in variables and logs, with "://".
    pub scheme: &'static str,
    /// Port of an address without one; 0: a port must be written.
    pub default_port: u16,
    /// Maximum size of a response head unless `*_buffer_size` is written, bytes.
    pub head_bytes: usize,
    /// Limits of pipelined requests on a connection; `None`: one request at a time.
    pub pipelining: Option<Pipelining>,
    /// Requests share a connection, each as a stream.
    pub streams: bool,
    /// The unwanted rest of a response is read to keep the connection. An application has a process for each connection,
    /// which is better free for the next request; nginx closes such connections, too.
    pub drains: bool,
    /// The form of a request.
    pub form: RequestForm,
}

/// Numbers of protocols. They are parts of pool numbers: a connection that has spoken one protocol is never given to another.
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

/// Limits of requests that share a connection. They can be repeated, and a server answers in their order so fast that
/// one more write and read cost more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipelining {
    /// Maximum number of requests on a connection at a time.
    pub requests_max: usize,
}

/// The form of the fields of a [`RequestSpec`](crate::request::RequestSpec).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestForm {
    /// `:method` and `:path`, then the fields as they are sent and in their order, `Host` and `Connection` among them.
    Head,
    /// Parameters in their order. A field without a name is sent unchanged after the others, if the protocol can.
    Parameters,
    /// One field with the key as its value, escaped.
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

/// Common values of protocols of applications.
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
