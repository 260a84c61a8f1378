//! How an HTTP/2 connection waits and ends: its deadline, what happens when that passes, the last words.
//!
//! A client that takes nothing of one response for `send_timeout` loses that stream; one that takes nothing at all loses the
//! connection. A header block has `client_header_timeout` to become whole, else its stream is reset. After the last GOAWAY
//! our side is ended, and what still comes is read past for a while, so that the goodbye is not lost with unread bytes.
//!
//! Source: RFC 9113 sections 5.4.1, 6.8; nginx documentation, `send_timeout`, `keepalive_timeout`, `lingering_close`.

use engines::mux::Want;
use server_core::conf_core::Lingering;
use server_core::errlog::Level;
use server_core::exchange::{Exchange, State};
use server_core::phases;

use super::super::engine::{NO_STREAM, Reason};
use super::super::lifecycle::header_timeout;
use super::super::sampling;
use super::super::state::{Closed, Conn, client};
use super::super::write;
use super::{Mux, Running, abandon, keep, note, respond};
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

impl Mux {
    /// Whether an exchange began before this configuration.
    pub(in super::super) fn is_older_than(&self, number: u64) -> bool {
        let running = self.running.iter().map(|running| &running.exchange);
        let queued = self.tail.iter().map(|queued| &queued.exchange);
        running.chain(queued).any(|x| x.http.number < number)
    }

    /// The exchanges under way, with the places of their first bytes in the queue where moments are noted; of those that
    /// have no response yet, a place that is never reached.
    pub(in super::super) fn under_way(&mut self) -> impl Iterator<Item = (u64, &mut Exchange)> {
        let queued = self.tail.iter_mut().map(|q| (q.start, &mut *q.exchange));
        let running = self.running.iter_mut().map(|r| (r.start, &mut *r.exchange));
        queued.chain(running)
    }

    /// Since when there is no exchange; `mark_ms` in the turn in which the last one ended.
    pub(in super::super) fn idle_since_ms(&self, mark_ms: u64) -> u64 {
        self.idle_since_ms.unwrap_or(mark_ms)
    }

    /// The places in the queue of what leaves next and of its end.
    pub(in super::super) fn waiting(&self) -> std::ops::Range<u64> {
        self.queued.saturating_sub(self.out.len())..self.queued
    }

    /// When the connection is to take a turn for the sake of an exchange that waits.
    fn due_ms(&self) -> Option<u64> {
        let due = |running: &Running| match running.exchange.state {
            State::Waiting(wait) => Some(wait.until_ms),
            _ => running.exchange.pull_wait.map(|wait| wait.until_ms),
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
        let (id, since_ms) = self.block_since?;
        let wait_ms = self.times.map_or(header_ms, |times| times.frame_ms);
        // What is no block has a time only where nothing else has.
        let counts = id != NO_STREAM || !self.is_busy();
        counts.then_some(since_ms.saturating_add(wait_ms))
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
        let before_first = first && self.times.is_none();
        let wait_ms = if before_first { header_ms } else { idle_ms };
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
            self.rest_at_ms(),
            idle_at_ms,
        ];
        all.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// When an idle connection gives back the memory that only requests need.
    fn rest_at_ms(&self) -> Option<u64> {
        let idle = self.idle_since_ms.filter(|_| self.engine.could_rest());
        idle.map(|since_ms| since_ms.saturating_add(REST_MS))
    }
}

/// Whether the connection has had as many requests, or as much time, as it may have.
pub(super) fn is_last(x: &Exchange) -> bool {
    let loc = x.core_loc(&x.http);
    let age_ms = x.started_ms.saturating_sub(x.client.since_ms);
    x.client.requests >= loc.keepalive_requests.0
        || age_ms > loc.keepalive_time.0
        || loc.keepalive().idle_ms == 0
}

/// Ends exchanges whose last byte has been written, and the connection that has nothing left to do. True if there may be
/// more to do at once.
pub(in super::super) fn settle<N: Net>(
    c: &mut Conn<N::Socket>,
    sh: &mut Shared<N>,
) -> Result<bool, Closed> {
    let now_ms = sh.clock.mono_ms;
    let Some(mux) = &mut c.mux else {
        return Ok(false);
    };
    if mux.linger.is_some() {
        return Ok(false);
    }
    let mut any = false;
    let sent = mux.sent;
    while let Some(queued) = mux.tail.pop_front_if(|q| q.end <= sent) {
        any = true;
        let mut x = queued.exchange;
        let loc = x.core_loc(&x.http);
        c.idle_ms = mux.idle_ms(loc);
        c.min_idle_ms = loc.keepalive_min_timeout.0;
        x.bytes_sent = queued.bytes;
        x.completed = true;
        sampling::finish(&mut c.sample, sh, x);
    }
    if mux.is_busy() {
        any |= end_in_time(mux, now_ms, sh.stopping || c.retired);
    } else {
        if mux.idle_since_ms.is_none() {
            mux.idle_since_ms = Some(now_ms);
            c.mark_ms = now_ms;
        }
        if (sh.stopping || c.retired) && c.min_idle_ms == 0 && !mux.engine.is_over() {
            mux.engine.end();
            return Ok(true);
        }
    }
    if !mux.is_busy() && mux.out.is_empty() && mux.engine.is_over() {
        return linger(c, sh);
    }
    Ok(any)
}

/// A client that was told of the end has a while to stop asking by itself; after that no new request is taken.
fn end_in_time(mux: &mut Mux, now_ms: u64, leaving: bool) -> bool {
    if !leaving {
        return false;
    }
    mux.engine.drain();
    let since_ms = *mux.announced_ms.get_or_insert(now_ms);
    if now_ms < since_ms.saturating_add(ANNOUNCED_MS) || mux.engine.is_ending() {
        return false;
    }
    mux.engine.end();
    true
}

/// Ends our side, and reads on: a close with unread bytes would reset the connection and could take the goodbye with it.
fn linger<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) -> Result<bool, Closed> {
    let now_ms = sh.clock.mono_ms;
    let Some(mux) = &mut c.mux else {
        return Err(Closed);
    };
    if mux.closing.rule == Lingering::Off {
        return Err(Closed);
    }
    // A client that keeps the connection for its next request, and does not look at it before, must not hold up the end
    // of the server.
    let silence_ms = match sh.stopping {
        true => mux.closing.timeout_ms.min(STOPPING_SILENCE_MS),
        false => mux.closing.timeout_ms,
    };
    mux.linger = Some(Linger {
        until_ms: now_ms.saturating_add(mux.closing.time_ms),
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
    let Some(mux) = &mut c.mux else { return false };
    let is_due = |at_ms: Option<u64>| at_ms.is_some_and(|at_ms| at_ms <= now_ms);
    if mux.linger.is_some() {
        return false;
    }
    if is_due(mux.stuck_at_ms(mark_ms)) {
        let reset = mux
            .front()
            .is_some_and(|x| *x.core_loc(&x.http).reset_timedout_connection);
        note(c, sh, format_args!("client timed out"));
        if reset {
            sh.net.reset(&mut c.socket);
        }
        return false;
    }
    if is_due(mux.due_ms()) {
        resume_exchanges(mux, sh, now_ms);
        return true;
    }
    if !mux.running.is_empty() && mux.look_at_ms <= now_ms {
        drop_stuck(mux, sh, now_ms);
        return true;
    }
    if is_due(mux.rest_at_ms()) {
        mux.engine.rest();
        return true;
    }
    if is_due(mux.block_at_ms(header_ms)) {
        let other = mux
            .block_since
            .take()
            .is_some_and(|(id, _)| id == NO_STREAM);
        if other {
            note(c, sh, format_args!("client timed out"));
            return false;
        }
        mux.idle_since_ms = mux.idle_since_ms.map(|_| now_ms);
        if mux.engine.give_up_block() {
            log_unfinished(c, sh);
        }
        return true;
    }
    if mux.is_busy() {
        return true;
    }
    // It has been idle for long enough.
    let unsaid = mux.out.is_empty() && !mux.engine.is_over();
    mux.engine.end();
    unsaid
}

/// Goes on with exchanges whose time has come.
fn resume_exchanges<N: Net>(mux: &mut Mux, sh: &mut Shared<N>, now_ms: u64) {
    for at in 0..mux.running.len() {
        let x = &mut mux.running[at].exchange;
        match x.state {
            State::Waiting(wait) if wait.until_ms <= now_ms => resume_exchange(mux, sh, at),
            State::Responding if x.pull_wait.is_some_and(|wait| wait.until_ms <= now_ms) => {
                resume_exchange(mux, sh, at);
            }
            _ => {}
        }
    }
}

/// Goes on with the exchange of a stream, if it is there and waits.
pub(in super::super) fn wake<N: Net>(mux: &mut Mux, sh: &mut Shared<N>, stream: u32) {
    if let Some(at) = mux.position(stream) {
        resume_exchange(mux, sh, at);
    }
}

/// Goes on with an exchange that may have what it waited for.
fn resume_exchange<N: Net>(mux: &mut Mux, sh: &mut Shared<N>, at: usize) {
    let x = &mut mux.running[at].exchange;
    if x.is_waiting() {
        phases::resume(x, &mut sh.ctx());
        sh.timer_set |= x.is_waiting();
        respond(mux, at);
    } else if x.pull_wait.take().is_some() {
        mux.engine.resume(mux.running[at].stream);
    }
}

/// Resets streams whose windows the client has kept closed for too long.
fn drop_stuck<N: Net>(mux: &mut Mux, sh: &mut Shared<N>, now_ms: u64) {
    let mut next_ms = u64::MAX;
    let mut at = 0;
    while let Some(running) = mux.running.get(at) {
        let x = &running.exchange;
        let timeout_ms = x.core_loc(&x.http).send_timeout.0;
        let since_ms = mux.engine.blocked_since(running.stream);
        // The window of the connection may have been closed before this request came.
        let since_ms = since_ms.unwrap_or(now_ms + 1).max(x.started_ms);
        let until_ms = since_ms.saturating_add(timeout_ms);
        if until_ms <= now_ms {
            x.log(Level::Info, format_args!("client timed out"));
            mux.break_off(at, Reason::TimedOut, sh);
        } else {
            next_ms = next_ms.min(until_ms);
            at += 1;
        }
    }
    mux.look_at_ms = next_ms;
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
    let Some(mux) = &mut c.mux else { return };
    while let Want::Sent { stream, bytes } = mux.engine.advance(0, 0) {
        mux.transmit();
        keep(mux, stream, bytes);
    }
    mux.engine.end();
    mux.transmit();
}

/// Ends what is under way, logged as far as it came.
pub(in super::super) fn close<N: Net>(c: &mut Conn<N::Socket>, sh: &mut Shared<N>) {
    let Some(mut mux) = c.mux.take() else { return };
    while let Some(queued) = mux.tail.pop_front() {
        let mut x = queued.exchange;
        x.bytes_sent = queued.bytes;
        x.completed = queued.end <= mux.sent;
        sh.finish(x);
    }
    while let Some(running) = mux.running.first() {
        let sent_bytes = mux.engine.sent_bytes(running.stream);
        let mut x = mux.take(0, sent_bytes);
        abandon(&mut x);
        sh.finish(x);
    }
    c.mux = Some(mux);
}

/// How long a connection is idle before it rests.
const REST_MS: u64 = 1000;
/// How long a client that was told of the end may still ask.
const ANNOUNCED_MS: u64 = 1000;
/// How long a silent client is waited for at the end of the server.
const STOPPING_SILENCE_MS: u64 = 500;
