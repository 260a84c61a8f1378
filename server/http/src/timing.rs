//! Timings of an exchange, to the microsecond.
//!
//! They are the times of its events ([`crate::probe`]); without subscribers they stay 0. For responses that a
//! module samples ([`Sampled`]) the kernel reports when their first byte was sent and when it was acknowledged.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use engines::http::probe::{Point, Stall, between};

/// All of them, as a share in hundredths of a percent.
pub const ALL: u64 = 10_000;

/// Draws one of `share` among `of`, by a secret sequence: a client must not choose which of its requests are drawn.
pub fn is_drawn(share: u64, of: u64) -> bool {
    share >= of || random() % of < share
}

/// Draws a number by a secret sequence (SplitMix64). Not for keys.
pub fn random() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0));
    }
    let next = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(next);
    let mixed = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// When things happened, microseconds; 0 is not yet, or not noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// The last byte of the request head was read.
    pub head_read_us: u64,
    /// The phases began.
    pub begun_us: u64,
    /// The first byte of the response was given to the kernel.
    pub first_byte_us: u64,
    /// The exchange ended.
    pub ended_us: u64,
}

impl Timings {
    /// Keeps the time of an event.
    pub(crate) fn record(&mut self, point: Point, at_us: u64) {
        match point {
            Point::Head => self.head_read_us = at_us,
            Point::Wait => self.begun_us = at_us,
            Point::FirstByte { .. } => self.first_byte_us = at_us,
            Point::End => self.ended_us = at_us,
            _ => {}
        }
    }

    /// Time from the end of the request head to a moment, microseconds; `None` if one of them was not recorded.
    pub fn since_head(&self, moment_us: u64) -> Option<u64> {
        between(self.head_read_us, moment_us)
    }
}

/// The progress of sampling a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// It is not sampled.
    #[default]
    No,
    /// It was drawn; the driver does it if it can.
    Drawn,
    /// Its first byte was given to the kernel, which has not reported all times yet.
    Asked,
    /// The kernel's report is complete.
    Told,
}

/// The kernel's times of a response's first byte.
///
/// It is not part of [`Timings`], and exchanges do not reset it: the module that samples sets it, and resets it
/// after the log. So it costs other exchanges nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// The progress.
    pub state: Sampling,
    /// Time from the end of the request head until the first byte left, microseconds.
    pub sent_us: Option<u64>,
    /// Time until it was acknowledged, microseconds.
    pub acked_us: Option<u64>,
    /// The cause of a late acknowledgement; `Some(None)`: it came in time; `None`: that was not determined.
    pub stall: Option<Option<Stall>>,
}

/// Writes a time as variables show it, in seconds with microseconds: `1.000234`. Returns whether there is one.
pub fn put_us(out: &mut Vec<u8>, us: Option<u64>) -> bool {
    let Some(us) = us else { return false };
    out.extend_from_slice(format!("{}.{:06}", us / 1_000_000, us % 1_000_000).as_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_share() {
        let drawn = (0..100_000).filter(|_| is_drawn(100, ALL)).count();
        // 1 % of them; ten standard deviations are 315.
        assert!((685..=1315).contains(&drawn), "{drawn}");
        assert!(is_drawn(ALL, ALL) && !is_drawn(0, ALL));
    }
}
