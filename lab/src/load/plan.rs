//! Parameters of a run.

use rustls::pki_types::ServerName;
use tls::ClientConfig;

use crate::client::{Protocol, Request};

/// How many requests a connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// They are open before the first request, and kept.
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

/// A run that is asked for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the server is.
    pub address: std::net::SocketAddr,
    /// TLS, and the name that the certificate must have.
    pub tls: Option<(ClientConfig, ServerName<'static>)>,
    /// The protocol without TLS; with TLS, ALPN decides.
    pub plain: Protocol,
    /// The requests, which are gone through in turn.
    pub requests: Vec<Request>,
    /// Lines of an access log that are no such requests.
    pub passed_over: Option<usize>,
    /// Connections at a time, of all threads.
    pub connections: usize,
    /// Requests at a time on a connection that carries several.
    pub streams: usize,
    /// Threads.
    pub threads: usize,
    /// How many requests; the run also ends with its time.
    pub total: Option<u64>,
    /// For how long requests are begun.
    pub duration_ns: Option<u64>,
    /// Requests a second; a closed loop without.
    pub rate: Option<f64>,
    /// How many requests a connection carries.
    pub connect: Connect,
    /// How long a connection or response may take.
    pub timeout_ns: u64,
    /// zlib's level for SPDY's request heads.
    pub spdy_level: u8,
    /// The process whose CPU time and memory are looked at, with its children.
    pub pid: Option<u32>,
}
