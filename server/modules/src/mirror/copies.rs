//! Counts of copies in progress, and their limits.
//!
//! `mirror_max` limits the copies of one server of the configuration to one URI, in all threads together. The counts stay over
//! reloads. Copies of a thread have a limit together, too: they use its connections, and no client waits for them. Copies
//! under a `mirror_max` above that limit have no part in it. Copies without `mirror_max` are not counted.

use std::cell::Cell;
use std::sync::Arc;

use server_base::zone::{self, Zone};

/// Copies of requests to one URI, by server.
#[derive(Clone)]
pub(super) struct UriCopies(Arc<Zone<Copies>>);

/// Copies of the requests of one server to one URI.
#[derive(Clone, Copy, Default)]
struct Copies {
    in_progress: u64,
    refused: RefusedCount,
}

/// Copies that were not made, and the log line about them.
#[derive(Clone, Copy, Default)]
struct RefusedCount {
    /// Copies since the last line.
    copies: u64,
    /// Time of that line, monotonic milliseconds.
    logged_ms: Option<u64>,
}

/// The limit that a copy would exceed: the copies refused since the last log line if a line is due, and the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// `mirror_max`.
    OfUri(Option<u64>, u64),
    /// The limit of a thread.
    OfThread(Option<u64>, u64),
}

impl UriCopies {
    /// Returns the counts of a URI. All configurations of the process share them.
    pub(super) fn of(uri: &[u8]) -> Self {
        let known = zone::attach(ZONES, uri, ZONE_BYTES, b"");
        // An equal key never conflicts.
        Self(known.unwrap_or_else(|_| Arc::new(Zone::new(ZONE_BYTES, b""))))
    }

    /// Counts a copy until the returned value is dropped. `server` is a digest that is equal after a reload, `most` the value
    /// of `mirror_max`; `None`: there is no limit.
    ///
    /// # Errors
    /// Too many copies are in progress.
    pub(super) fn begin(
        &self,
        server: u64,
        most: u64,
        now_ms: u64,
    ) -> Result<Option<CountedCopy>, Refused> {
        if most == 0 {
            return Ok(None);
        }
        // A higher limit of one URI is written on purpose. Its copies would leave no room to the others of the thread.
        let is_of_thread = most <= THREAD_MAX;
        if is_of_thread && OF_THREAD.get() >= THREAD_MAX {
            let mut refused = REFUSED.get();
            let due = refused.add(now_ms);
            REFUSED.set(refused);
            return Err(Refused::OfThread(due, THREAD_MAX));
        }
        let mut shard = self.0.lock(b"");
        let key = server.to_ne_bytes();
        if shard.get_mut(&key).is_none() {
            while shard.insert(&key, Copies::default()).is_err() {
                // The server with the oldest copy loses its count, but the thread has a limit as well.
                if shard.remove_oldest().is_none() {
                    return Ok(None);
                }
            }
        }
        let Some(now) = shard.get_mut(&key) else {
            return Ok(None);
        };
        if now.in_progress >= most {
            return Err(Refused::OfUri(now.refused.add(now_ms), most));
        }
        now.in_progress += 1;
        drop(shard);
        if is_of_thread {
            OF_THREAD.set(OF_THREAD.get() + 1);
        }
        Ok(Some(CountedCopy {
            copies: Arc::clone(&self.0),
            server,
            is_of_thread,
        }))
    }
}

impl RefusedCount {
    /// Counts a copy. Returns the number of copies for a log line, if one is due.
    fn add(&mut self, now_ms: u64) -> Option<u64> {
        self.copies += 1;
        let is_due = |logged_ms| now_ms >= logged_ms + LOG_MS;
        if !self.logged_ms.is_none_or(is_due) {
            return None;
        }
        self.logged_ms = Some(now_ms);
        Some(std::mem::take(&mut self.copies))
    }
}

/// A copy in progress, of this thread.
pub(super) struct CountedCopy {
    copies: Arc<Zone<Copies>>,
    server: u64,
    /// It counts for the limit of the thread.
    is_of_thread: bool,
}

impl Drop for CountedCopy {
    fn drop(&mut self) {
        if self.is_of_thread {
            OF_THREAD.set(OF_THREAD.get() - 1);
        }
        let mut shard = self.copies.lock(b"");
        if let Some(now) = shard.get_mut(&self.server.to_ne_bytes()) {
            // A server that has lost its count counts from 0 again.
            now.in_progress = now.in_progress.saturating_sub(1);
        }
    }
}

/// Default of `mirror_max`: a mirror that never answers leaves most of nginx's 512 `worker_connections` free.
pub(super) const MOST: u64 = 128;
/// Maximum number of copies of a thread at a time, without those under a higher `mirror_max`. With as many post actions as are possible,
/// a quarter of nginx's 512 `worker_connections` is left to clients.
const THREAD_MAX: u64 = 256;
/// Owner of the zones.
const ZONES: &str = "mirror";
/// Budget of the zone of a URI, bytes. It is one shard with some hundred servers, since `lock` finds the same shard for all.
const ZONE_BYTES: u64 = zone::SHARD_BYTES;
/// Time between two log lines about copies that are not made, milliseconds.
const LOG_MS: u64 = 1000;

thread_local! {
    /// Copies of this thread in progress.
    static OF_THREAD: Cell<u64> = const { Cell::new(0) };
    /// Copies that were not made because of the limit of the thread.
    static REFUSED: Cell<RefusedCount> = const { Cell::new(RefusedCount { copies: 0, logged_ms: None }) };
}

#[cfg(test)]
#[path = "copies_tests.rs"]
mod tests;
