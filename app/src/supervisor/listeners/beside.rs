//! Addresses that contain others: 127.0.0.1:80 becomes *:80 by a reload, or the reverse.
//!
//! The kernel refuses to bind both at a time, unless both sockets share the port (SO_REUSEPORT). So replaced sockets
//! allow sharing, and the new one is bound beside them. It listens when no later step can fail. Once a worker has it,
//! new connections are diverted to it. Before the worker closes the old sockets, it accepts their waiting connections
//! and handshakes. So no connection is lost. Sockets of another process are not changed.

use server_base::errlog::Level;
use server_base::listen::Listen;
use sys::socket::divert_new_connections;

use super::{Listener, OtherServer, report_failed};
use crate::console::{Console, Logged};
use driver::listen;

/// Has sockets listen that were bound beside others, now that nothing else can fail.
///
/// # Errors
/// One cannot, which has been reported.
pub(crate) fn begin(listeners: &mut [Listener], console: &Console) -> Result<(), Logged> {
    for listener in listeners.iter_mut().filter(|listener| listener.beside) {
        let Listen { addr, options } = &listener.listen;
        for socket in &listener.sockets {
            listen::begin(socket, options).map_err(|error| report_failed(&error, addr, console))?;
        }
        listener.beside = false;
    }
    Ok(())
}

/// Diverts new connections for addresses of `gone` to sockets of `current` that cover these addresses. Waiting
/// connections and handshakes of the old sockets are left to the worker.
pub(crate) fn divert(
    gone: &[Listener],
    current: &[Listener],
    other_server: OtherServer,
    console: &Console,
) {
    for old in gone.iter().filter(|old| old.is_ours(other_server)) {
        let is_kept = current.iter().any(|listener| old.fits(&listener.listen));
        let overlaps = |listener: &Listener| old.listen.overlaps(&listener.listen);
        if is_kept || !current.iter().any(overlaps) {
            continue;
        }
        for socket in &old.sockets {
            if let Err(error) = divert_new_connections(socket) {
                // The worker accepts waiting connections before it closes the socket.
                let addr = old.addr();
                let what = format_args!("setsockopt(SO_BINDTOIFINDEX) {addr}");
                console.failed(Level::Notice, what, &error);
            }
        }
    }
}
