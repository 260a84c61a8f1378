//! A run: its threads, from the first connection to the last response.

use std::io;
use std::sync::Barrier;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::cpu;
use crate::judge::Judge;
use crate::load::{Loader, Plan, Shared, now_ns};
use crate::outcome::Outcome;

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Responses so far, about.
    pub ended: u64,
    /// Since the first request, nanoseconds.
    pub elapsed_ns: u64,
}

/// Runs a plan; its samples are judged where there is somebody who judges. `watch` is called ten times a second, and
/// ends the run when it gives false.
///
/// # Errors
/// A thread or its poller cannot be made.
pub fn run(
    plan: &Plan,
    judge: Option<&dyn Judge>,
    mut watch: impl FnMut(Progress) -> bool,
) -> io::Result<Outcome> {
    let shared = Shared::default();
    let gate = Barrier::new(plan.threads + 1);
    let pids = plan.pid.map(cpu::family).unwrap_or_default();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads)
            .map(|number| {
                let (gate, shared) = (&gate, &shared);
                scope.spawn(move || {
                    let mut loader = Loader::new(plan, judge, shared, number);
                    if let Ok(loader) = &mut loader {
                        loader.prepare();
                    }
                    shared.ready.fetch_add(1, Ordering::Release);
                    // Those that wait must not wait for ever, whatever has failed here.
                    gate.wait();
                    loader.map(|mut loader| {
                        loader.run(now_ns(), number);
                        loader.tally
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
        while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
            let progress = Progress {
                ended: shared.ended.load(Ordering::Relaxed),
                elapsed_ns: now_ns() - begin_ns,
            };
            if !watch(progress) {
                shared.stop.store(true, Ordering::Relaxed);
            }
            pause(&threads);
        }
        let after = (cpu::own_ns(), cpu::cpu_ns(&pids));
        let mut outcome = Outcome::default();
        for thread in threads {
            match thread.join() {
                Ok(tally) => {
                    let tally = tally?;
                    outcome.interrupted |= tally.interrupted;
                    outcome.add(&tally);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        outcome.own_cpu_ns = after.0.saturating_sub(before.0);
        outcome.server_cpu_ns = before
            .1
            .zip(after.1)
            .map(|(before, after)| after.saturating_sub(before));
        outcome.server_memory_bytes = cpu::memory_bytes(&pids);
        Ok(outcome)
    })
}

/// Waits a tenth of a second, or until the threads have ended.
fn pause<T>(threads: &[thread::ScopedJoinHandle<'_, T>]) {
    for _ in 0..STEPS {
        if threads.iter().all(thread::ScopedJoinHandle::is_finished) {
            return;
        }
        thread::sleep(STEP);
    }
}

/// How far a run is while connections are opened.
const BEFORE: Progress = Progress {
    ended: 0,
    elapsed_ns: 0,
};
const STEP: Duration = Duration::from_millis(5);
const STEPS: u32 = 20;
