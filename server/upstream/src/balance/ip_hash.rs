//! `ip_hash`: the server by a hash of the client's network.
//!
//! Source: nginx documentation, `ip_hash`; nginx's behaviour.

use super::ranges::{Ranges, probe};
use super::{Balance, Candidates, Method};
use crate::peer::Peer;

/// The method. The key of a request is the first three bytes of an IPv4 address, or all bytes of an IPv6 address.
#[derive(Clone, Copy, Debug)]
pub struct IpHash;

impl Method for IpHash {
    fn name(&self) -> &'static str {
        "ip_hash"
    }

    fn allows_backup(&self) -> bool {
        false
    }

    fn make(&self) -> Box<dyn Balance> {
        Box::new(State::default())
    }
}

#[derive(Debug, Default)]
struct State {
    ranges: Ranges,
}

impl Balance for State {
    fn set_list(&mut self, peers: &[Peer], list: &[u32]) {
        self.ranges = Ranges::of(peers, list);
    }

    fn pick(&mut self, candidates: &mut Candidates<'_>) -> Option<u32> {
        probe(candidates, |candidates| {
            let progress = &mut *candidates.progress;
            if progress.rounds == 0 {
                progress.hash = FIRST_HASH;
            }
            progress.rounds += 1;
            for byte in &candidates.key.bytes {
                progress.hash = (progress.hash * FACTOR + u32::from(*byte)) % MODULUS;
            }
            self.ranges
                .peer_at(u64::from(progress.hash) % self.ranges.total().max(1))
        })
    }
}

/// The numbers of nginx's hash.
const FIRST_HASH: u32 = 89;
const FACTOR: u32 = 113;
const MODULUS: u32 = 6271;

#[cfg(test)]
#[path = "ip_hash_tests.rs"]
mod tests;
