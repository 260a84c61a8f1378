//! Samples of the queues at listeners: how many connections have waited for how long.
//!
//! Absent: listeners and the clock, which are the thread's.

use std::collections::{HashMap, VecDeque};

/// Connections that wait for a place.
#[derive(Debug, Default)]
pub(super) struct Overload {
    /// Those at listeners, by port.
    pub(super) queues: HashMap<usize, Queue>,
    /// When to log again that connections were refused, monotonic milliseconds.
    pub(super) log_after_ms: u64,
    /// Whether a request may wait for a place that it holds itself.
    pub(super) waits_for_itself: bool,
    /// When to look for such a request again, monotonic milliseconds.
    pub(super) check_ms: u64,
}

impl Overload {
    /// Whether no connection waits.
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }
}

/// Samples of the queue of one listener, oldest first.
#[derive(Debug, Default)]
pub(super) struct Queue(VecDeque<QueueSample>);

/// The length of a listener's queue at one time.
#[derive(Clone, Copy, Debug)]
struct QueueSample {
    /// Monotonic milliseconds.
    at_ms: u64,
    /// Number of connections taken by the time that the last waiting one is taken.
    until: u64,
}

impl Queue {
    /// Records that `waiting` connections are behind the `taken` ones.
    pub(super) fn record(&mut self, now_ms: u64, taken: u64, waiting: u64) {
        let last = self.0.back();
        if last.is_some_and(|last| now_ms.saturating_sub(last.at_ms) > GAP_MS) {
            // It may have been empty since the last sample.
            self.0.clear();
        }
        let last = self.0.back();
        if last.is_none_or(|last| now_ms >= last.at_ms + SAMPLE_MS) {
            self.0.push_back(QueueSample {
                at_ms: now_ms,
                until: taken + waiting,
            });
        }
    }

    /// The number of connections that have waited for at least `patience_ms`.
    pub(super) fn due(&mut self, now_ms: u64, taken: u64, patience_ms: u64) -> u64 {
        let mut due = 0;
        let is_old = |sample: &mut QueueSample| now_ms.saturating_sub(sample.at_ms) >= patience_ms;
        while let Some(sample) = self.0.pop_front_if(is_old) {
            due = due.max(sample.until.saturating_sub(taken));
        }
        due
    }
}

/// Time between two samples, milliseconds.
pub(super) const SAMPLE_MS: u64 = 20;
/// Time without a sample after which a queue counts as empty, milliseconds: more than two pauses of accepting.
const GAP_MS: u64 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_is_due_when_it_has_waited() {
        let mut queue = Queue::default();
        // Three wait behind ten that were taken; one of them is taken later, and two come.
        queue.record(1000, 10, 3);
        queue.record(1050, 11, 4);
        assert_eq!(queue.due(1099, 11, 100), 0);
        assert_eq!(queue.due(1100, 11, 100), 2);
        // Of the last two, one is left.
        assert_eq!(queue.due(1149, 13, 100), 0);
        assert_eq!(queue.due(1150, 14, 100), 1);
        assert_eq!(queue.due(9999, 15, 100), 0);
    }

    #[test]
    fn what_others_have_taken_is_not_due() {
        let mut queue = Queue::default();
        queue.record(0, 10, 3);
        assert_eq!(queue.due(500, 13, 500), 0);
        let mut queue = Queue::default();
        queue.record(0, 10, 3);
        assert_eq!(queue.due(500, 1000, 500), 0);
    }

    #[test]
    fn notes_before_a_gap_count_no_more() {
        let mut queue = Queue::default();
        queue.record(0, 0, 5);
        queue.record(GAP_MS, 0, 5);
        assert_eq!(queue.0.len(), 2);
        queue.record(2 * GAP_MS + 1, 0, 5);
        assert_eq!(queue.0.len(), 1);
        // And there is one in a while.
        queue.record(2 * GAP_MS + SAMPLE_MS, 0, 5);
        assert_eq!(queue.0.len(), 1);
        queue.record(2 * GAP_MS + 1 + SAMPLE_MS, 0, 5);
        assert_eq!(queue.0.len(), 2);
    }
}
