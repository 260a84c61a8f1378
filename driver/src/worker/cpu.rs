//! Processor time of connections, by sampling.
//!
//! Experiments compare the processor time of arms. Reading the thread's clock costs a system call, so that only one of
//! [`STEPS`] steps of connections is measured, and its time counts [`STEPS`] times. Steps are chosen by independent draws: every
//! step has the same chance, whatever it costs and whichever connection it belongs to, so that sums have no bias. The cost of
//! the clock itself is measured once and subtracted. Without experiments a step costs two branches.
//!
//! The relative standard error of a sum over n steps is about `sqrt(64 (1 + v^2) / n)`, with the coefficient of
//! variation v of the time of a step: 2 % for a million steps and v = 2. Absent: connections to servers, other threads
//! (disk, password hashes), accepting and closing sockets, interrupts.
//!
//! Source: clock_gettime(2), CLOCK_THREAD_CPUTIME_ID; docs/experiments.md.

use server_base::clock::ReadClock;
use server_http::timing::random;

/// The choice of steps, and the measurement of one.
#[derive(Debug, Default)]
pub struct CpuSampler {
    /// Steps until the next measured one, inclusive; 0 if none is measured.
    left: u32,
    /// When the step that is measured began, nanoseconds of the thread; 0 if none is.
    began_ns: u64,
    /// Time between two reads of the clock, nanoseconds.
    cost_ns: u64,
    /// The thread's clock, nanoseconds.
    clock: Option<ReadClock>,
}

impl CpuSampler {
    /// Begins to measure with a clock of nanoseconds, or ends without one. For the thread of the clock.
    pub fn set_clock(&mut self, clock: Option<ReadClock>) {
        if clock.is_none() {
            *self = Self::default();
        } else if self.clock.is_none() {
            let cost = |read: ReadClock| (0..16).map(|_| read().abs_diff(read())).min();
            self.cost_ns = clock.and_then(cost).unwrap_or(0);
            self.left = gap();
            self.clock = clock;
        }
    }

    /// Whether connections have processor times.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.clock.is_some()
    }

    /// A step of a connection begins.
    #[inline]
    pub fn begin(&mut self) {
        if self.left != 0 {
            self.count_down();
        }
    }

    fn count_down(&mut self) {
        self.left -= 1;
        if self.left == 0
            && let Some(read) = self.clock
        {
            self.left = gap();
            self.began_ns = read();
        }
    }

    /// Whether the step that ends is measured.
    #[inline]
    #[must_use]
    pub fn is_measuring(&self) -> bool {
        self.began_ns != 0
    }

    /// Ends the measurement; returns the time of all steps that it represents, nanoseconds.
    #[cold]
    pub fn end(&mut self) -> u64 {
        let began_ns = std::mem::take(&mut self.began_ns);
        let now_ns = self.clock.map_or(began_ns, |read| read());
        let ns = now_ns.saturating_sub(began_ns).saturating_sub(self.cost_ns);
        ns.saturating_mul(u64::from(STEPS))
    }
}

/// Draws the number of steps until the next that is measured, from 1: geometric, as by a draw at each step.
fn gap() -> u32 {
    // 53 bits: a number above 0, up to 1.
    let uniform = ((random() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    let missed = uniform.ln() / (1.0 - 1.0 / f64::from(STEPS)).ln();
    // At most 53 ln 2 times the mean.
    (missed as u32).saturating_add(1)
}

/// One in this many steps is measured.
const STEPS: u32 = 64;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW_NS: Cell<u64> = const { Cell::new(1) };
    }

    /// A clock that costs 100 ns.
    fn clock() -> u64 {
        NOW_NS.set(NOW_NS.get() + 100);
        NOW_NS.get()
    }

    #[test]
    fn sums_of_two_kinds_of_steps_have_no_bias() {
        let mut cpu = CpuSampler::default();
        cpu.set_clock(Some(clock));
        assert!(cpu.is_measured());
        // Two connections in turn; one takes four times as long.
        let mut sums = [0_u64; 2];
        let steps = 400_000;
        for step in 0..steps {
            cpu.begin();
            NOW_NS.set(NOW_NS.get() + [1000, 4000][step % 2]);
            if cpu.is_measuring() {
                sums[step % 2] += cpu.end();
            }
        }
        for (sum, ns) in sums.into_iter().zip([1000.0, 4000.0]) {
            let mean = sum as f64 / (steps as f64 / 2.0);
            // The standard error is 1.8 %.
            assert!((mean / ns - 1.0).abs() < 0.12, "{mean} instead of {ns}");
        }
    }

    #[test]
    fn gaps_have_their_mean_and_least_value() {
        let gaps: Vec<u32> = (0..100_000).map(|_| gap()).collect();
        let mean = gaps.iter().map(|gap| f64::from(*gap)).sum::<f64>() / 100_000.0;
        // The standard error is 0.2.
        assert!((62.0..66.0).contains(&mean), "{mean}");
        assert!(gaps.contains(&1) && !gaps.contains(&0));
    }

    #[test]
    fn nothing_is_measured_without_a_clock() {
        let mut cpu = CpuSampler::default();
        for _ in 0..10_000 {
            cpu.begin();
            assert!(!cpu.is_measuring());
        }
        cpu.set_clock(Some(clock));
        cpu.set_clock(None);
        for _ in 0..10_000 {
            cpu.begin();
            assert!(!cpu.is_measuring() && !cpu.is_measured());
        }
    }
}
