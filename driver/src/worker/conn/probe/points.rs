//! Emits the events of connections and exchanges ([`server_http::probe`]).
//!
//! A head ends when the last read before it returns. The first byte of a response is sent when the write that took it
//! returns. A configuration without events costs a branch at each of these places. One with events for samples alone
//! reads the clock for a share of the heads: those with responses that may be sampled.

use engines::http::probe::{Point, ProbeEvent, between};
use server_http::exchange::Exchange;
use server_http::probe::notify;
use server_http::timing::{ALL, Sampling, is_drawn};

use super::super::state::Conn;
use super::super::tls::Tls;
use super::super::trace;
use super::recording;
use super::sampling;
use super::state::ProbeState;
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::serving::Exchanges;

/// Emits an event of a connection.
#[cold]
fn emit<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>, point: Point, at_us: u64) {
    let event = ProbeEvent {
        point,
        connection: c.serial,
        stream: 0,
        at_us,
        head_us: 0,
    };
    notify(&sh.generation.http, &event, None);
}

/// The connection has just been accepted.
pub fn accepted<N: Net>(c: &mut Conn<N::Socket>, sh: &Shared<N>) {
    if !sh.wants.any() {
        return;
    }
    if sh.wants.share == ALL {
        emit(c, sh, Point::Accepted, sh.env.now_us());
    }
    recording::accepted(c, sh);
}

/// The connection is closed: its socket is still open.
pub fn closed<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    sampling::end(c, sh);
    recording::end(c, sh);
}

/// Bytes have been read.
#[inline]
pub(crate) fn read<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, bytes: usize) {
    trace::received(c, sh, bytes);
    if sh.wants.any() {
        sh.read_us = match sh.wants.share != 0 && is_drawn(sh.wants.share, ALL) {
            true => sh.env.now_us(),
            false => 0,
        };
        recording::read(c, sh);
    }
}

/// Received bytes have reached the protocol. Heads in them end with that read, whatever other connections read before
/// this one has its turn.
#[inline]
pub(crate) fn fed<N: Net>(c: &mut Conn<N::Socket>, sh: &Shared<N>) {
    if sh.wants.any()
        && let Some(exchanges) = c.state.exchanges_mut()
    {
        exchanges.read_us = sh.read_us;
    }
}

/// The handshake has ended with the last read. Returns its duration in microseconds, if events are wanted.
pub(crate) fn handshake<N: Net>(c: &mut Conn<N::Socket>, sh: &Shared<N>, tls: &Tls) -> Option<u64> {
    if !sh.wants.any() {
        return None;
    }
    recording::handshake(c, tls);
    if sh.wants.share == 0 {
        return None;
    }
    let client_hello_us = tls.client_hello_us;
    emit(c, sh, Point::Handshake { client_hello_us }, sh.read_us);
    between(client_hello_us, sh.read_us)
}

/// A request has come, and work on it begins.
#[inline]
pub(crate) fn head<N: Net>(c: &mut Conn<N::Socket>, sh: &Shared<N>, x: &mut Exchange) {
    if !sh.wants.any() {
        return;
    }
    recording::head(c);
    if let Some(exchanges) = c.state.exchanges()
        && exchanges.read_us != 0
    {
        x.emit(Point::Head, exchanges.read_us);
    }
    if sh.wants.share == ALL {
        x.emit(Point::Wait, sh.env.now_us());
    }
}

/// Whether the event of the first byte of a response is wanted, so that its place in the queue has to be known.
pub(crate) fn is_first_byte_wanted(x: &Exchange) -> bool {
    x.is_probed() && (x.route.http.wants.share == ALL || x.sampled.state == Sampling::Drawn)
}

/// Returns whether the next response may be the first one of a recorded connection. Its place in the queue has to be known then.
/// `first_begun` is that of the connection's exchanges.
pub(crate) fn is_first_response_wanted<N: Net>(first_begun: bool, sh: &Shared<N>) -> bool {
    !first_begun && sh.wants.records()
}

/// Bytes have been written: emits the first bytes of responses among them.
#[inline]
pub(crate) fn written<N: Net>(
    exchanges: &mut Exchanges,
    probe_state: &mut ProbeState,
    sh: &Shared<N>,
) {
    if !sh.wants.any() {
        return;
    }
    recording::written(probe_state, exchanges, sh);
    if sh.wants.share != ALL {
        return;
    }
    let (now_us, sent) = (sh.env.now_us(), exchanges.sent);
    for (start, x) in exchanges.in_progress() {
        if start < sent && x.timings.first_byte_us == 0 {
            x.emit(Point::FirstByte { idle: None }, now_us);
        }
    }
}
