//! Turns of a connection: its events are counted, failures and timeouts end it.

use std::sync::atomic::Ordering;

use sys::poll::Ready;

use super::plan::Connect;
use super::result::BIN_NS;
use super::thread::{Loader, PROGRESS, RETRY_NS, TRIES_MAX};
use crate::client::{Event, Exchange, Stage, now_ns};
use crate::stats::Metric;

impl Loader<'_> {
    pub(super) fn flush(&mut self, at: usize) {
        if let Err(why) = self.slots[at].connection.flush() {
            self.fail(at, &why, now_ns());
        }
    }

    /// A connection can do something.
    pub(super) fn ready(&mut self, at: usize, ready: Ready) {
        let connection = &mut self.slots[at].connection;
        if connection.stage == Stage::Closed {
            return;
        }
        let result = connection.ready(ready, &self.target, &mut self.buffer);
        if self.take_events(at, &result) {
            return;
        }
        self.begin_more(at);
        // Windows and answers to pings leave without a request, too.
        self.flush(at);
    }

    /// Handles the events of a connection; returns whether the connection has ended.
    fn take_events(&mut self, at: usize, received: &Result<bool, String>) -> bool {
        let now = now_ns();
        let mut closing = matches!(received, Ok(true));
        while let Some(event) = self.slots[at].connection.event(now) {
            let (connection, result) = (&mut self.slots[at].connection, &mut self.result);
            match event {
                Event::Connected { from_ns, to_ns } => {
                    result.sample(Metric::Connect, from_ns, to_ns);
                }
                Event::Handshake {
                    from_ns,
                    to_ns,
                    resumed,
                } => {
                    result.resumed += u64::from(resumed);
                    result.sample(Metric::Handshake, from_ns, to_ns);
                }
                Event::Open(protocol) => {
                    *result.protocols.entry(protocol.name()).or_default() += 1;
                }
                Event::Head { size, .. } => {
                    if connection.turns_out_http10() {
                        result.rename_http10();
                    }
                    result.head_wire_bytes += size.wire_bytes;
                    result.head_text_bytes += size.text_bytes;
                }
                Event::End { stream, body_bytes } => {
                    if let Some(exchange) = connection.in_flight.remove(stream) {
                        result.body_bytes += body_bytes;
                        self.complete(exchange, now);
                    }
                }
                Event::Lost { stream, why } => {
                    if connection.in_flight.remove(stream).is_some() {
                        self.count_error(&why, 1, now);
                    }
                }
                Event::Closing => closing = true,
                Event::Failed(why) => {
                    // The socket's error is more precise than an early end.
                    let why = received.as_ref().err().cloned().unwrap_or(why);
                    self.fail(at, &why, now);
                    return true;
                }
                Event::Other => {}
            }
        }
        if let Err(why) = received {
            self.fail(at, why, now);
            return true;
        }
        let slot = &self.slots[at];
        let (is_open, busy) = (
            slot.connection.stage == Stage::Open,
            slot.connection.in_flight.len() > 0,
        );
        closing |= slot.connection.is_ended();
        closing |= self.plan.connect != Connect::Warm && slot.once.is_none();
        if matches!(received, Ok(true)) && (busy || !is_open) {
            self.fail(at, "closed by the server", now);
            return true;
        }
        if closing && !busy {
            self.finish(at);
            self.begin_more(at);
            return true;
        }
        false
    }

    /// Closes a connection, and records the kernel's estimate of its round trip.
    pub(super) fn finish(&mut self, at: usize) {
        let connection = &mut self.slots[at].connection;
        if let Some(us) = connection.min_rtt_us() {
            let least = self.result.min_rtt_us.map_or(us, |least| least.min(us));
            self.result.min_rtt_us = Some(least);
        }
        connection.close();
    }

    fn complete(&mut self, exchange: Exchange, now: u64) {
        self.end.count(1, self.closed_until_ns(), now);
        let result = &mut self.result;
        result.done += 1;
        result.statuses.count(exchange.status);
        result.sample(Metric::Service, exchange.sent_ns, now);
        result.sample(Metric::FirstByte, exchange.sent_ns, exchange.first_byte_ns);
        if self.plan.rate.is_some() {
            result.sample(Metric::Response, exchange.intended_ns, now);
        }
        let bin = ((now - self.begin_ns) / BIN_NS) as usize;
        if result.bins.len() <= bin {
            result.bins.resize(bin + 1, 0);
        }
        result.bins[bin] += 1;
        self.last_ns = now;
        if result.done.is_multiple_of(PROGRESS) {
            self.shared.ended.fetch_add(PROGRESS, Ordering::Relaxed);
        }
    }

    /// Filters the samples that are complete.
    pub(super) fn settle(&mut self) {
        if let Some(filter) = self.filter {
            self.result.settle(filter);
        }
    }

    pub(super) fn count_error(&mut self, why: &str, times: u64, now: u64) {
        self.result.error(why, times);
        self.last_ns = self.last_ns.max(now);
        self.end.count(times, self.closed_until_ns(), now);
    }

    /// A connection has failed, and with it the requests in progress on it.
    pub(super) fn fail(&mut self, at: usize, why: &str, now: u64) {
        let slot = &mut self.slots[at];
        let lost = slot.connection.close() as u64;
        slot.retry_ns = now + RETRY_NS;
        let waited = u64::from(slot.once.take().is_some());
        if lost + waited == 0 && self.running && self.plan.rate.is_none() {
            // So that a run against a server that is not there comes to its end.
            self.take_budget(now);
        }
        self.count_error(why, (lost + waited).max(1), now);
        if self.answers_nothing() {
            self.until_ns = Some(now);
        }
    }

    /// Whether many attempts have not produced a single response: the server is down, or no HTTP server. A run at a constant rate
    /// continues, since it may measure when the server returns.
    fn answers_nothing(&self) -> bool {
        let tries = TRIES_MAX * self.slots.len() as u64;
        self.running
            && self.plan.rate.is_none()
            && self.result.done == 0
            && self.result.failed() >= tries
    }

    /// Checks timeouts, and dials connections again that have waited after a failure.
    pub(super) fn tick(&mut self, now: u64) {
        self.settle();
        let most = self.plan.timeout_ns;
        for at in 0..self.slots.len() {
            let connection = &self.slots[at].connection;
            let (since, why) = match connection.stage {
                Stage::Closed => {
                    self.begin_more(at);
                    continue;
                }
                Stage::Connecting => (Some(connection.begun_ns), "connect: timed out"),
                Stage::Handshake => (Some(connection.begun_ns), "tls: handshake timed out"),
                Stage::Open => {
                    let oldest = connection
                        .in_flight
                        .oldest()
                        .map(|exchange| exchange.sent_ns);
                    (oldest, "response: timed out")
                }
            };
            if since.is_some_and(|since| now.saturating_sub(since) > most) {
                self.fail(at, why, now);
            }
        }
    }
}
