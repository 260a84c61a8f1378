//! When exchanges reached which point, noted where the configuration asks for it (`Shared::timed`).
//!
//! The end of a head is when the last read before it returned; the first byte of a response, when the write that took it
//! did. A configuration without timings costs a branch at each of these places. One that needs them for samples alone
//! has the clock read for a share of the heads: those of which the rest may be sampled.

use server_http::exchange::Exchange;
use server_http::timing::{ALL, is_drawn};

use super::serving::Exchanges;
use super::state::Conn;
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// Bytes have been read.
#[inline]
pub(super) fn received<N: Net>(sh: &mut Shared<N>) {
    if sh.timed {
        sh.read_us = match is_drawn(sh.timed_share, ALL) {
            true => sh.env.now_us(),
            false => 0,
        };
    }
}

/// A request has come, and work on it begins.
#[inline]
pub(super) fn begun<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>, x: &mut Exchange) {
    if !sh.timed {
        return;
    }
    let exchanges = c.state.exchanges();
    x.timings.head_read_us = exchanges.map_or(0, |exchanges| exchanges.read_us);
    if sh.timed_share == ALL {
        x.timings.begun_us = sh.env.now_us();
    }
}

/// Bytes have been written: notes which responses have begun to leave.
#[inline]
pub(super) fn sent<N: Net>(exchanges: &mut Exchanges, sh: &Shared<N>) {
    if !sh.timed || sh.timed_share != ALL {
        return;
    }
    let (now_us, sent) = (sh.env.now_us(), exchanges.sent);
    for (start, x) in exchanges.in_progress() {
        if start < sent && x.timings.first_byte_us == 0 {
            x.timings.first_byte_us = now_us;
        }
    }
}
