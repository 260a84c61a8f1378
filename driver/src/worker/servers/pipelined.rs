//! Requests of several exchanges on one connection: they leave in one write, and their answers come in one read.
//!
//! Requests that were made in one turn for the same server share a connection, of protocols for which that is worth it
//! ([`Pipelining`](server_upstream::protocol::Pipelining)); [`Groups`](super::Groups) finds them, so that no request waits for company. The engine
//! withholds an answer that others follow until its end is seen; then the exchange gets all of it, however little it
//! reads. The last request has none behind it: once its answer begins, the connection is like any other
//! (`State::Busy`).
//!
//! No request fails by another one. Where the server breaks the protocol, closes the connection, announces more than
//! others may wait for, or has not answered all within [`LATE_MS`], those without an answer are asked again, each on a
//! connection of its own ([`Ending::AskAgain`]); for [`PAUSE_MS`] the server then gets no more than one request at a
//! time on a connection. Events that concern all of them, a timeout or a connection that cannot be made, go to each.
//!
//! Source: memcached, doc/protocol.txt; nginx documentation, `memcached_read_timeout`.

use std::collections::VecDeque;
use std::io;

use server_base::waker::WakeKey;
use server_upstream::request::{AttemptFacts, UpstreamCall, UpstreamEvent};
use server_upstream::route::{Pool, Route, UpstreamAddr};

use super::engine::{self, Event};
use super::pipeline::{Pause, Pipeline, Request};
use super::response::{READ_BYTES, tell};
use super::state::{ActiveAttempt, Attempts, Ending, Receiving, Sending, ServerConn, State};
use super::turn::acknowledge;
use crate::worker::dialer::Dial;
use crate::worker::net::Net;
use crate::worker::shared::Shared;

impl Attempts {
    /// Whether a request may share a connection.
    #[inline]
    pub fn may_share(&mut self, dial: &Dial, now_ms: u64) -> bool {
        if dial.alone || dial.route.protocol.pipelining.is_none() {
            return false;
        }
        let Some(pool) = &dial.route.pool else {
            return false;
        };
        self.paused.retain(|pause| pause.until_ms > now_ms);
        !(self.paused.iter()).any(|pause| pause.pool == pool.id && pause.addr == dial.route.addr)
    }

    fn pause(&mut self, pool: Option<Pool>, addr: &UpstreamAddr, now_ms: u64) {
        if self.paused.len() == PAUSED_MAX {
            self.paused.remove(0);
        }
        self.paused.push(Pause {
            pool: pool.map_or(0, |pool| pool.id),
            addr: addr.clone(),
            until_ms: now_ms.saturating_add(PAUSE_MS),
        });
    }
}

/// Puts requests behind the first one of a connection; those that it does not take are asked alone.
pub(super) fn join<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
    a: &mut ActiveAttempt,
    (route, calls): (Route, Vec<UpstreamCall>),
    (key, reused, connected_ms): (WakeKey, bool, Option<u64>),
) {
    let front_bytes = a.tools.out.len();
    let mut pipeline = Pipeline {
        route,
        front_bytes,
        front_left: front_bytes,
        behind: VecDeque::with_capacity(calls.len()),
        sent_ms: u64::MAX,
        received_bytes: 0,
        told_bytes: 0,
        answer_bytes: 0,
    };
    let requests_max = a.pool.map_or(0, |pool| pool.requests);
    for call in calls {
        let spec = call.take_head().unwrap_or_default();
        let before = a.tools.out.len();
        let joins = u64::from(c.requests) < requests_max && a.tools.engine.pipeline(&spec);
        call.put_head_back(spec);
        if !joins {
            ask_alone(sh, &pipeline.route, call);
            continue;
        }
        if let Some(head) = sh.dialer.spares.head() {
            a.tools.engine.recycle(head);
        }
        a.tools.engine.transmit(&mut a.tools.out);
        c.requests = c.requests.saturating_add(1);
        call.attach(key);
        call.note(|own| (own.reused, own.connected_ms) = (reused, connected_ms));
        let bytes = a.tools.out.len() - before;
        pipeline.behind.push_back(Request {
            call,
            bytes,
            left: bytes,
        });
    }
    if !pipeline.behind.is_empty() {
        a.pipeline = Some(Box::new(pipeline));
    }
}

/// Begins an attempt anew on a connection that it has for itself.
fn ask_alone<N: Net>(sh: &mut Shared<N>, route: &Route, call: UpstreamCall) {
    sh.dialer.calls.push(Dial {
        route: route.clone(),
        call,
        alone: true,
    });
}

impl Pipeline {
    /// When it has taken too long.
    pub(super) fn late_ms(&self) -> u64 {
        self.sent_ms.saturating_add(LATE_MS)
    }
}

impl ActiveAttempt {
    /// Whether no exchange waits for an answer any more.
    pub(super) fn is_abandoned(&self) -> bool {
        let behind = self.pipeline.iter().flat_map(|pipeline| &pipeline.behind);
        self.call().is_given_up() && behind.into_iter().all(|other| other.call.is_given_up())
    }

    /// Changes what is known of all attempts without a complete answer.
    pub(super) fn note_all(&self, change: impl Fn(&mut AttemptFacts)) {
        self.call().note(&change);
        if let Some(pipeline) = &self.pipeline {
            (pipeline.behind.iter()).for_each(|other| other.call.note(&change));
        }
    }

    /// Sends an event to all of them.
    pub(super) fn tell_all(&self, event: impl Fn() -> UpstreamEvent) {
        self.call().tell(event());
        if let Some(pipeline) = &self.pipeline {
            (pipeline.behind.iter()).for_each(|other| other.call.tell(event()));
        }
    }

    /// Notes that the socket took bytes of the requests, for each its own.
    pub(super) fn note_sent(&mut self, mut bytes: u64) {
        let Some(mut pipeline) = self.pipeline.take() else {
            return self.call().note(|facts| facts.sent_bytes += bytes);
        };
        let mut take = |left: &mut u64, call: &UpstreamCall| {
            let taken = bytes.min(*left);
            (bytes, *left) = (bytes - taken, *left - taken);
            call.note(|facts| facts.sent_bytes += taken);
        };
        take(&mut pipeline.front_left, self.call());
        for other in &mut pipeline.behind {
            take(&mut other.left, &other.call);
        }
        self.pipeline = Some(pipeline);
    }

    /// Notes that the socket has taken all requests.
    pub(super) fn note_all_sent(&mut self, now_ms: u64) {
        self.note_all(|facts| {
            facts.sent_ms.get_or_insert(now_ms);
        });
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.sent_ms = now_ms;
        }
    }
}

/// Reads once, and delivers complete answers; true if there was input.
pub(super) fn receive<N: Net>(
    c: &mut ServerConn<N::Socket>,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let State::Pipelined(a) = &mut c.state else {
        return Ok(false);
    };
    if a.unwritable.is_some() {
        return Err(Ending::AskAgain);
    }
    if !c.flags.readable {
        return Ok(false);
    }
    let buffer = &mut sh.attempts.buffer;
    let read = match sh.net.receive_into(&mut c.socket, buffer, READ_BYTES) {
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
            (c.flags.readable, c.flags.hung_up) = (false, false);
            return Ok(false);
        }
        Ok(0) | Err(_) => return Err(Ending::AskAgain),
        Ok(read) => read,
    };
    sh.files.input_received();
    c.flags.readable = read == READ_BYTES || c.flags.hung_up;
    let now_ms = sh.clock.mono_ms;
    a.read_ms = now_ms;
    a.tools.engine.receive(buffer);
    if let Some(mut pipeline) = a.pipeline.take() {
        pipeline.received_bytes += read as u64;
        let told = pipeline.tell(a, now_ms);
        let rest = pipeline.received_bytes - pipeline.told_bytes;
        let is_last = pipeline.behind.is_empty() && rest > 0;
        let is_early = rest > 0 && pipeline.front_left > 0;
        a.pipeline = Some(pipeline);
        told?;
        if is_early {
            return Err(Ending::AskAgain);
        }
        if is_last {
            promote(c, rest, now_ms)?;
        } else if !c.flags.readable {
            acknowledge(a, &mut c.socket, &mut sh.net);
        }
    }
    Ok(true)
}

impl Pipeline {
    /// Delivers the answers that are there, but for that of the last request.
    fn tell(&mut self, a: &mut ActiveAttempt, now_ms: u64) -> Result<(), Ending> {
        while !self.behind.is_empty() {
            let event = match a.tools.engine.event() {
                None => return Ok(()),
                Some(Event::Failed(_)) => return Err(Ending::AskAgain),
                Some(Event::Upstream(event)) => event,
            };
            if self.front_left > 0 {
                // Nobody can have answered what was not sent.
                return Err(Ending::AskAgain);
            }
            let is_end = matches!(event, UpstreamEvent::End);
            if let UpstreamEvent::Head(head, bytes) = &event {
                self.answer_bytes = engine::answer_bytes(head, *bytes);
                a.call().note(|facts| facts.head_ms = Some(now_ms));
            }
            if is_end {
                let bytes = self.answer_bytes;
                self.told_bytes += bytes;
                a.call().note(|facts| {
                    facts.received_bytes += bytes;
                    facts.ended_ms = Some(now_ms);
                });
            }
            if !a.call().is_given_up() {
                a.call().tell(event);
            }
            if is_end && let Some(next) = self.behind.pop_front() {
                (self.front_bytes, self.front_left) = (next.bytes, next.left);
                a.set_call(next.call);
            }
        }
        Ok(())
    }
}

/// The answer to the last request has begun: from here on the connection is its own.
fn promote<S>(c: &mut ServerConn<S>, rest: u64, now_ms: u64) -> Result<(), Ending> {
    let State::Pipelined(mut a) = std::mem::replace(&mut c.state, State::Closed) else {
        return Ok(());
    };
    a.call().note(|facts| facts.received_bytes += rest);
    a.response = Receiving::Head;
    // The requests before it are answered.
    let own_bytes = a.pipeline.as_ref().map_or(0, |p| p.front_bytes);
    c.sent_before += a.sent_bytes.saturating_sub(own_bytes);
    a.sent_bytes = own_bytes;
    c.state = State::Busy(a);
    match &mut c.state {
        State::Busy(a) => tell(a, now_ms),
        _ => Ok(()),
    }
}

/// Asks those again that have no answer, each alone; the connection is of no further use.
pub(super) fn ask_again<N: Net>(sh: &mut Shared<N>, a: &mut ActiveAttempt) {
    let Some(pipeline) = a.pipeline.take() else {
        return;
    };
    let now_ms = sh.clock.mono_ms;
    sh.attempts.pause(a.pool, &a.addr, now_ms);
    let behind = pipeline.behind.into_iter().map(|other| other.call);
    for call in a.take_call().into_iter().chain(behind) {
        if !call.is_given_up() {
            call.note(|facts| (facts.sent_ms, facts.ended_ms) = (None, None));
            ask_alone(sh, &pipeline.route, call);
        }
    }
}

/// When a shared connection is to take a turn if nothing happens before.
pub(super) fn deadline(a: &ActiveAttempt) -> u64 {
    let late_ms = a.pipeline.as_ref().map_or(u64::MAX, |p| p.late_ms());
    match a.request {
        Sending::Sent => late_ms.min(a.read_ms.saturating_add(a.timeouts.read_ms)),
        _ => a.wrote_ms.saturating_add(a.timeouts.send_ms),
    }
}

/// Time limit of answers to requests that share a connection, after which each is asked for alone. A server that has
/// values in memory takes far less, even where its system lets it run for a part of each 100 ms only; a request behind
/// a slow answer waits no longer than this.
const LATE_MS: u64 = 250;
/// Time for which a server gets one request at a time on a connection after requests that shared one were not answered.
const PAUSE_MS: u64 = 1000;
/// Maximum number of servers remembered for that.
const PAUSED_MAX: usize = 64;
