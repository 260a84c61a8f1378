//! `hash` without `consistent`: the server by a hash of a key, as in the Perl library `Cache::Memcached`.
//!
//! Source: nginx documentation, `hash`; nginx's behaviour.

use super::ranges::{Ranges, probe};
use super::{Balance, Candidates, Method};
use crate::peer::Peer;
use server_base::crc32::Crc32;

/// The method.
#[derive(Clone, Copy, Debug)]
pub struct Hash;

impl Method for Hash {
    fn name(&self) -> &'static str {
        "hash"
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
        if candidates.key.bytes.is_empty() {
            return candidates.turn();
        }
        probe(candidates, |candidates| {
            let (progress, key) = (&mut *candidates.progress, &candidates.key.bytes);
            let crc = match progress.rounds {
                0 => Crc32::new(),
                round => Crc32::new().update(round.to_string().as_bytes()),
            };
            progress.rounds += 1;
            let hash = (crc.update(key).value() >> 16) & 0x7fff;
            progress.hash = progress.hash.wrapping_add(hash);
            self.ranges
                .peer_at(u64::from(progress.hash) % self.ranges.total().max(1))
        })
    }
}

#[cfg(test)]
#[path = "hash_tests.rs"]
pub(super) mod tests;
