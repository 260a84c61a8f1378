//! Parameters of a run.

use rustls::pki_types::ServerName;
use tls::ClientConfig;

use crate::client::{Protocol, Request};

/// Number of requests on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// Connections are opened before the first request, and reused.
    Warm,
    /// Each carries one request, and its time counts from the first packet.
    Cold,
    /// Each carries one request, and TLS resumes earlier sessions.
    Resumed,
}

impl Connect {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
            Self::Resumed => "resumed",
        }
    }
}

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server's address.
    pub address: std::net::SocketAddr,
    /// TLS, and the name that the certificate must have.
    pub tls: Option<(ClientConfig, ServerName<'static>)>,
    /// The protocol without TLS; with TLS, ALPN decides.
    pub plain: Protocol,
    /// The requests, sent in turn.
    pub requests: Vec<Request>,
    /// Lines of an access log that are no such requests.
    pub passed_over: Option<usize>,
    /// Connections at a time, of all threads.
    pub connections: usize,
    /// Requests at a time on a connection that carries several.
    pub streams: usize,
    /// Threads.
    pub threads: usize,
    /// Limit of requests; the run also ends with its time.
    pub total: Option<u64>,
    /// Time in which requests begin, nanoseconds.
    pub duration_ns: Option<u64>,
    /// Requests a second; a closed loop without.
    pub rate: Option<f64>,
    /// Number of requests on a connection.
    pub connect: Connect,
    /// Limit of time for a connection or a response.
    pub timeout_ns: u64,
    /// zlib's level for SPDY's request heads.
    pub spdy_level: u8,
    /// The server's process; its CPU time and memory are measured, with its children.
    pub pid: Option<u32>,
}
