//! Stores fetched OCSP responses as long as a configuration has a certificate with the same trust.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Key;

/// Stores the response of one certificate.
#[derive(Debug)]
pub(super) struct Memory {
    last: Mutex<Option<StoredResponse>>,
}

/// A response that was found good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredResponse {
    /// The response, DER.
    pub(super) response: Vec<u8>,
    /// Expiry, seconds since 1970, if the response has one.
    pub(super) until_s: Option<i64>,
    /// Time of the next request, seconds since 1970.
    pub(super) refresh_s: i64,
}

impl Memory {
    /// Returns the entry in use, or a new one.
    pub(super) fn of(key: Key) -> Arc<Self> {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_default();
        if let Some(memory) = all.places.get(&key).and_then(Weak::upgrade) {
            return memory;
        }
        if all.places.len() >= all.most {
            // The number may double before the next cleaning, so its cost per entry is constant.
            all.places.retain(|_, known| known.strong_count() > 0);
            all.most = (2 * all.places.len()).max(PLACES_MIN);
        }
        let memory = Arc::new(Self {
            last: Mutex::new(None),
        });
        all.places.insert(key, Arc::downgrade(&memory));
        memory
    }

    /// The last response.
    pub(super) fn last(&self) -> Option<StoredResponse> {
        self.lock().clone()
    }

    /// Keeps a newer response.
    pub(super) fn store(&self, known: StoredResponse) {
        *self.lock() = Some(known);
    }

    fn lock(&self) -> MutexGuard<'_, Option<StoredResponse>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Entries of current configurations, and some unused ones.
#[derive(Default)]
struct All {
    places: HashMap<Key, Weak<Memory>>,
    /// Number of entries from which unused ones are removed.
    most: usize,
}

static ALL: Mutex<Option<All>> = Mutex::new(None);

/// Fewer entries are not cleaned.
const PLACES_MIN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_known_as_long_as_somebody_refers_to_it() {
        let key = [0x5a; 32];
        let known = StoredResponse {
            response: vec![1, 2, 3],
            until_s: None,
            refresh_s: 7,
        };
        let first = Memory::of(key);
        assert_eq!(first.last(), None);
        first.store(known.clone());
        let second = Memory::of(key);
        drop(first);
        assert_eq!(second.last(), Some(known));
        drop(second);
        assert_eq!(Memory::of(key).last(), None);
    }
}
