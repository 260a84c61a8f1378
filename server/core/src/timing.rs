//! Moments of an exchange, to the microsecond.
//!
//! The driver notes them where the configuration asks for any of them ([`crate::http::Http::timed`]); else they stay 0 and
//! cost nothing. They are monotonic, from an arbitrary start that lies before all of them.

/// When things happened, microseconds; 0 is not yet, or not noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// The last byte of the request head was read.
    pub head_read_us: u64,
    /// The phases began.
    pub begun_us: u64,
    /// The first byte of the response was given to the kernel.
    pub first_byte_us: u64,
}

impl Moments {
    /// Time from the end of the request head to a moment, microseconds; `None` where one of them was not noted.
    pub fn since_head(&self, moment_us: u64) -> Option<u64> {
        between(self.head_read_us, moment_us)
    }
}

/// Time between two moments, microseconds; `None` where one of them was not noted.
pub fn between(earlier_us: u64, later_us: u64) -> Option<u64> {
    if earlier_us == 0 || later_us == 0 {
        return None;
    }
    Some(later_us.saturating_sub(earlier_us))
}

/// Reads a monotonic clock, microseconds.
pub type ReadClock = fn() -> u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_that_was_not_noted_has_no_distance() {
        let moments = Moments {
            head_read_us: 5,
            ..Moments::default()
        };
        assert_eq!(moments.since_head(7), Some(2));
        assert_eq!(moments.since_head(0), None);
        assert_eq!(moments.since_head(4), Some(0));
        assert_eq!(Moments::default().since_head(7), None);
    }
}
