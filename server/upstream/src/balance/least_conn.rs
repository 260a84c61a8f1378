//! `least_conn`: the server with the fewest attempts in progress for its weight; equal ones take turns.
//!
//! A choice visits each peer of the list.
//!
//! Source: nginx documentation, `least_conn`; nginx's behaviour.

use super::{Balance, Candidates, Method};
use crate::peer::Peer;

/// The method.
#[derive(Clone, Copy, Debug)]
pub struct LeastConn;

impl Method for LeastConn {
    fn name(&self) -> &'static str {
        "least_conn"
    }

    fn make(&self) -> Box<dyn Balance> {
        Box::new(State::default())
    }
}

#[derive(Debug, Default)]
struct State {
    /// Memory of a choice.
    numbers: Vec<u32>,
}

impl Balance for State {
    fn set_list(&mut self, _: &[Peer], _: &[u32]) {}

    fn pick(&mut self, candidates: &mut Candidates<'_>) -> Option<u32> {
        candidates.free_numbers(&mut self.numbers);
        keep_least(&mut self.numbers, |n| {
            let peer = candidates.peer(n);
            (peer.conns, peer.weights.weight)
        });
        candidates.turn_of_equal(&self.numbers)
    }
}

/// Keeps the numbers of peers with the least load for their weight.
pub(super) fn keep_least(
    numbers: &mut Vec<u32>,
    mut load_and_weight: impl FnMut(u32) -> (u64, i64),
) {
    let (mut kept, mut least) = (0, (0_u64, 0_u64));
    for at in 0..numbers.len() {
        let (load, weight) = load_and_weight(numbers[at]);
        let weight = weight.unsigned_abs();
        let (this, best) = (load.saturating_mul(least.1), least.0.saturating_mul(weight));
        if kept == 0 || this < best {
            (kept, least) = (0, (load, weight));
        } else if this > best {
            continue;
        }
        numbers[kept] = numbers[at];
        kept += 1;
    }
    numbers.truncate(kept);
}

#[cfg(test)]
#[path = "least_conn_tests.rs"]
mod tests;
