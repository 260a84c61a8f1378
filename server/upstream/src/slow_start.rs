//! `slow_start`: a peer that has recovered gets its share of requests back gradually.
//!
//! During `slow_start` a recovered peer takes part in a growing share of the choices: in none at first, in all at the end. So
//! its weight grows in effect, also a weight of 1, and each method of balancing keeps its own arithmetic. The share is exact:
//! each choice adds the time since the recovery to a credit, and taking part costs the length of the slow start.
//!
//! If no other peer is usable, the share does not count ([`crate::peers::PeerList::pick`]).
//!
//! Source: nginx documentation, `server`, `slow_start`.

/// The slow start of one peer.
#[derive(Clone, Debug, Default)]
pub struct SlowStart {
    /// `slow_start`, milliseconds; 0: off.
    length_ms: u64,
    /// The time of the recovery, monotonic milliseconds; `None`: it takes part in all choices.
    since_ms: Option<u64>,
    /// Credit for the next choice it takes part in.
    credit_ms: u64,
    is_held: bool,
}

impl SlowStart {
    /// Makes the state of a peer that is not starting. The length is in milliseconds; 0: off.
    pub fn new(length_ms: u64) -> Self {
        Self {
            length_ms,
            ..Self::default()
        }
    }

    /// Sets the length, milliseconds.
    pub fn set_length(&mut self, length_ms: u64) {
        self.length_ms = length_ms;
    }

    /// Begins after a recovery at this time, monotonic milliseconds. Returns whether the peer has a slow start.
    pub fn begin(&mut self, now_ms: u64) -> bool {
        if self.length_ms > 0 {
            (self.since_ms, self.credit_ms) = (Some(now_ms), 0);
        }
        self.length_ms > 0
    }

    /// Whether the peer takes no part in the current choice.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Decides whether the peer takes part in the next choice. Returns `None` if it is no longer starting, else whether the
    /// decision differs from the last one.
    pub(crate) fn advance(&mut self, now_ms: u64) -> Option<bool> {
        let elapsed_ms = now_ms.saturating_sub(self.since_ms?);
        if elapsed_ms >= self.length_ms {
            (self.since_ms, self.is_held) = (None, false);
            return None;
        }
        self.credit_ms = self.credit_ms.saturating_add(elapsed_ms);
        let is_held = self.credit_ms < self.length_ms;
        if !is_held {
            self.credit_ms -= self.length_ms;
        }
        Some(std::mem::replace(&mut self.is_held, is_held) != is_held)
    }

    /// Lets the peer take part in the current choice. Returns whether it was held.
    pub(crate) fn release(&mut self) -> bool {
        std::mem::take(&mut self.is_held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of 1,000 choices in which a peer takes part, if all are made at this time after its recovery.
    fn choices(length_ms: u64, after_ms: u64) -> usize {
        let mut slow = SlowStart::new(length_ms);
        assert!(slow.begin(5));
        let takes_part = |_: &u32| {
            slow.advance(5 + after_ms);
            !slow.is_held()
        };
        (0..1000).filter(takes_part).count()
    }

    #[test]
    fn the_share_of_choices_grows_with_the_time() {
        for (after_ms, expected) in [
            (0, 0),
            (1, 1),
            (10, 10),
            (500, 500),
            (999, 999),
            (1000, 1000),
        ] {
            assert_eq!(choices(1000, after_ms), expected, "{after_ms} ms");
        }
        assert_eq!(choices(u64::MAX / 2, 3), 0, "no sum overflows");
    }

    #[test]
    fn a_peer_without_slow_start_never_begins_one() {
        let mut slow = SlowStart::new(0);
        assert!(!slow.begin(1) && !slow.is_held());
        assert_eq!(slow.advance(1), None);
    }

    #[test]
    fn each_change_is_reported_once() {
        let mut slow = SlowStart::new(4);
        slow.begin(0);
        let told: Vec<_> = [1, 1, 2, 2, 2, 2, 4]
            .map(|now_ms| slow.advance(now_ms))
            .into();
        let (same, other) = (Some(false), Some(true));
        // Credits: 1, 2, 4 (takes part), 2, 4 (takes part), 2, over.
        assert_eq!(told, [other, same, other, other, other, other, None]);
        assert!(!slow.is_held() && !slow.release());
    }
}
