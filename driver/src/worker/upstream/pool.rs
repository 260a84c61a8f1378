//! Idle connections to servers, by the pool they belong to.
//!
//! Here are their keys alone; the connections stay in their table. In a pool the one that was used last stands last: it is
//! taken first, and the first one is closed first. Pools are named by numbers that hold no configuration, so that they
//! outlive a reload; one that has become empty is forgotten.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use server_base::connector::UpstreamAddr;

use crate::worker::slab::Key;

/// The idle connections of a thread.
#[derive(Default)]
pub struct IdleConnections {
    pools: HashMap<u64, VecDeque<Idle>, BuildHasherDefault<Digest>>,
    /// The memory of a pool that has become empty: one connection at a time comes and goes in the pool of a calm server.
    spare: VecDeque<Idle>,
    len: usize,
}

struct Idle {
    key: Key,
    addr: UpstreamAddr,
    since_ms: u64,
}

impl IdleConnections {
    /// Adds a connection that has become idle to a pool.
    pub fn insert(&mut self, pool: u64, addr: UpstreamAddr, key: Key, since_ms: u64) {
        self.len += 1;
        let idle = Idle {
            key,
            addr,
            since_ms,
        };
        let spare = &mut self.spare;
        let pool = self.pools.entry(pool);
        let pool = pool.or_insert_with(|| std::mem::take(spare));
        pool.push_back(idle);
    }

    /// Takes the connection of a pool to a server that was used last.
    pub fn take(&mut self, pool: u64, addr: &UpstreamAddr) -> Option<Key> {
        let idle = self.pools.get(&pool)?;
        let at = idle.iter().rposition(|idle| idle.addr == *addr)?;
        Some(self.remove_at(pool, at))
    }

    /// Takes out a connection that is closed.
    pub fn remove(&mut self, pool: u64, key: Key) {
        let idle = self.pools.get(&pool);
        // Those that time out, or whose server closes them, have mostly waited longest.
        if let Some(at) = idle.and_then(|idle| idle.iter().position(|idle| idle.key == key)) {
            self.remove_at(pool, at);
        }
    }

    /// Takes the connection of a pool that was used longest ago, where there are more than `most`.
    pub fn take_surplus(&mut self, pool: u64, most: usize) -> Option<Key> {
        let idle = self.pools.get(&pool)?;
        (idle.len() > most).then(|| self.remove_at(pool, 0))
    }

    /// Takes the connection that was used longest ago.
    pub fn take_oldest(&mut self) -> Option<Key> {
        let fronts = self.pools.iter();
        let fronts = fronts.filter_map(|(pool, idle)| Some((idle.front()?.since_ms, *pool)));
        let (_, pool) = fronts.min()?;
        Some(self.remove_at(pool, 0))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn remove_at(&mut self, pool: u64, at: usize) -> Key {
        let idle = self.pools.get_mut(&pool);
        let idle = idle.expect("the caller has found it there");
        let taken = idle.remove(at).expect("the caller has found it there");
        if idle.is_empty()
            && let Some(emptied) = self.pools.remove(&pool)
            && emptied.capacity() <= SPARE_MAX
        {
            self.spare = emptied;
        }
        self.len -= 1;
        taken.key
    }
}

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
            idle.insert(1, addr(port), key(index), 10 + u64::from(index));
        }
        idle.insert(2, addr(80), key(4), 5);
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

    #[test]
    fn a_pool_keeps_as_many_as_it_may_and_lets_go_of_the_oldest() {
        let mut idle = filled();
        assert_eq!(idle.take_surplus(1, 4), None);
        assert_eq!(idle.take_surplus(1, 3), Some(key(0)));
        assert_eq!(idle.take_surplus(1, 3), None);
        assert_eq!(idle.take_surplus(9, 0), None);
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
