//! A wake-up of periodic work before its pause ends.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::core::Index;

/// Ends the pause of the thread with manager and purger.
type Notify = Arc<dyn Fn() + Send + Sync>;

/// The wake-up of periodic work; none until it was set.
#[derive(Default)]
pub(super) struct WorkWake(Mutex<Option<Notify>>);

impl fmt::Debug for WorkWake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkWake")
    }
}

impl WorkWake {
    /// Wakes periodic work. No lock is held during the call of its function.
    pub(super) fn wake(&self) {
        let notify = {
            let notify = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            notify.clone()
        };
        if let Some(notify) = notify {
            notify();
        }
    }
}

impl Index {
    /// Sets the function that wakes manager and purger, from any thread: files wait for their removal, the index is full, or
    /// a purge waits for a walk. Without it, they notice that after their pause.
    ///
    /// It is called once for many files, and must return at once.
    pub fn set_work_wake(&self, notify: impl Fn() + Send + Sync + 'static) {
        let mut wake = self.work.0.lock().unwrap_or_else(PoisonError::into_inner);
        *wake = Some(Arc::new(notify));
    }
}
