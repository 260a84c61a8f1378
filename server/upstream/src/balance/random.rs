//! `random`: a random server by weight, or the better of two.
//!
//! Source: nginx documentation, `random`; nginx's behaviour.

use super::least_time::{Time, estimate};
use super::ranges::{Ranges, TRIES_MAX, probe};
use super::{Balance, Candidates, Measures, Method};
use crate::peer::Peer;

/// The method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Random {
    /// One random server.
    One,
    /// Of two random servers the one with fewer attempts in progress for its weight.
    TwoLeastConn,
    /// Of two random servers the one with the shorter estimated time for its weight.
    TwoLeastTime(Time),
}

impl Method for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn allows_backup(&self) -> bool {
        false
    }

    fn measures(&self) -> Measures {
        match self {
            Self::One | Self::TwoLeastConn => Measures::Nothing,
            Self::TwoLeastTime(_) => Measures::Finished,
        }
    }

    fn make(&self) -> Box<dyn Balance> {
        Box::new(State {
            method: *self,
            ranges: Ranges::default(),
            random: fastrand::Rng::with_seed(0),
        })
    }
}

#[derive(Debug)]
struct State {
    method: Random,
    ranges: Ranges,
    random: fastrand::Rng,
}

impl Balance for State {
    fn set_list(&mut self, peers: &[Peer], list: &[u32]) {
        self.ranges = Ranges::of(peers, list);
    }

    fn pick(&mut self, candidates: &mut Candidates<'_>) -> Option<u32> {
        // The time makes the choices of threads differ, and a simulation repeats them.
        let seed = self.random.get_seed() ^ candidates.now_ms;
        self.random.seed(seed);
        match self.method {
            Random::One => probe(candidates, |_| self.peek()),
            Random::TwoLeastConn => self.pick_of_two(candidates, |_, peer| peer.conns),
            Random::TwoLeastTime(time) => {
                self.pick_of_two(candidates, |now_ms, peer| estimate(time, peer, now_ms))
            }
        }
    }
}

impl State {
    /// Returns a random number of a peer by weight.
    fn peek(&mut self) -> u32 {
        let total = self.ranges.total().max(1);
        self.ranges.peer_at(self.random.u64(..total))
    }

    /// Chooses the one of two random peers that has the smaller load for its weight. The second one wins if they are
    /// equal.
    fn pick_of_two(
        &mut self,
        candidates: &mut Candidates<'_>,
        load: impl Fn(u64, &Peer) -> u64,
    ) -> Option<u32> {
        let mut first = None;
        while candidates.progress.tries <= TRIES_MAX {
            let n = self.peek();
            if first == Some(n) || !candidates.is_free(n) {
                candidates.progress.tries += 1;
                continue;
            }
            let Some(other) = first.replace(n) else {
                continue;
            };
            let now_ms = candidates.now_ms;
            let (one, two) = (candidates.peer(other), candidates.peer(n));
            let cost = |peer, by: &Peer| {
                load(now_ms, peer).saturating_mul(by.weights.weight.unsigned_abs())
            };
            let is_worse = cost(two, one) > cost(one, two);
            return Some(if is_worse { other } else { n });
        }
        candidates.turn()
    }
}

#[cfg(test)]
#[path = "random_tests.rs"]
mod tests;
