//! Clocks with microseconds, and the precision of sleeps. Source: clock_gettime(2), prctl(2).

use std::io;
use std::num::NonZeroU64;

use rustix::time::{ClockId, clock_gettime};

/// Microseconds since the machine started; they never go back.
#[must_use]
pub fn monotonic_us() -> u64 {
    read_us(ClockId::Monotonic)
}

/// Microseconds since 1970, the clock of the kernel's send timestamps; it may jump.
#[must_use]
pub fn wall_us() -> u64 {
    read_us(ClockId::Realtime)
}

/// Processor time of the calling thread, nanoseconds, in user mode and in system calls.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    // Neither part is negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sets the time by which the kernel may prolong sleeps of the calling thread to merge wake-ups, 50 us by default
/// (PR_SET_TIMERSLACK).
///
/// # Errors
/// None is known.
pub fn set_timer_slack(slack_ns: NonZeroU64) -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(Some(slack_ns))?)
}

fn read_us(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    // Neither part is negative on these clocks, but before 1970.
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_has_the_time_of_its_work() {
        let before = thread_cpu_ns();
        let began = std::time::Instant::now();
        while thread_cpu_ns() - before < 2_000_000 {}
        assert!(began.elapsed().as_nanos() >= 2_000_000 - 100_000);
    }

    #[test]
    fn time_goes_on() {
        let before = monotonic_us();
        let began = std::time::Instant::now();
        while began.elapsed().as_micros() < 2000 {}
        let passed = monotonic_us() - before;
        assert!(before > 0 && passed >= 2000, "{passed}");
    }
}
