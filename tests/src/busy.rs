//! Measures CPU contention, so that a test of times fails only on a machine that had CPU time for it.

use std::collections::HashMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::process;

/// The longest that a thread was kept from running by the machine's other work while `task` ran, as far as one can see that
/// rests for a millisecond at a time.
///
/// # Panics
/// When the task does.
pub fn worst_stall_while(task: impl FnOnce()) -> Duration {
    worst_while(task, |slept| slept.saturating_sub(NAP))
}

/// The longest that a thread of `process`, or of those that it has started, waited for a processor at once while `task` ran.
/// Waits that end within a millisecond of each other count as one.
///
/// # Panics
/// When the task does.
pub fn worst_wait_while(process: u32, task: impl FnOnce()) -> Duration {
    let mut before = waits(process);
    worst_while(task, |_| {
        let now = waits(process);
        let more =
            |(id, ns): (&(u32, u32), &u64)| ns - before.get(id).map_or(0, |was| *ns.min(was));
        let worst = now.iter().map(more).max().unwrap_or(0);
        before = now;
        Duration::from_nanos(worst)
    })
}

/// The worst that `look` finds each millisecond while `task` runs; it gets how long it is since it looked before.
fn worst_while(task: impl FnOnce(), mut look: impl FnMut(Duration) -> Duration + Send) -> Duration {
    let over = AtomicBool::new(false);
    // If the task panics, the watcher must end too: the scope waits for it.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut worst = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let asleep = Instant::now();
                thread::park_timeout(NAP);
                worst = worst.max(look(asleep.elapsed()));
            }
            worst
        });
        let end = Over(&over);
        task();
        drop(end);
        watch.join().expect("the watch does not panic")
    })
}

/// Time between two looks of a watch.
const NAP: Duration = Duration::from_millis(1);

/// Time that the thread of a test and the servers started by its process wait for a CPU.
///
/// A sleeping thread soon gets a busy CPU; a computing thread, such as a server or an encoder, does not. If an event is
/// late by no more than this wait, the machine may be the cause. The thread with the longest wait counts for a process,
/// and the server with the longest wait, workers included, counts for all servers: other tests run at the same time.
#[derive(Debug)]
pub struct Waits {
    start: Instant,
    before: HashMap<(u32, u32), u64>,
}

impl Waits {
    /// Begins to count, for the thread that calls it.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            start: Instant::now(),
            before: waits(std::process::id()),
        }
    }

    /// Time since its begin.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Wait since the begin of the calling thread and of the server with the longest wait.
    #[must_use]
    pub fn waited(&self) -> Duration {
        let this = std::process::id();
        let now = waits(this);
        let more =
            |id: &(u32, u32), ns: &u64| ns - self.before.get(id).map_or(0, |was| *ns.min(was));
        let own = this_thread().map_or(0, |thread| {
            let id = (this, thread);
            now.get(&id).map_or(0, |ns| more(&id, ns))
        });
        let longest = |process: u32| {
            let threads = now.iter().filter(|(id, _)| id.0 == process);
            threads.map(|(id, ns)| more(id, ns)).max().unwrap_or(0)
        };
        let servers = process::children(this).into_iter();
        let most = servers.map(|server| descent(server).into_iter().map(longest).sum());
        Duration::from_nanos(own + most.max().unwrap_or(0))
    }

    /// Returns whether the wait is at least `margin`, so that it explains an event that was late by `margin`. If so, it
    /// prints `what`.
    #[must_use]
    pub fn explain(&self, margin: Duration, what: &str) -> bool {
        let waited = self.waited();
        if waited >= margin {
            inconclusive(&format!("{what}; threads have waited for {waited:?}"));
        }
        waited >= margin
    }

    /// Asserts that `took` is below `limit`, extended by the wait for a CPU.
    ///
    /// # Panics
    /// If it took longer.
    #[track_caller]
    pub fn assert_below(&self, took: Duration, limit: Duration) {
        assert!(
            took < limit || self.explain(took - limit, &format!("{took:?} of {limit:?}")),
            "took {took:?} of {limit:?}, threads have waited for {:?}",
            self.waited()
        );
    }
}

/// Returns the time that each thread of a process and its children has waited for a CPU so far, in nanoseconds, by
/// process and thread id.
fn waits(process: u32) -> HashMap<(u32, u32), u64> {
    let mut waits = HashMap::new();
    for pid in descent(process) {
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for thread in threads.flatten() {
            let id = thread.file_name().to_str().and_then(|id| id.parse().ok());
            let text = fs::read_to_string(thread.path().join("schedstat"));
            let waited = text.ok().and_then(|text| waited_ns(&text));
            waits.extend(id.map(|id| (pid, id)).zip(waited));
        }
    }
    waits
}

/// A process and all that it and they have started.
fn descent(process: u32) -> Vec<u32> {
    let mut all = vec![process];
    let mut at = 0;
    while let Some(pid) = all.get(at) {
        all.extend(process::children(*pid));
        at += 1;
    }
    all
}

/// The number of the calling thread.
fn this_thread() -> Option<u32> {
    let link = fs::read_link("/proc/thread-self").ok()?;
    link.file_name()?.to_str()?.parse().ok()
}

/// The second number of the three in `schedstat`; the kernel may have been built without it.
fn waited_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

/// Measures, and lets `judge` check the result; returns a result that passed.
///
/// A failed check is repeated twice at most, while no other measurement of this process runs. If the last check fails,
/// and a thread of this process or its children waited `limit` or longer for a CPU, the test is inconclusive: it prints
/// that and returns `None`.
///
/// # Panics
/// If the last check panics, on a machine that had CPU time.
pub fn check_timing<T>(
    what: &str,
    limit: Duration,
    measure: impl Fn() -> T,
    judge: impl Fn(&T),
) -> Option<T> {
    static MEASURED: RwLock<()> = RwLock::new(());
    let mut worst = Duration::ZERO;
    for attempt in 0..ATTEMPTS {
        // A lock that a panic has poisoned still excludes others.
        let _beside = (attempt == 0).then(|| MEASURED.read());
        let _alone = (attempt > 0).then(|| MEASURED.write());
        let (mut found, mut wait) = (None, Duration::ZERO);
        let stall = worst_stall_while(|| {
            wait = worst_wait_while(std::process::id(), || found = Some(measure()));
        });
        worst = worst.max(wait).max(stall);
        let judged = catch_unwind(AssertUnwindSafe(|| found.as_ref().map(&judge)));
        match judged {
            Ok(_) => return found,
            Err(why) if attempt + 1 == ATTEMPTS && worst < limit => resume_unwind(why),
            Err(_) => {}
        }
    }
    inconclusive(&format!(
        "{what}: a thread was kept from running for {worst:?}"
    ));
    None
}

/// Number of measurements before a test fails.
const ATTEMPTS: usize = 3;

/// Prints that a test is inconclusive, and why.
pub fn inconclusive(why: &str) {
    use std::io::Write;
    let line = format!("\ninconclusive: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::wait::DEADLINE;

    #[test]
    fn threads_that_share_a_processor_wait_for_it() {
        // More threads than processors that all compute: each waits at some time.
        let threads = 4 * thread::available_parallelism().map_or(2, usize::from);
        let over = AtomicBool::new(false);
        let waits = Waits::begin();
        let waited = thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let end = Instant::now() + DEADLINE;
            let mut waited = Duration::ZERO;
            while waited < Duration::from_millis(1) && Instant::now() < end {
                waited = waits.waited();
            }
            over.store(true, Ordering::Relaxed);
            waited
        });
        assert!(waited >= Duration::from_millis(1), "{waited:?}");
        assert!(waits.elapsed() >= waited);
    }

    #[test]
    fn what_is_wrong_each_time_fails_on_a_machine_that_has_time() {
        let limit = Duration::from_secs(3600);
        let times = AtomicU32::new(0);
        let measure = || times.fetch_add(1, Ordering::Relaxed);
        let found = check_timing("wrong once", limit, measure, |n| assert!(*n > 0));
        assert_eq!(found, Some(1));
        let wrong = || check_timing("wrong each time", limit, measure, |n| assert!(*n < 2));
        assert!(catch_unwind(AssertUnwindSafe(wrong)).is_err());
        assert_eq!(times.load(Ordering::Relaxed), 5);
        let busy = check_timing("a machine without time", Duration::ZERO, measure, |_| {
            panic!("nothing was measured")
        });
        assert_eq!(busy, None);
    }

    #[test]
    fn waits_are_the_second_number() {
        assert_eq!(waited_ns("111567 23617953 2\n"), Some(23_617_953));
        assert_eq!(waited_ns(""), None);
    }
}
