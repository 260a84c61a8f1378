//! The time that the rate of a run counts.
//!
//! A run begins requests for some time, and then waits for the requests in progress. In a closed loop each place for a
//! request is in use until its own last response. The last response of all comes later than most. Counted to that one, ten
//! connections with exponential times lose a tenth of their rate in ten rounds.
//!
//! So the time counts until the beginning of the last request, plus the average wait of the requests in progress. Then the
//! ratio of responses and time is that of the mean time of a response, for any distribution (Wald's equation).
//!
//! A constant rate without delay needs no such wait: its time is that of the schedule.

/// The end of the requests of a thread, and its wait for those in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct End {
    /// Begin of the last request of the run, nanoseconds of the monotonic clock.
    pub(super) last_begun_ns: Option<u64>,
    /// Sum of the waits for requests in progress at that time, nanoseconds.
    pub(super) waited_ns: u64,
    /// Number of these requests.
    pub(super) waited: u64,
}

impl End {
    /// Counts requests that end now, with their responses or without.
    #[inline]
    pub(super) fn count(&mut self, requests: u64, until_ns: Option<u64>, now: u64) {
        if let Some(end) = self.last_begun_ns.or(until_ns).filter(|end| now > *end) {
            self.waited_ns += (now - end) * requests;
            self.waited += requests;
        }
    }

    /// The time that the rate counts, nanoseconds, if requests were begun for `window_ns`. `scheduled_ns` is the length of
    /// the schedule of a constant rate.
    pub(super) fn steady_ns(&self, window_ns: u64, scheduled_ns: Option<u64>) -> u64 {
        match scheduled_ns {
            Some(scheduled) if is_reached(window_ns, scheduled) => scheduled.max(window_ns),
            _ => window_ns + self.waited_ns / self.waited.max(1),
        }
    }
}

/// Whether the requests of a schedule left in its time, or at most a hundredth later.
fn is_reached(window_ns: u64, scheduled_ns: u64) -> bool {
    window_ns <= scheduled_ns + scheduled_ns / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn the_average_wait_counts_behind_the_last_begin() {
        let mut end = End::default();
        for now in [9 * S, 10 * S] {
            end.count(1, Some(10 * S), now);
        }
        assert_eq!(end.waited, 0, "they ended in time");
        for now in [10 * S + 1, 11 * S, 13 * S - 1] {
            end.count(1, Some(10 * S), now);
        }
        assert_eq!(end.steady_ns(10 * S, None), 10 * S + 4 * S / 3);
        // All requests had begun before the end of the time.
        let mut early = End {
            last_begun_ns: Some(4 * S),
            ..End::default()
        };
        early.count(2, Some(10 * S), 6 * S);
        assert_eq!(early.steady_ns(4 * S, None), 6 * S);
    }

    #[test]
    fn a_rate_that_is_reached_counts_its_schedule() {
        let mut end = End {
            last_begun_ns: Some(9 * S),
            ..End::default()
        };
        end.count(1, None, 12 * S);
        assert_eq!(end.steady_ns(9 * S, Some(10 * S)), 10 * S);
        assert_eq!(
            end.steady_ns(10 * S + S / 10, Some(10 * S)),
            10 * S + S / 10
        );
        assert_eq!(
            end.steady_ns(10 * S + S / 10 + 1, Some(10 * S)),
            13 * S + S / 10 + 1
        );
    }
}
