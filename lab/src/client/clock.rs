//! The clock that events have their times from.

use std::time::{Duration, Instant};

use rustix::time::ClockId;

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    // Neither part is negative on this clock.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The monotonic clock, in nanoseconds and as the standard library has it.
pub(crate) struct Clocks {
    ns: u64,
    instant: Instant,
}

impl Clocks {
    /// One reading between two of the other; of several the closest, because this thread may have to wait in between.
    pub(crate) fn now() -> Self {
        let read = || {
            let before = now_ns();
            let instant = Instant::now();
            let width = now_ns() - before;
            let ns = before + width / 2;
            (width, Self { ns, instant })
        };
        let mut closest = read();
        for _ in 1..READINGS {
            let next = read();
            if next.0 < closest.0 {
                closest = next;
            }
        }
        closest.1
    }

    pub(crate) fn instant(&self, ns: u64) -> Instant {
        let ahead = Duration::from_nanos(ns.saturating_sub(self.ns));
        let behind = Duration::from_nanos(self.ns.saturating_sub(ns));
        self.instant + ahead - behind
    }
}

const READINGS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn both_readings_of_the_clock_agree() {
        let clocks = Clocks::now();
        let (before, ns, after) = (Instant::now(), now_ns(), Instant::now());
        // The clocks are bound to each other to the length of a reading; a tenth of a millisecond is far above.
        let slack = Duration::from_micros(100);
        let found = clocks.instant(ns);
        assert!(before - slack <= found && found <= after + slack);
        assert!(clocks.instant(ns - MS) < clocks.instant(ns));
    }
}
