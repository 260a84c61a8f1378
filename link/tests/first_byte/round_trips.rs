//! Time of a handshake in round trips of the link.
//!
//! Over 50 ms a round trip is so much longer than the work of the ends that their number can be read from a
//! clock: TCP is 1, TCP and TLS 1.3 are 2, TCP and TLS 1.2 are 3.

use std::time::{Duration, Instant};

use firstbyte_tests::busy::Waits;
use link::Link;

use crate::support;
use crate::sweep::LATE_THRESHOLD;

/// The time something took over a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RoundTrips {
    /// The elapsed time.
    pub(crate) elapsed: Duration,
    /// The elapsed time in round trips of the link.
    pub(crate) number: f64,
    /// The latest that the link delivered a packet meanwhile.
    pub(crate) link_late: Duration,
}

impl RoundTrips {
    /// Runs `handshake` in the client's namespace, from before the connection to when it may be used, and counts.
    ///
    /// # Panics
    /// When `handshake` does.
    pub(crate) fn of<T: Send>(link: &Link, handshake: impl FnOnce() -> T + Send) -> (T, Self) {
        let (result, begun, ended) = link.in_client(|| {
            let begun = Instant::now();
            let result = handshake();
            (result, begun, Instant::now())
        });
        let elapsed = ended - begun;
        let counted = Self {
            elapsed,
            number: elapsed.as_secs_f64() / link.round_trip().as_secs_f64(),
            link_late: link.worst_between(begun, ended),
        };
        (result, counted)
    }

    /// Repeats `exchange` until it took the expected number of round trips.
    ///
    /// A round trip too many repeats; a delay by a busy machine does not. So another number fails the test only after
    /// [`FOUND_MAX`] repetitions with the link on time and threads that did not wait for a CPU for that long.
    /// Otherwise the test is inconclusive. `done` takes the results.
    ///
    /// # Panics
    /// If another number is found that often, or `exchange` or `done` panics.
    #[track_caller]
    pub(crate) fn assert<T: Send>(
        link: &Link,
        what: &str,
        expected: u32,
        mut exchange: impl FnMut() -> T + Send,
        mut done: impl FnMut(T),
    ) {
        let mut found = 0;
        for _ in 0..ATTEMPTS {
            let waits = Waits::begin();
            let (result, counted) = Self::of(link, &mut exchange);
            let waited = waits.waited();
            done(result);
            if counted.link_late > LATE_THRESHOLD {
                continue;
            }
            if counted.whole() == Some(expected) {
                return;
            }
            let late = counted.elapsed.saturating_sub(link.round_trip() * expected);
            found += usize::from(late.is_zero() || waited < late);
            let line = format!("{what}: {expected} expected, {counted:?}, waited {waited:?}");
            assert!(found < FOUND_MAX && !support::is_strict(), "{line}");
            eprintln!("{line}");
        }
        let what = format!("{what}: {expected} round trips, {found} times another number");
        support::inconclusive(&what, link);
    }

    /// Returns the number as a whole one, if it is near one.
    #[must_use]
    pub(crate) fn whole(&self) -> Option<u32> {
        let whole = self.number.round();
        let near = (self.number - whole).abs() <= WHOLE_WITHIN;
        // The cast saturates, and makes NaN 0; `near` is false for both.
        near.then_some(whole as u32)
    }
}

/// Tolerance of a number of round trips: work of the ends, 12.5 ms of 50.
const WHOLE_WITHIN: f64 = 0.25;
/// Repetitions at most, if the link was late or another number was found.
const ATTEMPTS: usize = 6;
/// Repetitions with another number that fail the test.
const FOUND_MAX: usize = 3;

mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_a_whole_number_is_one() {
        let whole = |number| {
            RoundTrips {
                elapsed: Duration::ZERO,
                number,
                link_late: Duration::ZERO,
            }
            .whole()
        };
        assert_eq!(whole(1.0), Some(1));
        assert_eq!(whole(2.25), Some(2));
        assert_eq!(whole(2.26), None);
        assert_eq!(whole(f64::INFINITY), None);
        assert_eq!(whole(f64::NAN), None);
    }
}
