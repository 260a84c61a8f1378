//! Keys of session tickets: from files, or rotating keys of the process.
//!
//! Source: nginx documentation, `ssl_session_ticket_key`, `ssl_session_tickets`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use tls::{KeyRing, TicketKey};

/// Keys from files: the first encrypts tickets, all decrypt them.
#[derive(Debug)]
pub(super) struct Files(pub(super) Vec<Arc<TicketKey>>);

impl KeyRing for Files {
    fn current(&self) -> Option<Arc<TicketKey>> {
        self.0.first().cloned()
    }

    fn named(&self, name: &[u8]) -> Option<Arc<TicketKey>> {
        self.0.iter().find(|key| key.name() == name).cloned()
    }
}

/// Rotating keys that survive reloads: one ring for all servers without a shared session cache, and one for each such
/// cache. A key encrypts tickets for one period and decrypts them for one more. A period is as long as the longest
/// `ssl_session_timeout`.
#[derive(Debug, Default)]
pub(super) struct Ring {
    keys: RwLock<Keys>,
    period_s: AtomicU64,
}

#[derive(Debug, Default)]
struct Keys {
    current: Option<Arc<TicketKey>>,
    previous: Option<Arc<TicketKey>>,
    since_s: u64,
}

impl Ring {
    /// The process's.
    pub(super) fn own() -> Arc<Self> {
        static OWN: OnceLock<Arc<Ring>> = OnceLock::new();
        let own = OWN.get_or_init(Arc::default);
        own.last(PERIOD_MIN_S);
        Arc::clone(own)
    }

    /// Ensures that tickets remain valid for this time, seconds.
    pub(super) fn last(&self, timeout_s: u64) {
        self.period_s.fetch_max(timeout_s, Ordering::Relaxed);
    }

    /// Calls a function with the keys, after rotating them if due.
    fn read<T>(&self, read: impl Fn(&Keys) -> T) -> T {
        let now_s = seconds();
        let period_s = self.period_s.load(Ordering::Relaxed);
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        if !keys.is_due(now_s, period_s) {
            return read(&keys);
        }
        drop(keys);
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        keys.turn(now_s, period_s);
        read(&keys)
    }
}

/// Seconds of monotonic time since the first call, unaffected by changes of the wall clock.
fn seconds() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_secs()
}

impl Keys {
    /// Rotates the keys if the period has ended.
    fn turn(&mut self, now_s: u64, period_s: u64) {
        let age = now_s.saturating_sub(self.since_s);
        if self.current.is_some() && age < period_s {
            return;
        }
        // After two idle periods all tickets of the last key have expired.
        let last = self.current.take();
        self.previous = last.filter(|_| age < 2 * period_s);
        self.current = TicketKey::random().map(Arc::new);
        self.since_s = now_s;
    }

    fn is_due(&self, now_s: u64, period_s: u64) -> bool {
        self.current.is_none() || now_s.saturating_sub(self.since_s) >= period_s
    }
}

impl KeyRing for Ring {
    fn current(&self) -> Option<Arc<TicketKey>> {
        self.read(|keys| keys.current.clone())
    }

    fn named(&self, name: &[u8]) -> Option<Arc<TicketKey>> {
        self.read(|keys| {
            let mut known = keys.current.iter().chain(&keys.previous);
            known.find(|key| key.name() == name).cloned()
        })
    }
}

/// Minimum period of rotating keys, seconds.
const PERIOD_MIN_S: u64 = 3600;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: &Option<Arc<TicketKey>>) -> Option<Vec<u8>> {
        key.as_ref().map(|key| key.name().to_vec())
    }

    #[test]
    fn a_key_makes_tickets_for_one_period_and_opens_them_for_another() {
        let mut keys = Keys::default();
        keys.turn(1000, 100);
        let first = name(&keys.current);
        assert!(first.is_some() && keys.previous.is_none());
        keys.turn(1099, 100);
        assert_eq!(name(&keys.current), first);
        keys.turn(1100, 100);
        assert_eq!(name(&keys.previous), first);
        assert_ne!(name(&keys.current), first);
        let second = name(&keys.current);
        keys.turn(1200, 100);
        assert_eq!(name(&keys.previous), second);
    }

    #[test]
    fn keys_are_forgotten_after_a_silence() {
        let mut keys = Keys::default();
        keys.turn(1000, 100);
        keys.turn(1200, 100);
        assert!(keys.previous.is_none());
    }

    #[test]
    fn the_own_keys_are_found_by_name() {
        let own = Ring::own();
        let current = own.current().expect("there is randomness");
        assert!(own.named(current.name()).is_some());
        assert!(own.named(&[0; 16]).is_none());
    }
}
