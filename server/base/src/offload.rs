//! Long work on threads without connections.
//!
//! The core has no threads. The driver lends a function that queues work ([`Env::offload`]) for a few threads. A handler stores
//! its [`Job`] with the exchange, registers the exchange's waker ([`Job::wakes`]), waits, and checks the job when it runs
//! again. Without such a function the work is done at once.
//!
//! Absent: canceling work in progress. Work is not begun if its job was dropped.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::context::Env;
use crate::waker::RemoteWaker;

/// Work for another thread.
pub type Work = Box<dyn FnOnce() + Send>;

/// Queues work for another thread.
pub type Offload = fn(Work) -> Result<(), Full>;

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The progress of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<T> {
    /// It is queued or in progress.
    Pending,
    /// Its result.
    Done(T),
    /// It panicked.
    Broken,
}

/// Work in progress; several exchanges may wait for it.
#[derive(Clone, Debug)]
pub struct Job<T>(Arc<JobState<T>>);

/// The future result, and one waker for each exchange that waits for it.
#[derive(Debug)]
struct JobState<T> {
    result: OnceLock<Option<T>>,
    waiters: Mutex<Vec<RemoteWaker>>,
}

impl<T> JobState<T> {
    fn waiters(&self) -> MutexGuard<'_, Vec<RemoteWaker>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Copy + Send + Sync + 'static> Job<T> {
    /// Begins work.
    ///
    /// # Errors The queue is full.
    pub fn begin(env: &Env, work: impl FnOnce() -> T + Send + 'static) -> Result<Self, Full> {
        let place = Arc::new(JobState {
            result: OnceLock::new(),
            waiters: Mutex::default(),
        });
        let wanted = Arc::downgrade(&place);
        let work = move || {
            let settles = Settles(wanted.upgrade());
            if let Some(place) = &settles.0 {
                let _ = place.result.set(Some(work()));
            }
        };
        match env.offload {
            Some(offload) => offload(Box::new(work))?,
            None => work(),
        }
        Ok(Self(place))
    }

    /// The progress of the job.
    pub fn progress(&self) -> Progress<T> {
        match self.0.result.get() {
            None => Progress::Pending,
            Some(Some(result)) => Progress::Done(*result),
            Some(None) => Progress::Broken,
        }
    }

    /// Wakes an exchange at the end of the work, or at once if it has ended.
    pub fn wakes(&self, waker: RemoteWaker) {
        let mut waiters = self.0.waiters();
        // The result is set before the waiters are taken.
        if self.0.result.get().is_some() {
            drop(waiters);
            return waker.wake();
        }
        if !waiters.iter().any(|known| known.is_same(&waker)) {
            waiters.push(waker);
        }
    }

    /// The job, without waiting for it.
    pub fn downgrade(&self) -> WeakJob<T> {
        WeakJob(Arc::downgrade(&self.0))
    }
}

/// A weak reference: it does not keep queued work alive.
#[derive(Clone, Debug)]
pub struct WeakJob<T>(Weak<JobState<T>>);

impl<T> WeakJob<T> {
    /// The job, while an exchange waits for it or it is in progress.
    pub fn upgrade(&self) -> Option<Job<T>> {
        self.0.upgrade().map(Job)
    }
}

/// On drop marks the job as broken if the work has ended without a result, and wakes the waiting exchanges.
struct Settles<T>(Option<Arc<JobState<T>>>);

impl<T> Drop for Settles<T> {
    fn drop(&mut self) {
        let Some(place) = self.0.take() else { return };
        let _ = place.result.set(None);
        let waiters = std::mem::take(&mut *place.waiters());
        // Before the waiters are woken: a job still held by this thread would be found by the next request for the same work.
        drop(place);
        waiters.iter().for_each(RemoteWaker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::waker::{WakeKey, WakeQueue, Waker};

    thread_local! {
        static KEPT: RefCell<Vec<Work>> = const { RefCell::new(Vec::new()) };
    }

    /// Stores at most one piece of work until it is taken.
    fn keep(work: Work) -> Result<(), Full> {
        KEPT.with_borrow_mut(|kept| {
            if !kept.is_empty() {
                return Err(Full);
            }
            kept.push(work);
            Ok(())
        })
    }

    fn take() -> Work {
        KEPT.with_borrow_mut(|kept| kept.pop())
            .expect("work was given")
    }

    fn env() -> Env {
        Env {
            offload: Some(keep),
            ..Env::default()
        }
    }

    #[test]
    fn result_is_there_when_the_work_is_done() {
        let job = Job::begin(&env(), || 7).expect("there is room");
        assert_eq!(job.progress(), Progress::Pending);
        assert_eq!(Job::begin(&env(), || 8).map(|_| ()), Err(Full));
        take()();
        assert_eq!(job.progress(), Progress::Done(7));
        let job = Job::begin(&Env::default(), || 9).expect("it is done at once");
        assert_eq!(job.progress(), Progress::Done(9));
    }

    #[test]
    fn work_that_nobody_waits_for_is_not_begun() {
        let held = Arc::new(());
        let theirs = Arc::clone(&held);
        let job = Job::begin(&env(), move || {
            let _theirs = theirs;
            panic!("nobody wants it")
        });
        assert_eq!(job.map(|_: Job<u8>| ()), Ok(()));
        take()();
        assert_eq!(Arc::strong_count(&held), 1, "nothing of it is left");
    }

    #[test]
    fn who_is_woken_finds_the_job_let_go_of() {
        let job = Job::begin(&env(), || 7).expect("there is room");
        let (weak, (told, holders)) = (job.downgrade(), channel());
        let queue = WakeQueue::new(move || told.send(weak.0.strong_count()).expect("it waits"));
        job.wakes(Waker::new(WakeKey::default(), &queue).remote());
        take()();
        assert_eq!(holders.try_recv(), Ok(1), "who waits holds it");
    }

    #[test]
    fn work_that_panics_leaves_a_broken_job() {
        let job: Job<u8> = Job::begin(&env(), || panic!("as it is meant to")).expect("room");
        let work = take();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).expect_err("it panics");
        assert_eq!(job.progress(), Progress::Broken);
    }

    #[test]
    fn who_waits_is_woken_by_the_end_of_the_work_and_once() {
        let queue = WakeQueue::default();
        let wakers = [1, 2].map(|owner| Waker::new(WakeKey { owner, stream: 0 }, &queue));
        let woken = || {
            queue.receive();
            queue.take().len()
        };
        let job = Job::begin(&env(), || 7).expect("there is room");
        for waker in [&wakers[0], &wakers[1], &wakers[0]] {
            job.wakes(waker.remote());
        }
        assert_eq!(job.0.waiters().len(), 2, "each waits once");
        assert_eq!(woken(), 0);
        take()();
        assert_eq!((woken(), job.progress()), (2, Progress::Done(7)));
        job.wakes(wakers[0].remote());
        assert_eq!(woken(), 1, "what has ended wakes at once");
        let job: Job<u8> = Job::begin(&env(), || panic!("as it is meant to")).expect("room");
        job.wakes(wakers[0].remote());
        let work = take();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).expect_err("it panics");
        assert_eq!(woken(), 1, "a panic wakes as well");
    }
}
