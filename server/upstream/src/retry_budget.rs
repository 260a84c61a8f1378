//! Budgets of retries: retries are at most a share of the requests in progress to a group.
//!
//! A group that fails under load gets each request several times, which keeps it down. A budget ends this: with a
//! share of 20 %, five requests in progress allow one retry at a time. A minimum allows retries of few requests.
//! Threads share the counters of a group. A request counts from its first attempt until its response begins.
//!
//! Absent: the decision to retry, and its reasons (`server_http`).
//!
//! Source: Envoy documentation, `retry_budget` of circuit breakers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The limit of retries at a time, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    /// Retries as a share of the requests in progress, percent, 0 to 100.
    pub percent: u32,
    /// Retries that are always allowed.
    pub least: u32,
}

/// Requests and retries in progress, for one group.
#[derive(Debug, Default)]
pub struct RetryCounts {
    requests: AtomicU32,
    retries: AtomicU32,
}

/// One request in progress, and its retry if it has one. The drop uncounts both.
#[derive(Debug)]
pub struct CountedRequest {
    counts: Arc<RetryCounts>,
    is_retry: bool,
}

impl RetryBudget {
    /// Returns the number of retries allowed at a time, rounded down.
    fn most(self, requests: u32) -> u32 {
        let share = u64::from(requests) * u64::from(self.percent) / 100;
        u32::try_from(share).unwrap_or(u32::MAX).max(self.least)
    }
}

impl CountedRequest {
    /// Counts a request that begins.
    pub fn new(counts: &Arc<RetryCounts>) -> Self {
        counts.requests.fetch_add(1, Relaxed);
        Self {
            counts: Arc::clone(counts),
            is_retry: false,
        }
    }

    /// Ends the request's earlier retry. Counts another one and returns true, if the budget allows it.
    pub fn retry(&mut self, budget: RetryBudget) -> bool {
        self.end_retry();
        let counts = &self.counts;
        let most = budget.most(counts.requests.load(Relaxed));
        let more = |retries: u32| (retries < most).then_some(retries + 1);
        let counted = counts.retries.fetch_update(Relaxed, Relaxed, more);
        self.is_retry = counted.is_ok();
        self.is_retry
    }

    fn end_retry(&mut self) {
        if std::mem::take(&mut self.is_retry) {
            self.counts.retries.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.end_retry();
        self.counts.requests.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many requests in progress as `requests`, of which each tries to retry; returns the number of retries.
    fn retries(requests: usize, budget: RetryBudget) -> usize {
        let counts = Arc::new(RetryCounts::default());
        let new = |_| CountedRequest::new(&counts);
        let mut all: Vec<_> = (0..requests).map(new).collect();
        let retries = all
            .iter_mut()
            .filter_map(|one| one.retry(budget).then_some(()));
        let retries = retries.count();
        drop(all);
        assert_eq!(
            (counts.requests.load(Relaxed), counts.retries.load(Relaxed)),
            (0, 0)
        );
        retries
    }

    #[test]
    fn retries_are_a_share_of_the_requests_and_at_least_the_minimum() {
        let budget = |percent, least| RetryBudget { percent, least };
        for (requests, percent, least, expected) in [
            (100, 20, 3, 20),
            (99, 20, 3, 19),
            (20, 20, 3, 4),
            (19, 20, 3, 3),
            (3, 20, 3, 3),
            (2, 20, 3, 2),
            (4, 20, 0, 0),
            (5, 20, 0, 1),
            (10, 0, 0, 0),
            (10, 0, 4, 4),
            (10, 100, 0, 10),
        ] {
            let found = retries(requests, budget(percent, least));
            assert_eq!(found, expected, "{requests} {percent} {least}");
        }
        assert_eq!(budget(100, 0).most(u32::MAX), u32::MAX);
    }

    #[test]
    fn a_retry_ends_with_the_next_one_and_with_its_request() {
        let counts = Arc::new(RetryCounts::default());
        let budget = RetryBudget {
            percent: 0,
            least: 1,
        };
        let mut first = CountedRequest::new(&counts);
        let mut second = CountedRequest::new(&counts);
        assert!(first.retry(budget) && first.retry(budget));
        assert!(!second.retry(budget), "the first has the only one");
        drop(first);
        assert!(second.retry(budget));
        // A budget that allows none leaves none.
        assert!(!second.retry(RetryBudget {
            percent: 0,
            least: 0
        }));
        assert_eq!(counts.retries.load(Relaxed), 0);
    }

    #[test]
    fn threads_never_have_more_retries_than_the_budget() {
        let counts = Arc::new(RetryCounts::default());
        let budget = RetryBudget {
            percent: 0,
            least: 2,
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let mut one = CountedRequest::new(&counts);
                        one.retry(budget);
                        assert!(counts.retries.load(Relaxed) <= 2);
                    }
                });
            }
        });
        assert_eq!(
            (counts.requests.load(Relaxed), counts.retries.load(Relaxed)),
            (0, 0)
        );
    }
}
