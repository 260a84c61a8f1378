//! Time limits of a request body: between two reads, in all, and by its rate.
//!
//! The rate is limited by a token bucket: each byte extends the deadline by `1 / rate` seconds, to at most the
//! grace from now. So no burst buys a long silence, and a body that comes evenly at the rate is never cut off.
//!
//! Source: nginx documentation, `client_body_timeout`; `client_body_deadline` and `client_body_min_rate` are
//! firstbyte's.

use crate::conf_core::BodyRate;

/// The times of one body.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    gap_ms: u64,
    /// When the last of it came.
    mark_ms: u64,
    /// When it must be whole.
    end_ms: u64,
    rate: BodyRate,
    /// When more must have come to keep the rate, nanoseconds.
    due_ns: u64,
}

impl Pace {
    /// The times of a body that is read from now on: between two reads, in all (0 for any), and its rate.
    pub(crate) fn begin(gap_ms: u64, all_ms: u64, rate: BodyRate, now_ms: u64) -> Self {
        let after = |ms: u64| match ms {
            0 => u64::MAX,
            _ => now_ms.saturating_add(ms),
        };
        Self {
            gap_ms,
            mark_ms: now_ms,
            end_ms: after(all_ms),
            rate,
            due_ns: match rate.bytes_a_second {
                0 => u64::MAX,
                _ => now_ms
                    .saturating_add(rate.grace_ms)
                    .saturating_mul(NS_PER_MS),
            },
        }
    }

    /// Bytes have come.
    pub(crate) fn record(&mut self, bytes: u64, now_ms: u64) {
        self.mark_ms = now_ms;
        if self.rate.bytes_a_second == 0 {
            return;
        }
        let bought_ns = bytes.saturating_mul(1_000_000_000) / self.rate.bytes_a_second;
        let most_ns = now_ms
            .saturating_add(self.rate.grace_ms)
            .saturating_mul(NS_PER_MS);
        self.due_ns = self.due_ns.saturating_add(bought_ns).min(most_ns);
    }

    /// Between these times nothing had to come.
    pub(crate) fn exclude_pause(&mut self, since_ms: u64, now_ms: u64) {
        let ms = now_ms.saturating_sub(since_ms);
        self.mark_ms = self.mark_ms.max(now_ms);
        self.end_ms = self.end_ms.saturating_add(ms);
        self.due_ns = self.due_ns.saturating_add(ms.saturating_mul(NS_PER_MS));
    }

    /// When it must have gone on, monotonic milliseconds.
    pub(crate) fn until_ms(&self) -> u64 {
        let gap_at_ms = self.mark_ms.saturating_add(self.gap_ms);
        let due_ms = match self.due_ns {
            u64::MAX => u64::MAX,
            ns => ns.div_ceil(NS_PER_MS),
        };
        gap_at_ms.min(self.end_ms).min(due_ms)
    }

    /// The limit that the client has broken, if any.
    pub(crate) fn broken(&self, now_ms: u64) -> Option<&'static str> {
        if now_ms < self.until_ms() {
            None
        } else if now_ms >= self.end_ms {
            Some("client exceeded client_body_deadline while sending its request body")
        } else if now_ms >= self.mark_ms.saturating_add(self.gap_ms) {
            Some("client timed out")
        } else {
            Some("client sent its request body slower than client_body_min_rate")
        }
    }
}

const NS_PER_MS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(bytes_a_second: u64) -> Pace {
        Pace {
            gap_ms: 60_000,
            mark_ms: 0,
            end_ms: u64::MAX,
            rate: BodyRate {
                bytes_a_second,
                grace_ms: 1000,
            },
            due_ns: 1000 * NS_PER_MS,
        }
    }

    #[test]
    fn a_body_at_the_rate_goes_on_and_one_below_it_falls_behind() {
        let (mut enough, mut less) = (pace(100), pace(100));
        let mut broken_at = None;
        for now_ms in (100..100_000).step_by(100) {
            assert_eq!(enough.broken(now_ms), None, "at {now_ms}");
            enough.record(10, now_ms);
            if broken_at.is_none() && less.broken(now_ms).is_some() {
                broken_at = Some(now_ms);
            }
            less.record(9, now_ms);
        }
        // A tenth too slow, it has used up a grace of one second soon after nine; the tenth piece of that second is late.
        assert_eq!(broken_at, Some(9_100));
    }

    #[test]
    fn a_burst_buys_no_more_than_the_grace() {
        let mut pace = pace(100);
        pace.record(1 << 30, 500);
        assert_eq!(pace.broken(1499), None);
        assert!(
            pace.broken(1500)
                .is_some_and(|text| text.contains("slower"))
        );
    }

    #[test]
    fn time_in_which_nothing_was_to_come_counts_for_nothing() {
        let mut pace = pace(100);
        pace.end_ms = 5000;
        pace.exclude_pause(0, 10_000);
        assert_eq!(pace.broken(10_999), None);
        assert!(
            pace.broken(11_000)
                .is_some_and(|text| text.contains("slower"))
        );
        pace.due_ns = u64::MAX;
        assert_eq!(pace.until_ms(), 15_000);
        pace.end_ms = u64::MAX;
        pace.exclude_pause(20_000, 20_001);
        let times = (pace.until_ms(), pace.end_ms, pace.due_ns);
        assert_eq!(times, (80_001, u64::MAX, u64::MAX));
    }

    #[test]
    fn without_limits_nothing_is_due_ever() {
        let mut pace = pace(0);
        (pace.gap_ms, pace.due_ns) = (u64::MAX, u64::MAX);
        assert_eq!(pace.until_ms(), u64::MAX);
    }

    #[test]
    fn the_first_limit_that_is_broken_counts() {
        let mut pace = pace(0);
        pace.due_ns = u64::MAX;
        assert_eq!(pace.until_ms(), 60_000);
        assert_eq!(pace.broken(60_000), Some("client timed out"));
        pace.end_ms = 5000;
        assert_eq!(pace.broken(4999), None);
        assert!(
            pace.broken(5000)
                .is_some_and(|text| text.contains("deadline"))
        );
    }
}
