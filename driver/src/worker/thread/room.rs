//! Making room for a connection when there are as many as there may be.
//!
//! Idle connections to servers go first, since nobody waits for them. Then goes who waits without a request, so that nobody
//! can keep others out by being silent: kept-alive connections, idle for longest; then those whose first request is not
//! whole, the oldest. A connection that has a whole request in progress is never closed. Looking for clients reads the whole
//! table, so an eighth of what is found is kept for the next times: each is looked at again before it goes, and whatever
//! else may go by then is younger.
//!
//! Absent: an order that is kept up to date, which would cost every request something.

use super::{EventLoop, Key, Readiness, Thread};
use crate::worker::conn::Standing;

/// Connections that may be closed, the first of them last.
pub(super) type Candidates = Vec<(Standing, Key)>;

impl Thread {
    /// Closes the connection that can be spared first; false if there is none.
    pub(super) fn make_room(&mut self) -> bool {
        if self.close_idle_upstream() || self.close_candidate() {
            return true;
        }
        self.find_candidates();
        self.close_candidate()
    }

    fn close_candidate(&mut self) -> bool {
        while let Some((standing, key)) = self.candidates.pop() {
            if self.tables.ready.contains(&key) || !self.stands(key, standing) {
                continue;
            }
            // A request may be here whose event has not been taken yet.
            let cause = Readiness {
                readable: true,
                ..Readiness::default()
            };
            self.read(key, cause);
            if self.tables.ready.pop_if(|last| *last == key).is_some() {
                self.turn(key, Readiness::default());
            }
            if self.stands(key, standing) {
                self.abort(key);
            }
            if self.tables.clients.get_mut(key).is_none() {
                return true;
            }
        }
        false
    }

    fn stands(&mut self, key: Key, standing: Standing) -> bool {
        let conn = self.tables.clients.get_mut(key);
        conn.is_some_and(|conn| conn.standing() == Some(standing))
    }

    fn find_candidates(&mut self) {
        let found = &mut self.candidates;
        for key in self.tables.clients.keys() {
            let conn = self.tables.clients.get_mut(key);
            if let Some(standing) = conn.and_then(|conn| conn.standing()) {
                found.push((standing, key));
            }
        }
        let batch = found.len().div_ceil(SHARE).max(BATCH_MIN);
        if batch < found.len() {
            found.select_nth_unstable_by_key(batch, |(standing, _)| *standing);
            found.truncate(batch);
        }
        found.sort_unstable_by_key(|(standing, _)| std::cmp::Reverse(*standing));
    }
}

/// Of how many connections that may go one is kept in mind.
const SHARE: usize = 8;
/// How many are kept in mind at least.
const BATCH_MIN: usize = 32;
