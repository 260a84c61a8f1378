//! Bounds of a step of periodic work: `loader_files`, `manager_threshold` and their kin.
//!
//! Source: nginx documentation, `proxy_cache_path`.

/// Bounds of a step, and the pause after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Number of files after which a step ends.
    pub files: u32,
    /// Pause between two steps, milliseconds.
    pub sleep_ms: u64,
    /// Time after which a step ends, milliseconds.
    pub threshold_ms: u64,
}

impl Default for Pace {
    /// The defaults of nginx.
    fn default() -> Self {
        Self {
            files: 100,
            sleep_ms: 50,
            threshold_ms: 200,
        }
    }
}

/// A step in progress, measured by a monotonic clock in milliseconds.
pub(crate) struct Step<'a> {
    pace: Pace,
    clock: &'a dyn Fn() -> u64,
    started_ms: u64,
    files: u32,
}

impl<'a> Step<'a> {
    pub(crate) fn new(pace: Pace, clock: &'a dyn Fn() -> u64) -> Self {
        Self {
            started_ms: clock(),
            pace,
            clock,
            files: 0,
        }
    }

    /// Counts a file. Returns whether the step ends with it.
    pub(crate) fn count(&mut self) -> bool {
        self.files += 1;
        self.files >= self.pace.files || self.is_late()
    }

    /// Whether the step ends for its time.
    pub(crate) fn is_late(&self) -> bool {
        (self.clock)().saturating_sub(self.started_ms) >= self.pace.threshold_ms
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_step_ends_after_files_or_time() {
        let now = Cell::new(1000);
        let clock = || now.get();
        let pace = Pace {
            files: 3,
            ..Pace::default()
        };
        let mut step = Step::new(pace, &clock);
        assert_eq!([(); 3].map(|()| step.count()), [false, false, true]);
        let mut step = Step::new(Pace::default(), &clock);
        now.set(1199);
        assert!(!step.count());
        now.set(1200);
        assert!(step.count());
    }
}
