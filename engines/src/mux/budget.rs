//! The budget of a connection for frames that cost CPU without progress.
//!
//! Every frame that an attack could repeat without end is charged: SETTINGS, PING, PRIORITY, RST_STREAM, empty
//! DATA, window updates, unknown frames. Completed responses, data that moves, and time refill it. An ordinary
//! client never exhausts it.

/// Remaining budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    left: u32,
    most: u32,
    /// Time of the last refill.
    ticked_ms: Option<u64>,
}

impl Budget {
    pub(crate) fn new(most: u32) -> Self {
        Self {
            left: most,
            most,
            ticked_ms: None,
        }
    }

    /// Charges `cost` to the budget; false if it is used up.
    #[must_use]
    pub(crate) fn spend(&mut self, cost: u32) -> bool {
        match self.left.checked_sub(cost) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// Charges `cost`, or the rest if that is less.
    pub(crate) fn drain(&mut self, cost: u32) {
        self.left = self.left.saturating_sub(cost);
    }

    /// Adds to the budget for each second that has passed until `now_ms`.
    #[inline]
    pub(crate) fn tick(&mut self, now_ms: u64) {
        let ticked_ms = *self.ticked_ms.get_or_insert(now_ms);
        let passed_ms = now_ms.saturating_sub(ticked_ms);
        if passed_ms >= 1000 {
            let seconds = passed_ms / 1000;
            self.ticked_ms = Some(ticked_ms + seconds * 1000);
            self.earn(u32::try_from(seconds).unwrap_or(u32::MAX));
        }
    }

    /// Refills the budget.
    #[inline]
    pub(crate) fn earn(&mut self, gain: u32) {
        self.left = self.left.saturating_add(gain).min(self.most);
    }
}

/// Any frame that brings nothing.
pub(crate) const FRAME: u32 = 1;
/// A CONTINUATION without a byte.
pub(crate) const EMPTY_CONTINUATION: u32 = 16;
/// Cost of a stream that the peer resets, or breaks, before its response.
pub(crate) const RESET: u32 = 1;
/// Refill for a completely sent response.
pub(crate) const RESPONSE: u32 = 4;
/// Refill for a DATA frame of at least [`USEFUL_BYTES`], in either direction; and for a shorter one of ours if only
/// its source limited it.
pub(crate) const DATA: u32 = 2;
/// Fewer bytes in a frame are no progress.
pub(crate) const USEFUL_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_ends_and_is_never_above_its_size() {
        let mut budget = Budget::new(2);
        budget.earn(5);
        assert!(budget.spend(2) && !budget.spend(1));
        budget.earn(1);
        assert!(budget.spend(1) && !budget.spend(1));
    }

    #[test]
    fn whole_seconds_refill_it_and_parts_of_them_add_up() {
        let mut budget = Budget::new(100);
        assert!(budget.spend(100));
        // Seconds are counted from the first time.
        for (now_ms, left) in [
            (5500, 0),
            (6499, 0),
            (6500, 1),
            (7400, 1),
            (7500, 2),
            (9600, 4),
            (10_500, 5),
        ] {
            budget.tick(now_ms);
            assert_eq!(budget.left, left, "{now_ms}");
        }
        budget.tick(500_000);
        assert_eq!(budget.left, 100);
        // A clock that runs backwards charges nothing.
        budget.tick(0);
        assert_eq!(budget.left, 100);
    }
}
