//! Memory of a thread for responses until their clients receive them: encoders, and bodies produced before they can be sent.
//!
//! A slow client keeps response bytes in memory, and may send a hundred requests on one connection. So a connection has a share
//! and a thread has a budget: a claim beyond them waits, or the optional work is skipped. Files and bytes shared with a cache
//! are not counted, since they need no memory of the response. A waiting exchange is woken once enough is released for its
//! claim.
//!
//! In addition the process has a limit (`worker_memory_limit`): the driver reports when it is reached ([`set_full`]), and when
//! caches are to be freed ([`relieve`]).

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::waker::Waker;

/// Bytes that are counted until this is dropped.
#[derive(Debug)]
pub struct Claim {
    connection: u64,
    bytes: u64,
}

/// Counts `bytes` for a connection, by its number (`$connection`). Returns `None` if its share or the thread's budget is used
/// up; the only claim of a connection is always granted.
#[must_use]
pub fn claim(connection: u64, bytes: u64) -> Option<Claim> {
    let granted = LEDGER.with_borrow_mut(|ledger| ledger.claim(connection, bytes));
    // Not `then_some`: dropping a claim releases its bytes.
    granted.then(|| Claim { connection, bytes })
}

/// Maximum number of bytes that one response may claim now: a connection's share, and less as the thread's budget runs
/// out.
#[must_use]
pub fn allowance_bytes() -> u64 {
    LEDGER.with_borrow(|ledger| {
        let left = THREAD_BYTES.saturating_sub(ledger.bytes);
        (left / ALLOWED_PART).min(CONNECTION_BYTES)
    })
}

/// Wakes a waiter that was refused `bytes` once its connection, by number, may have them.
pub fn wait_for(connection: u64, bytes: u64, waker: Waker) {
    LEDGER.with_borrow_mut(|ledger| {
        // Ended exchanges are removed, and an exchange that claims again is already in the queue.
        ledger.waiters.retain(|known| !known.waker.is_orphan());
        if !ledger
            .waiters
            .iter()
            .any(|known| known.waker.is_same(&waker))
        {
            ledger.waiters.push(Waiter {
                connection,
                bytes,
                waker,
            });
        }
    });
}

/// Whether new requests are refused, since the process has as much memory as it may.
#[inline]
pub fn is_full() -> bool {
    FULL.load(Ordering::Relaxed)
}

/// Sets the flag; returns its earlier value.
pub fn set_full(full: bool) -> bool {
    FULL.swap(full, Ordering::Relaxed)
}

/// Registers a function that frees caches of the thread when memory runs short.
pub fn on_relief(release: fn()) {
    RELIEFS.with_borrow_mut(|reliefs| {
        if !reliefs.contains(&release) {
            reliefs.push(release);
        }
    });
}

/// Frees caches of the thread.
pub fn relieve() {
    let reliefs = RELIEFS.with_borrow(Vec::clone);
    reliefs.into_iter().for_each(|release| release());
}

impl Claim {
    /// Releases the claim beyond `bytes`.
    pub fn shrink(&mut self, bytes: u64) {
        let spare = self.bytes.saturating_sub(bytes);
        LEDGER.with_borrow_mut(|ledger| {
            ledger.shrink(self.connection, spare);
            ledger.wake_waiters();
        });
        self.bytes -= spare;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // At the end of a thread its ledger may be freed already.
        let _ = LEDGER.try_with(|ledger| {
            let mut ledger = ledger.borrow_mut();
            ledger.release(self.connection, self.bytes);
            ledger.wake_waiters();
        });
    }
}

static FULL: AtomicBool = AtomicBool::new(false);

thread_local! {
    static RELIEFS: RefCell<Vec<fn()>> = const { RefCell::new(Vec::new()) };
    static LEDGER: RefCell<Ledger> = RefCell::default();
}

/// The claims of a thread.
#[derive(Default)]
struct Ledger {
    bytes: u64,
    /// By connection; only connections with claims.
    shares: HashMap<u64, Share>,
    /// The waiters, in the order of their claims: at most one for each exchange.
    waiters: Vec<Waiter>,
}

struct Waiter {
    connection: u64,
    bytes: u64,
    waker: Waker,
}

#[derive(Clone, Copy, Default)]
struct Share {
    claims: usize,
    bytes: u64,
}

impl Ledger {
    fn claim(&mut self, connection: u64, bytes: u64) -> bool {
        if !self.grants(connection, bytes) {
            return false;
        }
        self.bytes += bytes;
        let share = self.shares.entry(connection).or_default();
        share.claims += 1;
        share.bytes += bytes;
        true
    }

    /// Whether a connection may claim this number of bytes now.
    fn grants(&self, connection: u64, bytes: u64) -> bool {
        let share = self.shares.get(&connection).copied().unwrap_or_default();
        let fits = share.bytes.saturating_add(bytes) <= CONNECTION_BYTES
            && self.bytes.saturating_add(bytes) <= THREAD_BYTES;
        share.claims == 0 || fits
    }

    /// Wakes the first waiting exchanges with claims that fit. They claim again; refused ones wait again.
    fn wake_waiters(&mut self) {
        if self.waiters.is_empty() {
            return;
        }
        let mut waiters = std::mem::take(&mut self.waiters);
        let mut woken = 0;
        waiters.retain(|waiter| {
            let wakes = woken < WAKES_MAX && self.grants(waiter.connection, waiter.bytes);
            if wakes {
                woken += 1;
                waiter.waker.wake();
            }
            !wakes
        });
        self.waiters = waiters;
    }

    fn shrink(&mut self, connection: u64, bytes: u64) {
        self.bytes -= bytes;
        if let Some(share) = self.shares.get_mut(&connection) {
            share.bytes -= bytes;
        }
    }

    fn release(&mut self, connection: u64, bytes: u64) {
        self.shrink(connection, bytes);
        if let Some(share) = self.shares.get_mut(&connection) {
            share.claims -= 1;
            if share.claims == 0 {
                self.shares.remove(&connection);
            }
        }
    }
}

/// Bytes that the responses of one connection may claim together.
pub const CONNECTION_BYTES: u64 = 3584 << 10;
/// Bytes that the responses of one thread may claim together.
pub const THREAD_BYTES: u64 = 32 << 20;
/// A response claims at most this part of the remaining budget.
const ALLOWED_PART: u64 = 4;
/// Time after which a waiting response is tried again without a release for it: another may have been woken in its place.
pub const RETRY_MS: u64 = 1000;
/// Maximum number of exchanges that the release of one claim wakes.
pub const WAKES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_of_a_connection_is_granted_to_its_last_byte() {
        let first = claim(1, CONNECTION_BYTES - 1);
        assert!(first.is_some() && claim(1, 2).is_none());
        let second = claim(1, 1);
        assert!(second.is_some() && claim(1, 1).is_none());
        assert!(claim(2, 1).is_some(), "another connection has its own");
        drop(first);
        assert!(claim(1, CONNECTION_BYTES - 1).is_some());
    }

    #[test]
    fn only_claim_of_a_connection_is_granted_whatever_is_left() {
        assert_eq!(allowance_bytes(), CONNECTION_BYTES);
        let all = claim(1, THREAD_BYTES);
        assert_eq!(allowance_bytes(), 0);
        let only = claim(2, 100);
        assert!(all.is_some() && only.is_some() && claim(2, 1).is_none());
        drop((all, only));
        assert_eq!(allowance_bytes(), CONNECTION_BYTES);
        assert!(LEDGER.with_borrow(|ledger| ledger.shares.is_empty() && ledger.bytes == 0));
    }

    #[test]
    fn what_is_shrunk_can_be_claimed_again() {
        let mut first = claim(1, CONNECTION_BYTES).expect("it is the only one");
        first.shrink(10);
        first.shrink(20);
        assert!(claim(1, CONNECTION_BYTES - 10).is_some());
        drop(first);
        assert!(LEDGER.with_borrow(|ledger| ledger.shares.is_empty() && ledger.bytes == 0));
    }
}
