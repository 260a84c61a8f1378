//! Fetched responses of certificates, kept as long as a configuration shows a certificate with the same trust.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Key;

/// The place of one certificate's response.
#[derive(Debug)]
pub(super) struct Memory {
    last: Mutex<Option<StoredResponse>>,
}

/// A response that was found good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredResponse {
    /// The response, DER.
    pub(super) response: Vec<u8>,
    /// Until when it holds, seconds since 1970, where it says that.
    pub(super) until_s: Option<i64>,
    /// When a newer one is asked for.
    pub(super) refresh_s: i64,
}

impl Memory {
    /// The place in use, else a new one.
    pub(super) fn of(key: Key) -> Arc<Self> {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_default();
        if let Some(memory) = all.places.get(&key).and_then(Weak::upgrade) {
            return memory;
        }
        if all.places.len() >= all.most {
            // As many again may come before the next look, so that the looks cost little for each.
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
    pub(super) fn keep(&self, known: StoredResponse) {
        *self.lock() = Some(known);
    }

    fn lock(&self) -> MutexGuard<'_, Option<StoredResponse>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those that a configuration refers to, and some that none does any more.
#[derive(Default)]
struct All {
    places: HashMap<Key, Weak<Memory>>,
    /// Number of entries from which unused ones are removed.
    most: usize,
}

static ALL: Mutex<Option<All>> = Mutex::new(None);

/// So few are not worth a look.
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
        first.keep(known.clone());
        let second = Memory::of(key);
        drop(first);
        assert_eq!(second.last(), Some(known));
        drop(second);
        assert_eq!(Memory::of(key).last(), None);
    }
}
