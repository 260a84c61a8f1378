//! Responses of the last second, and requests that wait for one.
//!
//! Several readers of one page cost one query: a request that equals one in progress waits for its response.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::response::{Request, Shared};

/// Place and serial number of a connection that waits.
pub(super) type Waiter = (usize, u64);

/// Responses by request.
#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: HashMap<Request, Entry>,
}

#[derive(Debug)]
enum Entry {
    Pending(Vec<Waiter>),
    Ready { at: Instant, response: Shared },
}

/// State of a request.
#[derive(Debug)]
pub(super) enum Found<'a> {
    /// The response is at most [`LIFE`] old.
    Ready(&'a Shared),
    /// Another connection waits for the same response; this one waits too.
    Joined,
    /// The request is new.
    Missing,
}

impl Cache {
    /// Looks a request up. A waiter joins those of a request in progress.
    pub(super) fn find(&mut self, request: &Request, waiter: Waiter, now: Instant) -> Found<'_> {
        match self.entries.get_mut(request) {
            Some(Entry::Pending(waiters)) => {
                waiters.push(waiter);
                Found::Joined
            }
            Some(Entry::Ready { at, response }) if now.duration_since(*at) < LIFE => {
                Found::Ready(response)
            }
            Some(Entry::Ready { .. }) | None => Found::Missing,
        }
    }

    /// Notes a request in progress with its first waiter.
    pub(super) fn begin(&mut self, request: Request, waiter: Waiter) {
        self.entries.insert(request, Entry::Pending(vec![waiter]));
    }

    /// Notes a response, and returns the waiters. Errors are not kept.
    pub(super) fn end(
        &mut self,
        request: &Request,
        response: &Shared,
        now: Instant,
    ) -> Vec<Waiter> {
        let waiters = match self.entries.remove(request) {
            Some(Entry::Pending(waiters)) => waiters,
            Some(Entry::Ready { .. }) | None => Vec::new(),
        };
        let kept = self.bytes() + response.body.len();
        if response.head.status < 500 && kept <= BYTES_MAX {
            let (at, response) = (now, response.clone());
            self.entries
                .insert(request.clone(), Entry::Ready { at, response });
        }
        waiters
    }

    /// Whether nothing is kept or in progress.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Drops old responses.
    pub(super) fn expire(&mut self, now: Instant) {
        self.entries.retain(|_, entry| match entry {
            Entry::Pending(_) => true,
            Entry::Ready { at, .. } => now.duration_since(*at) < LIFE,
        });
    }

    /// Bytes of all responses.
    fn bytes(&self) -> u64 {
        let bytes = |entry: &Entry| match entry {
            Entry::Pending(_) => 0,
            Entry::Ready { response, .. } => response.body.len(),
        };
        self.entries.values().map(bytes).sum()
    }
}

/// Age at which a response is made anew.
pub(super) const LIFE: Duration = Duration::from_secs(1);
/// Bytes of all kept responses.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
