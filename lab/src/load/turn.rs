//! What a connection's turn does: bytes in, what they mean, what failed, and what takes too long.

use std::sync::atomic::Ordering;

use sys::poll::Ready;

use super::{Connect, Loader, PROGRESS, RETRY_NS, TRIES_MAX, now_ns};
use crate::engine::{Engine, Told};
use crate::flights::Flight;
use crate::link::Stage;
use crate::outcome::{BIN_NS, Kind};

impl Loader<'_> {
    pub(super) fn flush(&mut self, at: usize) {
        if let Err(why) = self.links[at].flush(&mut self.tally) {
            self.fail(at, &why, now_ns());
        }
    }

    /// A connection can do something.
    pub(super) fn ready(&mut self, at: usize, ready: Ready) {
        let link = &mut self.links[at];
        if link.stage == Stage::Closed {
            return;
        }
        if link.stage == Stage::Connecting {
            if !ready.writable && !ready.closed {
                return;
            }
            if let Err(why) = link.connected(&self.dial, now_ns(), &mut self.tally) {
                return self.fail(at, &why, now_ns());
            }
        } else if ready.readable {
            let (buffer, tally) = (&mut self.buffer, &mut self.tally);
            let received = link.receive(buffer, ready.closed, &self.dial, now_ns, tally);
            if self.told(at, &received) {
                return;
            }
        } else if !link.is_blocked() {
            return;
        }
        self.begin_more(at);
        // Windows and answers to pings leave without a request, too.
        self.flush(at);
    }

    /// Takes what the engine of a connection tells; gives whether the connection has ended.
    pub(super) fn told(&mut self, at: usize, received: &Result<bool, String>) -> bool {
        let now = now_ns();
        let mut closing = matches!(received, Ok(true));
        while let Some(told) = self.links[at].engine.as_mut().and_then(Engine::event) {
            let flights = &mut self.links[at].flights;
            match told {
                Told::Head {
                    stream,
                    status,
                    size,
                } => {
                    self.tally.head_wire_bytes += size.wire_bytes;
                    self.tally.head_text_bytes += size.text_bytes;
                    if let Some(flight) = flights.get(stream) {
                        (flight.first_ns, flight.status) = (now, status);
                    }
                }
                Told::End { stream, body_bytes } => {
                    if let Some(flight) = flights.remove(stream) {
                        self.tally.body_bytes += body_bytes;
                        self.complete(flight, now);
                    }
                }
                Told::Lost { stream, why } => {
                    if flights.remove(stream).is_some() {
                        self.count_error(&why, 1, now);
                    }
                }
                Told::Closing => closing = true,
                Told::Failed(why) => {
                    // Why the socket failed says more than that it ended early.
                    let why = received.as_ref().err().cloned().unwrap_or(why);
                    self.fail(at, &why, now);
                    return true;
                }
                Told::Other => {}
            }
        }
        let link = &mut self.links[at];
        if let Err(why) = received {
            self.fail(at, why, now);
            return true;
        }
        closing |= link.engine.as_ref().is_some_and(Engine::is_closed);
        closing |= self.plan.connect != Connect::Warm && self.once[at].is_none();
        if matches!(received, Ok(true)) && (link.flights.len() > 0 || link.engine.is_none()) {
            self.fail(at, "closed by the server", now);
            return true;
        }
        if closing && link.flights.len() == 0 {
            link.finish(&mut self.tally);
            self.begin_more(at);
            return true;
        }
        false
    }

    pub(super) fn complete(&mut self, flight: Flight, now: u64) {
        let tally = &mut self.tally;
        tally.done += 1;
        tally.statuses[usize::from(flight.status / 100).min(9)] += 1;
        tally.sample(Kind::Service, flight.sent_ns, now);
        tally.sample(Kind::FirstByte, flight.sent_ns, flight.first_ns);
        if self.plan.rate.is_some() {
            tally.sample(Kind::Response, flight.intended_ns, now);
        }
        let bin = ((now - self.begin_ns) / BIN_NS) as usize;
        if tally.bins.len() <= bin {
            tally.bins.resize(bin + 1, 0);
        }
        tally.bins[bin] += 1;
        self.last_ns = now;
        if tally.done.is_multiple_of(PROGRESS) {
            self.shared.ended.fetch_add(PROGRESS, Ordering::Relaxed);
        }
    }

    /// Has the samples judged that are over.
    pub(super) fn settle(&mut self) {
        if let Some(judge) = self.judge {
            self.tally.settle(judge);
        }
    }

    pub(super) fn count_error(&mut self, why: &str, times: u64, now: u64) {
        self.tally.error(why, times);
        self.last_ns = self.last_ns.max(now);
    }

    /// A connection has failed, and with it what was under way on it.
    pub(super) fn fail(&mut self, at: usize, why: &str, now: u64) {
        let link = &mut self.links[at];
        let lost = link.flights.drain().count() as u64;
        link.close();
        link.retry_ns = now + RETRY_NS;
        let waited = u64::from(self.once[at].take().is_some());
        if lost + waited == 0 && self.running && self.plan.rate.is_none() {
            // So that a run against a server that is not there comes to its end.
            self.take_budget(now);
        }
        self.count_error(why, (lost + waited).max(1), now);
        if self.answers_nothing() {
            self.until_ns = Some(now);
        }
    }

    /// Whether nothing of many tries has come to a response: the server is not there, or is another one. A constant rate
    /// goes on, for it may be there to see when the server comes back.
    fn answers_nothing(&self) -> bool {
        let tries = TRIES_MAX * self.links.len() as u64;
        self.running
            && self.plan.rate.is_none()
            && self.tally.done == 0
            && self.tally.failed() >= tries
    }

    /// What has to be looked at now and then: what takes too long, and what may be tried again.
    pub(super) fn tick(&mut self, now: u64) {
        self.settle();
        let most = self.plan.timeout_ns;
        for at in 0..self.links.len() {
            let link = &self.links[at];
            let since = match link.stage {
                Stage::Closed => {
                    self.begin_more(at);
                    continue;
                }
                Stage::Connecting | Stage::Handshake => Some(link.begun_ns),
                Stage::Open => link.flights.oldest().map(|flight| flight.sent_ns),
            };
            let why = match link.stage {
                Stage::Connecting => "connect: timed out",
                Stage::Handshake => "tls: handshake timed out",
                _ => "response: timed out",
            };
            if since.is_some_and(|since| now.saturating_sub(since) > most) {
                self.fail(at, why, now);
            }
        }
    }
}
