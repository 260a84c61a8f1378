//! State of the thread that spills batches and the thread that sends them.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::spill::Spill;
use super::{ClickHouseSettings, Transport};
use crate::counters::{Counters, Reports};

/// Makes the client of the thread that sends.
pub(super) type Connect = Box<dyn Fn() -> Box<dyn Transport> + Send>;

/// State that both threads share.
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    /// Notified about each new batch, and about the end of either thread.
    pub(super) changed: Condvar,
    pub(super) settings: ClickHouseSettings,
    pub(super) counters: Arc<Counters>,
    pub(super) reports: Reports,
}

pub(super) struct State {
    pub(super) spill: Spill,
    /// Time at which the sending thread must end.
    pub(super) end_at: Option<Instant>,
    pub(super) has_ended: bool,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the sizes of the spill directory.
    pub(super) fn count(&self, spill: &Spill) {
        let (batches, rows, bytes) = spill.sizes();
        let counters = &self.counters;
        counters.spilled_batches.store(batches, Ordering::Relaxed);
        counters.spilled_rows.store(rows, Ordering::Relaxed);
        counters.spilled_bytes.store(bytes, Ordering::Relaxed);
    }
}
