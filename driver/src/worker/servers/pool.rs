//! Idle connections to servers, by the pool they belong to.
//!
//! Here are their keys alone; the connections stay in their table. In a pool the one that was used last stands last: it is
//! taken first, and the first one is closed first. Pools are named by numbers that hold no configuration, so that they
//! outlive a reload; one that has become empty is forgotten.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use server_upstream::route::UpstreamAddr;

use crate::worker::slab::Key;

/// The idle connections of a thread.
#[derive(Default)]
pub struct IdleConnections {
    pools: HashMap<u64, IdlePool, BuildHasherDefault<Digest>>,
    len: usize,
    /// When pools with more connections than they may keep are looked at.
    look_at_ms: Option<u64>,
    /// The memory of a pool that has become empty: one connection at a time comes and goes in the pool of a calm server.
    spare: VecDeque<Idle>,
}

#[derive(Default)]
struct IdlePool {
    idle: VecDeque<Idle>,
    /// Maximum number of idle connections.
    most: usize,
    /// The fewest since the pools were looked at.
    fewest: usize,
}

struct Idle {
    key: Key,
    addr: UpstreamAddr,
    since_ms: u64,
}

impl IdleConnections {
    /// Adds a connection that has become idle to a pool of limited size. Returns one that is to be closed at once.
    ///
    /// Under load connections come and go between a turn and the next, and one that is closed is missing a moment later: up
    /// to as many again as are kept stay for [`SURPLUS_MS`], until it is seen how many were not needed. A small pool may
    /// have a server with a thread for each: then the number is exact ([`EXACT_BELOW`]).
    pub fn insert(
        &mut self,
        (pool, most): (u64, usize),
        addr: UpstreamAddr,
        key: Key,
        since_ms: u64,
    ) -> Option<Key> {
        self.len += 1;
        let spare = &mut self.spare;
        let own = self.pools.entry(pool).or_insert_with(|| IdlePool {
            idle: std::mem::take(spare),
            ..IdlePool::default()
        });
        own.most = most;
        own.idle.push_back(Idle {
            key,
            addr,
            since_ms,
        });
        let len = own.idle.len();
        if len <= most {
            return None;
        }
        if most < EXACT_BELOW || len > most.saturating_mul(2) {
            return Some(self.remove_at(pool, 0));
        }
        self.look_at_ms.get_or_insert(since_ms + SURPLUS_MS);
        None
    }

    /// Takes the connection of a pool to a server that was used last.
    pub fn take(&mut self, pool: u64, addr: &UpstreamAddr) -> Option<Key> {
        let idle = &self.pools.get(&pool)?.idle;
        let at = idle.iter().rposition(|idle| idle.addr == *addr)?;
        Some(self.remove_at(pool, at))
    }

    /// Takes out a connection that is closed.
    pub fn remove(&mut self, pool: u64, key: Key) {
        let idle = self.pools.get(&pool).map(|own| &own.idle);
        // Those that time out, or whose server closes them, have mostly waited longest.
        if let Some(at) = idle.and_then(|idle| idle.iter().position(|idle| idle.key == key)) {
            self.remove_at(pool, at);
        }
    }

    /// When to call [`Self::take_surplus`].
    pub fn look_at_ms(&self) -> Option<u64> {
        self.look_at_ms
    }

    /// Takes the connections that their pools do not keep and that were not needed lately, those first that were used
    /// longest ago.
    pub fn take_surplus(&mut self, now_ms: u64) -> Vec<Key> {
        if self.look_at_ms.is_none_or(|at_ms| now_ms < at_ms) {
            return Vec::new();
        }
        let surplus = |own: &IdlePool| own.fewest.saturating_sub(own.most);
        let pools = self.pools.iter();
        let pools: Vec<(u64, usize)> = pools.map(|(pool, own)| (*pool, surplus(own))).collect();
        let mut taken = Vec::new();
        for (pool, count) in pools {
            taken.extend((0..count).map(|_| self.remove_at(pool, 0)));
        }
        let mut more = false;
        for own in self.pools.values_mut() {
            own.fewest = own.idle.len();
            more |= own.fewest > own.most;
        }
        self.look_at_ms = more.then_some(now_ms + SURPLUS_MS);
        taken
    }

    /// Takes the connection that was used longest ago.
    pub fn take_oldest(&mut self) -> Option<Key> {
        let fronts = self.pools.iter();
        let fronts = fronts.filter_map(|(pool, own)| Some((own.idle.front()?.since_ms, *pool)));
        let (_, pool) = fronts.min()?;
        Some(self.remove_at(pool, 0))
    }

    /// Returns the number of idle connections.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn remove_at(&mut self, pool: u64, at: usize) -> Key {
        let own = self.pools.get_mut(&pool);
        let own = own.expect("the caller has found it there");
        let taken = own.idle.remove(at).expect("the caller has found it there");
        own.fewest = own.fewest.min(own.idle.len());
        if own.idle.is_empty()
            && let Some(emptied) = self.pools.remove(&pool)
            && emptied.idle.capacity() <= SPARE_MAX
        {
            self.spare = emptied.idle;
        }
        self.len -= 1;
        if self.len == 0 {
            // Nobody looks where there are no connections, and a time that has passed would be waited for without a pause.
            self.look_at_ms = None;
        }
        taken.key
    }
}

/// Minimum time for which connections beyond a pool's size stay: longer than clients take from a response to their next
/// request where many are busy, shorter than a server misses a connection.
pub const SURPLUS_MS: u64 = 20;
/// From how many on a pool may have more for a moment.
pub const EXACT_BELOW: usize = 16;

/// Numbers of pools are digests, which need no further hash.
#[derive(Default)]
struct Digest(u64);

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[inline]
    fn write_u64(&mut self, digest: u64) {
        self.0 = digest;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Places of an empty pool's list that are kept.
const SPARE_MAX: usize = 64;

/// Bytes of an idle connection in its pool.
pub const IDLE_BYTES: usize = size_of::<Idle>();

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;

    fn addr(port: u16) -> UpstreamAddr {
        UpstreamAddr::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    fn key(index: u32) -> Key {
        Key { index, life: 0 }
    }

    /// Pool 1 with connections 0 to 3 to two servers by turns, pool 2 with connection 4.
    fn filled() -> IdleConnections {
        let mut idle = IdleConnections::default();
        for index in 0..4 {
            let port = 80 + index as u16 % 2;
            idle.insert((1, 4), addr(port), key(index), 10 + u64::from(index));
        }
        idle.insert((2, 4), addr(80), key(4), 5);
        idle
    }

    #[test]
    fn the_one_used_last_is_taken_first_and_only_for_its_server_and_pool() {
        let mut idle = filled();
        assert_eq!(idle.take(1, &addr(80)), Some(key(2)));
        assert_eq!(idle.take(1, &addr(80)), Some(key(0)));
        assert_eq!(idle.take(1, &addr(80)), None);
        assert_eq!(idle.take(2, &addr(81)), None);
        assert_eq!(idle.take(3, &addr(80)), None);
        assert_eq!((idle.len(), idle.is_empty()), (3, false));
    }

    /// A pool of limited size, with connections of these numbers.
    fn pool(most: usize, numbers: std::ops::Range<u32>) -> IdleConnections {
        let mut idle = IdleConnections::default();
        for n in numbers {
            assert_eq!(idle.insert((1, most), addr(80), key(n), 100), None);
        }
        idle
    }

    #[test]
    fn a_pool_lets_go_of_the_oldest_that_were_not_needed() {
        let mut idle = pool(16, 0..16);
        assert_eq!(idle.look_at_ms(), None, "it has not too many");
        for n in 16..18 {
            assert_eq!(idle.insert((1, 16), addr(80), key(n), 100), None);
        }
        assert_eq!(idle.look_at_ms(), Some(100 + SURPLUS_MS));
        assert_eq!(idle.take_surplus(100 + SURPLUS_MS - 1), []);
        // What was before the pool had too many says nothing.
        assert_eq!(idle.take_surplus(120), []);
        assert_eq!(idle.look_at_ms(), Some(140));
        assert_eq!(idle.take(1, &addr(80)), Some(key(17)));
        assert_eq!(idle.insert((1, 16), addr(80), key(17), 130), None);
        assert_eq!(idle.take_surplus(140), [key(0)], "the other was needed");
        assert_eq!(idle.take_surplus(160), [key(1)]);
        assert_eq!((idle.look_at_ms(), idle.len()), (None, 16));
        assert_eq!(idle.take_surplus(1000), []);
    }

    #[test]
    fn a_pool_has_twice_as_many_as_it_keeps_at_most_and_a_small_one_no_more() {
        let mut idle = pool(16, 0..32);
        assert_eq!(idle.insert((1, 16), addr(80), key(32), 0), Some(key(0)));
        assert_eq!(idle.len(), 32);
        let mut idle = pool(15, 0..15);
        assert_eq!(idle.insert((1, 15), addr(80), key(15), 0), Some(key(0)));
        assert_eq!((idle.len(), idle.look_at_ms()), (15, None));
    }

    #[test]
    fn nothing_is_looked_at_once_all_are_gone() {
        let mut idle = pool(16, 0..17);
        assert_eq!(idle.look_at_ms(), Some(100 + SURPLUS_MS));
        for index in 0..17 {
            idle.remove(1, key(index));
        }
        assert_eq!(idle.look_at_ms(), None);
    }

    #[test]
    fn the_oldest_of_all_pools_goes_first() {
        let mut idle = filled();
        let order: Vec<Option<Key>> = (0..6).map(|_| idle.take_oldest()).collect();
        let expected = [4, 0, 1, 2, 3].map(|index| Some(key(index)));
        assert_eq!(order[..5], expected);
        assert_eq!((order[5], idle.is_empty()), (None, true));
    }

    #[test]
    fn one_that_is_closed_is_not_found_again() {
        let mut idle = filled();
        idle.remove(1, key(2));
        idle.remove(1, key(2));
        idle.remove(7, key(0));
        assert_eq!(idle.take(1, &addr(80)), Some(key(0)));
        idle.remove(2, key(4));
        assert_eq!(idle.len(), 2);
        assert!(!idle.pools.contains_key(&2), "an empty pool is forgotten");
    }
}
