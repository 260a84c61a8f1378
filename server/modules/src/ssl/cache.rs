//! `ssl_certificate_cache`: caches certificates and keys that are named by variables.
//!
//! The rules are nginx's. An entry is used for `valid` without a check. Then it is used if time and inode of the file
//! are unchanged, else read again. Inserting an entry removes the unused ones, and the least recently used one if the
//! cache is full. All threads share a cache, which lives as long as its configuration.
//!
//! Source: nginx documentation, `ssl_certificate_cache`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tls::{Chain, Key};

/// A cache.
pub(crate) struct Cache {
    most: usize,
    inactive_s: u64,
    valid_s: u64,
    kept: Mutex<Entries>,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

/// The key of an entry: its kind, and its full path or its text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Id {
    pub(super) is_key: bool,
    /// The name is the PEM text itself, which cannot change.
    pub(super) is_data: bool,
    pub(super) name: Vec<u8>,
}

/// The value of an entry.
#[derive(Clone)]
pub(super) enum Object {
    /// Certificates.
    Chain(Chain),
    /// A key.
    Key(Key),
}

/// Identifies the content of a path: seconds of its time, and its inode.
pub(super) type Stamp = Option<(i64, u64)>;

#[derive(Default)]
struct Entries {
    entries: HashMap<Id, Entry>,
    /// The entries by their last use, the oldest first.
    uses: BTreeMap<u64, Id>,
    /// Counts uses.
    turn: u64,
}

struct Entry {
    object: Object,
    created_s: u64,
    used_s: u64,
    stamp: Stamp,
    turn: u64,
}

/// The result of a look-up.
pub(super) enum CacheLookup {
    /// A usable entry.
    Valid(Object),
    /// An entry that is usable if its file still has this stamp.
    Old(Object, Stamp),
    /// No entry.
    Nothing,
}

impl Cache {
    /// An empty cache for up to `most` certificates and keys.
    pub(super) fn new(most: usize, inactive_s: u64, valid_s: u64) -> Self {
        Self {
            most,
            inactive_s,
            valid_s,
            kept: Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Entries> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds an entry and marks it as used.
    pub(super) fn find(&self, id: &Id, now_s: u64) -> CacheLookup {
        let mut kept = self.kept();
        let Some(entry) = kept.used(id, now_s) else {
            return CacheLookup::Nothing;
        };
        let object = entry.object.clone();
        if id.is_data || now_s.saturating_sub(entry.created_s) <= self.valid_s {
            CacheLookup::Valid(object)
        } else {
            CacheLookup::Old(object, entry.stamp)
        }
    }

    /// Inserts an object, or renews its entry after a check.
    pub(super) fn insert(&self, id: &Id, object: Object, stamp: Stamp, now_s: u64) {
        let mut kept = self.kept();
        if let Some(entry) = kept.used(id, now_s) {
            entry.object = object;
            entry.stamp = stamp;
            entry.created_s = now_s;
            return;
        }
        for _ in 0..EXPIRED_A_TURN {
            kept.drop_oldest(|entry| now_s.saturating_sub(entry.used_s) > self.inactive_s);
        }
        if kept.entries.len() >= self.most {
            kept.drop_oldest(|_| true);
        }
        kept.turn += 1;
        let turn = kept.turn;
        kept.uses.insert(turn, id.clone());
        let entry = Entry {
            object,
            created_s: now_s,
            used_s: now_s,
            stamp,
            turn,
        };
        kept.entries.insert(id.clone(), entry);
    }

    /// Removes an entry that can no longer be loaded.
    pub(super) fn forget(&self, id: &Id) {
        let mut kept = self.kept();
        if let Some(entry) = kept.entries.remove(id) {
            kept.uses.remove(&entry.turn);
        }
    }
}

impl Entries {
    /// Returns an entry and makes it the most recently used one.
    fn used(&mut self, id: &Id, now_s: u64) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(id)?;
        self.turn += 1;
        self.uses.remove(&entry.turn);
        self.uses.insert(self.turn, id.clone());
        entry.turn = self.turn;
        entry.used_s = now_s;
        Some(entry)
    }

    fn drop_oldest(&mut self, may_go: impl Fn(&Entry) -> bool) {
        let Some(id) = self.uses.first_key_value().map(|(_, id)| id.clone()) else {
            return;
        };
        if self.entries.get(&id).is_some_and(may_go) {
            self.entries.remove(&id);
            self.uses.pop_first();
        }
    }
}

/// Maximum number of expired entries that are removed when one is added, as in nginx.
const EXPIRED_A_TURN: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> Id {
        Id {
            is_key: false,
            is_data: name.starts_with("data:"),
            name: name.as_bytes().to_vec(),
        }
    }

    fn chain() -> Object {
        let key = rcgen::KeyPair::generate().expect("there is randomness");
        let params = rcgen::CertificateParams::new(["a".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("it can be signed");
        Object::Chain(Chain::from_pem(certificate.pem().as_bytes()).expect("it is one"))
    }

    fn is_there(cache: &Cache, name: &str, now_s: u64) -> bool {
        !matches!(cache.find(&id(name), now_s), CacheLookup::Nothing)
    }

    #[test]
    fn the_one_used_longest_ago_makes_room() {
        let cache = Cache::new(2, 10, 60);
        for name in ["a", "b"] {
            cache.insert(&id(name), chain(), None, 0);
        }
        assert!(is_there(&cache, "a", 0));
        cache.insert(&id("c"), chain(), None, 0);
        assert!(is_there(&cache, "a", 0) && is_there(&cache, "c", 0));
        assert!(!is_there(&cache, "b", 0));
    }

    #[test]
    fn one_that_is_kept_again_needs_no_room() {
        let cache = Cache::new(2, 10, 60);
        for name in ["a", "b", "a", "b"] {
            cache.insert(&id(name), chain(), None, 0);
        }
        assert!(is_there(&cache, "a", 0) && is_there(&cache, "b", 0));
    }

    #[test]
    fn what_nobody_asks_for_leaves_two_at_a_time() {
        let cache = Cache::new(9, 10, 60);
        for name in ["a", "b", "c"] {
            cache.insert(&id(name), chain(), None, 0);
        }
        cache.insert(&id("d"), chain(), None, 10);
        assert_eq!(cache.kept().entries.len(), 4, "ten seconds are allowed");
        cache.insert(&id("e"), chain(), None, 11);
        assert!(!is_there(&cache, "a", 11) && !is_there(&cache, "b", 11));
        assert!(is_there(&cache, "c", 11) && is_there(&cache, "d", 11));
    }

    #[test]
    fn an_entry_counts_for_its_time_and_data_forever() {
        let cache = Cache::new(9, 1000, 60);
        cache.insert(&id("a"), chain(), Some((1, 2)), 0);
        cache.insert(&id("data:b"), chain(), None, 0);
        assert!(matches!(cache.find(&id("a"), 60), CacheLookup::Valid(_)));
        assert!(matches!(
            cache.find(&id("a"), 61),
            CacheLookup::Old(_, Some((1, 2)))
        ));
        assert!(matches!(
            cache.find(&id("data:b"), 61),
            CacheLookup::Valid(_)
        ));
        cache.insert(&id("a"), chain(), Some((1, 2)), 61);
        assert!(matches!(cache.find(&id("a"), 121), CacheLookup::Valid(_)));
        cache.forget(&id("a"));
        assert!(!is_there(&cache, "a", 121));
    }

    #[test]
    fn keys_and_certificates_are_apart() {
        let cache = Cache::new(9, 10, 60);
        cache.insert(&id("a"), chain(), None, 0);
        let key = Id {
            is_key: true,
            ..id("a")
        };
        assert!(matches!(cache.find(&key, 0), CacheLookup::Nothing));
    }
}
