//! Request bodies on streams: pieces go to the exchange that waits for them or passes them on, windows are opened
//! as it consumes them. Unwanted data is dropped.
//!
//! Source: RFC 9113 section 5.2.

use engines::http::Fault;
use server_http::phases;

use super::super::state::Conn;
use super::streams::{arrived, ask, break_off, respond};
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::serving::MuxState;

/// A piece of a body.
pub(super) fn data<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    stream: u32,
    bytes: Vec<u8>,
) {
    let Some(mux) = c.state.mux() else { return };
    let len = bytes.len() as u64;
    let Some(at) = mux.exchanges.position(stream) else {
        return mux.engine.consumed(stream, len);
    };
    let x = &mut mux.exchanges.active[at].exchange;
    x.input.bytes += len;
    if !x.wants_body() {
        return mux.engine.consumed(stream, len);
    }
    x.deliver_body(bytes, &mut sh.ctx());
    resume(mux, sh, at);
}

/// A body has come to its end.
pub(super) fn end<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, stream: u32) {
    let Some(mux) = c.state.mux() else { return };
    let Some(at) = mux.exchanges.position(stream) else {
        return;
    };
    let x = &mut mux.exchanges.active[at].exchange;
    if x.wants_body() {
        x.end_body(&mut sh.ctx());
        resume(mux, sh, at);
    }
}

/// A body is not as announced: if nothing has been answered yet, that is.
pub(super) fn fault<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    stream: u32,
    fault: Fault,
) {
    let Some(mux) = c.state.mux() else { return };
    let Some(at) = mux.exchanges.position(stream) else {
        return;
    };
    let x = &mut mux.exchanges.active[at].exchange;
    if x.is_waiting() {
        phases::refuse_body(x, &mut sh.ctx(), fault);
        respond(mux, sh, at);
    } else if x.wants_body() {
        x.break_body(fault);
        break_off(mux, at);
    }
}

/// Continues an exchange that may have finished its wait.
fn resume<N: Net>(mux: &mut MuxState, sh: &mut Shared<N>, at: usize) {
    let x = &mut mux.exchanges.active[at].exchange;
    if x.is_body_due() {
        phases::resume(x, &mut sh.ctx());
        respond(mux, sh, at);
    } else if x.has_body_arrived() {
        let waited = x.progress.pull_wait.take().is_some();
        x.arrived(&mut sh.ctx());
        arrived(mux, at, waited);
    } else {
        ask(mux, at);
    }
}
