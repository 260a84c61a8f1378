//! Whether the wall clock is trusted to decide about the age of rows.
//!
//! A machine may start with a wrong clock, and a clock may jump. Such a clock deletes nothing: age counts only if
//! the clock fits the newest row, or has run evenly for an hour. A clock far behind the newest row does not fit
//! either: it would delete rows in its future.

use std::time::{Duration, Instant, SystemTime};

/// Time between a clock and stored times from which one of them is wrong, seconds: two days.
pub(crate) const WRONG_S: u64 = 2 * 86_400;
/// Deviation from even running that counts as a jump, seconds.
const JUMP_S: u64 = 300;
/// Time for which a clock must run evenly.
const TRIAL: Duration = Duration::from_secs(3600);

/// Returns the time of the wall clock, Unix seconds.
pub(crate) fn wall_s() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// The clock at the last look.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    wall_s: u64,
    at: Instant,
    /// Begin of the trial, `None` for a trusted clock.
    tried_since: Option<Instant>,
}

impl ClockWatch {
    /// Looks at a clock for the first time; `newest_s` is the time of the newest row.
    pub(crate) fn new(newest_s: Option<u64>, wall_s: u64, at: Instant) -> Self {
        let fits = newest_s.is_none_or(|newest_s| wall_s.abs_diff(newest_s) <= WRONG_S);
        Self {
            wall_s,
            at,
            tried_since: (!fits).then_some(at),
        }
    }

    /// Checks the clock again; returns whether it is trusted.
    pub(crate) fn is_trusted(&mut self, wall_s: u64, at: Instant) -> bool {
        let expected_s = self.wall_s + at.duration_since(self.at).as_secs();
        if wall_s.abs_diff(expected_s) > JUMP_S {
            self.tried_since = Some(at);
        }
        (self.wall_s, self.at) = (wall_s, at);
        self.tried_since
            .take_if(|since| at.duration_since(*since) >= TRIAL);
        self.tried_since.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_796_040_000;

    fn after(begin: Instant, s: u64) -> Instant {
        begin + Duration::from_secs(s)
    }

    #[test]
    fn clock_that_fits_the_newest_row_is_trusted_at_once() {
        let begin = Instant::now();
        for (newest_s, fits) in [
            (None, true),
            (Some(NOON), true),
            (Some(NOON - WRONG_S), true),
            (Some(NOON - WRONG_S - 1), false),
            (Some(NOON + WRONG_S), true),
            (Some(NOON + WRONG_S + 1), false),
        ] {
            let mut clock = ClockWatch::new(newest_s, NOON, begin);
            assert_eq!(clock.is_trusted(NOON, begin), fits, "{newest_s:?}");
        }
    }

    #[test]
    fn clock_is_trusted_after_an_even_hour() {
        let begin = Instant::now();
        let mut clock = ClockWatch::new(Some(0), NOON, begin);
        assert!(!clock.is_trusted(NOON + 1800, after(begin, 1800)));
        assert!(!clock.is_trusted(NOON + 3599, after(begin, 3599)));
        assert!(clock.is_trusted(NOON + 3600, after(begin, 3600)));
    }

    #[test]
    fn jump_begins_the_trial_again() {
        let begin = Instant::now();
        for jump in [JUMP_S, JUMP_S + 1, 4000 * 86_400] {
            let mut clock = ClockWatch::new(None, NOON, begin);
            let trusted = clock.is_trusted(NOON + 60 + jump, after(begin, 60));
            assert_eq!(trusted, jump <= JUMP_S, "{jump}");
            let mut back = ClockWatch::new(None, NOON, begin);
            let trusted = back.is_trusted(NOON + 60 - jump.min(NOON), after(begin, 60));
            assert_eq!(trusted, jump <= JUMP_S, "{jump}");
        }
        let mut clock = ClockWatch::new(None, NOON, begin);
        let later = NOON + 4000 * 86_400;
        assert!(!clock.is_trusted(later, after(begin, 60)));
        assert!(!clock.is_trusted(later + 3599, after(begin, 60 + 3599)));
        assert!(clock.is_trusted(later + 3600, after(begin, 60 + 3600)));
    }
}
