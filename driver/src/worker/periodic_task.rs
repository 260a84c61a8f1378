//! Runs the periodic tasks of the configuration that is served, each when it is due.

use std::sync::Arc;
use std::time::{Duration, Instant};

use server_base::errlog::ErrorLog;
use server_base::periodic_task::PeriodicTask;

/// Tasks, each with the time of its next run.
#[derive(Default)]
pub(super) struct TaskTimer(Vec<(Instant, Arc<dyn PeriodicTask>)>);

impl TaskTimer {
    /// Runs every task once.
    pub(super) fn start(all: &[Arc<dyn PeriodicTask>], log: &ErrorLog) -> Self {
        let now = Instant::now();
        let mut timer = Self(all.iter().map(|task| (now, Arc::clone(task))).collect());
        timer.run_due(log);
        timer
    }

    /// Runs the tasks that are due.
    pub(super) fn run_due(&mut self, log: &ErrorLog) {
        let now = Instant::now();
        self.0.retain_mut(|(due, task)| {
            if *due > now {
                return true;
            }
            match task.run(unix_s(), log) {
                Some(ms) => {
                    *due = later(now, ms);
                    true
                }
                None => false,
            }
        });
    }

    /// Milliseconds until the next task is due, `most` at most; rounded up, so that the task is due then.
    pub(super) fn wait_ms(&self, most: u64) -> u64 {
        let now = Instant::now();
        let left = |(due, _): &(Instant, _)| due.saturating_duration_since(now);
        let next = self.0.iter().map(left).min().map(|left| left.as_micros());
        next.map_or(most, |us| us.div_ceil(1000).min(u128::from(most)) as u64)
    }
}

/// The time of the wall clock, Unix seconds.
pub(super) fn unix_s() -> i64 {
    (unix_ms() / 1000) as i64
}

/// The time of the wall clock, milliseconds since 1970.
pub(super) fn unix_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_millis() as u64)
}

/// The time `ms` after `now`, or the latest time of the clock.
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

    /// Counts its runs; the next is after that many milliseconds.
    struct Counter(AtomicU64, Option<u64>);

    impl PeriodicTask for Counter {
        fn run(&self, _: i64, _: &ErrorLog) -> Option<u64> {
            self.0.fetch_add(1, Ordering::Relaxed);
            self.1
        }
    }

    #[test]
    fn each_task_runs_once_and_then_when_it_is_due() {
        let log = ErrorLog::new(Vec::new());
        let once = Arc::new(Counter(AtomicU64::new(0), None));
        let seldom = Arc::new(Counter(AtomicU64::new(0), Some(u64::MAX)));
        let all: [Arc<dyn PeriodicTask>; 2] = [once.clone(), seldom.clone()];
        let mut timer = TaskTimer::start(&all, &log);
        let counts = || [&once, &seldom].map(|counter| counter.0.load(Ordering::Relaxed));
        assert_eq!((counts(), timer.0.len()), ([1, 1], 1));
        assert_eq!(timer.wait_ms(10_000), 10_000);
        timer.run_due(&log);
        assert_eq!(counts(), [1, 1]);
        timer.0[0].0 = Instant::now();
        assert_eq!(timer.wait_ms(10_000), 0);
        timer.run_due(&log);
        assert_eq!(counts(), [1, 2]);
        assert_eq!(TaskTimer::default().wait_ms(7), 7);
    }
}
