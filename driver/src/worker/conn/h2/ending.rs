//! How an HTTP/2 connection waits and ends: its deadline, what happens when that passes, the last words.
//!
//! A client that takes nothing of one response for `send_timeout` loses that stream; one that takes nothing at all loses the
//! connection. A header block has `client_header_timeout` to become whole, else its stream is reset. After the last GOAWAY
//! our side is ended, and what still comes is read past for a while, so that the goodbye is not lost with unread bytes.
//!
//! Source: RFC 9113 sections 5.4.1, 6.8; nginx documentation, `send_timeout`, `keepalive_timeout`, `lingering_close`.

use engines::h2::{self, Want};
use server_core::conf_core::Lingering;
use server_core::errlog::Level;
use server_core::exchange::State;
use server_core::phases;

use super::super::ending::header_timeout;
use super::super::state::{Closed, Conn, client};
use super::super::write;
use super::{H2, Running, abandon, keep, note, respond};
use crate::worker::net::Net;
use crate::worker::shared::Shared;

/// Our side is ended, what the peer still sends is dropped.
pub(super) struct Linger {
    until_ms: u64,
    /// How long the peer may be silent.
    silence_ms: u64,
    /// When the peer sent the last of it.
    pub(super) mark_ms: u64,
}

impl H2 {
    /// When the connection is to take a turn for the sake of an exchange that waits.
    fn due_ms(&self) -> Option<u64> {
        let due = |running: &Running| match running.exchange.state {
            State::Waiting(until_ms) => Some(until_ms),
            _ => Some(running.exchange.rate.until_ms).filter(|until_ms| *until_ms != 0),
        };
        self.running.iter().filter_map(due).min()
    }

    /// When the client has taken nothing for too long, of bytes that could leave.
    fn stuck_at_ms(&self, mark_ms: u64) -> Option<u64> {
        if self.out.is_empty() && self.tail.is_empty() {
            return None;
        }
        let x = self.front()?;
        Some(mark_ms.saturating_add(x.core_loc(&x.http).send_timeout.0))
    }

    /// When a header block must be whole.
    fn block_at_ms(&self, header_ms: u64) -> Option<u64> {
        let (_, since_ms) = self.block_since?;
        Some(since_ms.saturating_add(header_ms))
    }

    /// When the connection is to take a turn if nothing happens before; `idle_ms` and `header_ms` are the times that a
    /// connection without a request may have, after and before its first one.
    pub(in super::super) fn deadline(
        &self,
        mark_ms: u64,
        idle_ms: u64,
        header_ms: u64,
        first: bool,
    ) -> u64 {
        if let Some(linger) = &self.linger {
            let silent_at_ms = linger.mark_ms.saturating_add(linger.silence_ms);
            return linger.until_ms.min(silent_at_ms);
        }
        let wait_ms = if first { header_ms } else { idle_ms };
        let idle_at_ms = self
            .idle_since_ms
            .filter(|_| self.block_since.is_none())
            .map(|since_ms| since_ms.saturating_add(wait_ms))
            // What is still to be said, a goodbye above all, has as long as the client may be silent.
            .map(|at_ms| match self.out.is_empty() {
                true => at_ms,
                false => at_ms.max(mark_ms.saturating_add(self.closing.timeout_ms)),
            });
        let all = [
            self.due_ms(),
            self.stuck_at_ms(mark_ms),
            self.block_at_ms(header_ms),
            (!self.running.is_empty()).then_some(self.look_at_ms),
            idle_at_ms,
        ];
        all.into_iter().flatten().min().unwrap_or(u64::MAX)
    }
}

/// Ends exchanges whose last byte has been written, and the connection that has nothing left to do. True if there may be
/// more to do at once.
pub(in super::super) fn settle<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
) -> Result<bool, Closed> {
    let now_ms = sh.clock.mono_ms;
    let Some(h2) = &mut c.h2 else {
        return Ok(false);
    };
    if h2.linger.is_some() {
        return Ok(false);
    }
    let mut any = false;
    let sent = h2.sent;
    while let Some(queued) = h2.tail.pop_front_if(|q| q.end <= sent) {
        any = true;
        let mut x = queued.exchange;
        let loc = x.core_loc(&x.http);
        c.idle_ms = loc.keepalive().idle_ms;
        c.min_idle_ms = loc.keepalive_min_timeout.0;
        x.bytes_sent = queued.bytes;
        x.completed = true;
        sh.finish(x);
    }
    if h2.is_busy() {
        any |= end_in_time(h2, now_ms, sh.stopping || c.retired);
    } else {
        if h2.idle_since_ms.is_none() {
            h2.idle_since_ms = Some(now_ms);
            c.mark_ms = now_ms;
        }
        if (sh.stopping || c.retired) && c.min_idle_ms == 0 && !h2.engine.is_over() {
            h2.engine.end();
            return Ok(true);
        }
    }
    if !h2.is_busy() && h2.out.is_empty() && h2.engine.is_over() {
        return linger(c, sh);
    }
    Ok(any)
}

/// A client that was told of the end has a while to stop asking by itself; after that no new request is taken.
fn end_in_time(h2: &mut H2, now_ms: u64, leaving: bool) -> bool {
    if !leaving {
        return false;
    }
    h2.engine.drain();
    let since_ms = *h2.announced_ms.get_or_insert(now_ms);
    if now_ms < since_ms.saturating_add(ANNOUNCED_MS) || h2.engine.is_ending() {
        return false;
    }
    h2.engine.end();
    true
}

/// Ends our side, and reads on: a close with unread bytes would reset the connection and could take the goodbye with it.
fn linger<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let now_ms = sh.clock.mono_ms;
    let Some(h2) = &mut c.h2 else {
        return Err(Closed);
    };
    if h2.closing.rule == Lingering::Off {
        return Err(Closed);
    }
    // A client that keeps the connection for its next request, and does not look at it before, must not hold up the end
    // of the server.
    let silence_ms = match sh.stopping {
        true => h2.closing.timeout_ms.min(STOPPING_SILENCE_MS),
        false => h2.closing.timeout_ms,
    };
    h2.linger = Some(Linger {
        until_ms: now_ms.saturating_add(h2.closing.time_ms),
        silence_ms,
        mark_ms: now_ms,
    });
    if let Some(tls) = &mut c.tls {
        tls.close();
        let _ = write(c, sh);
    }
    sh.net.shutdown(&mut c.socket);
    // The peer's end may have been read before, and is found again by one more read.
    c.readable = true;
    Ok(true)
}

/// Does what is due; false if it is the connection itself that has waited too long.
pub(in super::super) fn resume<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> bool {
    let now_ms = sh.clock.mono_ms;
    let header_ms = header_timeout(c, sh);
    let mark_ms = c.mark_ms;
    let Some(h2) = &mut c.h2 else { return false };
    let is_due = |at_ms: Option<u64>| at_ms.is_some_and(|at_ms| at_ms <= now_ms);
    if h2.linger.is_some() {
        return false;
    }
    if is_due(h2.stuck_at_ms(mark_ms)) {
        let reset = h2
            .front()
            .is_some_and(|x| *x.core_loc(&x.http).reset_timedout_connection);
        note(c, sh, format_args!("client timed out"));
        if reset {
            sh.net.reset(&mut c.socket);
        }
        return false;
    }
    if is_due(h2.due_ms()) {
        resume_exchanges(h2, sh, now_ms);
        return true;
    }
    if !h2.running.is_empty() && h2.look_at_ms <= now_ms {
        drop_stuck(h2, sh, now_ms);
        return true;
    }
    if is_due(h2.block_at_ms(header_ms)) {
        h2.block_since = None;
        h2.idle_since_ms = h2.idle_since_ms.map(|_| now_ms);
        if h2.engine.give_up_block() {
            log_unfinished(c, sh);
        }
        return true;
    }
    if h2.is_busy() {
        return true;
    }
    // It has been idle for long enough.
    let unsaid = h2.out.is_empty() && !h2.engine.is_over();
    h2.engine.end();
    unsaid
}

/// Goes on with exchanges whose time has come.
fn resume_exchanges<N: Net>(h2: &mut H2, sh: &mut Shared<N>, now_ms: u64) {
    for at in 0..h2.running.len() {
        let x = &mut h2.running[at].exchange;
        match x.state {
            State::Waiting(until_ms) if until_ms <= now_ms => {
                phases::resume(x, &mut sh.ctx());
                sh.timer_set |= matches!(x.state, State::Waiting(_));
                respond(h2, at);
            }
            State::Responding if x.rate.until_ms != 0 && x.rate.until_ms <= now_ms => {
                x.rate.until_ms = 0;
                let stream = h2.running[at].stream;
                h2.engine.resume(stream);
            }
            _ => {}
        }
    }
}

/// Resets streams whose windows the client has kept closed for too long.
fn drop_stuck<N: Net>(h2: &mut H2, sh: &mut Shared<N>, now_ms: u64) {
    let mut next_ms = u64::MAX;
    let mut at = 0;
    while let Some(running) = h2.running.get(at) {
        let x = &running.exchange;
        let timeout_ms = x.core_loc(&x.http).send_timeout.0;
        let since_ms = h2.engine.blocked_since(running.stream);
        let until_ms = since_ms.unwrap_or(now_ms + 1).saturating_add(timeout_ms);
        if until_ms <= now_ms {
            x.log(Level::Info, format_args!("client timed out"));
            // As in nginx, whose code for it this is.
            h2.break_off(at, h2::PROTOCOL_ERROR, sh);
        } else {
            next_ms = next_ms.min(until_ms);
            at += 1;
        }
    }
    h2.look_at_ms = next_ms;
}

/// Logs a request whose head never became complete.
fn log_unfinished<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    if c.gone {
        return;
    }
    c.requests = c.requests.saturating_add(1);
    let client = client(c, sh, false);
    let mut x = sh.exchange(client, c.port());
    x.head.clear();
    phases::place(&mut x);
    x.err_status = 408;
    x.log(Level::Info, format_args!("client timed out"));
    if c.requests == 1 {
        c.idle_ms = x.core_loc(&x.http).keepalive().idle_ms;
    }
    sh.finish(x);
}

/// Queues the goodbye, which leaves as far as the socket takes it.
pub(in super::super) fn say_last<S>(c: &mut Conn<S>) {
    let Some(h2) = &mut c.h2 else { return };
    while let Want::Sent { stream, bytes } = h2.engine.advance(0, 0) {
        h2.transmit();
        keep(h2, stream, bytes);
    }
    h2.engine.end();
    h2.transmit();
}

/// Ends what is under way, logged as far as it came.
pub(in super::super) fn close<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    let Some(mut h2) = c.h2.take() else { return };
    while let Some(queued) = h2.tail.pop_front() {
        let mut x = queued.exchange;
        x.bytes_sent = queued.bytes;
        x.completed = queued.end <= h2.sent;
        sh.finish(x);
    }
    while let Some(running) = h2.running.first() {
        let sent_bytes = h2.engine.sent_bytes(running.stream);
        let mut x = h2.take(0, sent_bytes);
        abandon(&mut x);
        sh.finish(x);
    }
    c.h2 = Some(h2);
}

/// How long a client that was told of the end may still ask.
const ANNOUNCED_MS: u64 = 1000;
/// How long a silent client is waited for at the end of the server.
const STOPPING_SILENCE_MS: u64 = 500;
