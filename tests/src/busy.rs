//! Whether the machine is too busy to judge what depends on time.

use std::collections::HashMap;
use std::fs;
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
    const NAP: Duration = Duration::from_millis(1);
    let over = AtomicBool::new(false);
    // A task that panics must not leave the watch behind, for which the scope waits.
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
                worst = worst.max(asleep.elapsed().saturating_sub(NAP));
            }
            worst
        });
        let end = Over(&over);
        task();
        drop(end);
        watch.join().expect("the watch does not panic")
    })
}

/// How long the threads of this process, and of those that it has started, wait for a processor, all together.
///
/// A thread that sleeps is soon given a processor that is busy; one that computes, as servers and encoders do, is not. What
/// comes late by no more than all of them have waited may be late because of the machine.
#[derive(Debug)]
pub struct Waits {
    process: u32,
    start: Instant,
    before: HashMap<u32, u64>,
}

impl Waits {
    /// Begins to count.
    #[must_use]
    pub fn begin() -> Self {
        Self::of(std::process::id())
    }

    /// Begins to count those of another process, and of those that it has started.
    #[must_use]
    pub fn of(process: u32) -> Self {
        Self {
            process,
            start: Instant::now(),
            before: waits(process),
        }
    }

    /// How long it is since it began.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// How long they have waited since it began.
    #[must_use]
    pub fn waited(&self) -> Duration {
        let more = |(id, ns): (u32, u64)| ns - self.before.get(&id).map_or(0, |was| ns.min(*was));
        Duration::from_nanos(waits(self.process).into_iter().map(more).sum())
    }

    /// Whether waits of `margin` explain what would be wrong on a machine that has time; says that they do.
    #[must_use]
    pub fn explain(&self, margin: Duration, what: &str) -> bool {
        let waited = self.waited();
        if waited >= margin {
            inconclusive(&format!("{what}; threads have waited for {waited:?}"));
        }
        waited >= margin
    }

    /// Holds what took a time to its limit, which the waits prolong.
    ///
    /// # Panics
    /// When it took longer.
    #[track_caller]
    pub fn assert_below(&self, took: Duration, limit: Duration) {
        assert!(
            took < limit || self.explain(took - limit, &format!("{took:?} of {limit:?}")),
            "took {took:?} of {limit:?}, threads have waited for {:?}",
            self.waited()
        );
    }
}

/// How long each thread of a process and of those that it has started has waited for a processor so far, in nanoseconds.
fn waits(process: u32) -> HashMap<u32, u64> {
    let mut waits = HashMap::new();
    let mut processes = vec![process];
    while let Some(pid) = processes.pop() {
        processes.extend(process::children(pid));
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for thread in threads.flatten() {
            let id = thread.file_name().to_str().and_then(|id| id.parse().ok());
            let text = fs::read_to_string(thread.path().join("schedstat"));
            let waited = text.ok().and_then(|text| waited_ns(&text));
            waits.extend(id.zip(waited));
        }
    }
    waits
}

/// The second number of the three in `schedstat`; the kernel may have been built without it.
fn waited_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

/// Says that a test could not judge, and why.
pub fn inconclusive(why: &str) {
    use std::io::Write;
    let line = format!("\ninconclusive: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_share_a_processor_wait_for_it() {
        // More threads than processors that all compute: some of them wait.
        let threads = 2 * thread::available_parallelism().map_or(2, usize::from);
        let waits = Waits::begin();
        let waited = thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while waits.elapsed() < Duration::from_millis(200) {
                        std::hint::spin_loop();
                    }
                });
            }
            // Asked while they are there: what threads have waited that have ended is forgotten.
            while waits.elapsed() < Duration::from_millis(150) {
                std::hint::spin_loop();
            }
            waits.waited()
        });
        assert!(waited > Duration::from_millis(1), "{waited:?}");
        assert!(waits.elapsed() >= Duration::from_millis(150));
    }

    #[test]
    fn waits_are_the_second_number() {
        assert_eq!(waited_ns("111567 23617953 2\n"), Some(23_617_953));
        assert_eq!(waited_ns(""), None);
    }
}
