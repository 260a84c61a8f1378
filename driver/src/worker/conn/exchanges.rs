//! Exchanges from their begin to the log, over any protocol.
//!
//! [`run`] begins exchanges as requests come and moves their bodies to the output queue. [`finish_sent`] ends exchanges
//! after the write of their last byte, [`finish_all`] those of a closed connection.

use server_base::waker::WakeKey;
use server_http::conf_core;
use server_http::exchange::State as Progress;
use server_http::phases;

use super::client::abandon;
use super::probe::ProbeState;
use super::state::{Closed, ClosedBy, Conn, State};
use super::{h1, mux, probe};
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::serving::{ActiveExchange, Protocol};

/// Takes the engine's events and moves bodies to the output queue.
#[inline]
pub(super) fn run<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    match &c.state {
        State::Serving(Protocol::H1(_)) => h1::run(c, sh),
        State::Serving(Protocol::Mux(_)) => mux::run(c, sh),
        _ => Ok(()),
    }
}

/// Continues exchanges after the end of their wait.
pub(super) fn resume_due<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    let now_ms = sh.clock.mono_ms;
    let count = c.state.exchanges().map_or(0, |all| all.active.len());
    for at in 0..count {
        let active = c.state.exchanges().map(|all| &all.active[at]);
        let until_ms = active.and_then(ActiveExchange::waits_until_ms);
        if until_ms.is_some_and(|until_ms| until_ms <= now_ms) {
            resume(c, sh, at);
        }
    }
}

/// Continues exchanges that were woken. One that has ended is skipped; one that was woken for nothing waits again.
pub(super) fn resume_woken<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, keys: &[WakeKey]) {
    for key in keys {
        let exchanges = c.state.exchanges();
        if let Some(at) = exchanges.and_then(|all| all.position(key.stream)) {
            resume(c, sh, at);
        }
    }
}

/// Continues an exchange that may have finished its wait.
fn resume<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, at: usize) {
    let Some(exchanges) = c.state.exchanges_mut() else {
        return;
    };
    let active = &mut exchanges.active[at];
    let x = &mut active.exchange;
    if x.is_waiting() {
        phases::resume(x, &mut sh.ctx());
        respond(c, sh, at);
        return;
    }
    let waited = x.progress.pull_wait.take().is_some();
    x.arrived(&mut sh.ctx());
    match &mut c.state {
        // It pulls in every turn.
        State::Serving(Protocol::H1(h1)) => h1::arrived(h1),
        State::Serving(Protocol::Mux(mux)) => mux::arrived(mux, at, waited),
        _ => {}
    }
}

/// Sends the response of an active exchange as far as it is decided.
fn respond<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, at: usize) {
    match &mut c.state {
        State::Serving(Protocol::H1(h1)) => h1::respond(h1, &mut c.last_progress_ms, sh),
        State::Serving(Protocol::Mux(mux)) => mux::respond(mux, sh, at),
        _ => {}
    }
}

/// Ends exchanges after the write of their last byte; true if there was one.
#[inline(always)] // Once a turn.
pub(super) fn finish_sent<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> bool {
    let State::Serving(protocol) = &mut c.state else {
        return false;
    };
    let own_idle_ms = protocol.own_idle_ms();
    let exchanges = protocol.exchanges_mut();
    let sent = exchanges.sent;
    let mut any = false;
    while let Some(flushed) = exchanges.flushing.pop_front_if(|x| x.end <= sent) {
        any = true;
        let mut x = flushed.exchange;
        let loc = x.route.core_loc();
        c.idle_ms = own_idle_ms.unwrap_or(loc.connection.keepalive().idle_ms);
        c.min_idle_ms = loc.connection.keepalive_min_timeout.0;
        c.lingering_allowed = *loc.connection.lingering_close != conf_core::Lingering::Off;
        x.response.bytes_sent = flushed.bytes;
        // One of streams may have broken off.
        x.response.completed = x.progress.state != Progress::Aborted;
        probe::finish(&mut c.probe, sh, x);
    }
    any
}

/// Logs all exchanges of a connection that is closed, as far as they came.
pub(super) fn finish_all<N: Net>(
    protocol: &mut Protocol,
    probe_state: &mut ProbeState,
    sh: &mut Shared<N>,
    by: ClosedBy,
) {
    let sent = protocol.exchanges().sent;
    while let Some(flushing) = protocol.exchanges_mut().flushing.pop_front() {
        let bytes_sent = flushing.sent_bytes(sent);
        let mut x = flushing.exchange;
        x.response.bytes_sent = bytes_sent;
        x.response.completed = flushing.end <= sent;
        probe::abort(probe_state, sh, x, by.into());
    }
    let active = std::mem::take(&mut protocol.exchanges_mut().active);
    for active in active {
        let mut x = active.exchange;
        x.response.bytes_sent = match protocol {
            Protocol::H1(_) => sent.saturating_sub(active.start),
            Protocol::Mux(mux) => mux.engine.sent_bytes(active.stream),
        };
        match protocol {
            // nginx has this status for HTTP/1 alone.
            Protocol::H1(_) if by == ClosedBy::Client && x.lacks_body() => x.lose_body(),
            _ => abandon(&mut x),
        }
        probe::abort(probe_state, sh, x, by.into());
    }
}
