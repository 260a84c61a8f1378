//! The TLS settings of one server, ready for use.

use std::sync::Arc;

use rustls::ServerConfig;

/// The TLS settings of one server.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) rustls: Arc<ServerConfig>,
}

impl Config {
    /// Wraps what rustls needs.
    #[must_use]
    pub fn new(rustls: Arc<ServerConfig>) -> Self {
        Self { rustls }
    }
}
