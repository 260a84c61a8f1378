//! The checker of one connection. It sees the bytes on the wire and the clock, but no state of the server.

use driver::worker::conn::ENDED_MS;
use sim::{ClosedBy, Link, Moment, Wire};

use super::expect::{self, Circumstances, whole_body};
use super::limits::{Due, Limits};
use super::response::{self, Framed, Read, Response};
use super::script::{Expected, Request};
use super::site::{CONFS, Site, completed_of, log_entries_of};

/// State of a run shared by its connections.
pub(crate) struct RunContext<'a> {
    pub(crate) site: &'a Site,
    /// Index of the configuration of each generation, from number 1.
    pub(crate) generations: &'a [usize],
    /// The current generation.
    pub(crate) generation: u64,
    /// The worker is stopping: connections close after their response.
    pub(crate) stopping: bool,
}

/// A completely sent response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) end: usize,
    at_ms: u64,
}

/// State of the checker.
pub(crate) struct Checker {
    pub(crate) requests: Vec<Request>,
    /// Offset of each request in the client's bytes, and the total length.
    pub(super) starts: Vec<usize>,
    pub(super) answered: Vec<Answered>,
    /// No response may follow.
    pub(super) over: bool,
    /// Minimum number of sent bytes at which the response in progress may be complete.
    need: usize,
    /// The oldest generation that may still answer.
    generation: u64,
    closed: bool,
    /// Time of the last check, and the longest time between two checks.
    looked_ms: u64,
    gap_ms: u64,
    /// A timeout has closed it, or may have.
    pub(crate) expired: bool,
}

impl Checker {
    pub(crate) fn new(requests: Vec<Request>) -> Self {
        let mut starts = vec![0];
        for request in &requests {
            starts.push(starts[starts.len() - 1] + request.wire.len());
        }
        Self {
            requests,
            starts,
            answered: Vec::new(),
            over: false,
            need: 1,
            generation: 0,
            closed: false,
            looked_ms: u64::MAX,
            gap_ms: 0,
            expired: false,
        }
    }

    /// Returns the number of answered requests.
    pub(crate) fn answered(&self) -> usize {
        self.answered.len()
    }

    /// Returns the end of the `n`th request in the client's bytes.
    pub(crate) fn end_of(&self, n: usize) -> usize {
        self.starts[(n + 1).min(self.starts.len() - 1)]
    }

    /// Checks the bytes received since the last call.
    ///
    /// # Errors
    /// A description of the error.
    pub(crate) fn look(
        &mut self,
        link: &Link,
        now_ms: u64,
        context: &RunContext<'_>,
    ) -> Result<(), String> {
        if self.closed {
            return Ok(());
        }
        self.gap_ms = self.gap_ms.max(now_ms.saturating_sub(self.looked_ms));
        self.looked_ms = now_ms;
        let wire = link.wire.borrow();
        if let Some(violation) = wire.violations.first() {
            return Err(violation.clone());
        }
        self.read(&wire, link, context)?;
        if completed_of(link.serial) > self.answered.len() {
            return Err("the log has a response that is not sent whole".to_owned());
        }
        if wire.shutdown_ms.is_some() && !self.over {
            // The invalid part of a body may come before its last byte.
            let broken = self.answered.last().is_some()
                && self.requests[self.answered.len() - 1].want == Expected::BrokenBody;
            if link.drained_at.is_none() && !context.stopping && !wire.fin_seen && !broken {
                return Err("the server ended its side for no reason".to_owned());
            }
            self.over = true;
        }
        if let Some(closed) = link.closed {
            self.closed = true;
            let log_entries = log_entries_of(link.serial);
            self.close(&wire, link, closed, context)?;
            if self.expired
                && closed.1 == ClosedBy::Turn
                && !wire.fin_seen
                && self.has_part(&wire)
                && log_entries.len() != self.answered.len() + 1
            {
                return Err(format!(
                    "no line in the log for a head that did not come in time: {log_entries:?}"
                ));
            }
            return self.compare_log(&wire, &log_entries);
        }
        if self.over && self.all_sent(&wire) && wire.shutdown_ms.is_none() && !wire.is_reset() {
            return Err("open after its last response was sent".to_owned());
        }
        if let Some(number) = link.swept
            && self.is_older(&wire, number)
        {
            return Err(format!("a response of before generation {number} goes on"));
        }
        let due = self.due(&wire, link, context);
        if due.latest_ms <= now_ms && !wire.is_reset() {
            return Err(format!("open at {now_ms} ms, {due:?}"));
        }
        Ok(())
    }

    /// Reads responses from the wire.
    fn read(&mut self, wire: &Wire, link: &Link, context: &RunContext<'_>) -> Result<(), String> {
        let sent = wire.sent();
        if let Some(last) = self.answered.len().checked_sub(1)
            && self.requests[last].want == Expected::BrokenBody
        {
            self.over |= wire.taken() >= self.starts[last + 1];
        }
        loop {
            let start = self.answered.last().map_or(0, |a| a.end);
            let ended = wire.closed || wire.shutdown_ms.is_some();
            if sent.len() == start || (sent.len() < self.need && !ended) {
                return Ok(());
            }
            let index = self.answered.len();
            if self.over || index == self.requests.len() {
                let text =
                    String::from_utf8_lossy(&sent[start..sent.len().min(start + 60)]).into_owned();
                return Err(format!("bytes that nobody asked for: {text:?}"));
            }
            let request = &self.requests[index];
            if wire.taken() <= self.starts[index] {
                return Err(format!("an answer to request {index}, which was not read"));
            }
            let read = match request.version {
                9 => raw(request, &sent[start..], ended, context),
                _ => response::read(&sent[start..], request.is_head)?,
            };
            let response = match read {
                Read::Whole(response) => response,
                Read::More(len) => {
                    self.need = start + len;
                    return self.check_part(&sent[start..], index, context);
                }
            };
            self.answer(&response, index, start, wire, link, context)?;
        }
    }

    /// Compares a complete response with its request.
    fn answer(
        &mut self,
        response: &Response,
        index: usize,
        start: usize,
        wire: &Wire,
        link: &Link,
        context: &RunContext<'_>,
    ) -> Result<(), String> {
        let request = &self.requests[index];
        let end = start + response.len;
        let head_end = self.starts[index] + request.head_len;
        // An invalid head may be refused before its end.
        let refused = matches!(request.want, Expected::Refused(_));
        let received = reached(
            &wire.takes,
            if refused {
                self.starts[index] + 1
            } else {
                head_end
            },
        );
        let begun = reached(&wire.puts, start + 1);
        let told = reached(&wire.puts, end);
        let oldest = received
            .map_or(0, |m| m.generation)
            .max(self.generation)
            .max(link.accepted.1);
        let newest = begun.map_or(oldest, |m| m.generation);
        let confs: Vec<usize> = (oldest..=newest)
            .map(|n| context.generations[n as usize - 1])
            .collect();
        let drained_at = link.drained_at;
        let around = Circumstances {
            count: index + 1,
            may_end: drained_at.is_some() || wire.is_ended() || context.stopping,
            must_end: drained_at.is_some_and(|(taken, _)| head_end > taken),
        };
        expect::check(response, request, &confs, around, context.site)
            .map_err(|e| format!("request {index} ({:?}): {e}", request.want))?;
        if let (Some(received), Some(begun)) = (received, begun)
            && request.wait_ms > 0
            && begun.at_ms < received.at_ms + request.wait_ms
        {
            return Err(format!("request {index} waited for too short a time"));
        }
        let broken = request.want == Expected::BrokenBody && wire.taken() >= self.starts[index + 1];
        self.over = request.version == 9 || response.field("Connection") == Some("close") || broken;
        let (at_ms, newest) = told.map_or((0, newest), |m| (m.at_ms, newest.min(m.generation)));
        self.generation = if confs.len() == 1 {
            newest
        } else {
            self.generation
        };
        self.answered.push(Answered {
            status: response.status,
            end,
            at_ms,
        });
        self.need = end + 1;
        Ok(())
    }

    /// Checks the received part of a body. The rest may never come.
    fn check_part(
        &self,
        bytes: &[u8],
        index: usize,
        context: &RunContext<'_>,
    ) -> Result<(), String> {
        let request = &self.requests[index];
        if request.version < 10 || !matches!(request.want, Expected::File(_) | Expected::Part(..)) {
            return Ok(());
        }
        let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
            return Ok(());
        };
        let body = whole_body(&request.want, &CONFS[0], context.site).unwrap_or_default();
        if body.starts_with(&bytes[end + 4..]) {
            return Ok(());
        }
        Err(format!(
            "request {index} ({:?}): a wrong byte in a part of the body",
            request.want
        ))
    }

    /// Whether the server has received the complete head of a request.
    pub(super) fn has_begun(&self, wire: &Wire, index: usize) -> bool {
        let Some(request) = self.requests.get(index) else {
            return false;
        };
        let partly =
            matches!(request.want, Expected::Refused(_)) && wire.taken() > self.starts[index];
        partly || wire.taken() >= self.starts[index] + request.head_len
    }

    /// Whether a handler waits for the rest of a request's body.
    pub(super) fn waits_for_body(&self, wire: &Wire, index: usize) -> bool {
        let stored = |request: &Request| matches!(request.want, Expected::Stored(_));
        self.requests.get(index).is_some_and(stored) && wire.taken() < self.starts[index + 1]
    }

    /// Whether a response may wait for the end of a chunked request body. It may, unless the client pauses for long
    /// (docs/differences.md, `client_max_body_size`).
    pub(super) fn may_be_held(&self, wire: &Wire, index: usize, now_ms: u64) -> bool {
        let chunked = b"\nTransfer-Encoding: chunked";
        let is_held = |request: &Request| {
            let mut words = request.wire[..request.head_len].windows(chunked.len());
            !request.expects && words.any(|word| word == chunked)
        };
        let taken = wire.takes.last().map_or(0, |last| last.at_ms);
        // A response after another one is ready when that one was sent.
        let last = self.answered.last().map_or(taken, |a| a.at_ms.max(taken));
        self.requests.get(index).is_some_and(is_held)
            && wire.taken() < self.starts[index + 1]
            && now_ms < last + PAUSE_MS
    }

    /// Whether a response in progress began before this generation.
    fn is_older(&self, wire: &Wire, number: u64) -> bool {
        let start = self.answered.last().map_or(0, |a| a.end);
        wire.sent().len() > start
            && reached(&wire.puts, start + 1).is_some_and(|m| m.generation < number)
    }

    /// Whether an invalid head is received in part. The server may refuse it before its end, but need not.
    pub(super) fn is_partly_refused(&self, wire: &Wire, index: usize) -> bool {
        let Some(request) = self.requests.get(index) else {
            return false;
        };
        matches!(request.want, Expected::Refused(_))
            && wire.taken() < self.starts[index] + request.head_len
    }

    /// Whether the server has a part of a head and nothing else to do.
    fn has_part(&self, wire: &Wire) -> bool {
        let next = self.answered.len();
        let Some(request) = self
            .requests
            .get(next)
            .filter(|_| !self.over && self.all_sent(wire))
        else {
            return false;
        };
        let part = wire
            .taken()
            .checked_sub(self.starts[next])
            .and_then(|len| request.wire.get(..len))
            .unwrap_or_default();
        wire.taken() < self.starts[next] + request.head_len
            && part.iter().any(|b| !matches!(b, b'\r' | b'\n'))
    }

    /// Whether no incomplete response is on the wire. An interim one before an awaited body does not count.
    pub(super) fn all_sent(&self, wire: &Wire) -> bool {
        let next = self.answered.len();
        let sent = &wire.sent()[self.answered.last().map_or(0, |a| a.end)..];
        sent.is_empty() || (CONTINUE.starts_with(sent) && self.waits_for_body(wire, next))
    }

    /// Returns the time at which the connection is closed if nothing else happens.
    pub(super) fn due(&self, wire: &Wire, link: &Link, context: &RunContext<'_>) -> Due {
        let limits = Limits::of(
            (link.accepted.1..=context.generation)
                .map(|n| &CONFS[context.generations[n as usize - 1]]),
        );
        let accepted = link.accepted.0;
        let last_in = wire.takes.last().map_or(accepted, |m| m.at_ms);
        let last_out = wire.puts.last().map_or(accepted, |m| m.at_ms);
        if let Some(since) = wire.shutdown_ms {
            let linger = limits
                .linger
                .after(since)
                .or_sooner(limits.linger_idle.after(since.max(last_in)));
            let settled = link.drained_at.is_some() || context.stopping;
            return if settled {
                linger.or_either(Due::at(since + ENDED_MS))
            } else {
                linger
            };
        }
        let (taken, next) = (wire.taken(), self.answered.len());
        if taken == 0 {
            return limits.header.after(accepted);
        }
        let last = last_in.max(last_out);
        let sent = self.all_sent(wire);
        let begun = !self.over && self.has_begun(wire, next);
        let partly = self.is_partly_refused(wire, next);
        if !sent {
            return limits.send.after(last_out);
        }
        if begun && self.waits_for_body(wire, next) {
            // The timeout of a body starts at its last piece. Bytes of its framing do not restart it.
            let received = reached(&wire.takes, self.starts[next] + 1).map_or(last_in, |m| m.at_ms);
            return limits.send.between(received, last);
        }
        if begun && !partly {
            let received =
                reached(&wire.takes, self.starts[next] + 1).map_or(accepted, |m| m.at_ms);
            let wait = self.requests[next].wait_ms;
            // A waiting request continues in the first turn of the loop after its time.
            let late = if wait > 0 { self.gap_ms } else { 0 };
            return limits
                .send
                .between(last_out.max(received), last + wait + late);
        }
        let boundary = self.starts[next];
        if taken < boundary {
            let since = self.answered.last().map_or(last_out, |a| a.at_ms);
            return limits
                .linger
                .after(since)
                .or_sooner(limits.linger_idle.after(since.max(last_in)));
        }
        let idle = limits.idle.after(last);
        if taken == boundary {
            return idle;
        }
        let received = match next {
            // The timeout of the first head starts at the accept.
            0 => accepted,
            _ => reached(&wire.takes, boundary + 1).map_or(last_in, |m| m.at_ms),
        };
        let head = limits.header.between(received, last_out.max(received));
        let request = self.requests.get(next).map_or(&b""[..], |r| &r.wire);
        let seen = &request[..request.len().min(taken - boundary)];
        match seen.iter().all(|b| matches!(b, b'\r' | b'\n')) {
            // Line ends before a request count as idle, or as part of the next head.
            true => idle.or_either(limits.header.after(last)).or_either(head),
            false if partly => head.or_either(limits.send.between(received, last)),
            false => head,
        }
    }
}

/// Reads an HTTP/0.9 response: the received bytes at the end, if they match a configuration. Otherwise it is the start
/// of a response.
fn raw(request: &Request, bytes: &[u8], ended: bool, context: &RunContext<'_>) -> Read {
    let mut bodies = CONFS
        .iter()
        .filter_map(|conf| whole_body(&request.want, conf, context.site));
    if !ended || !bodies.any(|body| body == bytes) {
        return Read::More(0);
    }
    Read::Whole(Response {
        interim: 0,
        status: 0,
        fields: Vec::new(),
        body: bytes.to_vec(),
        trailers: Vec::new(),
        framed: Framed::UntilClose,
        len: bytes.len(),
    })
}

/// The interim response to `Expect: 100-continue` (RFC 9110 section 15.2.1).
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Returns the moment at which the total reached this number of bytes.
pub(super) fn reached(timings: &[Moment], total: usize) -> Option<Moment> {
    timings
        .get(timings.partition_point(|m| m.total < total))
        .copied()
}

/// Pause of a client within a body after which the response is sent, milliseconds.
const PAUSE_MS: u64 = 250;
