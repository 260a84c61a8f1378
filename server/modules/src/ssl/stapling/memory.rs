//! What was fetched about a certificate, as long as a configuration shows it with the same trust.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Key;

/// The place of one certificate's response.
#[derive(Debug)]
pub(super) struct Memory {
    key: Key,
    last: Mutex<Option<Known>>,
}

/// A response that was found good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
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
        all.retain(|known| known.strong_count() > 0);
        let used = all.iter().filter_map(Weak::upgrade);
        if let Some(memory) = used.into_iter().find(|memory| memory.key == key) {
            return memory;
        }
        let memory = Arc::new(Self {
            key,
            last: Mutex::new(None),
        });
        all.push(Arc::downgrade(&memory));
        memory
    }

    /// What is known.
    pub(super) fn last(&self) -> Option<Known> {
        self.lock().clone()
    }

    /// Keeps a newer response.
    pub(super) fn keep(&self, known: Known) {
        *self.lock() = Some(known);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Known>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those that a configuration refers to.
static ALL: Mutex<Vec<Weak<Memory>>> = Mutex::new(Vec::new());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_known_as_long_as_somebody_refers_to_it() {
        let key = [0x5a; 32];
        let known = Known {
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
