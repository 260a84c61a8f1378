//! A look at open connections once a second, for experiments: memory by arm, and counts for metrics.
//!
//! A look visits [`VISITS`] slots of the table of connections, or a sixteenth if there are more. When all slots were visited,
//! the sums of the round replace those of the last one. So memory is at most a second old with up to [`VISITS`] connections of a
//! thread, else at most 16. A thread without events looks once more after its last turn, then sleeps.

use std::collections::HashMap;
use std::sync::Arc;

use server_http::arm_meters::ArmMeter;

/// Memory of arms, bytes.
type Sums = HashMap<*const ArmMeter, (Arc<ArmMeter>, u64)>;

/// The state of the looks of a thread.
#[derive(Debug, Default)]
pub struct ArmLook {
    /// The next slot.
    at: u32,
    /// The earliest time of the next look, monotonic milliseconds; 0 before the first.
    next_ms: u64,
    /// A turn was run since the last look.
    is_due: bool,
    /// Memory of the arms measured in this round, bytes.
    sums: Sums,
    /// The sums of the round before, which the meters have.
    shown: Sums,
}

impl ArmLook {
    /// Returns the time of the next look, if a turn was run since the last one.
    #[must_use]
    pub fn due_ms(&self) -> Option<u64> {
        self.is_due.then_some(self.next_ms)
    }

    /// A turn of the loop has ended: measures connections if it is time. `look` reports the arms of the connection in
    /// one of `slots` slots, with its memory in bytes.
    pub fn turned(
        &mut self,
        slots: u32,
        now_ms: u64,
        mut look: impl FnMut(u32, &mut dyn FnMut(&Arc<ArmMeter>, u64)),
    ) {
        self.is_due = true;
        if now_ms < self.next_ms {
            return;
        }
        self.next_ms = now_ms + LOOK_MS;
        let end = slots.min(self.at + VISITS.max(slots / ROUND_LOOKS + 1));
        for slot in self.at..end {
            look(slot, &mut |meter, bytes| self.add(meter, bytes));
        }
        self.at = end;
        if end == slots {
            self.at = 0;
            self.is_due = false;
            self.show();
        }
    }

    /// Adds memory of a connection to an arm.
    fn add(&mut self, meter: &Arc<ArmMeter>, bytes: u64) {
        let sum = self.sums.entry(Arc::as_ptr(meter));
        sum.or_insert_with(|| (Arc::clone(meter), 0)).1 += bytes;
    }

    /// Replaces the sums in the meters by the sums of this round.
    fn show(&mut self) {
        for (_, (meter, before)) in self.shown.drain() {
            meter.set_memory(before, 0);
        }
        for (meter, bytes) in self.sums.values() {
            meter.set_memory(0, *bytes);
        }
        std::mem::swap(&mut self.shown, &mut self.sums);
    }
}

impl Drop for ArmLook {
    fn drop(&mut self) {
        self.sums.clear();
        self.show();
    }
}

/// Time between two looks, milliseconds.
const LOOK_MS: u64 = 1000;
/// Slots of a look, some 100 us.
const VISITS: u32 = 1024;
/// Looks of a round, at most.
const ROUND_LOOKS: u32 = 16;
