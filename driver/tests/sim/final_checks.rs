//! Checks when nothing happens or a connection is closed: reasons, losses, lingering and the log.

use sim::{ClosedBy, Link, Moment, Wire};

use super::checker::{Checker, RunContext};
use super::script::{Expected, Linger};
use super::site::{LogEntry, log_entries_of};

impl Checker {
    /// Checks that the server had a reason to close, and that nothing is missing.
    pub(super) fn close(
        &mut self,
        wire: &Wire,
        link: &Link,
        (at_ms, by): (u64, ClosedBy),
        context: &RunContext<'_>,
    ) -> Result<(), String> {
        if wire.reset_seen || by == ClosedBy::Command {
            return Ok(());
        }
        let due = self.due(wire, link, context);
        let in_time = due.earliest_ms > at_ms;
        self.expired = !in_time;
        let next = self.answered.len();
        let dropped =
            !self.over && self.has_begun(wire, next) && self.requests[next].want == Expected::Drop;
        let missing = !self.over
            && self.has_begun(wire, next)
            && !dropped
            && !self.is_abandoned(wire, next)
            && !self.is_partly_refused(wire, next);
        if in_time && !self.all_sent(wire) {
            return Err(format!(
                "closed at {at_ms} ms inside of response {next}, {due:?}"
            ));
        }
        let settled = link.drained_at.is_some() || context.stopping;
        if in_time && missing && !settled {
            return Err(format!(
                "closed at {at_ms} ms without an answer to request {next}, {due:?}"
            ));
        }
        if in_time && !self.over && !wire.fin_seen && !dropped && !settled {
            return Err(format!("closed at {at_ms} ms for no reason, {due:?}"));
        }
        if self.over && in_time {
            self.check_linger(wire)?;
        }
        if wire.closed_on_input && in_time && !dropped && self.linger() != Linger::Off {
            return Err("closed on input that it knew of".to_owned());
        }
        Ok(())
    }

    /// Whether the client has ended its side during a delayed request, without a later request.
    fn is_abandoned(&self, wire: &Wire, next: usize) -> bool {
        let last = self.starts.get(next + 1) == Some(&wire.taken());
        let waits = !self.over && self.requests.get(next).is_some_and(|r| r.wait_ms > 0);
        let held = (last && waits) || (!self.over && self.waits_for_body(wire, next));
        held && wire.fin_seen && self.all_sent(wire)
    }

    /// Returns the required way of closing after the last response.
    fn linger(&self) -> Linger {
        match self.answered.len() {
            0 => Linger::On,
            n => self.requests[n - 1].linger,
        }
    }

    /// Checks that the server continued reading after the last response, if required.
    fn check_linger(&self, wire: &Wire) -> Result<(), String> {
        let last = self.answered.len() - 1;
        let more = match self.requests[last].want {
            Expected::Refused(_) | Expected::BrokenBody => true,
            _ => wire.taken() != self.starts[last + 1],
        };
        let must = match self.linger() {
            Linger::Off => {
                return if wire.shutdown_ms.is_some() {
                    Err("lingers".to_owned())
                } else {
                    Ok(())
                };
            }
            Linger::On => more && !wire.is_ended(),
            Linger::Always => !wire.is_reset(),
        };
        if must && wire.shutdown_ms.is_none() {
            return Err("closed at once where the client may be sending".to_owned());
        }
        if wire.shutdown_ms.is_some() && !wire.fin_seen {
            return Err("ended to linger before its time".to_owned());
        }
        Ok(())
    }

    /// Compares the log with the wire.
    pub(super) fn compare_log(&self, wire: &Wire, log_entries: &[LogEntry]) -> Result<(), String> {
        let bytes: u64 = log_entries.iter().map(|n| n.bytes_sent).sum();
        let sent = wire.sent().len() as u64;
        if bytes != sent {
            return Err(format!(
                "{sent} bytes were sent, the log says {bytes}: {log_entries:?}"
            ));
        }
        let completed = log_entries.iter().take_while(|n| n.completed).count();
        if completed != self.answered.len() || log_entries[completed..].iter().any(|n| n.completed)
        {
            return Err(format!(
                "{} responses, the log says {log_entries:?}",
                self.answered.len()
            ));
        }
        let mut start = 0;
        for (entry, answered) in log_entries.iter().zip(&self.answered) {
            let raw = answered.status == 0;
            if (entry.status != answered.status && !raw)
                || entry.bytes_sent != (answered.end - start) as u64
            {
                return Err(format!("{entry:?} for {answered:?}"));
            }
            start = answered.end;
        }
        let most = self.requests.len() + 1;
        if log_entries.len() > most {
            Err(format!("{} lines in the log", log_entries.len()))
        } else {
            Ok(())
        }
    }

    /// Checks that no request is unanswered. Called when nothing happens until time advances.
    pub(crate) fn quiet(
        &self,
        link: &Link,
        now_ms: u64,
        context: &RunContext<'_>,
    ) -> Result<(), String> {
        let wire = link.wire.borrow();
        if wire.closed || wire.is_full() {
            return Ok(());
        }
        let next = self.answered.len();
        let begun = !self.over && self.has_begun(&wire, next);
        // The received part of an awaited body must have been read; this is checked below.
        let uploads = begun && self.waits_for_body(&wire, next);
        let answerable = !uploads
            && !self.is_partly_refused(&wire, next)
            && !self.may_be_held(&wire, next, now_ms);
        if begun && self.requests[next].wait_ms == 0 && answerable {
            return Err(format!("request {next} is not answered at {now_ms} ms"));
        }
        let waits = begun && self.requests[next].wait_ms > 0;
        if wire.is_reset() && !waits {
            return Err("open though reset".to_owned());
        }
        if wire.waiting() > 0 && !waits {
            return Err(format!("{} bytes are not read", wire.waiting()));
        }
        if self.is_abandoned(&wire, next) {
            return Err(format!("request {next} waits though the client is gone"));
        }
        if wire.is_ended() && !waits {
            return Err("open after the client's end".to_owned());
        }
        let idle = wire.taken() == self.starts[next] && !begun;
        let drained_at = link
            .drained_at
            .is_some_and(|(_, sent)| self.answered.last().is_some_and(|a| a.end > sent));
        if idle && next > 0 && wire.shutdown_ms.is_none() && (context.stopping || drained_at) {
            return Err("kept though no further request is wanted".to_owned());
        }
        Ok(())
    }

    /// Returns the log of the connection, for debugging.
    pub(crate) fn story(&self, link: &Link) -> String {
        let wire = link.wire.borrow();
        let mut story = String::new();
        for (request, start) in self.requests.iter().zip(&self.starts) {
            let text =
                String::from_utf8_lossy(&request.wire[..request.wire.len().min(STORY_BYTES)])
                    .into_owned();
            let (head, len) = (request.head_len, request.wire.len());
            story += &format!(
                "  request at {start}, head {head}, length {len}, {:?}: {text:?}\n",
                request.want
            );
        }
        story += &format!(
            "  accepted {:?}, retired {:?}, closed {:?}\n",
            link.accepted, link.drained_at, link.closed
        );
        story += &format!(
            "  read{}; {} bytes wait\n  sent{}\n",
            timings(&wire.takes),
            wire.waiting(),
            timings(&wire.puts)
        );
        story += &format!(
            "  end sent {}, read {}; shutdown {:?}\n",
            wire.is_ended(),
            wire.fin_seen,
            wire.shutdown_ms
        );
        story += &format!(
            "  {:?}, over: {}, log {:?}",
            self.answered,
            self.over,
            log_entries_of(link.serial)
        );
        story
    }
}

/// Formats the last moments.
pub(super) fn timings(list: &[Moment]) -> String {
    let skipped = list.len().saturating_sub(STORY_MOMENTS);
    let shown = list[skipped..].iter();
    shown.map(|m| format!(" {}@{}", m.total, m.at_ms)).collect()
}

/// Maximum number of request bytes, and of moments per direction, in a log.
const STORY_BYTES: usize = 160;
const STORY_MOMENTS: usize = 12;
