//! Work that takes long, done on a thread that serves nobody.
//!
//! The core has no threads. The driver lends a function that takes work ([`Env::offload`]) and does it on one of a few
//! threads, in the order in which it came. A handler that began a [`Job`] keeps it with its exchange, says that it waits,
//! and looks at the job when it is run again. Where there is no such function, the work is done at once.
//!
//! Absent: being woken by the end of the work, so [`look_again_ms`] says when to look; and ending work that has begun. Work
//! whose job was dropped is not begun.

use std::sync::{Arc, OnceLock, Weak};

use crate::context::Env;

/// Work for another thread.
pub type Work = Box<dyn FnOnce() + Send>;

/// Has work done by another thread.
pub type Offload = fn(Work) -> Result<(), Full>;

/// Too much work waits already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<T> {
    /// It waits for a thread, or is in progress.
    Pending,
    /// Its result.
    Done(T),
    /// It panicked.
    Broken,
}

/// Work that was begun; several may wait for it.
#[derive(Clone, Debug)]
pub struct Job<T>(Arc<OnceLock<Option<T>>>);

impl<T: Copy + Send + Sync + 'static> Job<T> {
    /// Begins work.
    ///
    /// # Errors
    /// Too much waits already.
    pub fn begin(env: &Env, work: impl FnOnce() -> T + Send + 'static) -> Result<Self, Full> {
        let place = Arc::new(OnceLock::new());
        let wanted = Arc::downgrade(&place);
        let work = move || {
            let Some(place) = wanted.upgrade() else {
                return;
            };
            let settles = Settles(place);
            let _ = settles.0.set(Some(work()));
        };
        match env.offload {
            Some(offload) => offload(Box::new(work))?,
            None => work(),
        }
        Ok(Self(place))
    }

    /// How far it is.
    pub fn progress(&self) -> Progress<T> {
        match self.0.get() {
            None => Progress::Pending,
            Some(Some(result)) => Progress::Done(*result),
            Some(None) => Progress::Broken,
        }
    }

    /// The job, without waiting for it.
    pub fn downgrade(&self) -> WeakJob<T> {
        WeakJob(Arc::downgrade(&self.0))
    }
}

/// A job without the wish that it be done.
#[derive(Clone, Debug)]
pub struct WeakJob<T>(Weak<OnceLock<Option<T>>>);

impl<T> WeakJob<T> {
    /// The job, while somebody waits for it or it is in progress.
    pub fn upgrade(&self) -> Option<Job<T>> {
        self.0.upgrade().map(Job)
    }
}

/// Notes that there will be no result, if there is none when the work has ended.
struct Settles<T>(Arc<OnceLock<Option<T>>>);

impl<T> Drop for Settles<T> {
    fn drop(&mut self) {
        let _ = self.0.set(None);
    }
}

/// When to look at a job again that has been waited for since then, monotonic milliseconds: a sixteenth of that time later, so
/// that looks are few and the answer is hardly late.
pub fn look_again_ms(since_ms: u64, now_ms: u64) -> u64 {
    let waited_ms = now_ms.saturating_sub(since_ms);
    now_ms.saturating_add((waited_ms / 16).clamp(1, LOOK_MS_MAX))
}

/// The longest time between two looks, milliseconds.
const LOOK_MS_MAX: u64 = 16;

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local! {
        static KEPT: RefCell<Vec<Work>> = const { RefCell::new(Vec::new()) };
    }

    /// Keeps work until it is taken; one piece at most.
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
    fn work_that_panics_leaves_a_broken_job() {
        let job: Job<u8> = Job::begin(&env(), || panic!("as it is meant to")).expect("room");
        let work = take();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).expect_err("it panics");
        assert_eq!(job.progress(), Progress::Broken);
    }

    #[test]
    fn looks_grow_apart_up_to_a_limit() {
        for (since, now, at) in [
            (5, 5, 6),
            (0, 16, 17),
            (0, 32, 34),
            (0, 1000, 1016),
            (9, 5, 6),
        ] {
            assert_eq!(look_again_ms(since, now), at);
        }
    }
}
