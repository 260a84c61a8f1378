//! Periodic tasks of modules: work that no request triggers, such as looking at a file again.
//!
//! The worker's main thread, which serves no connection, runs them, so a task may read a file and take its time. Absent:
//! tasks of the supervisor, which reads its files when it reloads.

use std::sync::Arc;

use crate::errlog::ErrorLog;

/// Ends the pause of the thread that runs periodic tasks, from any thread.
pub type Wake = Arc<WakeFn>;
type WakeFn = dyn Fn() + Send + Sync;

/// The clocks of a run. A simulation has its own.
#[derive(Clone, Copy)]
pub struct TaskClock<'a> {
    /// Returns monotonic milliseconds, which pass during a run.
    pub mono_ms: &'a dyn Fn() -> u64,
    /// Time of the run, seconds since 1970.
    pub unix_s: i64,
}

/// A task that is run again and again while a configuration is served.
pub trait PeriodicTask: Send + Sync {
    /// Runs the task and returns the milliseconds until the next run, `None` for never again. The first run is before
    /// anything is served. A panic ends the worker.
    fn run(&self, clock: &TaskClock<'_>, log: &ErrorLog) -> Option<u64>;

    /// Sets the function for the wake-up of a task that is due before its time. Called before the first run.
    fn set_wake(&self, _: &Wake) {}

    /// Whether the task is due before its time. It asks for that by the function of [`Self::set_wake`].
    fn is_woken(&self) -> bool {
        false
    }
}
