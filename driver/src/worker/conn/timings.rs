//! When exchanges came how far, noted where the configuration asks for it (`Shared::timed`).
//!
//! The end of a head is when the last read before it returned; the first byte of a response, when the write that took it
//! did. A configuration that does not ask costs a branch at each of these places. One that asks for the sake of samples alone
//! has the clock read for a share of the heads: those of which the rest may be sampled.

use server_core::exchange::Exchange;
use server_core::timing::{ALL, is_drawn};

use super::state::Conn;
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// Bytes have been read.
pub(super) fn received<N: Net>(sh: &mut Shared<N>) {
    if sh.timed {
        sh.read_us = match is_drawn(sh.timed_share, ALL) {
            true => sh.env.now_us(),
            false => 0,
        };
    }
}

/// A request has come, and work on it begins.
pub(super) fn begun<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>, x: &mut Exchange) {
    if !sh.timed {
        return;
    }
    let of_h1 = c.active.as_ref().map(|a| a.read_us);
    let read_us = c.mux.as_ref().map(|mux| mux.read_us).or(of_h1);
    x.moments.head_read_us = read_us.unwrap_or(0);
    if sh.timed_share == ALL {
        x.moments.begun_us = sh.env.now_us();
    }
}

/// Bytes have been written: notes which responses have begun to leave.
pub(super) fn sent<N: Net>(c: &mut Conn<N::Socket>, sh: &Shared<N>) {
    if !sh.timed || sh.timed_share != ALL {
        return;
    }
    let now_us = sh.env.now_us();
    if let Some(mux) = &mut c.mux {
        let sent = mux.sent;
        return note_first_bytes(mux.under_way(), sent, now_us);
    }
    if let Some(a) = &mut c.active {
        let sent = a.sent;
        note_first_bytes(a.under_way(), sent, now_us);
    }
}

fn note_first_bytes<'x>(
    under_way: impl Iterator<Item = (u64, &'x mut Exchange)>,
    sent: u64,
    now_us: u64,
) {
    for (start, x) in under_way {
        if start < sent && x.moments.first_byte_us == 0 {
            x.moments.first_byte_us = now_us;
        }
    }
}
