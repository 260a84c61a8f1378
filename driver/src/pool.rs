//! Threads that take work in the order in which it came, started when there is work.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use server_base::offload::{Full, Work};

/// Limits of a pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Threads.
    pub threads: usize,
    /// Maximum number of tasks in the queue, besides those in progress.
    pub waiting: usize,
}

/// Queued work and the threads that do it.
pub(crate) struct Pool {
    state: Mutex<State>,
    given: Condvar,
}

struct State {
    waiting: VecDeque<Work>,
    threads: usize,
    /// Number of threads without work.
    idle: usize,
}

impl Pool {
    pub(crate) const fn new() -> Self {
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

    /// Queues a task; `start` starts one more thread.
    ///
    /// # Errors
    /// The queue is as long as `limits` allows.
    pub(crate) fn submit(
        &self,
        work: Work,
        limits: Limits,
        start: impl FnOnce() -> bool,
    ) -> Result<(), Full> {
        let mut state = self.lock();
        if state.waiting.len() >= limits.waiting {
            return Err(Full);
        }
        if state.idle <= state.waiting.len() && state.threads < limits.threads && start() {
            state.threads += 1;
        }
        if state.threads == 0 {
            // No pool thread could start: the calling thread does the work.
            drop(state);
            work();
            return Ok(());
        }
        state.waiting.push_back(work);
        drop(state);
        self.given.notify_one();
        Ok(())
    }

    /// Runs submitted work for ever.
    pub(crate) fn serve(&self) {
        loop {
            let work = self.take();
            // After a panic the waiting request finds no result and reports that.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const LIMITS: Limits = Limits {
        threads: 2,
        waiting: 3,
    };

    #[test]
    fn work_is_refused_past_the_limit_and_kept_in_order() {
        let pool = Pool::new();
        let (done, results) = channel();
        for n in 0..LIMITS.waiting {
            let done = done.clone();
            let work = Box::new(move || done.send(n).expect("the test waits"));
            assert_eq!(pool.submit(work, LIMITS, || true), Ok(()), "{n}");
        }
        assert_eq!(pool.submit(Box::new(|| {}), LIMITS, || true), Err(Full));
        assert_eq!(pool.lock().threads, LIMITS.threads);
        pool.take()();
        assert_eq!(pool.submit(Box::new(|| {}), LIMITS, || true), Ok(()));
        for _ in 1..LIMITS.waiting {
            pool.take()();
        }
        let order: Vec<usize> = results.try_iter().collect();
        assert!(order.into_iter().eq(0..LIMITS.waiting));
    }

    #[test]
    fn work_is_done_at_once_where_no_thread_can_be_started() {
        let pool = Pool::new();
        let (done, results) = channel();
        let work = Box::new(move || done.send(std::thread::current().id()).expect("it waits"));
        assert_eq!(pool.submit(work, LIMITS, || false), Ok(()));
        assert_eq!(results.try_recv(), Ok(std::thread::current().id()));
    }
}
