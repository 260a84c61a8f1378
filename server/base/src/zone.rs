//! Zones: state by key, shared by all threads and kept over reloads.
//!
//! A zone is a map with a budget of bytes, in shards with a lock each. A shard keeps its keys in the order of their last use. A
//! registry of the process has zones by module, name and size. So a new configuration shares the zones of the previous one.
//! [`Zones`] are the names of a configuration.
//!
//! Absent: zones shared between processes, since all threads serve in one.
//!
//! Source: nginx documentation, "Shared memory zones" in the development guide.

mod names;

use std::any::Any;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::lru::Lru;
pub use names::{SIZE_MIN_BYTES, Zones, refer, size_of};

/// Values by key within a budget.
pub struct Zone<V> {
    /// The text of the key in the configuration.
    key: Vec<u8>,
    size_bytes: u64,
    used_bytes: AtomicU64,
    hasher: RandomState,
    shards: Box<[Mutex<Lru<V>>]>,
}

impl<V> Zone<V> {
    /// An empty zone.
    pub fn new(size_bytes: u64, key: &[u8]) -> Self {
        let shards = (size_bytes / SHARD_BYTES).clamp(1, SHARDS_MAX);
        Self {
            key: key.to_vec(),
            size_bytes,
            used_bytes: AtomicU64::new(0),
            hasher: RandomState::new(),
            shards: (0..shards).map(|_| Mutex::default()).collect(),
        }
    }

    /// Locks the shard of a key.
    pub fn lock(&self, key: &[u8]) -> Shard<'_, V> {
        let shard = self.hasher.hash_one(key) % self.shards.len() as u64;
        let lru = &self.shards[shard as usize];
        Shard {
            // A panic of another thread leaves no partial entry.
            lru: lru.lock().unwrap_or_else(PoisonError::into_inner),
            zone: self,
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        let count = |lru: &Mutex<Lru<V>>| lru.lock().unwrap_or_else(PoisonError::into_inner).len();
        self.shards.iter().map(count).sum()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A locked part of a zone.
pub struct Shard<'z, V> {
    lru: MutexGuard<'z, Lru<V>>,
    zone: &'z Zone<V>,
}

/// The zone is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl<V> Shard<'_, V> {
    /// The value of a key, which becomes the one used last.
    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut V> {
        self.lru.get_mut(key)
    }

    /// Adds a value; the key must be new.
    ///
    /// # Errors
    /// The budget of the zone does not allow it.
    pub fn insert(&mut self, key: &[u8], value: V) -> Result<(), Full> {
        let cost = cost(key);
        let used = self.zone.used_bytes.fetch_add(cost, Ordering::Relaxed);
        if used + cost > self.zone.size_bytes {
            self.zone.used_bytes.fetch_sub(cost, Ordering::Relaxed);
            return Err(Full);
        }
        self.lru.insert(key, value);
        Ok(())
    }

    /// Removes a value.
    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        let value = self.lru.remove(key)?;
        self.zone.used_bytes.fetch_sub(cost(key), Ordering::Relaxed);
        Some(value)
    }

    /// The least recently used value.
    pub fn oldest(&self) -> Option<&V> {
        self.lru.oldest().map(|(_, value)| value)
    }

    /// Removes the least recently used value.
    pub fn remove_oldest(&mut self) -> Option<V> {
        let key = self.lru.oldest().map(|(key, _)| Arc::clone(key))?;
        self.remove(&key)
    }
}

fn cost(key: &[u8]) -> u64 {
    ENTRY_BYTES + key.len() as u64
}

/// The zone of a module with this name and size: the one in use, else a new one.
///
/// # Errors The earlier key, if it differs from the new one.
pub fn attach<V: Send + 'static>(
    module: &'static str,
    name: &[u8],
    size_bytes: u64,
    key: &[u8],
) -> Result<Arc<Zone<V>>, Vec<u8>> {
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    let all = registry.get_or_insert_default();
    all.retain(|_, zone| zone.strong_count() > 0);
    let id = (module, name.to_vec(), size_bytes);
    let used = all.get(&id).and_then(Weak::upgrade);
    if let Some(zone) = used.and_then(|zone| zone.downcast::<Zone<V>>().ok()) {
        return if zone.key == key {
            Ok(zone)
        } else {
            Err(zone.key.clone())
        };
    }
    let zone = Arc::new(Zone::new(size_bytes, key));
    let any: Arc<dyn Any + Send + Sync> = Arc::<Zone<V>>::clone(&zone);
    all.insert(id, Arc::downgrade(&any));
    Ok(zone)
}

/// Module, name and size of a zone.
type Id = (&'static str, Vec<u8>, u64);
type Registry = HashMap<Id, Weak<dyn Any + Send + Sync>>;

/// The zones used by any configuration.
static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

/// Bytes of an entry besides its key: table, links, counts, value. As nginx has it, 128 bytes with an address.
pub const ENTRY_BYTES: u64 = 112;
/// Bytes of a zone for which a further shard is worth while.
pub const SHARD_BYTES: u64 = 64 << 10;
/// Maximum number of shards of a zone.
pub const SHARDS_MAX: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_counts_for_all_shards() {
        let size = 4 * SHARD_BYTES;
        let zone = Zone::new(size, b"$k");
        let mut n: u64 = 0;
        while zone
            .lock(&n.to_be_bytes())
            .insert(&n.to_be_bytes(), n)
            .is_ok()
        {
            n += 1;
        }
        assert_eq!(n, size / (ENTRY_BYTES + 8));
        assert_eq!(zone.len() as u64, n);
        assert_eq!(
            zone.lock(&3_u64.to_be_bytes()).remove(&3_u64.to_be_bytes()),
            Some(3)
        );
        assert_eq!(zone.lock(b"12345678").insert(b"12345678", 0), Ok(()));
        assert_eq!(zone.lock(b"x").insert(b"x", 0), Err(Full));
    }

    #[test]
    fn the_oldest_goes_first() {
        let zone = Zone::new(1 << 15, b"$k");
        let mut shard = zone.lock(b"");
        for key in [b"a", b"b", b"c"] {
            assert_eq!(shard.insert(key, key[0]), Ok(()));
        }
        assert_eq!(shard.get_mut(b"a"), Some(&mut b'a'));
        assert_eq!(shard.oldest(), Some(&b'b'));
        assert_eq!(shard.remove_oldest(), Some(b'b'));
        assert_eq!(shard.remove_oldest(), Some(b'c'));
        assert_eq!(shard.remove_oldest(), Some(b'a'));
        assert_eq!(shard.remove_oldest(), None);
        drop(shard);
        assert!(zone.is_empty());
        assert_eq!(zone.used_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_zone_lives_as_long_as_someone_uses_it() {
        let name = b"zone test";
        let first = attach::<u32>("test", name, 1 << 15, b"$a").unwrap_or_else(|_| panic!());
        assert_eq!(first.lock(b"k").insert(b"k", 1), Ok(()));
        let again = attach::<u32>("test", name, 1 << 15, b"$a").unwrap_or_else(|_| panic!());
        assert_eq!(again.len(), 1);
        let other = attach::<u32>("test", name, 1 << 16, b"$a").unwrap_or_else(|_| panic!());
        assert_eq!(other.len(), 0);
        let key = attach::<u32>("test", name, 1 << 15, b"$b").err();
        assert_eq!(key.as_deref(), Some(&b"$a"[..]));
        drop((first, again));
        let anew = attach::<u32>("test", name, 1 << 15, b"$b").unwrap_or_else(|_| panic!());
        assert!(anew.is_empty());
    }
}
