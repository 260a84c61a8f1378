//! The upkeep of the configuration that is served: which of it is due, and when the next is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use server_core::errlog::ErrorLog;
use server_core::upkeep::Upkeep;

use super::unix_s;

/// What is to be done again, each with its time.
#[derive(Default)]
pub(super) struct Chores(Vec<(Instant, Arc<dyn Upkeep>)>);

impl Chores {
    /// Does everything once.
    pub(super) fn begin(all: &[Arc<dyn Upkeep>], log: &ErrorLog) -> Self {
        let now = Instant::now();
        let mut chores = Self(all.iter().map(|upkeep| (now, Arc::clone(upkeep))).collect());
        chores.run_due(log);
        chores
    }

    /// Does what is due.
    pub(super) fn run_due(&mut self, log: &ErrorLog) {
        let now = Instant::now();
        self.0.retain_mut(|(due, upkeep)| {
            if *due > now {
                return true;
            }
            match upkeep.run(unix_s(), log) {
                Some(ms) => {
                    *due = later(now, ms);
                    true
                }
                None => false,
            }
        });
    }

    /// Milliseconds until the next is due, `most` at most; rounded up, so that it is due then.
    pub(super) fn wait_ms(&self, most: u64) -> u64 {
        let now = Instant::now();
        let left = |(due, _): &(Instant, _)| due.saturating_duration_since(now);
        let next = self.0.iter().map(left).min().map(|left| left.as_micros());
        next.map_or(most, |us| us.div_ceil(1000).min(u128::from(most)) as u64)
    }
}

/// A time that far ahead, or as far as the clock can tell.
fn later(now: Instant, ms: u64) -> Instant {
    let far = Duration::from_millis(ms.clamp(1, FAR_MS));
    now.checked_add(far).unwrap_or(now)
}

/// Ten years: further ahead is never.
const FAR_MS: u64 = 10 * 365 * 86_400_000;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Counts, and wants to be run again after so many milliseconds.
    struct Counter(AtomicU64, Option<u64>);

    impl Upkeep for Counter {
        fn run(&self, _: i64, _: &ErrorLog) -> Option<u64> {
            self.0.fetch_add(1, Ordering::Relaxed);
            self.1
        }
    }

    #[test]
    fn each_is_done_once_and_then_when_it_is_due() {
        let log = ErrorLog::new(Vec::new());
        let once = Arc::new(Counter(AtomicU64::new(0), None));
        let seldom = Arc::new(Counter(AtomicU64::new(0), Some(u64::MAX)));
        let all: [Arc<dyn Upkeep>; 2] = [once.clone(), seldom.clone()];
        let mut chores = Chores::begin(&all, &log);
        let counts = || [&once, &seldom].map(|counter| counter.0.load(Ordering::Relaxed));
        assert_eq!((counts(), chores.0.len()), ([1, 1], 1));
        assert_eq!(chores.wait_ms(10_000), 10_000);
        chores.run_due(&log);
        assert_eq!(counts(), [1, 1]);
        chores.0[0].0 = Instant::now();
        assert_eq!(chores.wait_ms(10_000), 0);
        chores.run_due(&log);
        assert_eq!(counts(), [1, 2]);
        assert_eq!(Chores::default().wait_ms(7), 7);
    }
}
