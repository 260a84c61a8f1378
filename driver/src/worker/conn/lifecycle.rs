//! Waits and ends of a connection: its one deadline, the actions after it, draining, lingering, the close.
//!
//! All protocols end alike. Queued output leaves first, GOAWAY and the end of TLS with it; then our side is closed, and
//! input of the peer is dropped for a while: a close with unread input would reset the connection, and the reset could
//! take the last response along. `lingering_close` of the last request's location may disable that.
//!
//! Source: RFC 9112 section 9.6; RFC 9113 sections 5.4.1, 6.8; nginx documentation, `send_timeout`, `keepalive_timeout`,
//! `keepalive_min_timeout`, `lingering_close`.

use engines::h1::{Next, Phase};
use engines::http::{OutputQueue, RequestHead};
use server_base::errlog::Level;
use server_http::conf_core::{CoreSrv, Lingering as Rule};
use server_http::exchange::State as Progress;

use super::ended;
use super::exchanges::{finish_all, finish_sent, resume_due};
use super::fetching;
use super::h1;
use super::mux;
use super::outliving;
use super::probe;
use super::state::{Closed, ClosedBy, Conn, Lingering, State, Transport};
use super::trace::debug_conn;
use super::transport::write;
use crate::worker::disposition::Disposition;
use crate::worker::net::Net;
use crate::worker::shared::Shared;
use crate::worker::state::outliving::Outliving;
use crate::worker::state::serving::{ActiveExchange, H1Input, H1State, MuxState, Protocol};

/// Ends exchanges after the write of their last byte. If none is left, decides whether the connection stays. True if
/// there may be more to do at once.
#[inline(always)] // Once a turn, and once where a deadline has passed.
pub(super) fn settle<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let any = finish_sent(c, sh);
    match &c.state {
        State::Serving(Protocol::H1(_)) => settle_h1(c, sh, any),
        State::Serving(Protocol::Mux(_)) => settle_mux(c, sh, any),
        _ => Ok(false),
    }
}

#[inline(always)] // As `settle`, which alone calls it.
fn settle_h1<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    any: bool,
) -> Result<bool, Closed> {
    let State::Serving(Protocol::H1(h1)) = &mut c.state else {
        return Ok(false);
    };
    if !h1.exchanges.is_settled() {
        // All earlier output has left, so a waiting exchange may end, too.
        return Ok(end_aborted(c, sh)? || any);
    }
    if h1.input != H1Input::Requests {
        return Ok(false);
    }
    match h1.next {
        Next::KeepAlive if h1.engine.phase() == Phase::Idle && !h1.engine.has_buffered() => {
            // Not even a byte of a next request has come.
            if c.drain.is_listener_removed() || (c.idle_ms == 0 && c.requests > 0) {
                // The head of the response may have announced keep-alive.
                return shutdown_write(c, sh);
            }
            debug_conn!(HTTP, c, sh, "set http keepalive handler");
            release(c, sh, State::Idle);
            c.last_progress_ms = sh.clock.mono_ms;
            Ok(c.flags.readable)
        }
        Next::KeepAlive => {
            if any {
                c.last_progress_ms = sh.clock.mono_ms;
                debug_conn!(HTTP, c, sh, "pipelined request");
            }
            Ok(any)
        }
        Next::AwaitBody => {
            let until_ms = sh.clock.mono_ms + h1.exchanges.closing.time_ms;
            h1.input = H1Input::Discarded { until_ms };
            c.last_progress_ms = sh.clock.mono_ms;
            Ok(c.flags.readable)
        }
        next => end_after_response(c, sh, next == Next::Linger),
    }
}

/// Changes to a state in which nothing is served, and releases the memory of the previous one.
#[inline(always)]
fn release<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>, next: State) {
    if let State::Serving(Protocol::H1(h1)) = std::mem::replace(&mut c.state, next) {
        sh.pools.release_h1(h1);
    }
}

/// Ends HTTP/1 after an exchange without a complete response, once all earlier output has left.
#[inline(never)]
fn end_aborted<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let State::Serving(Protocol::H1(h1)) = &mut c.state else {
        return Ok(false);
    };
    let exchanges = &mut h1.exchanges;
    let is_aborted =
        |active: &mut ActiveExchange| active.exchange.progress.state == Progress::Aborted;
    if !exchanges.flushing.is_empty() || !exchanges.out.is_empty() {
        if !c.flags.writable {
            h1::stall(h1, sh);
        }
        return Ok(false);
    }
    let Some(active) = exchanges.active.pop_if(is_aborted) else {
        if h1.engine.is_tunnel() {
            // It may be idle for long now.
            exchanges.out = OutputQueue::default();
        }
        return Ok(false);
    };
    let mut x = active.exchange;
    let loc = x.route.core_loc();
    c.lingering_allowed = *loc.connection.lingering_close != Rule::Off;
    let reset = !x.progress.header_sent && *loc.connection.reset_timedout_connection;
    let is_broken = x.progress.header_sent;
    x.response.bytes_sent = exchanges.sent.saturating_sub(active.start);
    exchanges.set_closing(&x);
    probe::finish(&mut c.probe, sh, x);
    if is_broken {
        return end_after_response(c, sh, false);
    }
    if reset {
        sh.net.reset(&mut c.socket);
    }
    Err(Closed)
}

fn settle_mux<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    any: bool,
) -> Result<bool, Closed> {
    let State::Serving(Protocol::Mux(mux)) = &mut c.state else {
        return Ok(false);
    };
    let now_ms = sh.clock.mono_ms;
    let drains = sh.stopping || c.drain.is_on();
    if mux.exchanges.is_busy() {
        return Ok((drains && end_in_time(mux, now_ms)) || any);
    }
    if mux.idle_since_ms.is_none() {
        mux.idle_since_ms = Some(now_ms);
        // A frame of a stream that was cancelled may still wait for its bytes, and all else behind it.
        if mux.exchanges.out.is_empty() {
            mux.exchanges.ahead = None;
        }
        c.last_progress_ms = now_ms;
    }
    if !mux.engine.is_over() {
        let ends = drains && c.min_idle_ms == 0;
        if ends {
            mux.engine.end();
        }
        return Ok(ends || any);
    }
    if !mux.exchanges.out.is_empty() {
        return Ok(any);
    }
    // GOAWAY has left. A client that keeps the connection and does not read it must not delay the end of the server.
    let closing = mux.exchanges.closing;
    let silence_ms = match sh.stopping {
        true => closing.timeout_ms.min(ENDED_MS),
        false => closing.timeout_ms,
    };
    match closing.rule {
        // Exchanges that outlive the connection keep its socket open as well.
        _ if !mux.outliving.is_empty() => Err(Closed),
        Rule::Off => Err(Closed),
        Rule::On | Rule::Always => Ok(linger(c, sh, closing.time_ms, silence_ms)),
    }
}

/// A client to which the end was announced has a while to stop sending requests; after that none is taken. True if that
/// time is over now.
fn end_in_time(mux: &mut MuxState, now_ms: u64) -> bool {
    mux.engine.drain();
    let since_ms = *mux.announced_ms.get_or_insert(now_ms);
    if now_ms < since_ms.saturating_add(ANNOUNCED_MS) || mux.engine.is_ending() {
        return false;
    }
    mux.engine.end();
    true
}

/// Ends HTTP/1 after its last response; `unread` if input is known to be on its way.
#[inline(never)]
fn end_after_response<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    unread: bool,
) -> Result<bool, Closed> {
    let Some(exchanges) = c.state.exchanges() else {
        return Err(Closed);
    };
    let closing = exchanges.closing;
    let may_linger = match closing.rule {
        Rule::Off => false,
        Rule::On => unread || c.flags.readable,
        Rule::Always => true,
    };
    if may_linger {
        debug_conn!(HTTP, c, sh, "http lingering close handler");
        return Ok(linger(c, sh, closing.time_ms, closing.timeout_ms));
    }
    if sh.stopping || c.drain.is_on() {
        // The head of this response may have announced keep-alive.
        return shutdown_write(c, sh);
    }
    Err(Closed)
}

/// Ends our side of a connection on which nothing is in progress. A request may be on its way that the peer sent before it
/// saw the end; a close now would answer it with a reset, which can take the last response with it. With
/// `lingering_close off` in the location of the last request, the connection closes.
#[inline(never)]
pub(super) fn shutdown_write<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
) -> Result<bool, Closed> {
    match c.lingering_allowed {
        true => Ok(linger(c, sh, ENDED_MS, u64::MAX)),
        false => Err(Closed),
    }
}

/// Ends our side and drops further input, for `time_ms` at most and until the peer is silent for `silence_ms`. There is
/// more to do at once.
fn linger<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    time_ms: u64,
    silence_ms: u64,
) -> bool {
    flush_goaway(c, sh);
    sh.net.shutdown(&mut c.socket);
    let now_ms = sh.clock.mono_ms;
    let lingering = Lingering {
        since_ms: now_ms,
        until_ms: now_ms.saturating_add(time_ms),
        silence_ms,
    };
    release(c, sh, State::Lingering(Box::new(lingering)));
    c.last_progress_ms = now_ms;
    // The peer's end may have been read before, and is found again by one more read.
    c.flags.readable = true;
    true
}

/// Writes GOAWAY, all other queued output, and the end of TLS, as far as the socket takes them.
fn flush_goaway<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    if c.sends_goaway() {
        let _ = write(c, sh);
    }
    if let Some(tls) = c.transport.tls_mut() {
        tls.close();
        let _ = write(c, sh);
    }
}

/// The deadline has passed, unless the connection has moved on since it was set.
#[cold]
#[inline(never)]
pub(super) fn expire<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), ClosedBy> {
    probe::expire(c, sh);
    // An event of room may come with the deadline. It is progress if the socket takes anything.
    let written = write(c, sh).and_then(|_| settle(c, sh));
    written.map_err(|Closed| ClosedBy::Client)?;
    expire_state(c, sh).map_err(|Closed| ClosedBy::Server)
}

/// Handles a deadline of the current state that has passed.
fn expire_state<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let now_ms = sh.clock.mono_ms;
    if deadline(c, sh) > now_ms {
        return Ok(());
    }
    match &c.state {
        State::Serving(protocol) => {
            let exchanges = protocol.exchanges();
            let is_due = |at_ms: Option<u64>| at_ms.is_some_and(|at_ms| at_ms <= now_ms);
            let stuck_at_ms = exchanges.stuck_at_ms(c.last_progress_ms);
            if is_due(stuck_at_ms) {
                let stuck_at_ms = stuck_at_ms.unwrap_or(now_ms);
                if fetching::waits_since_before(exchanges, stuck_at_ms) {
                    // The wait is for the disk, not for the client.
                    c.last_progress_ms = now_ms;
                    return Ok(());
                }
                end_stuck(c, sh)
            } else if is_due(protocol.due_ms()) {
                resume_due(c, sh);
                Ok(())
            } else if c.sends_goaway() {
                mux::on_deadline(c, sh, header_timeout(c, sh))
            } else {
                expire_h1_input(c, sh)
            }
        }
        _ if c.is_kept_alive() && (sh.stopping || c.drain.is_on()) => {
            shutdown_write(c, sh).map(|_| ())
        }
        _ => {
            ended::wait_timed_out(c, sh);
            if let Some(tls) = c.transport.tls_mut() {
                tls.count_timeout();
            }
            Err(Closed)
        }
    }
}

/// Ends a connection after its peer took nothing for too long.
fn end_stuck<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let x = c.state.exchanges().and_then(|exchanges| exchanges.front());
    let reset = x.is_some_and(|x| *x.route.core_loc().connection.reset_timedout_connection);
    let timed_out = ended::TIMED_OUT;
    match x {
        Some(x) if !c.sends_goaway() => x.log(Level::Info, format_args!("{timed_out}")),
        _ => {
            let text = format_args!("{timed_out} while {}", ended::processing(c));
            ended::log(c, sh, Level::Info, text);
        }
    }
    if reset {
        sh.net.reset(&mut c.socket);
    }
    Err(Closed)
}

/// Ends HTTP/1 if its next request, or the rest of the last one, does not come.
fn expire_h1_input<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<(), Closed> {
    let Some(h1) = c.state.h1() else {
        return Err(Closed);
    };
    let waits_for_head = h1.input == H1Input::Requests && h1.engine.phase() == Phase::Head;
    if waits_for_head {
        let mut head = RequestHead::default();
        h1.engine.take_unfinished(&mut head);
        if ended::unfinished(c, sh, head, 408, ended::TIMED_OUT) {
            sh.net.reset(&mut c.socket);
        }
    }
    Err(Closed)
}

/// Returns when the connection is to take a turn if nothing happens before.
#[inline(always)] // As `settle`.
pub(super) fn deadline<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>) -> u64 {
    let deadline_ms = match &c.state {
        State::Serving(protocol) => serving_deadline(c, sh, protocol),
        State::Lingering(lingering) => {
            let silent_at_ms = c.last_progress_ms.saturating_add(lingering.silence_ms);
            lingering.until_ms.min(silent_at_ms)
        }
        _ => {
            let wait_ms = match c.requests {
                0 => header_timeout(c, sh),
                _ => idle_time(c, sh),
            };
            c.last_progress_ms.saturating_add(wait_ms)
        }
    };
    probe::deadline(c, deadline_ms)
}

/// The deadline of a connection in `Serving`, from its exchanges and its input.
#[inline(always)] // As `deadline`, which alone calls it.
fn serving_deadline<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>, protocol: &Protocol) -> u64 {
    let exchanges = protocol.exchanges();
    let input_ms = match protocol {
        Protocol::H1(h1) => h1_input_deadline(c, sh, h1),
        Protocol::Mux(mux) => {
            let header_ms = header_timeout(c, sh);
            let idle_ms = match c.requests == 0 && mux.timeouts.is_none() {
                true => header_ms,
                false => idle_time(c, sh),
            };
            mux::deadline_ms(mux, c.last_progress_ms, header_ms, idle_ms)
        }
    };
    let due_ms = protocol.due_ms().unwrap_or(u64::MAX);
    let stuck_at_ms = exchanges.stuck_at_ms(c.last_progress_ms);
    input_ms.min(due_ms).min(stuck_at_ms.unwrap_or(u64::MAX))
}

/// When the next request of HTTP/1, or the rest of the last one, must have come; never while an exchange is in progress.
fn h1_input_deadline<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>, h1: &H1State) -> u64 {
    if !h1.exchanges.is_settled() {
        return u64::MAX;
    }
    match h1.input {
        H1Input::Requests => c.last_progress_ms.saturating_add(header_timeout(c, sh)),
        H1Input::Discarded { until_ms } => {
            let silence_ms = h1.exchanges.closing.timeout_ms;
            until_ms.min(c.last_progress_ms.saturating_add(silence_ms))
        }
    }
}

/// Returns the idle time limit of the connection.
#[inline]
fn idle_time<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>) -> u64 {
    match sh.stopping || c.drain.is_on() {
        true => c.min_idle_ms.min(c.idle_ms),
        false => c.idle_ms,
    }
}

/// `client_header_timeout` of the port's default server.
fn header_timeout<N: Net>(c: &Conn<N::Socket>, sh: &Shared<N>) -> u64 {
    let http = &sh.generation.http;
    // The listener of a connection that drains may be in no configuration any more.
    let server = http
        .ports
        .get(c.port as usize)
        .map_or(0, |port| port.addr(None).default_server);
    http.servers.get(server).map_or(0, |server| {
        server.confs.get::<CoreSrv>().client_header_timeout.0
    })
}

/// Ends a connection; exchanges in progress are logged as far as they came.
pub(super) fn close<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Disposition {
    if !matches!(c.state, State::Outlived(_)) {
        leave(c, sh, ClosedBy::Server);
    }
    if let State::Outlived(outliving) = std::mem::replace(&mut c.state, State::Closed) {
        outliving.finish_all(&mut c.probe, sh);
    }
    Disposition::Close
}

/// Ends a connection. Exchanges that outlive their client continue; the others are logged as far as they came.
pub(super) fn leave<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
    by: ClosedBy,
) -> Disposition {
    if let Some(tls) = c.transport.tls() {
        tls.count_end();
    }
    probe::end(c, sh);
    // Bytes that leave with GOAWAY count as sent.
    if let Some(mux) = c.state.mux() {
        mux::queue_goaway(mux);
    }
    flush_goaway(c, sh);
    let fd = sh.net.number(&c.socket);
    debug_conn!(HTTP, c, sh, "close http connection: {fd}");
    let state = std::mem::replace(&mut c.state, State::Closed);
    let State::Serving(mut protocol) = state else {
        return Disposition::Close;
    };
    let mut outliving = match &mut protocol {
        Protocol::H1(_) => Outliving::default(),
        Protocol::Mux(mux) => std::mem::take(&mut mux.outliving),
    };
    if by == ClosedBy::Client {
        outliving.take_from(&mut protocol);
    }
    finish_all(&mut protocol, &mut c.probe, sh, by);
    if let Protocol::H1(h1) = protocol {
        sh.pools.release_h1(h1);
    }
    if outliving.is_empty() {
        return Disposition::Close;
    }
    sh.net.shutdown(&mut c.socket);
    c.transport = Transport::Plain;
    c.state = State::Outlived(Box::new(outliving));
    outliving::turn(c, sh)
}

/// Milliseconds for which input is dropped after the end of our side of an idle connection, and for which a silent
/// client delays the end of the server. It is longer than nearly every round trip, and short as a wait.
pub const ENDED_MS: u64 = 500;
/// Time for which a client may still send requests after the end was announced.
const ANNOUNCED_MS: u64 = 1000;
