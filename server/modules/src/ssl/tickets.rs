//! The keys for tickets: those of files, or the process's own, which change by themselves.
//!
//! Source: nginx documentation, `ssl_session_ticket_key`, `ssl_session_tickets`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use tls::{KeyRing, TicketKey};

/// Keys of files: the first makes tickets, all of them open some.
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

/// The process's own keys, shared by all servers and kept over reloads. A key makes tickets for one period and opens them
/// for a further one, and a period is as long as the longest `ssl_session_timeout`.
#[derive(Debug)]
pub(super) struct Own;

#[derive(Debug)]
struct Keys {
    current: Option<Arc<TicketKey>>,
    previous: Option<Arc<TicketKey>>,
    since_s: u64,
}

impl Own {
    /// Sees to it that tickets can be opened for this long.
    pub(super) fn last(timeout_s: u64) {
        PERIOD_S.fetch_max(timeout_s, Ordering::Relaxed);
    }
}

impl Keys {
    /// Changes keys if it is time.
    fn turn(&mut self, now_s: u64, period_s: u64) {
        let age = now_s.saturating_sub(self.since_s);
        if self.current.is_some() && age < period_s {
            return;
        }
        // After a long silence nothing of what was made with the last key is valid any more.
        let last = self.current.take();
        self.previous = last.filter(|_| age < 2 * period_s);
        self.current = TicketKey::random().map(Arc::new);
        self.since_s = now_s;
    }

    fn is_due(&self, now_s: u64, period_s: u64) -> bool {
        self.current.is_none() || now_s.saturating_sub(self.since_s) >= period_s
    }
}

/// Reads from the keys after changing them if it is time.
fn with_keys<T>(read: impl Fn(&Keys) -> T) -> T {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now_s.map_or(0, |time| time.as_secs());
    let period_s = PERIOD_S.load(Ordering::Relaxed);
    let keys = KEYS.read().unwrap_or_else(PoisonError::into_inner);
    if !keys.is_due(now_s, period_s) {
        return read(&keys);
    }
    drop(keys);
    let mut keys = KEYS.write().unwrap_or_else(PoisonError::into_inner);
    keys.turn(now_s, period_s);
    read(&keys)
}

impl KeyRing for Own {
    fn current(&self) -> Option<Arc<TicketKey>> {
        with_keys(|keys| keys.current.clone())
    }

    fn named(&self, name: &[u8]) -> Option<Arc<TicketKey>> {
        with_keys(|keys| {
            let mut known = keys.current.iter().chain(&keys.previous);
            known.find(|key| key.name() == name).cloned()
        })
    }
}

static KEYS: RwLock<Keys> = RwLock::new(Keys {
    current: None,
    previous: None,
    since_s: 0,
});
static PERIOD_S: AtomicU64 = AtomicU64::new(PERIOD_MIN_S);

/// The shortest period: a key for each five minutes would gain nothing.
const PERIOD_MIN_S: u64 = 3600;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: &Option<Arc<TicketKey>>) -> Option<Vec<u8>> {
        key.as_ref().map(|key| key.name().to_vec())
    }

    #[test]
    fn a_key_makes_tickets_for_one_period_and_opens_them_for_another() {
        let mut keys = Keys {
            current: None,
            previous: None,
            since_s: 0,
        };
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
        let mut keys = Keys {
            current: None,
            previous: None,
            since_s: 0,
        };
        keys.turn(1000, 100);
        keys.turn(1200, 100);
        assert!(keys.previous.is_none());
    }

    #[test]
    fn the_own_keys_are_found_by_name() {
        let current = Own.current().expect("there is randomness");
        assert!(Own.named(current.name()).is_some());
        assert!(Own.named(&[0; 16]).is_none());
    }
}
