//! The server of the handshake that a thread is processing.
//!
//! During a handshake rustls needs data of one server: a certificate, the context of a session. But all servers
//! with one policy share its configuration. With ten thousand servers, separate configurations would each have to
//! be read from memory. So [`Conn`](super::Conn) sets the server here while rustls processes handshake bytes, and
//! the parts of a [`Policy`](super::Policy) read it here. Absent: anything after the handshake.

use std::cell::RefCell;
use std::sync::Arc;

use rustls::server::ClientHello;
use rustls::sign::CertifiedKey;

/// Context that distinguishes one configuration's sessions from another's.
pub(crate) type Context = [u8; 32];

/// The part of a server needed by its handshakes.
pub(crate) trait Server {
    /// The certificate for a ClientHello.
    fn certified(&self, hello: &ClientHello<'_>) -> Option<Arc<CertifiedKey>>;
    /// A digest of the session binding.
    fn context(&self) -> Context;
}

thread_local! {
    static SERVER: RefCell<Option<Arc<dyn Server>>> = const { RefCell::new(None) };
}

/// Clears the server, also if a panic ends the handshake.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        SERVER.set(None);
    }
}

/// Does a part of a handshake of a server.
pub(crate) fn handshaking<T>(server: Arc<dyn Server>, part: impl FnOnce() -> T) -> T {
    SERVER.set(Some(server));
    let _end = End;
    part()
}

/// Calls `question` with the server of the handshake; `None` if there is none.
pub(crate) fn ask<T>(question: impl FnOnce(&dyn Server) -> T) -> Option<T> {
    SERVER.with_borrow(|server| server.as_deref().map(question))
}
