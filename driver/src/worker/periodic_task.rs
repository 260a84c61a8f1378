//! Runs the periodic tasks of the configuration that is served, each when it is due.

use std::sync::Arc;
use std::time::{Duration, Instant};

use server_base::clock::mono_ms;
use server_base::errlog::ErrorLog;
use server_base::periodic_task::{PeriodicTask, TaskClock, Wake};

/// Tasks, each with the time of its next run.
#[derive(Default)]
pub(super) struct TaskTimer(Vec<(Instant, Arc<dyn PeriodicTask>)>);

impl TaskTimer {
    /// Runs every task once. `wake` ends the pause of this thread.
    pub(super) fn start(all: &[Arc<dyn PeriodicTask>], wake: &Wake, log: &ErrorLog) -> Self {
        for task in all {
            task.set_wake(wake);
        }
        let now = Instant::now();
        let mut timer = Self(all.iter().map(|task| (now, Arc::clone(task))).collect());
        timer.run_due(log);
        timer
    }

    /// Runs the tasks that are due.
    pub(super) fn run_due(&mut self, log: &ErrorLog) {
        let now = Instant::now();
        self.0.retain_mut(|(due, task)| {
            if *due > now && !task.is_woken() {
                return true;
            }
            let clock = TaskClock {
                mono_ms: &mono_ms,
                unix_s: unix_s(),
            };
            match task.run(&clock, log) {
                Some(ms) => {
                    // Of its end: a task with long steps pauses between them.
                    *due = later(Instant::now(), ms);
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
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    /// Counts its runs; the next is after that many milliseconds.
    struct Counter(AtomicU64, Option<u64>);

    impl PeriodicTask for Counter {
        fn run(&self, _: &TaskClock<'_>, _: &ErrorLog) -> Option<u64> {
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
        let wake: Wake = Arc::new(|| {});
        let mut timer = TaskTimer::start(&all, &wake, &log);
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

    /// Is due whenever it was woken; then it wakes itself no more.
    #[derive(Default)]
    struct Woken(Mutex<Option<Wake>>, AtomicBool, AtomicU64);

    impl PeriodicTask for Woken {
        fn run(&self, _: &TaskClock<'_>, _: &ErrorLog) -> Option<u64> {
            self.1.store(false, Ordering::Relaxed);
            self.2.fetch_add(1, Ordering::Relaxed);
            Some(u64::MAX)
        }

        fn set_wake(&self, wake: &Wake) {
            *self.0.lock().expect("one thread") = Some(Arc::clone(wake));
        }

        fn is_woken(&self) -> bool {
            self.1.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_woken_task_runs_before_its_time() {
        let log = ErrorLog::new(Vec::new());
        let task = Arc::new(Woken::default());
        let woken = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&woken);
        let wake: Wake = Arc::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let mut timer = TaskTimer::start(&[task.clone() as _], &wake, &log);
        timer.run_due(&log);
        assert_eq!(task.2.load(Ordering::Relaxed), 1);
        task.1.store(true, Ordering::Relaxed);
        let wake = task.0.lock().expect("one thread");
        wake.as_ref().expect("it was set")();
        timer.run_due(&log);
        timer.run_due(&log);
        let counts = [&task.2, &woken].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(counts, [2, 1]);
    }
}
