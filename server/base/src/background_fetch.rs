//! Background fetches: periodic requests to other hosts that no client request triggers, such as those of OCSP.
//!
//! The worker's main thread has connections to servers as exchanges have them; it passes the body of the response to the
//! fetch. Absent: TLS, and redirects, which are a status like others.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::name_servers::NameServers;

/// A fetch that is repeated while a configuration is served.
pub trait BackgroundFetch: Send + Sync {
    /// The server to connect to.
    fn endpoint(&self) -> &Endpoint;

    /// The request.
    fn request(&self) -> &FetchRequest;

    /// Milliseconds until the first attempt, counted from the time when the configuration is first served.
    fn first_in_ms(&self, now_s: i64) -> u64;

    /// Takes the body of a response.
    ///
    /// # Errors
    /// The text for the log; the fetch has failed, and no other address is tried.
    fn accept(&self, body: &[u8], now_s: i64) -> Result<(), String>;

    /// The fetch has ended, successfully or not; returns the milliseconds until the next one.
    fn ended(&self, succeeded: bool, now_s: i64) -> u64;
}

/// A server, how long it may take, and its names in the log.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The host, an address or a name.
    pub host: String,
    /// The port for addresses that a name server returns.
    pub port: u16,
    /// The addresses, in the order of attempts; if empty, the name servers resolve the host.
    pub addresses: Vec<SocketAddr>,
    /// The name servers.
    pub servers: Option<Arc<NameServers>>,
    /// Time limit of the name servers, milliseconds.
    pub resolver_timeout_ms: u64,
    /// Time limit of a connection, from its beginning to its end, milliseconds.
    pub timeout_ms: u64,
    /// The server's role in messages, such as `OCSP responder`.
    pub peer: &'static str,
    /// The action that messages name after `while `, with the host.
    pub action: String,
    /// The last words of a message, about the purpose.
    pub purpose: String,
}

/// A GET request of HTTP.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// The value of `Host`.
    pub host: String,
    /// The target.
    pub target: String,
    /// The media type that the response must have if it names one.
    pub media_type: &'static str,
    /// Maximum size of the response, its head included, bytes.
    pub response_bytes_max: usize,
}
