//! The weights of a peer in smooth weighted round robin.

/// The weights of one peer.
#[derive(Clone, Debug)]
pub struct Weights {
    pub(crate) weight: i64,
    pub(crate) effective: i64,
    /// The sum; for a peer in a tournament it is outdated.
    pub(crate) current: i64,
    /// The state has changed since the last update of the tournament.
    pub(crate) is_changed: bool,
    /// The tournament will update it at a later time.
    pub(crate) is_awaited: bool,
    /// The tournament raises its effective weight at each choice.
    pub(crate) is_rising: bool,
}

impl Weights {
    /// The weights of a peer that has not failed. `weight` is limited to 0 to [`WEIGHT_MAX`].
    pub fn new(weight: i64) -> Self {
        let weight = weight.clamp(0, WEIGHT_MAX);
        Self {
            weight,
            effective: weight,
            current: 0,
            is_changed: false,
            is_awaited: false,
            is_rising: false,
        }
    }

    /// Lowers the effective weight after a failure; `max_fails` is at least 1.
    pub fn fail(&mut self, max_fails: u64) {
        // A limit above the weight costs nothing.
        let cost = self.weight / i64::try_from(max_fails).unwrap_or(i64::MAX);
        self.effective = (self.effective - cost).max(0);
    }

    /// Sets the weight; limits as in [`Self::new`].
    pub fn set(&mut self, weight: i64) {
        let weight = weight.clamp(0, WEIGHT_MAX);
        if weight != self.weight {
            (self.weight, self.effective) = (weight, weight);
        }
    }
}

/// The largest weight: sums of weights cannot overflow, and a larger one has no other effect.
pub const WEIGHT_MAX: i64 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_limited() {
        for (weight, limited) in [
            (-1, 0),
            (WEIGHT_MAX - 1, WEIGHT_MAX - 1),
            (WEIGHT_MAX, WEIGHT_MAX),
            (WEIGHT_MAX + 1, WEIGHT_MAX),
        ] {
            let mut weights = Weights::new(weight);
            assert_eq!((weights.weight, weights.effective), (limited, limited));
            weights.set(1);
            weights.set(weight);
            assert_eq!((weights.weight, weights.effective), (limited, limited));
        }
    }
}
