//! Where the events of connections and exchanges are emitted ([`server_http::probe`]).
//!
//! The end of a head is when the last read before it returned; the first byte of a response, when the write that took it
//! did. A configuration that wants no events costs a branch at each of these places. One that wants them for the sake of
//! samples alone has the clock read for a share of the heads: those of which the rest may be sampled.

use engines::http::probe::{Point, ProbeEvent, between};
use server_http::exchange::Exchange;
use server_http::http::Http;
use server_http::probe::Wants;
use server_http::timing::{ALL, is_drawn};

use super::super::serving::Exchanges;
use super::super::state::Conn;
use super::super::trace;
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// The probe of a thread.
pub(crate) struct Probe {
    wants: Wants,
    /// When bytes were last read, monotonic microseconds.
    read_us: u64,
}

impl Probe {
    /// The probe under a configuration.
    pub(crate) fn new(http: &Http) -> Self {
        Self {
            wants: http.probe.wants,
            read_us: 0,
        }
    }

    /// Whether anybody wants events.
    #[inline]
    fn is_on(&self) -> bool {
        self.wants.share != 0
    }

    /// Whether the events of all requests are wanted, and not only those of samples.
    fn is_of_all(&self) -> bool {
        self.wants.share == ALL
    }

    /// When bytes were last read, for the end of a handshake that they begin.
    pub(in super::super) fn read_us(&self) -> u64 {
        self.read_us
    }

    /// Whether some responses are sampled.
    #[inline]
    pub(in super::super) fn samples(&self) -> bool {
        self.wants.samples
    }
}

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
    sh.generation.http.probe.notify(&event, None);
}

/// The connection has just been accepted.
pub(crate) fn accepted<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>) {
    if sh.probe.is_on() {
        emit(c, sh, Point::Accepted, sh.env.now_us());
    }
}

/// Bytes have been read.
#[inline]
pub(in super::super) fn read<N: Net>(c: &Conn<N::Socket>, sh: &mut Shared<N>, bytes: usize) {
    trace::received(c, sh, bytes);
    if sh.probe.is_on() {
        sh.probe.read_us = match is_drawn(sh.probe.wants.share, ALL) {
            true => sh.env.now_us(),
            false => 0,
        };
    }
}

/// What was read has been given to the protocol: heads in it end with that read, whatever other connections read before it has
/// its turn.
#[inline]
pub(in super::super) fn fed<N: Net>(c: &mut Conn<N::Socket>, sh: &Shared<N>) {
    if sh.probe.is_on()
        && let Some(exchanges) = c.state.exchanges_mut()
    {
        exchanges.read_us = sh.probe.read_us;
    }
}

/// The handshake has ended with the last read; returns how long it took, microseconds, where that is wanted.
pub(in super::super) fn handshake<N: Net>(
    c: &Conn<N::Socket>,
    sh: &Shared<N>,
    hello_us: u64,
) -> Option<u64> {
    if !sh.probe.is_on() {
        return None;
    }
    let at_us = sh.probe.read_us;
    emit(c, sh, Point::Handshake { hello_us }, at_us);
    between(hello_us, at_us)
}

/// A request has come, and work on it begins.
#[inline]
pub(in super::super) fn head<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>, x: &mut Exchange) {
    if sh.probe.is_on() {
        begun(c, sh, x);
    }
}

#[cold]
fn begun<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>, x: &mut Exchange) {
    let read_us = c.state.exchanges().map_or(0, |exchanges| exchanges.read_us);
    if read_us != 0 {
        x.emit(Point::Head, read_us);
    }
    if sh.probe.is_of_all() {
        x.emit(Point::Wait, sh.env.now_us());
    }
}

/// Bytes have been written: tells which responses have begun to leave.
#[inline]
pub(in super::super) fn written<N: Net>(exchanges: &mut Exchanges, sh: &Shared<N>) {
    if sh.probe.is_on() {
        begun_to_leave(exchanges, sh);
    }
}

#[cold]
fn begun_to_leave<N: Net>(exchanges: &mut Exchanges, sh: &Shared<N>) {
    if !sh.probe.is_of_all() {
        return;
    }
    let (now_us, sent) = (sh.env.now_us(), exchanges.sent);
    for (start, x) in exchanges.in_progress() {
        if start < sent && x.timings.first_byte_us == 0 {
            x.emit(Point::FirstByte { idle: None }, now_us);
        }
    }
}
