//! Positions on a line on which each peer has a range as long as its weight, and choices by such positions.

use super::Candidates;
use crate::peer::Peer;

/// The ranges of a list of peers.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// The end of each peer's range.
    ends: Vec<u64>,
}

impl Ranges {
    /// The ranges of a list, in its order. Peers that are down have theirs too.
    pub(super) fn of(peers: &[Peer], list: &[u32]) -> Self {
        let mut end = 0;
        let ends = list.iter().map(|at| {
            end += peers[*at as usize].weights.weight.unsigned_abs();
            end
        });
        Self {
            ends: ends.collect(),
        }
    }

    /// Returns the sum of all weights.
    pub(super) fn total(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the number of the peer at a position below [`Self::total`].
    pub(super) fn peer_at(&self, position: u64) -> u32 {
        self.ends.partition_point(|end| *end <= position) as u32
    }
}

/// Takes peers from `next` until one may be chosen. After [`TRIES_MAX`] unusable ones in all choices of a request,
/// chooses by round robin.
pub(super) fn probe(
    candidates: &mut Candidates<'_>,
    mut next: impl FnMut(&mut Candidates<'_>) -> u32,
) -> Option<u32> {
    while candidates.progress.tries <= TRIES_MAX {
        let n = next(candidates);
        if candidates.is_free(n) {
            return Some(n);
        }
        candidates.progress.tries += 1;
    }
    candidates.turn()
}

/// Number of unusable peers that a request meets before its choices are made by round robin, as in nginx.
pub(super) const TRIES_MAX: u32 = 20;
