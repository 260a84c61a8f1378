//! A run: its threads, from the first connection to the last response.

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle, Thread};
use std::time::{Duration, Instant};

use sys::schedule::shorten_time_slice;

use super::cpu;
use super::filter::SampleFilter;
use super::plan::Plan;
use super::result::LoadResult;
use super::thread::{Loader, Shared};
use crate::client::now_ns;

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Responses so far, approximately.
    pub ended: u64,
    /// Since the first request, nanoseconds.
    pub elapsed_ns: u64,
}

/// Runs a plan; samples that `filter` excludes are counted apart. `watch` is called ten times a second, and ends the run
/// when it returns false.
///
/// # Errors
/// A thread or its poller cannot be made.
pub fn run(
    plan: &Plan,
    filter: Option<&dyn SampleFilter>,
    mut watch: impl FnMut(Progress) -> bool,
) -> io::Result<LoadResult> {
    let shared = Shared::default();
    let gate = Barrier::new(plan.threads + 1);
    let pids = plan.pid.map(cpu::family).unwrap_or_default();
    let over = Over {
        threads: AtomicUsize::new(0),
        watcher: thread::current(),
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads)
            .map(|number| {
                let (gate, shared, over) = (&gate, &shared, &over);
                scope.spawn(move || {
                    let _ended = CountsEnd(over);
                    // A wait for the CPU in this process would look like a slow server.
                    let _ = shorten_time_slice();
                    let mut loader = Loader::new(plan, filter, shared, number);
                    if let Ok(loader) = &mut loader {
                        loader.prepare();
                    }
                    shared.ready.fetch_add(1, Ordering::Release);
                    // Those that wait must not wait for ever, whatever has failed here.
                    gate.wait();
                    loader.map(|mut loader| {
                        loader.run(now_ns(), number);
                        loader.result
                    })
                })
            })
            .collect();
        // Connections may take long, and a signal must not have to wait for them.
        while shared.ready.load(Ordering::Acquire) < plan.threads {
            if !watch(BEFORE) {
                shared.stop.store(true, Ordering::Relaxed);
            }
            thread::sleep(STEP);
        }
        gate.wait();
        let begin_ns = now_ns();
        let before = (cpu::own_ns(), cpu::cpu_ns(&pids));
        while over.threads.load(Ordering::Acquire) < plan.threads {
            let progress = Progress {
                ended: shared.ended.load(Ordering::Relaxed),
                elapsed_ns: now_ns() - begin_ns,
            };
            if !watch(progress) {
                shared.stop.store(true, Ordering::Relaxed);
            }
            over.wait(plan.threads);
        }
        let after = (cpu::own_ns(), cpu::cpu_ns(&pids));
        let mut result = joined(threads)?;
        result.own_cpu_ns = after.0.saturating_sub(before.0);
        result.server_cpu_ns = before
            .1
            .zip(after.1)
            .map(|(before, after)| after.saturating_sub(before));
        result.server_memory_bytes = cpu::memory_bytes(&pids);
        Ok(result)
    })
}

/// Joins the threads and merges their results; resumes a panic of a thread.
fn joined(threads: Vec<ScopedJoinHandle<'_, io::Result<LoadResult>>>) -> io::Result<LoadResult> {
    let mut result = LoadResult::default();
    for thread in threads {
        match thread.join() {
            Ok(part) => {
                let part = part?;
                result.interrupted |= part.interrupted;
                result.add(&part);
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    Ok(result)
}

/// Number of ended threads, and the thread that waits for them.
struct Over {
    threads: AtomicUsize,
    watcher: Thread,
}

impl Over {
    /// Waits a tenth of a second, or until `threads` have ended: it wakes no more often, for that would count as the
    /// client's work.
    fn wait(&self, threads: usize) {
        let until = Instant::now() + PAUSE;
        while self.threads.load(Ordering::Acquire) < threads {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }
}

/// Counts a thread when it ends, in whatever way.
struct CountsEnd<'a>(&'a Over);

impl Drop for CountsEnd<'_> {
    fn drop(&mut self) {
        self.0.threads.fetch_add(1, Ordering::Release);
        self.0.watcher.unpark();
    }
}

/// How far a run is while connections are opened.
const BEFORE: Progress = Progress {
    ended: 0,
    elapsed_ns: 0,
};
const STEP: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_millis(100);
