//! Settings of a client.

use std::time::Duration;

use crate::client::Url;
use crate::client::trust::Trust;

/// Settings of a [`HttpClient`](super::HttpClient).
#[derive(Clone, Debug)]
pub struct HttpClientSettings {
    /// The server; the path is unused.
    pub url: Url,
    /// Accepted certificates. The host name of the URL is always verified, except with `Trust::Nobody`.
    pub trust: Trust,
    /// Longest time for the look-up of the host, TCP and TLS together.
    pub connect_timeout: Duration,
    /// Longest time from the first byte of a request to the last of its response.
    pub timeout: Duration,
    /// Longest body of a response, bytes.
    pub response_bytes: usize,
    /// Whether bodies from 1 KiB on are sent with gzip, except forms.
    pub gzip: bool,
}

impl HttpClientSettings {
    /// Settings of a client that trusts the system's authorities: 5 s to connect, 30 s for an exchange, 64 MiB of a response, no
    /// compression.
    #[must_use]
    pub fn new(url: &Url) -> Self {
        Self {
            url: url.clone(),
            trust: if url.tls {
                Trust::system()
            } else {
                Trust::default()
            },
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
            response_bytes: 64 << 20,
            gzip: false,
        }
    }
}
