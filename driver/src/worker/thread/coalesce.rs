//! Event coalescing: a thread that passes on many requests sleeps for some microseconds before it takes the next events.
//!
//! Such a thread is often faster than its clients and servers together. Each of their pieces would wake it, and sleeping
//! and waking cost more than reading the piece. So it waits until several have come, as network cards do before they
//! interrupt (interrupt moderation). Peers on the same processors are interrupted less often too, and answer sooner.
//!
//! The delay is at most [`DELAY_US_MAX`], and at most a tenth of the mean time between two events of a connection. That
//! time is `connections in use / events per microsecond` (Little's law). So the delay is small beside the time of a
//! response. There is none if it would gather fewer than [`GATHERED_MIN`] events, so none for fewer than ten times as
//! many requests in progress, and none after a turn with enough events.
//!
//! Connections in use are those to servers: an idle client may be silent for any time, a server in use owes a response.
//! Absent: the clock and the sleep itself, which are the thread's.

use std::time::Duration;

/// Measures a thread's events and decides about its delays.
#[derive(Debug)]
pub(super) struct Coalescing {
    /// When the window in progress began, monotonic milliseconds.
    begin_ms: u64,
    /// Events in the window.
    events: u64,
    /// The most connections to servers that were in use at a time in the window.
    in_use: u64,
    /// Events of the last turn.
    last_events: u64,
    /// The delay that the last whole window has led to, microseconds; 0 for none.
    delay_us: u64,
}

impl Coalescing {
    /// Without delay until the first window has passed.
    pub(super) fn new(now_ms: u64) -> Self {
        Self {
            begin_ms: now_ms,
            events: 0,
            in_use: 0,
            last_events: 0,
            delay_us: 0,
        }
    }

    /// Records the events of a turn and the connections to servers in use.
    #[inline]
    pub(super) fn record(&mut self, now_ms: u64, events: usize, in_use: usize) {
        self.last_events = events as u64;
        self.events += events as u64;
        self.in_use = self.in_use.max(in_use as u64);
        let elapsed_ms = now_ms.saturating_sub(self.begin_ms);
        if elapsed_ms >= WINDOW_MS {
            self.delay_us = delay_us(elapsed_ms.saturating_mul(1000), self.events, self.in_use);
            (self.begin_ms, self.events, self.in_use) = (now_ms, 0, 0);
        }
    }

    /// Returns the time to sleep before events are taken.
    #[inline]
    pub(super) fn delay(&self) -> Option<Duration> {
        let sleeps = self.delay_us > 0 && self.last_events < ENOUGH_EVENTS;
        sleeps.then(|| Duration::from_micros(self.delay_us))
    }
}

/// Computes the delay from the length of a window and the number of its events; 0 for none.
fn delay_us(elapsed_us: u64, events: u64, in_use: u64) -> u64 {
    let between_us = in_use.saturating_mul(elapsed_us) / events.max(1);
    let delay_us = (between_us / PART_OF_INTERVAL).min(DELAY_US_MAX);
    let gathers = delay_us.saturating_mul(events) >= elapsed_us.saturating_mul(GATHERED_MIN);
    if gathers { delay_us } else { 0 }
}

/// Longest delay, microseconds: about the setting of network cards.
const DELAY_US_MAX: u64 = 50;
/// The delay is at most this part of the mean time between two events of a connection.
const PART_OF_INTERVAL: u64 = 10;
/// Events that a delay gathers on average, at least.
const GATHERED_MIN: u64 = 2;
/// Events of a turn behind which nothing is waited for: the thread is the slower side.
const ENOUGH_EVENTS: u64 = 8;
/// Milliseconds over which events are counted.
const WINDOW_MS: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// The state after a window of turns with one event each, this many a millisecond.
    fn after(events_a_ms: usize, in_use: usize) -> Coalescing {
        let mut coalescing = Coalescing::new(0);
        for ms in 0..=WINDOW_MS {
            for _ in 0..events_a_ms {
                coalescing.record(ms, 1, in_use);
            }
        }
        coalescing
    }

    #[test]
    fn many_events_of_many_connections_are_gathered() {
        let delay = after(64, 64).delay();
        assert_eq!(delay, Some(Duration::from_micros(DELAY_US_MAX)));
    }

    #[test]
    fn nothing_is_waited_for_where_few_requests_are_in_progress() {
        // As many events as can be, from connections that each wait for one answer at a time.
        for in_use in 0..19 {
            assert_eq!(after(200, in_use).delay(), None, "{in_use}");
        }
        assert!(after(200, 21).delay().is_some());
    }

    #[test]
    fn nothing_is_waited_for_where_events_are_rare() {
        assert_eq!(after(39, 1000).delay(), None);
        assert!(after(41, 1000).delay().is_some());
    }

    #[test]
    fn the_delay_is_a_tenth_of_the_time_between_two_events_of_a_connection() {
        assert_eq!(delay_us(8000, 8000, 300), 30);
        assert_eq!(delay_us(8000, 8000, 510), DELAY_US_MAX);
        assert_eq!(delay_us(8000, 8000, 19), 0, "it would gather one event");
        assert_eq!(delay_us(8000, 8000, 20), 2);
    }

    #[test]
    fn a_turn_with_enough_events_is_followed_by_the_next_at_once() {
        let mut coalescing = after(64, 64);
        coalescing.record(WINDOW_MS, ENOUGH_EVENTS as usize, 64);
        assert_eq!(coalescing.delay(), None);
        coalescing.record(WINDOW_MS, ENOUGH_EVENTS as usize - 1, 64);
        assert!(coalescing.delay().is_some());
    }

    #[test]
    fn a_quiet_window_ends_the_delay() {
        let mut coalescing = after(64, 64);
        coalescing.record(2 * WINDOW_MS, 1, 64);
        assert_eq!(coalescing.delay(), None);
        assert_eq!(delay_us(u64::MAX, u64::MAX, u64::MAX), 0);
        assert_eq!(delay_us(0, 0, 0), 0);
    }

    #[test]
    fn windows_begin_where_the_last_one_ended() {
        let mut coalescing = after(64, 64);
        for ms in WINDOW_MS..2 * WINDOW_MS {
            coalescing.record(ms, 1, 64);
            assert!(coalescing.delay().is_some(), "the window is not whole");
        }
        coalescing.record(2 * WINDOW_MS, 1, 64);
        assert_eq!(coalescing.delay(), None);
    }
}
