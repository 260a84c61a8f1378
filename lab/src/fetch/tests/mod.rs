//! Connections to servers in threads, over real sockets.

mod hostile;
mod plain;
mod secure;
pub(crate) mod server;
