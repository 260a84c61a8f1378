//! Turns of connections whose exchanges were woken.

use server_core::phases;
use server_core::waker::WakeKey;

use super::h1::respond;
use super::state::{Cause, Conn, Fate};
use super::{mux, turn};
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// Goes on with exchanges of the connection that were woken, then gives it its turn. One that has ended is none to go on
/// with; one that was woken for nothing waits again.
pub fn wake<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, keys: &[WakeKey]) -> Fate {
    if let Some(mux) = &mut c.mux {
        for key in keys {
            mux::wake(mux, sh, key.stream);
        }
    } else if let Some(x) = c.active.as_mut().and_then(|a| a.exchange.as_mut())
        && x.is_waiting()
    {
        phases::resume(x, &mut sh.ctx());
        // The turn closes a connection that has no active part; this one has.
        let _ = respond(c, sh);
    }
    turn(c, sh, Cause::default())
}
