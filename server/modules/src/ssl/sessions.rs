//! Stores TLS sessions for all threads and across reloads.
//!
//! A cache has a budget in bytes or sessions, and shards that are locked one at a time. The oldest sessions are
//! evicted. Named caches live as long as a configuration uses them.
//!
//! Source: nginx documentation, `ssl_session_cache`.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tls::SessionCache;

use super::tickets::Ring;

/// Sessions by key.
pub(super) struct Cache {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    /// The capacity of each shard.
    budget: Budget,
    /// Keys for tickets of the servers that share it.
    tickets: Arc<Ring>,
}

#[derive(Clone, Copy)]
enum Budget {
    Bytes(u64),
    Sessions(usize),
}

#[derive(Default)]
struct Shard {
    sessions: HashMap<Vec<u8>, Session>,
    /// Keys in the order of insertion; some may be removed already.
    order: VecDeque<Vec<u8>>,
    bytes: u64,
}

struct Session {
    value: Vec<u8>,
    until_s: u64,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

impl Cache {
    /// A cache of one server with room for `sessions` sessions.
    pub(super) fn builtin(sessions: usize) -> Self {
        // A small cache has one shard, so that its limit is exact.
        let shards = (sessions / SHARD_SESSIONS).clamp(1, SHARDS_MAX);
        Self::new(shards, Budget::Sessions(sessions.div_ceil(shards)))
    }

    /// Returns the cache with this name and size: the one in use, or a new one.
    pub(super) fn shared(name: &[u8], bytes: u64) -> Arc<Self> {
        let mut all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.cache.strong_count() > 0);
        let used = all
            .iter()
            .find(|known| known.name == name && known.bytes == bytes)
            .and_then(|known| known.cache.upgrade());
        if let Some(cache) = used {
            return cache;
        }
        let cache = Arc::new(Self::new(
            SHARDS_MAX,
            Budget::Bytes(bytes / SHARDS_MAX as u64),
        ));
        all.push(NamedCache {
            name: name.to_vec(),
            bytes,
            cache: Arc::downgrade(&cache),
        });
        cache
    }

    fn new(shards: usize, budget: Budget) -> Self {
        Self {
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            budget,
            tickets: Arc::default(),
        }
    }

    /// Keys for tickets of the servers that share it.
    pub(super) fn tickets(&self) -> &Arc<Ring> {
        &self.tickets
    }

    fn shard(&self, key: &[u8]) -> MutexGuard<'_, Shard> {
        let shard = self.hasher.hash_one(key) % self.shards.len() as u64;
        // A panic of another thread leaves no partial session.
        self.shards[shard as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionCache for Cache {
    fn put(&self, key: Vec<u8>, value: Vec<u8>, until_s: u64, now_s: u64) {
        let mut shard = self.shard(&key);
        shard.remove(&key);
        let cost = cost(&key, &value);
        loop {
            let full = match self.budget {
                Budget::Bytes(most) if cost > most => return,
                Budget::Bytes(most) => shard.bytes + cost > most,
                Budget::Sessions(most) => shard.sessions.len() >= most,
            };
            if !(full || shard.oldest_has_ended(now_s)) || !shard.drop_oldest() {
                break;
            }
        }
        shard.bytes += cost;
        shard.order.push_back(key.clone());
        shard.sessions.insert(key, Session { value, until_s });
        shard.tidy();
    }

    fn get(&self, key: &[u8], now_s: u64) -> Option<Vec<u8>> {
        let shard = self.shard(key);
        let session = shard.sessions.get(key)?;
        (session.until_s > now_s).then(|| session.value.clone())
    }

    fn take(&self, key: &[u8], now_s: u64) -> Option<Vec<u8>> {
        let session = self.shard(key).remove(key)?;
        (session.until_s > now_s).then_some(session.value)
    }
}

impl Shard {
    fn remove(&mut self, key: &[u8]) -> Option<Session> {
        let session = self.sessions.remove(key)?;
        self.bytes -= cost(key, &session.value);
        Some(session)
    }

    fn oldest_has_ended(&self, now_s: u64) -> bool {
        let oldest = self.order.front();
        oldest.is_some_and(|key| {
            let session = self.sessions.get(key);
            session.is_none_or(|session| session.until_s <= now_s)
        })
    }

    /// Drops the oldest session; false if there is none.
    fn drop_oldest(&mut self) -> bool {
        let Some(key) = self.order.pop_front() else {
            return false;
        };
        self.remove(&key);
        true
    }

    /// Drops removed keys from the order once they are the majority.
    fn tidy(&mut self) {
        if self.order.len() > 2 * self.sessions.len() + KEYS_SPARE {
            let sessions = &self.sessions;
            self.order.retain(|key| sessions.contains_key(key));
        }
    }
}

/// The memory of a session, with its places in table and order, bytes.
fn cost(key: &[u8], value: &[u8]) -> u64 {
    (2 * key.len() + value.len() + SESSION_BYTES) as u64
}

struct NamedCache {
    name: Vec<u8>,
    bytes: u64,
    cache: Weak<Cache>,
}

/// The caches with names that some configuration uses.
static SHARED: Mutex<Vec<NamedCache>> = Mutex::new(Vec::new());

/// Maximum number of shards of a cache.
const SHARDS_MAX: usize = 16;
/// Sessions per shard, at least.
const SHARD_SESSIONS: usize = 64;
/// Overhead of a session in table, order and allocator, bytes.
const SESSION_BYTES: usize = 128;
/// Removed keys in the order before it is cleaned.
const KEYS_SPARE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u32) -> Vec<u8> {
        n.to_be_bytes().to_vec()
    }

    #[test]
    fn a_session_is_kept_until_it_ends_or_is_taken() {
        let cache = Cache::builtin(10);
        cache.put(key(1), b"a".to_vec(), 100, 0);
        assert_eq!(cache.get(&key(1), 99).as_deref(), Some(&b"a"[..]));
        assert_eq!(cache.get(&key(1), 100), None);
        assert_eq!(cache.take(&key(1), 99).as_deref(), Some(&b"a"[..]));
        assert_eq!(cache.take(&key(1), 99), None);
        assert_eq!(cache.get(&key(2), 0), None);
    }

    #[test]
    fn the_oldest_sessions_make_room() {
        let cache = Cache::builtin(3);
        for n in 0..5 {
            cache.put(key(n), Vec::new(), 100, 0);
        }
        let kept: Vec<u32> = (0..5)
            .filter(|n| cache.get(&key(*n), 0).is_some())
            .collect();
        assert_eq!(kept, [2, 3, 4]);
    }

    #[test]
    fn a_budget_of_bytes_holds() {
        let bytes = 1 << 20;
        let cache = Cache::shared(b"sessions test budget", bytes);
        for n in 0..20_000 {
            cache.put(key(n), vec![0; 100], 100, 0);
        }
        let used: u64 = cache
            .shards
            .iter()
            .map(|s| s.lock().map_or(0, |s| s.bytes))
            .sum();
        assert!(used <= bytes && used > bytes / 2, "{used}");
        // A session larger than a shard is not stored.
        cache.put(key(7), vec![0; bytes as usize], 100, 0);
        assert_eq!(cache.get(&key(7), 0), None);
    }

    #[test]
    fn keys_of_sessions_that_were_taken_do_not_pile_up() {
        let cache = Cache::builtin(10);
        for n in 0..10_000 {
            cache.put(key(n), Vec::new(), 100, 0);
            cache.take(&key(n), 0);
        }
        let keys: usize = cache
            .shards
            .iter()
            .map(|s| s.lock().map_or(0, |s| s.order.len()))
            .sum();
        assert!(keys <= KEYS_SPARE + 2, "{keys}");
    }

    #[test]
    fn a_shared_cache_is_found_again_while_it_is_used() {
        let first = Cache::shared(b"sessions test name", 1 << 20);
        first.put(key(1), Vec::new(), 100, 0);
        let again = Cache::shared(b"sessions test name", 1 << 20);
        assert!(again.get(&key(1), 0).is_some());
        let other = Cache::shared(b"sessions test name", 1 << 21);
        assert!(other.get(&key(1), 0).is_none());
        drop((first, again));
        let anew = Cache::shared(b"sessions test name", 1 << 20);
        assert!(anew.get(&key(1), 0).is_none());
    }
}
