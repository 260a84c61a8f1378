//! Making room for a connection when there are as many as there may be.
//!
//! Idle connections to servers go first, since no request waits for them. Then go connections without a request, so
//! that silent clients cannot block others: kept-alive connections, idle for longest; then those without a whole first
//! request, the oldest. A connection with a whole request in progress is never closed. The search reads the whole
//! table, so an eighth of the found connections is kept for later; each is checked again before it is closed, and all
//! others are younger. If few are found, as when all are busy, the next search waits, so that the cost of a connection
//! does not grow with their number.
//!
//! Absent: a sorted list of candidates, since its updates would cost every request.

use server_http::meters::{self, Event};

use super::{EventLoop, Key, Readiness, Thread};
use crate::worker::conn::EvictionPriority;
use crate::worker::event_loop::Client;
use crate::worker::readiness::SocketFlags;

/// Connections that may be closed, the first of them last.
pub(super) type Candidates = Vec<(EvictionPriority, Key)>;

impl Thread {
    /// Closes the connection that can be spared first; false if there is none.
    pub(super) fn make_room(&mut self) -> bool {
        if self.close_idle_upstream() {
            meters::event(Event::ShedUpstream);
            return true;
        }
        if self.close_candidate() {
            return true;
        }
        let now_ms = self.shared.clock.mono_ms;
        if now_ms < self.search_after_ms {
            return false;
        }
        self.find_candidates();
        self.search_after_ms =
            next_search_ms(now_ms, self.tables.clients.len(), self.candidates.len());
        self.close_candidate()
    }

    fn close_candidate(&mut self) -> bool {
        while let Some((priority, key)) = self.candidates.pop() {
            if self.tables.clients.ready.contains(&key) || !self.has_priority(key, priority) {
                continue;
            }
            // A request may be in the socket with its event not taken yet.
            self.read::<Client<Self>>(key, Readiness::of_socket(SocketFlags::READABLE));
            let noted = &mut self.tables.clients.ready;
            if noted.pop_if(|last| *last == key).is_some() {
                self.turn::<Client<Self>>(key, Readiness::default());
            }
            if self.has_priority(key, priority) {
                self.abort::<Client<Self>>(key);
                meters::event(if priority.is_kept_alive() {
                    Event::ShedKeptAlive
                } else {
                    Event::ShedSilent
                });
            }
            if self.tables.clients.get_mut(key).is_none() {
                return true;
            }
        }
        false
    }

    fn has_priority(&mut self, key: Key, priority: EvictionPriority) -> bool {
        let conn = self.tables.clients.get_mut(key);
        conn.is_some_and(|conn| conn.eviction_priority() == Some(priority))
    }

    fn find_candidates(&mut self) {
        let found = &mut self.candidates;
        for key in self.tables.clients.keys() {
            let conn = self.tables.clients.get_mut(key);
            if let Some(priority) = conn.and_then(|conn| conn.eviction_priority()) {
                found.push((priority, key));
            }
        }
        let batch = found.len().div_ceil(SHARE).max(BATCH_MIN);
        if batch < found.len() {
            found.select_nth_unstable_by_key(batch, |(priority, _)| *priority);
            found.truncate(batch);
        }
        found.sort_unstable_by_key(|(priority, _)| std::cmp::Reverse(*priority));
    }
}

/// When idle connections are searched again, after a search through `searched` connections has found `found`.
fn next_search_ms(now_ms: u64, searched: usize, found: usize) -> u64 {
    if searched <= found * SEARCHED_PER_CANDIDATE {
        return now_ms;
    }
    now_ms + searched as u64 / SEARCHED_PER_MS
}

/// A search that reads at most this many connections for each candidate may be repeated at once.
const SEARCHED_PER_CANDIDATE: usize = 512;
/// Otherwise the next search waits a millisecond for each of this many connections read, which takes some 10 us.
const SEARCHED_PER_MS: u64 = 1000;
/// One in this many of the found candidates is kept.
const SHARE: usize = 8;
/// Minimum number of candidates that are kept.
const BATCH_MIN: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_finds_little_is_not_repeated_at_once() {
        for (searched, found, wait_ms) in [
            (0, 0, 0),
            (1, 0, 0),
            (999, 0, 0),
            (1000, 0, 1),
            (18_000, 0, 18),
            (18_000, 35, 18),
            (18_000, 36, 0),
        ] {
            let next = next_search_ms(5, searched, found);
            assert_eq!(next, 5 + wait_ms, "{found} of {searched}");
        }
    }
}
