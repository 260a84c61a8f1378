//! Sending on streams: heads, bodies in the engine's order, resets.

use engines::mux::SendAction;
use server_http::debug_http;
use server_http::exchange::{Exchange, Pulled, State as Progress};
use server_http::reply::REQUEST_TIMEOUT;
use server_http::request_body::HELD_BYTES;

use super::super::early_responses;
use super::super::probe::{self, EndedBy, ProbeState};
use super::super::state::{Conn, State};
use super::super::trace;
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::mux_engine::{Engine, Reason};
use crate::worker::state::serving::{ActiveExchange, MuxState, Protocol, QUEUE_BYTES};

/// Sends the head of a decided response, or interim responses.
pub(crate) fn respond<N: Net>(mux: &mut MuxState, sh: &mut Shared<N>, at: usize) {
    let active = &mut mux.exchanges.active[at];
    let (x, stream) = (&mut active.exchange, active.stream);
    if x.response.early_responses.is_some()
        && mux.exchanges.out.len() < QUEUE_BYTES
        && let Engine::H2(engine) = &mut mux.engine
    {
        early_responses::over_h2(x, engine, stream);
    }
    match x.progress.state {
        Progress::Running => {}
        Progress::Waiting(_) => {
            sh.timer_set = true;
            ask(mux, at);
        }
        Progress::Aborted => mux.any_aborted = true,
        Progress::Responding => {
            if !x.wants_body() {
                mux.engine.discard_body(stream);
            }
            debug_http!(x, "{}", trace::Head(&x.response.head));
            if probe::is_first_byte_wanted(x)
                || probe::is_first_response_wanted(mux.exchanges.first_begun, sh)
            {
                // Output that the engine has ready goes before the head, so that the head's position in the queue is
                // known.
                let out = &mut mux.exchanges.out;
                let before = out.len();
                mux.engine.transmit(out);
                mux.exchanges.queued += out.len() - before;
                active.start = mux.exchanges.queued;
            }
            x.response.header_bytes += mux.engine.send_head(stream, x);
            active.bytes = x.response.header_bytes;
            if x.wants_body() {
                ask(mux, at);
            }
        }
    }
}

/// Continues a response after its exchange was notified of an arrival; `waited` if its body was awaited.
pub(crate) fn arrived(mux: &mut MuxState, at: usize, waited: bool) {
    let active = &mut mux.exchanges.active[at];
    if active.exchange.drop_unwanted_body() {
        mux.engine.discard_body(active.stream);
    }
    match active.exchange.progress.state {
        Progress::Aborted => break_off(mux, at),
        _ => {
            if waited {
                mux.engine.resume(active.stream);
            }
            ask(mux, at);
        }
    }
}

/// Breaks off a response: earlier bytes leave, then its stream is reset.
pub(super) fn break_off(mux: &mut MuxState, at: usize) {
    let active = &mut mux.exchanges.active[at];
    active.exchange.progress.state = Progress::Aborted;
    mux.engine.break_off(active.stream, Reason::Internal);
}

/// Moves bodies to the engine on its request, and transmitted bytes to the queue.
pub(super) fn pump<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    let State::Serving(Protocol::Mux(mux)) = &mut c.state else {
        return;
    };
    let was_empty = mux.exchanges.out.is_empty();
    if std::mem::take(&mut mux.any_aborted) {
        reset_aborted(mux, &mut c.probe, sh);
    }
    loop {
        let room = QUEUE_BYTES.saturating_sub(mux.exchanges.out.len());
        match mux.engine.advance(room, sh.clock.mono_ms) {
            SendAction::Nothing => break,
            SendAction::Sent { stream, bytes } => {
                mux.transmit();
                flush(mux, stream, bytes);
            }
            SendAction::Body(stream) => feed(mux, sh, stream),
        }
    }
    mux.transmit();
    if was_empty && !mux.exchanges.out.is_empty() {
        // Time without output from us is not silence of the client.
        c.last_progress_ms = sh.clock.mono_ms;
    }
}

/// Queues all output that the engine has ready, then GOAWAY.
pub(crate) fn queue_goaway(mux: &mut MuxState) {
    while let SendAction::Sent { stream, bytes } = mux.engine.advance(0, 0) {
        mux.transmit();
        flush(mux, stream, bytes);
    }
    mux.engine.end();
    mux.transmit();
}

/// Resets the streams of exchanges that are to get no response.
fn reset_aborted<N: Net>(mux: &mut MuxState, probe_state: &mut ProbeState, sh: &mut Shared<N>) {
    let is_aborted = |active: &ActiveExchange| {
        active.exchange.progress.state == Progress::Aborted && !active.exchange.progress.header_sent
    };
    while let Some(at) = mux.exchanges.active.iter().position(is_aborted) {
        let reason = match mux.exchanges.active[at].exchange.reply.status {
            REQUEST_TIMEOUT => Reason::TimedOut,
            _ => Reason::Internal,
        };
        reset(mux, probe_state, sh, at, reason);
    }
}

/// Pulls the next piece of a body.
fn feed<N: Net>(mux: &mut MuxState, sh: &mut Shared<N>, stream: u32) {
    let Some(at) = mux.exchanges.position(stream) else {
        mux.engine.reset(stream, Reason::Internal);
        return;
    };
    let active = &mut mux.exchanges.active[at];
    let x = &mut active.exchange;
    let pulled = if x.has_rate() {
        x.pull_within(&mut sh.ctx(), active.bytes)
    } else {
        x.pull(&mut sh.ctx())
    };
    match pulled {
        Pulled::Pending | Pulled::BudgetSpent => mux.engine.stall(stream),
        Pulled::Chunk(chunk) => {
            active.bytes += chunk.len();
            mux.engine.send_data(stream, chunk);
        }
        Pulled::End => {
            if let Some(on_end) = x.response.on_end {
                on_end(x, &mut sh.ctx());
            }
            let trailers = (!x.reply.trailers.fields.is_empty()).then_some(&x.reply.trailers);
            mux.engine.send_end(stream, trailers);
        }
        Pulled::Broken => break_off(mux, at),
    }
}

/// A response is queued whole.
fn flush(mux: &mut MuxState, stream: u32, bytes: u64) {
    let Some(at) = mux.exchanges.position(stream) else {
        return;
    };
    let active = mux.exchanges.active.remove(at);
    trace::finalized(&active.exchange);
    mux.exchanges.flush(active.exchange, active.start, bytes);
}

/// Lets the client send more of a body that an exchange awaits. For a body that is passed on, the window grows only by
/// the bytes taken.
pub(super) fn ask(mux: &mut MuxState, at: usize) {
    let active = &mut mux.exchanges.active[at];
    let (x, stream) = (&mut active.exchange, active.stream);
    if x.collects_body() {
        mux.engine.want_whole_body(stream);
    } else if x.awaits_body() {
        mux.engine.want_body(stream, HELD_BYTES as u32);
    }
    let used = x.body_used();
    if used > 0 {
        mux.engine.consumed(stream, used);
    }
}

/// Takes an active exchange out, with the bytes of its response that were sent.
pub(super) fn remove(mux: &mut MuxState, at: usize, sent_bytes: u64) -> Box<Exchange> {
    let mut x = mux.exchanges.active.remove(at).exchange;
    x.response.bytes_sent = sent_bytes;
    mux.exchanges.set_closing(&x);
    x
}

/// Resets the stream of an exchange, which ends with that.
pub(super) fn reset<N: Net>(
    mux: &mut MuxState,
    probe_state: &mut ProbeState,
    sh: &mut Shared<N>,
    at: usize,
    reason: Reason,
) {
    let stream = mux.exchanges.active[at].stream;
    let sent_bytes = mux.engine.sent_bytes(stream);
    mux.engine.reset(stream, reason);
    let x = remove(mux, at, sent_bytes);
    probe::abort(probe_state, sh, x, EndedBy::Server);
}
