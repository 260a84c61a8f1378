//! A thread that loads the files of a cache.
//!
//! It has a low priority: requests come first if all processors are busy. It ends with the last file, or with its cache.
//!
//! Absent: the walk over files, which is in `loader.rs`.
//!
//! Source: setpriority(2), which sets the priority of one thread on Linux.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use rustix::thread::gettid;

use crate::directory::Directory;
use crate::index::Index;
use crate::loader::{LoadCounts, LoadStep, Loader};
use crate::pace::Pace;

/// Nice value of the thread. A busy thread with nice value 0 gets nine times its processor time (sched(7)).
const NICE: i32 = 10;

/// A thread that loads files.
#[derive(Debug)]
pub struct LoadingThread(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// The state has changed.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    pace: Pace,
    /// Numbers at the end.
    counts: Option<LoadCounts>,
}

impl LoadingThread {
    /// Starts a thread that loads the files of a directory into an index. Periodic work is woken at its end. `now_s` is in
    /// seconds since 1970.
    ///
    /// # Errors
    /// The system cannot make a thread.
    pub fn start(
        loader: Loader,
        directory: Directory,
        index: &Arc<Index>,
        pace: Pace,
        now_s: u32,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State { pace, counts: None }),
            changed: Condvar::new(),
        });
        let (own, index) = (Arc::clone(&shared), Arc::downgrade(index));
        let run = move || load(loader, &directory, &index, &own, now_s);
        thread::Builder::new()
            .name("cache loader".to_owned())
            .spawn(run)?;
        Ok(Self(shared))
    }

    /// Sets the bounds of its next steps, which ends the present pause.
    pub fn set_pace(&self, pace: Pace) {
        let mut state = self.0.lock();
        if state.pace != pace {
            state.pace = pace;
            self.0.changed.notify_all();
        }
    }

    /// Returns the numbers of files once all are loaded.
    #[must_use]
    pub fn counts(&self) -> Option<LoadCounts> {
        self.0.lock().counts.clone()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No operation under the lock leaves a partial change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits between two steps, until the bounds change at most.
    fn pause(&self, pace: Pace, pause_ms: u64) {
        let is_same = |state: &mut State| state.pace == pace;
        let time = Duration::from_millis(pause_ms);
        let _ = self.changed.wait_timeout_while(self.lock(), time, is_same);
    }
}

fn load(
    mut loader: Loader,
    directory: &Directory,
    index: &Weak<Index>,
    shared: &Shared,
    started_s: u32,
) {
    // Without it the thread only takes more of the processor.
    let _ = setpriority_process(Some(gettid()), NICE);
    let began = Instant::now();
    let clock = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    loop {
        let pace = shared.lock().pace;
        let Some(index) = index.upgrade() else {
            return;
        };
        let passed_s = u32::try_from(clock() / 1000).unwrap_or(u32::MAX);
        let now_s = started_s.saturating_add(passed_s);
        let step = loader.step(directory, &index, pace, &clock, now_s);
        match step {
            LoadStep::Again(pause_ms) => {
                drop(index);
                shared.pause(pace, pause_ms);
            }
            LoadStep::Done => {
                shared.lock().counts = Some(loader.counts().clone());
                return index.wake_work();
            }
        }
    }
}

#[cfg(test)]
#[path = "loading_tests.rs"]
mod tests;
