//! The server whose handshake a thread is working on.
//!
//! What rustls asks for while it does a handshake - a certificate, the context of a session - belongs to one server, but its
//! own configuration is shared by all servers with one policy: of ten thousand, those that are asked for by turns would else
//! each have a configuration of their own to be read from memory. So [`Conn`](super::Conn) names the server here while rustls
//! has the bytes of a handshake, and the parts of a [`Policy`](super::Policy) ask here. Absent: anything after the handshake.

use std::cell::RefCell;
use std::sync::Arc;

use rustls::server::ClientHello;
use rustls::sign::CertifiedKey;

/// Context that distinguishes one configuration's sessions from another's.
pub(crate) type Context = [u8; 32];

/// The part of a server that its handshakes ask for.
pub(crate) trait Server {
    /// The certificate for a ClientHello.
    fn certified(&self, hello: &ClientHello<'_>) -> Option<Arc<CertifiedKey>>;
    /// A digest of what sessions are bound to.
    fn context(&self) -> Context;
}

thread_local! {
    static SERVER: RefCell<Option<Arc<dyn Server>>> = const { RefCell::new(None) };
}

/// Forgets the server, also where a panic ends the handshake.
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

/// Asks the server of the handshake; `None` where there is none.
pub(crate) fn ask<T>(question: impl FnOnce(&dyn Server) -> T) -> Option<T> {
    SERVER.with_borrow(|server| server.as_deref().map(question))
}
