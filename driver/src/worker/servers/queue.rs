//! Requests of several exchanges in a queue on one connection: they leave in one write, and their answers come in one read.
//!
//! Requests that were made in one turn for the same server share a connection, if their protocol makes that worth it
//! ([`Sharing::Queue`]). [`Groups`] finds them, so that no request waits for company. The engine withholds an answer that
//! others follow until its end is seen; then the exchange gets all of it, however little it reads. Once the answer to the
//! last request begins, the connection is like any other ([`Requests::One`]).
//!
//! No request fails by another one. Requests without an answer are repeated, each on a connection of its own
//! ([`Ending::Retry`]), in four cases: the server breaks the protocol, closes the connection, announces too long an
//! answer, or is slower than [`LATE_MS`]. For a second, its connections then have one request at a time.
//! Events that concern all of them, a timeout or a connection that cannot be made, go to each.
//!
//! [`Sharing::Queue`]: crate::worker::server_state::Sharing::Queue
//! [`Groups`]: crate::worker::server_state::Groups
//!
//! Source: memcached, doc/protocol.txt; nginx documentation, `memcached_read_timeout`.

use std::collections::VecDeque;

use server_base::waker::WakeKey;
use server_upstream::request::{Failure, UpstreamCall, UpstreamError, UpstreamEvent};
use server_upstream::route::Route;

use super::link::{self, Flushed, READ_BYTES};
use super::one::{self, acknowledge};
use super::outcome::Ending;
use crate::worker::dialer::Dial;
use crate::worker::net::Net;
use crate::worker::server_state::engine::{self, Event};
use crate::worker::server_state::{
    ActiveConn, Attempt, Io, Link, Queue, Queued, Receiving, Requests, Sending,
};
use crate::worker::shared::Shared;

/// Puts requests behind the first one of a connection; requests that do not fit are sent alone.
pub(super) fn join<N: Net>(
    link: &mut Link<N::Socket>,
    active: &mut ActiveConn,
    sh: &mut Shared<N>,
    (route, calls): (Route, Vec<UpstreamCall>),
    (key, connected_ms): (WakeKey, Option<u64>),
) {
    let ActiveConn { io, requests } = active;
    let Requests::One(first) = requests else {
        return;
    };
    let bytes = io.out.len();
    let requests_max = io.pool.map_or(0, |pool| pool.requests);
    let mut behind = VecDeque::with_capacity(1 + calls.len());
    for call in calls {
        let spec = call.take_head().unwrap_or_default();
        let before = io.out.len();
        let joins = u64::from(link.requests) < requests_max && io.engine.pipeline(&spec);
        call.put_head_back(spec);
        if !joins {
            dial_alone(sh, &route, call);
            continue;
        }
        if let Some(head) = sh.dialer.spares.head() {
            io.engine.recycle(head);
        }
        io.engine.transmit(&mut io.out);
        link.requests = link.requests.saturating_add(1);
        call.attach(key);
        call.record(|own| (own.reused, own.connected_ms) = (io.reused, connected_ms));
        let bytes = io.out.len() - before;
        behind.push_back(Queued {
            call,
            bytes,
            left: bytes,
        });
    }
    // A single request is no queue.
    if behind.is_empty() {
        return;
    }
    let Some(call) = first.take_call() else {
        return;
    };
    behind.push_front(Queued {
        call,
        bytes,
        left: bytes,
    });
    *requests = Requests::Queue(Box::new(Queue {
        route,
        requests: behind,
        is_sent: false,
        sent_ms: u64::MAX,
        sent_bytes: 0,
        read_ms: first.read_ms,
        received_bytes: 0,
        delivered_bytes: 0,
        answer_bytes: 0,
    }));
}

/// Begins an attempt anew on a connection that it has for itself.
fn dial_alone<N: Net>(sh: &mut Shared<N>, route: &Route, call: UpstreamCall) {
    sh.dialer.calls.push(Dial {
        route: route.clone(),
        call,
        alone: true,
    });
}

/// One pass; true if there may be more to do at once.
pub(super) fn pass<N: Net>(
    link: &mut Link<N::Socket>,
    io: &mut Io,
    requests: &mut Requests,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let read = receive(link, io, requests, sh)?;
    let wrote = match requests {
        Requests::Queue(queue) => write(link, io, queue, sh)?,
        Requests::One(last) => one::write(link, io, last, sh)?,
        Requests::Streams(_) => false,
    };
    Ok(read || wrote)
}

/// Reads once, and delivers complete answers; true if there was input.
fn receive<N: Net>(
    link: &mut Link<N::Socket>,
    io: &mut Io,
    requests: &mut Requests,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let Requests::Queue(queue) = requests else {
        return Ok(false);
    };
    if io.unwritable.is_some() {
        return Err(Ending::Retry);
    }
    if !link.flags.readable {
        return Ok(false);
    }
    let input = match link::read(link, io, sh, READ_BYTES) {
        Ok(None) => return Ok(false),
        Ok(Some(input)) if input.bytes > 0 => input,
        Ok(Some(_)) | Err(_) => return Err(Ending::Retry),
    };
    let now_ms = sh.clock.mono_ms;
    queue.read_ms = now_ms;
    queue.received_bytes += input.bytes as u64;
    io.engine.receive(&mut sh.attempts.buffer);
    let delivered = queue.deliver(io, now_ms);
    let rest = queue.received_bytes - queue.delivered_bytes;
    let is_early = rest > 0 && queue.requests[0].left > 0;
    let is_last = queue.requests.len() == 1 && rest > 0;
    delivered?;
    if is_early {
        return Err(Ending::Retry);
    }
    if is_last {
        promote(link, io, requests, rest, now_ms)?;
    } else if !link.flags.readable {
        acknowledge(link, io, sh);
    }
    Ok(true)
}

impl Queue {
    /// Delivers the answers that are there, but for that of the last request.
    fn deliver(&mut self, io: &mut Io, now_ms: u64) -> Result<(), Ending> {
        while self.requests.len() > 1 {
            let event = match io.engine.event() {
                None => return Ok(()),
                Some(Event::Failed(_)) => return Err(Ending::Retry),
                Some(Event::Upstream(event)) => event,
            };
            let Queued { call, left, .. } = &self.requests[0];
            if *left > 0 {
                // A server cannot have answered a request that was not sent.
                return Err(Ending::Retry);
            }
            let is_end = matches!(event, UpstreamEvent::End);
            if let UpstreamEvent::Head(head, bytes) = &event {
                self.answer_bytes = engine::answer_bytes(head, *bytes);
                call.record(|facts| facts.head_ms = Some(now_ms));
            }
            if is_end {
                let bytes = self.answer_bytes;
                self.delivered_bytes += bytes;
                call.record(|facts| {
                    facts.received_bytes += bytes;
                    facts.ended_ms = Some(now_ms);
                });
            }
            if !call.is_given_up() {
                call.deliver(event);
            }
            if is_end {
                self.requests.pop_front();
            }
        }
        Ok(())
    }

    /// Records that the socket took bytes, for each request its own.
    fn record_sent(&mut self, mut bytes: u64) {
        self.sent_bytes += bytes;
        for queued in &mut self.requests {
            let taken = bytes.min(queued.left);
            (bytes, queued.left) = (bytes - taken, queued.left - taken);
            queued.call.record(|facts| facts.sent_bytes += taken);
        }
    }

    /// Whether requests were not answered in time, though the server may take longer.
    pub(super) fn is_late(&self, io: &Io, now_ms: u64) -> bool {
        self.is_sent && now_ms < self.read_ms.saturating_add(io.timeouts.read_ms)
    }

    /// When the connection is to take a turn if nothing happens before.
    pub(super) fn deadline(&self, io: &Io) -> u64 {
        match self.is_sent {
            true => {
                let late_ms = self.sent_ms.saturating_add(LATE_MS);
                late_ms.min(self.read_ms.saturating_add(io.timeouts.read_ms))
            }
            false => io.wrote_ms.saturating_add(io.timeouts.send_ms),
        }
    }
}

/// Writes the rest of the requests; true if there may be more to do at once.
fn write<N: Net>(
    link: &mut Link<N::Socket>,
    io: &mut Io,
    queue: &mut Queue,
    sh: &mut Shared<N>,
) -> Result<bool, Ending> {
    let may_be_alone = queue.sent_bytes == 0;
    let Flushed { bytes, is_broken } = link::flush(link, io, sh, may_be_alone)?;
    if bytes > 0 {
        queue.record_sent(bytes);
    }
    if is_broken {
        return Ok(true);
    }
    if !queue.is_sent && link::is_flushed(link, io) {
        let now_ms = sh.clock.mono_ms;
        queue.is_sent = true;
        (queue.sent_ms, queue.read_ms) = (now_ms, now_ms);
        for queued in &queue.requests {
            queued.call.record(|facts| {
                facts.sent_ms.get_or_insert(now_ms);
            });
        }
    }
    Ok(link.flags.writable && !io.out.is_empty())
}

/// The answer to the last request has begun: from here on the connection is its own.
fn promote<S>(
    link: &mut Link<S>,
    io: &mut Io,
    requests: &mut Requests,
    rest: u64,
    now_ms: u64,
) -> Result<(), Ending> {
    let Requests::Queue(queue) = requests else {
        return Ok(());
    };
    let Some(last) = queue.requests.pop_front() else {
        return Ok(());
    };
    last.call.record(|facts| facts.received_bytes += rest);
    // The requests before it are answered.
    link.sent_before += queue.sent_bytes.saturating_sub(last.bytes);
    let request = match queue.is_sent {
        true => Sending::Sent,
        false => Sending::Queued,
    };
    let mut attempt = Attempt::new(last.call, request, queue.read_ms);
    attempt.sent_bytes = last.bytes;
    attempt.response = Receiving::Head;
    attempt.last_of = Some(Box::new(queue.route.clone()));
    let delivered = one::deliver(io, &mut attempt, now_ms);
    *requests = Requests::One(attempt);
    delivered
}

/// Repeats unanswered requests, each alone; the connection is closed.
pub(super) fn retry<N: Net>(io: &Io, queue: &mut Queue, sh: &mut Shared<N>) {
    sh.attempts.pause(io.pool, &io.addr, sh.clock.mono_ms);
    for queued in queue.requests.drain(..) {
        redial(sh, &queue.route, queued.call);
    }
}

/// Asks the last request of a queue again.
pub(super) fn retry_last<N: Net>(io: &Io, last: &mut Attempt, sh: &mut Shared<N>) {
    sh.attempts.pause(io.pool, &io.addr, sh.clock.mono_ms);
    if let (Some(route), Some(call)) = (last.last_of.take(), last.take_call()) {
        redial(sh, &route, call);
    }
}

fn redial<N: Net>(sh: &mut Shared<N>, route: &Route, call: UpstreamCall) {
    if !call.is_given_up() {
        call.record(|facts| (facts.sent_ms, facts.ended_ms) = (None, None));
        dial_alone(sh, route, call);
    }
}

/// Fails all requests.
pub(super) fn fail(io: &Io, queue: &Queue, failure: &Failure) {
    for queued in &queue.requests {
        queued.call.deliver(UpstreamEvent::Failed(UpstreamError {
            failure: failure.clone(),
            sent_bytes: queue.sent_bytes,
            reused: io.reused,
            untouched: queue.sent_bytes == 0,
        }));
    }
}

/// Time limit of answers to the requests of a queue; after it each is sent alone. A server with values in memory takes
/// far less, even if its system runs it for only a part of each 100 ms. A request behind a slow answer waits no longer
/// than this.
const LATE_MS: u64 = 250;
