//! Request bodies over HTTP/2 and SPDY: pieces go to the exchange that waits for them, windows are given back as it uses
//! them up. What nobody waits for is dropped.
//!
//! Source: RFC 9113 section 5.2.

use engines::http::Fault;
use server_core::phases;

use super::super::state::Conn;
use super::{Mux, respond};
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// A piece of a body.
pub(super) fn data<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    stream: u32,
    bytes: Vec<u8>,
) {
    let Some(mux) = &mut c.mux else { return };
    let len = bytes.len() as u64;
    let Some(at) = mux.position(stream) else {
        return mux.engine.consumed(stream, len);
    };
    let x = &mut mux.running[at].exchange;
    x.request_bytes += len;
    if !x.wants_body() {
        return mux.engine.consumed(stream, len);
    }
    x.deliver_body(bytes, &mut sh.ctx());
    go_on(mux, sh, at);
}

/// A body has come to its end.
pub(super) fn end<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, stream: u32) {
    let Some(mux) = &mut c.mux else { return };
    let Some(at) = mux.position(stream) else {
        return;
    };
    let x = &mut mux.running[at].exchange;
    if x.wants_body() {
        x.end_body(&mut sh.ctx());
        go_on(mux, sh, at);
    }
}

/// A body is not as announced: if nothing has been answered yet, that is.
pub(super) fn fault<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    stream: u32,
    fault: Fault,
) {
    let Some(mux) = &mut c.mux else { return };
    let Some(at) = mux.position(stream) else {
        return;
    };
    let x = &mut mux.running[at].exchange;
    if x.is_waiting() {
        phases::refuse_body(x, &mut sh.ctx(), fault);
        respond(mux, at);
    }
}

/// Goes on with an exchange that may have what it waited for.
fn go_on<N: Net>(mux: &mut Mux, sh: &mut Shared<N>, at: usize) {
    let x = &mut mux.running[at].exchange;
    if x.is_body_due() {
        phases::resume(x, &mut sh.ctx());
        respond(mux, at);
    } else {
        ask(mux, at);
    }
}

/// Lets the client send on, as far as an exchange that waits has asked for its body.
pub(super) fn ask(mux: &mut Mux, at: usize) {
    let running = &mut mux.running[at];
    let (x, stream) = (&mut running.exchange, running.stream);
    if x.awaits_body() {
        mux.engine.want_whole_body(stream);
    }
    let used = x.body_used();
    if used > 0 {
        mux.engine.consumed(stream, used);
    }
}
