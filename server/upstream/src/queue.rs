//! `queue`: requests that wait until a server can be chosen.
//!
//! Each thread has a queue for each group. The first request is woken as a server may have become usable: a connection has ended
//! ([`crate::peers::PeerList`] wakes it, also from another thread), a failure was cleared, the servers changed. An event between
//! its choice and its wait counts too. `fail_timeout`
//! ends without an event, so the first request also tries once a second. A request that has tried servers may be unable to use
//! the one that others can; then the next request tries.
//!
//! A new request joins the end of the queue, even if a server has become usable meanwhile.
//!
//! Absent: the wait itself, which belongs to the exchange.
//!
//! Source: nginx documentation, `queue`. It is silent about the order, and about servers that became usable by time.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use server_base::waker::{RemoteWaker, Waker};

use crate::group::QueueLimits;
use crate::queue_counts::QueueCounts;
use crate::shared::Peers;

/// The waiting requests of one thread for one group, in their order.
#[derive(Debug)]
pub(crate) struct WaitQueue {
    limits: QueueLimits,
    waiters: RefCell<VecDeque<Waiter>>,
    next_number: Cell<u64>,
}

#[derive(Debug)]
struct Waiter {
    /// Increases along the queue.
    number: u64,
    waker: Waker,
    /// The request has tried servers, so it may be unable to use one that is usable.
    is_restricted: bool,
    /// The copy of its waker that the peers have.
    known: Option<RemoteWaker>,
}

/// The place of a request in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// The number of its waiter.
    number: u64,
    /// When it joined, monotonic milliseconds.
    pub(crate) since_ms: u64,
}

/// Result of [`crate::picker::Picker::queue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// The group has no `queue`.
    Never,
    /// The request waits until it is woken, or until this time in monotonic milliseconds.
    Until(u64),
    /// The queue is full.
    Full,
    /// The request has waited for the longest time.
    TimedOut,
    /// The time for further attempts is over.
    Expired,
}

/// A request that had a choice without success.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unserved {
    /// The request has tried servers, so it may be unable to use one that is usable.
    pub(crate) is_restricted: bool,
    /// The count of [`crate::peers::PeerList::recoveries`] at its choice.
    pub(crate) seen: u64,
    /// The end of the time for further attempts, monotonic milliseconds.
    pub(crate) retry_until_ms: u64,
}

impl WaitQueue {
    pub(crate) fn new(limits: QueueLimits) -> Self {
        Self {
            limits,
            waiters: RefCell::default(),
            next_number: Cell::new(0),
        }
    }

    /// Whether a request may choose a server now; `ticket` is `None` for a new request. All requests before it must be restricted.
    pub(crate) fn admits(&self, ticket: Option<Ticket>) -> bool {
        let waiters = self.waiters.borrow();
        let before = ticket.map_or(waiters.len(), |ticket| {
            waiters.partition_point(|waiter| waiter.number < ticket.number)
        });
        waiters.range(..before).all(|waiter| waiter.is_restricted)
    }

    /// Adds a request for which there is no server, or keeps its place. Returns its place, and the result.
    pub(crate) fn wait(
        &self,
        ticket: Option<Ticket>,
        request: Unserved,
        now_ms: u64,
        waker: impl FnOnce() -> Waker,
        peers: &Peers,
    ) -> (Option<Ticket>, Queued) {
        let ticket = match ticket {
            Some(ticket) => ticket,
            None if self.waiters.borrow().len() >= self.limits.requests => {
                peers.count_queue(QueueCounts::overflow);
                return (None, Queued::Full);
            }
            None => {
                peers.count_queue(QueueCounts::join);
                self.join(request.is_restricted, now_ms, waker())
            }
        };
        let queue_end_ms = self.end_ms(ticket);
        let end_ms = queue_end_ms.min(request.retry_until_ms);
        if now_ms >= end_ms {
            let queued = match end_ms == queue_end_ms {
                true => Queued::TimedOut,
                false => Queued::Expired,
            };
            return (Some(ticket), queued);
        }
        let is_first = self.stay(ticket, request.seen, peers);
        let until_ms = match is_first {
            true => end_ms.min(now_ms.saturating_add(RETRY_MS)),
            false => end_ms,
        };
        (Some(ticket), Queued::Until(until_ms))
    }

    /// Returns the end of the longest wait, monotonic milliseconds.
    pub(crate) fn end_ms(&self, ticket: Ticket) -> u64 {
        ticket.since_ms.saturating_add(self.limits.timeout_ms)
    }

    fn join(&self, is_restricted: bool, now_ms: u64, waker: Waker) -> Ticket {
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        self.waiters.borrow_mut().push_back(Waiter {
            number,
            waker,
            is_restricted,
            known: None,
        });
        Ticket {
            number,
            since_ms: now_ms,
        }
    }

    /// Keeps a place after a choice without success. The first request is woken by the peers. If it is restricted, the next one
    /// tries. Returns whether it is the first request.
    fn stay(&self, ticket: Ticket, seen: u64, peers: &Peers) -> bool {
        let mut waiters = self.waiters.borrow_mut();
        let at = waiters.partition_point(|waiter| waiter.number < ticket.number);
        let Some(waiter) = waiters.get_mut(at) else {
            return false;
        };
        if at == 0 && waiter.known.is_none() {
            waiter.known = Some(waiter.waker.remote());
        }
        if at == 0
            && let Some(known) = &waiter.known
        {
            peers.with(|list| list.wake_on_recovery(known, seen));
        }
        if waiter.is_restricted
            && let Some(next) = waiters.get(at + 1)
        {
            next.waker.wake();
        }
        at == 0
    }

    /// Removes a request that waits no longer. The next one tries at once: there may be more usable servers.
    pub(crate) fn leave(&self, ticket: Ticket, peers: &Peers) {
        let mut waiters = self.waiters.borrow_mut();
        let at = waiters.partition_point(|waiter| waiter.number < ticket.number);
        if waiters
            .get(at)
            .is_none_or(|waiter| waiter.number != ticket.number)
        {
            return;
        }
        peers.count_queue(QueueCounts::leave);
        if let Some(known) = waiters.remove(at).and_then(|waiter| waiter.known) {
            peers.with(|list| list.forget_waker(&known));
        }
        // Requests before it may be restricted, so the next one may be the first that can use a server.
        if let Some(next) = waiters.get(at) {
            next.waker.wake();
        }
    }

    /// Number of requests that wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.waiters.borrow().len()
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;

/// Time between two attempts of the first request to choose a server without an event, milliseconds. Failures are counted in
/// whole seconds.
const RETRY_MS: u64 = 1000;
