//! Failures that last: reports of their begin and end, and pauses between tries.

use std::time::{Duration, Instant};

use crate::counters::{Report, Reports};

/// State of a piece of work that may fail.
#[derive(Debug, Default)]
pub(crate) struct Failing(Option<Failure>);

#[derive(Debug)]
struct Failure {
    since: Instant,
    reason: String,
    /// Failures in a row.
    count: u32,
}

impl Failing {
    /// Whether the last try failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.0.is_some()
    }

    /// Notes a success, and reports the end of a failure.
    pub(crate) fn succeeded(&mut self, reports: &Reports) {
        if let Some(failure) = self.0.take() {
            let after = failure.since.elapsed();
            reports.send(Report::Recovered { after });
        }
    }

    /// Notes a failure, and reports it if its reason is new.
    pub(crate) fn failed(&mut self, reason: String, reports: &Reports) {
        let last = self.0.take();
        if last.as_ref().is_none_or(|last| last.reason != reason) {
            let reason = reason.clone();
            reports.send(Report::CannotWrite { reason });
        }
        self.0 = Some(Failure {
            since: last.as_ref().map_or_else(Instant::now, |last| last.since),
            count: last.map_or(1, |last| last.count.saturating_add(1)),
            reason,
        });
    }

    /// Time until the next try: the first pause, doubled with each failure but for so many times.
    pub(crate) fn pause(&self, first: Duration, doublings: u32) -> Option<Duration> {
        let failure = self.0.as_ref()?;
        Some(first * (1 << (failure.count - 1).min(doublings)))
    }
}
