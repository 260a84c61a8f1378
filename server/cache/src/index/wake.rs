//! A wake-up of periodic work before its pause ends.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

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
    /// Sets the function that ends the pause.
    pub(super) fn set(&self, notify: Notify) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(notify);
    }

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
