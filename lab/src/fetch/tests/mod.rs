//! Connections to servers in threads, over real sockets.

mod hostile;
mod http_client;
mod plain;
mod secure;
pub(crate) mod server;
