//! Transport of the bytes of a connection: the socket alone, or TLS in either role.
//!
//! ```text
//! read    socket -> records -> plaintext -> engine
//! write   output queue -> records -> socket, one write a flight
//! ```
//!
//! Clients and servers use the same code. The type of the session is the role: [`tls::Conn`] for connections of clients,
//! [`tls::ClientConn`] for those to servers.

mod stream;

pub use stream::TlsBuffers;
pub(crate) use stream::{
    KEEP_BYTES, RECORD_BYTES, Session, TlsStream, collect, encrypt, seal, send,
};
