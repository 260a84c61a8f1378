//! The threads that do what takes long, such as comparing passwords, for the threads that serve.
//!
//! They belong to the process and are started when there is work: what does not use them does not pay for them. Work is done
//! in the order in which it came. They run on any CPU and after the threads that serve, so that a machine with nothing to
//! spare answers other requests first. Absent: ending them, since a thread that waits costs nothing.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use server_base::offload::{Full, Work};
use sys::process;

/// Has work done by one of the threads.
///
/// # Errors
/// [`WORK_MAX`] pieces of work wait already.
pub(super) fn offload(work: Work) -> Result<(), Full> {
    POOL.give(work, || {
        std::thread::Builder::new()
            .name("offload".to_owned())
            .spawn(serve)
            .is_ok()
    })
}

static POOL: Pool = Pool::new();

/// The work that waits, and who does it.
struct Pool {
    state: Mutex<State>,
    given: Condvar,
}

struct State {
    waiting: VecDeque<Work>,
    threads: usize,
    /// Of those threads, how many have nothing to do.
    idle: usize,
}

impl Pool {
    const fn new() -> Self {
        Self {
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                threads: 0,
                idle: 0,
            }),
            given: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock can be left half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes work; `start` starts one more thread.
    fn give(&self, work: Work, start: impl FnOnce() -> bool) -> Result<(), Full> {
        let mut state = self.lock();
        if state.waiting.len() >= WORK_MAX {
            return Err(Full);
        }
        if state.idle <= state.waiting.len() && state.threads < threads_max() && start() {
            state.threads += 1;
        }
        if state.threads == 0 {
            // There is no thread but this one.
            drop(state);
            work();
            return Ok(());
        }
        state.waiting.push_back(work);
        drop(state);
        self.given.notify_one();
        Ok(())
    }

    /// The next work.
    fn take(&self) -> Work {
        let mut state = self.lock();
        loop {
            if let Some(work) = state.waiting.pop_front() {
                return work;
            }
            state.idle += 1;
            state = self
                .given
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

fn serve() {
    // It works with the priority and the CPUs of the thread that started it as well.
    let _ = process::run_in_background(NICENESS);
    loop {
        let work = POOL.take();
        // Whoever waits for it finds no result, and says so.
        let _ = catch_unwind(AssertUnwindSafe(work));
    }
}

fn threads_max() -> usize {
    process::cpu_count().clamp(1, THREADS_MAX)
}

/// Pieces of work that wait, besides those in progress.
const WORK_MAX: usize = 1024;
/// Threads, where the process has as many CPUs.
const THREADS_MAX: usize = 16;
/// By how much later than the threads that serve they are scheduled.
const NICENESS: i32 = 5;

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn work_is_refused_past_the_limit_and_kept_in_order() {
        let pool = Pool::new();
        let (done, results) = channel();
        for n in 0..WORK_MAX {
            let done = done.clone();
            let work = Box::new(move || done.send(n).expect("the test waits"));
            assert_eq!(pool.give(work, || true), Ok(()), "{n}");
        }
        assert_eq!(pool.give(Box::new(|| {}), || true), Err(Full));
        assert!((1..=THREADS_MAX).contains(&pool.lock().threads));
        pool.take()();
        assert_eq!(pool.give(Box::new(|| {}), || true), Ok(()));
        for _ in 1..WORK_MAX {
            pool.take()();
        }
        let order: Vec<usize> = results.try_iter().collect();
        assert!(order.into_iter().eq(0..WORK_MAX));
    }

    #[test]
    fn work_is_done_at_once_where_no_thread_can_be_started() {
        let pool = Pool::new();
        let (done, results) = channel();
        let work = Box::new(move || done.send(std::thread::current().id()).expect("it waits"));
        assert_eq!(pool.give(work, || false), Ok(()));
        assert_eq!(results.try_recv(), Ok(std::thread::current().id()));
    }

    #[test]
    fn a_panic_costs_no_thread() {
        let (done, results) = channel();
        let panics = threads_max() * 2;
        for _ in 0..panics {
            assert_eq!(offload(Box::new(|| panic!("as it is meant to"))), Ok(()));
        }
        let work = Box::new(move || done.send(process::thread_id()).expect("the test waits"));
        assert_eq!(offload(work), Ok(()));
        let thread = results.recv_timeout(Duration::from_secs(8));
        assert_ne!(thread, Ok(process::thread_id()));
        assert!(thread.is_ok());
    }
}
