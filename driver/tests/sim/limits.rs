//! Times at which a timeout may and must close a connection.
//!
//! During a change of the configuration, timeouts of both configurations may apply. So each time is a range.

use super::site::Conf;

/// A timeout: minimum and maximum over the configurations that may apply, milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    least_ms: u64,
    most_ms: u64,
}

/// Earliest and latest time of a close.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) earliest_ms: u64,
    pub(crate) latest_ms: u64,
}

/// The timeouts that may apply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) header: Span,
    pub(crate) send: Span,
    pub(crate) idle: Span,
    pub(crate) linger: Span,
    pub(crate) linger_idle: Span,
}

impl Limits {
    /// Returns the ranges for these configurations.
    pub(crate) fn of<'a>(confs: impl Iterator<Item = &'a Conf> + Clone) -> Self {
        let span = |time: fn(&Conf) -> u64| Span {
            least_ms: confs.clone().map(time).min().unwrap_or(0),
            most_ms: confs.clone().map(time).max().unwrap_or(0),
        };
        Self {
            header: span(|c| c.header_ms),
            send: span(|c| c.send_ms),
            idle: span(|c| c.idle_ms),
            linger: span(|c| c.linger_ms),
            linger_idle: span(|c| c.linger_idle_ms),
        }
    }
}

impl Span {
    /// Returns the range if the timeout starts at `since_ms`.
    pub(crate) fn after(self, since_ms: u64) -> Due {
        self.between(since_ms, since_ms)
    }

    /// Returns the range if the timeout starts between the two times.
    pub(crate) fn between(self, first_ms: u64, last_ms: u64) -> Due {
        Due {
            earliest_ms: first_ms + self.least_ms,
            latest_ms: last_ms + self.most_ms,
        }
    }
}

impl Due {
    /// Exactly this time.
    pub(crate) fn at(time_ms: u64) -> Self {
        Self {
            earliest_ms: time_ms,
            latest_ms: time_ms,
        }
    }

    /// The earlier one of two times.
    pub(crate) fn or_sooner(self, other: Self) -> Self {
        Self {
            earliest_ms: self.earliest_ms.min(other.earliest_ms),
            latest_ms: self.latest_ms.min(other.latest_ms),
        }
    }

    /// Either of two times.
    pub(crate) fn or_either(self, other: Self) -> Self {
        Self {
            earliest_ms: self.earliest_ms.min(other.earliest_ms),
            latest_ms: self.latest_ms.max(other.latest_ms),
        }
    }
}
