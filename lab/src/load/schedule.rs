//! A constant rate: each request has a scheduled time, independent of earlier responses.
//!
//! A client that waits for a slow response before the next request omits requests that would have been slow, too. Here the
//! response time counts from the scheduled time.

/// The times of one thread's requests, nanoseconds.
#[derive(Debug)]
pub(super) struct Schedule {
    begin_ns: u64,
    /// Between two requests of this thread, in 1/1024 ns, so that the sum of many stays exact.
    step: u128,
    /// Number of times taken so far.
    taken: u64,
}

impl Schedule {
    /// Returns the schedule of thread number `thread`: `threads` threads take turns to send `rate` requests per second.
    pub(super) fn new(begin_ns: u64, rate: f64, thread: usize, threads: usize) -> Self {
        let each = 1e9 / rate;
        Self {
            begin_ns: begin_ns + (each * thread as f64) as u64,
            step: (each * threads as f64 * FRACTION as f64) as u128,
            taken: 0,
        }
    }

    /// When the next request should be sent.
    pub(super) fn next_ns(&self) -> u64 {
        self.begin_ns + (u128::from(self.taken) * self.step / FRACTION) as u64
    }

    /// Takes the next request.
    pub(super) fn take(&mut self) -> u64 {
        let next = self.next_ns();
        self.taken += 1;
        next
    }
}

const FRACTION: u128 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_turns_at_the_rate() {
        let mut schedules = [0, 1].map(|thread| Schedule::new(1000, 500.0, thread, 2));
        let first: Vec<u64> = schedules.iter_mut().map(Schedule::take).collect();
        assert_eq!(first, [1000, 2_001_000]);
        let second: Vec<u64> = schedules.iter_mut().map(Schedule::take).collect();
        assert_eq!(second, [4_001_000, 6_001_000]);
        let mut long = Schedule::new(0, 3.0, 0, 1);
        for _ in 0..3_000_000 {
            long.take();
        }
        let off = long.next_ns().abs_diff(1_000_000_000_000_000);
        assert!(off < 10_000_000, "{off} ns off after a million seconds");
    }
}
