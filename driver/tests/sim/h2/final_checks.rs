//! Checks the server's reasons for resets, GOAWAY, the close, and doing nothing.

use engines::h2::{
    FLOW_CONTROL_ERROR, INTERNAL_ERROR, NO_ERROR, PREFACE, PROTOCOL_ERROR, REFUSED_STREAM,
};
use sim::{ClosedBy, Link, Wire};

use super::super::checker::{RunContext, reached};
use super::super::limits::Limits;
use super::super::site::{CONFS, LogEntry, log_entries_of};
use super::requests::Expected;
use super::{Peer, Stream};

impl Peer {
    /// Returns the timeouts of the configurations that may apply.
    fn limits(link: &Link, context: &RunContext<'_>) -> Limits {
        let numbers = link.accepted.1..=context.generation;
        Limits::of(numbers.map(|n| &CONFS[context.generations[n as usize - 1]]))
    }

    /// Checks the reason of a reset whose frame ends at `end`.
    pub(super) fn check_reset(
        &self,
        id: u32,
        code: u32,
        end: usize,
        wire: &Wire,
        link: &Link,
        context: &RunContext<'_>,
    ) -> Result<(), String> {
        let Some(stream) = self.streams.get(&id) else {
            return Err(format!("a reset of stream {id}, which is nobody's"));
        };
        let limits = Self::limits(link, context);
        let at_ms = reached(&wire.puts, end).map_or(u64::MAX, |m| m.at_ms);
        let received = reached(&wire.takes, stream.head.1).map(|m| m.at_ms);
        let begun = reached(&wire.takes, stream.head.0 + 1).map(|m| m.at_ms);
        let past = |since: Option<u64>, earliest_ms: fn(&Limits, u64) -> u64| {
            since.is_some_and(|since| earliest_ms(&limits, since) <= at_ms)
        };
        // A window may have been closed meanwhile. `check_quiet` checks that open windows are used.
        let stuck = past(received, |l, since| l.send.after(since).earliest_ms);
        let late = stream.status == 0 && past(begun, |l, since| l.header.after(since).earliest_ms);
        let known = stream.reset.is_none()
            && match code {
                NO_ERROR => stream.ended && stream.request.body.is_some(),
                PROTOCOL_ERROR => {
                    let broken = matches!(
                        stream.request.expected,
                        Expected::Malformed | Expected::WrongLength
                    );
                    (broken && stream.ended) || stuck || late
                }
                INTERNAL_ERROR => stream.request.expected == Expected::Drop && stream.status == 0,
                REFUSED_STREAM => {
                    stream.status == 0 && (stream.crowded || link.lost || context.stopping)
                }
                FLOW_CONTROL_ERROR => stream.sin == Some(code),
                _ => false,
            };
        // A cancelled or broken stream may have been reset before the server knew.
        if known {
            Ok(())
        } else {
            Err(format!("stream {id} is reset with {code} for no reason"))
        }
    }

    /// Checks the reason of a GOAWAY whose frame ends here.
    pub(super) fn check_goodbye(
        &mut self,
        last: u32,
        code: u32,
        end: usize,
        wire: &Wire,
        link: &Link,
        context: &RunContext<'_>,
    ) -> Result<(), String> {
        if code != NO_ERROR {
            return match self.sin {
                Some(sin) if sin == code => Ok(()),
                // A window above the limit may be the effect of settings.
                _ if code == FLOW_CONTROL_ERROR
                    && self.streams.values().any(|s| s.sin.is_some()) =>
                {
                    Ok(())
                }
                sin => Err(format!("the connection fails with {code}, not {sin:?}")),
            };
        }
        let answered = |(id, s): (&u32, &Stream)| (s.status != 0).then_some(*id);
        if let Some(id) = self.streams.iter().filter_map(answered).max()
            && id > last
        {
            return Err(format!("stream {id} was answered, the last is {last}"));
        }
        let at_ms = reached(&wire.puts, end).map_or(u64::MAX, |m| m.at_ms);
        let limits = Self::limits(link, context);
        let served = self.streams.range(..=last).map(|(_, stream)| stream);
        let known = |stream: &&Stream| reached(&wire.takes, stream.head.1).is_some();
        let received: Vec<&Stream> = served.filter(known).collect();
        let numbers = link.accepted.1..=context.generation;
        let most = numbers.map(|n| CONFS[context.generations[n as usize - 1]].requests);
        let enough = most.min().is_some_and(|most| received.len() >= most);
        let ordered = link.drained_at.is_some() || link.lost || context.stopping;
        let asked = received.iter().any(|stream| stream.request.last);
        if ordered || enough || asked || link.swept.is_some() || wire.fin_seen || wire.is_reset() {
            return Ok(());
        }
        // Idle, or stuck: there was nothing to do for the whole timeout.
        let idle = limits
            .idle
            .after(0)
            .earliest_ms
            .min(limits.header.after(0).earliest_ms);
        let least_ms = idle.min(limits.send.after(0).earliest_ms);
        // Output may have waited for room in the socket. The last request is the last known activity.
        let received = received
            .iter()
            .filter_map(|s| reached(&wire.takes, s.head.1));
        let since_ms = received.map(|m| m.at_ms).max().unwrap_or(link.accepted.0);
        self.expired = true;
        if since_ms + least_ms <= at_ms {
            Ok(())
        } else {
            Err(format!("a goodbye at {at_ms} ms for no reason"))
        }
    }

    /// Checks an open connection.
    pub(super) fn check_open(&self, wire: &Wire, now_ms: u64) -> Result<(), String> {
        // The server need not wait for a client that has ended.
        let received = wire.takes.last().map_or(0, |m| m.at_ms);
        if wire.fin_seen && received + A_DAY_MS < now_ms {
            return Err("open after the client's end".to_owned());
        }
        Ok(())
    }

    /// Checks that everything possible was sent. Called when nothing happens until time advances.
    pub(super) fn check_quiet(
        &self,
        link: &Link,
        now_ms: u64,
        _: &RunContext<'_>,
    ) -> Result<(), String> {
        let wire = link.wire.borrow();
        if wire.closed || wire.is_full() {
            return Ok(());
        }
        if wire.is_reset() || wire.is_ended() {
            return Err("open after the client's end".to_owned());
        }
        if wire.waiting() > 0 {
            return Err(format!("{} bytes are not read", wire.waiting()));
        }
        if wire.shutdown_ms.is_some() {
            return self.check_finished("ended");
        }
        if !self.has_said_all() {
            return Ok(());
        }
        if let Some(sin) = self.sin {
            return Err(format!("open though the protocol was broken, {sin}"));
        }
        if !self.pings.is_empty() || !self.pending_settings.is_empty() {
            return Err("PING or SETTINGS without an answer".to_owned());
        }
        for (id, stream) in &self.streams {
            let last = self.goaway.map_or(u32::MAX, |(last, _)| last);
            if stream.is_settled() || *id > last {
                continue;
            }
            let received = reached(&wire.takes, stream.head.1).map_or(0, |m| m.at_ms);
            let waits = stream.status == 0 && now_ms < received + stream.request.wait_ms;
            let blocked = stream.status != 0 && (stream.window <= 0 || self.window <= 0);
            if !waits && !blocked {
                return Err(format!("stream {id} is not answered at {now_ms} ms"));
            }
        }
        self.check_resets()
    }

    /// Checks that malformed messages were reset.
    fn check_resets(&self) -> Result<(), String> {
        let is_missing = |stream: &Stream| {
            let over = stream.ended && !stream.cancelled && stream.sin.is_none();
            over && stream.request.expected == Expected::Malformed && stream.reset.is_none()
        };
        match self.streams.iter().find(|(_, stream)| is_missing(stream)) {
            Some((id, _)) => Err(format!("stream {id} is not reset")),
            None => Ok(()),
        }
    }

    /// Checks that everything promised by GOAWAY was sent.
    fn check_finished(&self, how: &str) -> Result<(), String> {
        let Some((last, code)) = self.goaway else {
            return Err(format!("{how} without a goodbye"));
        };
        if code != NO_ERROR {
            return Ok(());
        }
        let is_missing = |id: u32, stream: &Stream| id <= last && !stream.is_settled();
        match self.streams.iter().find(|(id, s)| is_missing(**id, s)) {
            Some((id, _)) => Err(format!("{how} without an answer to stream {id}")),
            None => self.check_resets(),
        }
    }

    /// Checks the server's reason to close.
    pub(super) fn close(
        &mut self,
        wire: &Wire,
        link: &Link,
        (at_ms, by): (u64, ClosedBy),
        context: &RunContext<'_>,
    ) -> Result<(), String> {
        self.check_parts(context.site)?;
        let log_entries = log_entries_of(link.serial);
        if by == ClosedBy::Turn && !wire.reset_seen {
            self.compare_log(&log_entries, wire.is_blocked())?;
        }
        if wire.reset_seen || wire.fin_seen || by == ClosedBy::Command || link.swept.is_some() {
            return Ok(());
        }
        let limits = Self::limits(link, context);
        // The last frames may have left just now.
        let last_put = wire.puts.iter().rev().find(|m| m.at_ms < at_ms);
        let last_put = last_put.map_or(link.accepted.0, |m| m.at_ms);
        let stuck = limits.send.after(last_put).earliest_ms <= at_ms;
        let unspoken = wire.taken() < PREFACE.len()
            && limits.header.after(link.accepted.0).earliest_ms <= at_ms;
        let unfinished = match wire.shutdown_ms {
            Some(_) => self.check_finished("closed"),
            None => Err("closed at once".to_owned()),
        };
        self.expired |= stuck || unspoken;
        let mute = wire.is_blocked() && limits.linger_idle.after(last_put).earliest_ms <= at_ms;
        let gone = (link.drained_at.is_some() || context.stopping) && wire.taken() < PREFACE.len();
        match unfinished {
            // A full socket takes no GOAWAY.
            Err(_) if stuck || unspoken || gone || mute => Ok(()),
            other => other,
        }
    }

    /// Compares the log with the wire. If not all could be sent (`cut`), the last complete response may be logged as
    /// incomplete.
    fn compare_log(&self, log_entries: &[LogEntry], cut: bool) -> Result<(), String> {
        let completed = log_entries.iter().filter(|log| log.completed);
        let mut logged: Vec<(u16, u64)> = completed.map(|n| (n.status, n.bytes_sent)).collect();
        let ended = self.streams.values().filter(|stream| stream.ended);
        let mut seen: Vec<(u16, u64)> = ended.map(|s| (s.status, s.bytes)).collect();
        logged.sort_unstable();
        seen.sort_unstable();
        if cut {
            // One of two equal responses may be logged as complete.
            let mut rest = logged.clone();
            seen.retain(|one| {
                let at = rest.iter().position(|other| other == one);
                at.map(|at| rest.swap_remove(at)).is_some()
            });
        }
        if logged != seen {
            return Err(format!("the log says {log_entries:?}, the wire {seen:?}"));
        }
        if log_entries.len() > self.streams.len() + 1 {
            return Err(format!("{} lines in the log", log_entries.len()));
        }
        Ok(())
    }
}

/// Longer than any timeout here, milliseconds.
const A_DAY_MS: u64 = 86_400_000;
