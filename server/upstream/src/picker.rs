//! The choice of servers for one request.
//!
//! A [`Picker`] tries each server of a group at most once. The only server of a group may be tried again. A name
//! without addresses is resolved first, and the request waits.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`.

use std::rc::Rc;
use std::sync::Arc;

use server_base::waker::Waker;

use crate::balance::{Measures, PickKey};
use crate::connector::{BoundClient, Resolve};
use crate::group::Keepalive;
use crate::local::LocalGroup;
use crate::peer::SelectedPeer;
use crate::peer_stats::AttemptFigures;
use crate::peers::{PeerId, PeerList, TriedPeers};
use crate::pool;
use crate::queue::{Queued, Ticket, Unserved};
use crate::resolved_hosts::PendingLookups;
use crate::retry_budget::RetryCounts;
use crate::route::Pool;
use crate::shared::Peers;
use crate::times::AttemptTimes;

/// Result of [`Picker::pick`].
#[derive(Debug)]
pub enum Pick {
    /// A server.
    Selected(Rc<SelectedPeer>),
    /// No server is usable ("no live upstreams").
    None,
    /// Names are being resolved. The waker of the lookup is called.
    Wait,
    /// The name does not resolve; the log text.
    Unresolved(String),
}

/// Result of an attempt, for the group's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server has answered.
    Alive,
    /// The server has answered, and the rest of its response is not received: the time of the response is unknown.
    Cut,
    /// The attempt failed, and the failure counts.
    Failed,
    /// Another server is to be tried, but the failure does not count (`http_403`, `http_404`).
    Next,
}

/// Chooses servers for one request.
#[derive(Debug)]
pub struct Picker {
    group: Rc<LocalGroup>,
    /// The chosen peer; its connection counts for `max_conns`.
    current: Option<PeerId>,
    /// The group had only one peer when `current` was chosen.
    is_single: bool,
    measured: Measured,
    /// Figures of the current attempt, if counters want them.
    figures: Option<AttemptFigures>,
    /// See [`Picker::tries`].
    tries: u32,
    tried: TriedPeers,
    key: PickKey,
    /// The place in the queue of the group.
    ticket: Option<Ticket>,
    /// The count of [`PeerList::recoveries`] at the last choice without success.
    seen: u64,
    asked: PendingLookups,
}

/// The response times that the group's method reads of the current attempt.
#[derive(Debug, Default)]
struct Measured {
    what: Measures,
    /// The start of the attempt, while it counts as an attempt in progress; monotonic milliseconds.
    started_ms: Option<u64>,
}

impl Picker {
    /// Makes a picker for a request to this group.
    pub fn new(group: Rc<LocalGroup>) -> Self {
        Self {
            group,
            current: None,
            is_single: false,
            measured: Measured::default(),
            figures: None,
            tries: 0,
            tried: TriedPeers::default(),
            key: PickKey::default(),
            ticket: None,
            seen: 0,
            asked: PendingLookups::default(),
        }
    }

    /// Sets the values of the request that choices depend on, before the first choice.
    pub fn set_key(&mut self, key: PickKey) {
        self.key = key;
    }

    /// Returns the maximum number of attempts, as counted by nginx (`pc->tries`). It is known once a server was chosen,
    /// since names may have to be resolved before.
    pub fn tries(&self) -> u32 {
        match self.tries {
            0 => self.group.peers.with(|peers| tries(peers)),
            tries => tries,
        }
    }

    /// Whether requests to the group may be bound to servers.
    pub fn is_sticky(&self) -> bool {
        self.group.is_sticky
    }

    /// Returns the group of a client's connection with this number, if connections to servers may be bound to it (`ntlm`).
    pub fn bound_client(&self, connection: u64) -> Option<BoundClient> {
        let group = self.group.digest;
        (self.group.is_ntlm).then_some(BoundClient { connection, group })
    }

    /// Returns the pool of the connections to servers that are bound to a client's connection, by its number.
    pub fn client_pool(&self, connection: u64) -> Option<Pool> {
        let keepalive: &Keepalive = self.group.keepalive.as_ref()?;
        let pool = pool::client_pool(self.group.digest, keepalive, connection);
        Some(self.counted(pool))
    }

    /// Binds the next choices to the server with this identifier, or to none.
    pub fn bind(&mut self, server_id: Option<Vec<u8>>) {
        self.key.bound_to = server_id;
    }

    /// Chooses a server. [`Picker::finish`] or the drop uncounts its connection for `max_conns`. `now_ms` is monotonic.
    pub fn pick(&mut self, now_ms: u64, resolve: Resolve<'_>) -> Pick {
        self.release();
        if let Some(queue) = &self.group.queue
            && !queue.admits(self.ticket)
        {
            return Pick::None;
        }
        if self.group.hosts.is_none() {
            return match self.choose(now_ms) {
                Some(chosen) => Pick::Selected(chosen),
                None => self.pick_after_first_lookups(now_ms, resolve),
            };
        }
        let group = Rc::clone(&self.group);
        let Some(hosts) = &group.hosts else {
            return Pick::None;
        };
        if hosts.is_idle(&self.asked, now_ms)
            && let Some(chosen) = self.choose(now_ms)
        {
            return Pick::Selected(chosen);
        }
        // First without waiting, if the known addresses are not stale; then with all hosts.
        for needed in [false, true] {
            hosts.look_up(&mut self.asked, needed, now_ms, resolve);
            hosts.receive(&mut self.asked, &group.peers, now_ms);
            if hosts.is_waiting_for_stale(&self.asked) {
                return Pick::Wait;
            }
            // A server that is usable ends the wait for the other hosts.
            if let Some(chosen) = self.choose(now_ms) {
                hosts.refresh(&self.asked, now_ms, resolve);
                return Pick::Selected(chosen);
            }
            if self.asked.is_waiting() {
                return Pick::Wait;
            }
        }
        let error = hosts.error(&self.asked);
        let is_empty = group.peers.with(|peers| peers.is_empty());
        match error.filter(|_| is_empty) {
            Some(error) => Pick::Unresolved(error),
            None => Pick::None,
        }
    }

    /// Waits in the group's queue, if it has one, after a choice without success ([`Pick::None`]). `retry_until_ms` is the end
    /// of the time for further attempts. Times are monotonic.
    pub fn queue(
        &mut self,
        now_ms: u64,
        retry_until_ms: u64,
        waker: impl FnOnce() -> Waker,
    ) -> Queued {
        let Some(queue) = &self.group.queue else {
            return Queued::Never;
        };
        let request = Unserved {
            is_restricted: !self.tried.is_empty(),
            seen: self.seen,
            retry_until_ms,
        };
        let (ticket, queued) = queue.wait(self.ticket, request, now_ms, waker, &self.group.peers);
        self.ticket = ticket;
        queued
    }

    /// Returns the end of the longest wait in the queue, monotonic milliseconds; `None`: the request is not queued.
    pub fn queue_end_ms(&self) -> Option<u64> {
        Some(self.group.queue.as_ref()?.end_ms(self.ticket?))
    }

    /// Leaves the queue. Returns the time in it, milliseconds; `None`: the request was not queued.
    pub fn leave_queue(&mut self, now_ms: u64) -> Option<u64> {
        let ticket = self.ticket.take()?;
        if let Some(queue) = &self.group.queue {
            queue.leave(ticket, &self.group.peers);
        }
        Some(now_ms.saturating_sub(ticket.since_ms))
    }

    /// Whether the counters of servers want figures of attempts.
    #[inline]
    pub fn wants_figures(&self) -> bool {
        matches!(self.group.peers, Peers::Shared(_))
    }

    /// Sets the figures of the current attempt, which [`Picker::finish`] or [`Picker::give_up`] counts.
    pub fn set_figures(&mut self, figures: AttemptFigures) {
        self.figures = Some(figures);
    }

    /// Counts the figures of the current attempt. The server stays chosen for another one.
    pub fn count_figures(&mut self) {
        if let (Some(peer), Some(figures)) = (self.current, self.figures.take()) {
            (self.group.peers).with(|peers| peers.count_ended(peer, &figures));
        }
    }

    /// Records that the chosen server has sent a response head that is passed on, this many milliseconds after the start.
    #[inline]
    pub fn answered(&mut self, header_ms: u64) {
        if self.measured.what != Measures::UntilHead {
            return;
        }
        let (Some(peer), Some(started_ms)) = (self.current, self.measured.started_ms.take()) else {
            return;
        };
        self.group.peers.with(|peers| {
            peers.add_header_time(peer, header_ms);
            peers.end_measured(peer, started_ms);
        });
    }

    /// Ends the attempt with the chosen server. `times` are known if it sent a response head. Returns whether the server
    /// is now excluded for a while. The caller logs this ("upstream server temporarily disabled").
    #[inline]
    pub fn finish(&mut self, now_ms: u64, outcome: Outcome, times: Option<AttemptTimes>) -> bool {
        let Some(peer) = self.current.take() else {
            return false;
        };
        let is_plain = self.figures.is_none() && self.measured.what == Measures::Nothing;
        if is_plain
            && outcome != Outcome::Failed
            && self.group.peers.with(|peers| peers.release_plain(peer))
        {
            return false;
        }
        self.finish_counted(peer, now_ms, outcome, times)
    }

    /// Ends the attempt with a peer, if its failures, counters or times may change.
    fn finish_counted(
        &mut self,
        peer: PeerId,
        now_ms: u64,
        outcome: Outcome,
        times: Option<AttemptTimes>,
    ) -> bool {
        let measured = std::mem::take(&mut self.measured);
        let figures = self.figures.take();
        self.group.peers.with(|peers| {
            peers.release(peer);
            if measured.what != Measures::Nothing {
                measured.finish(peers, peer, outcome, times);
            }
            if let Some(mut figures) = figures {
                // The time of a cut response depends on its client.
                figures.response_ms = figures.response_ms.filter(|_| outcome != Outcome::Cut);
                peers.count_ended(peer, &figures);
            }
            if self.is_single {
                if outcome == Outcome::Failed {
                    peers.count_failed(peer, false, now_ms);
                }
                peers.reset_failures(peer);
                return false;
            }
            if outcome == Outcome::Failed {
                let is_out = peers.fail(peer, seconds(now_ms));
                peers.count_failed(peer, is_out, now_ms);
                return is_out;
            }
            peers.succeed_at(peer, now_ms);
            false
        })
    }

    /// Ends the attempt with the chosen server without a result, for instance if the client has left before the response.
    /// Only its figures are counted.
    pub fn give_up(&mut self) {
        self.release();
    }

    /// Whether the chosen server may get another attempt: it is still in the group, and neither down nor excluded.
    pub fn may_stay(&self, now_ms: u64) -> bool {
        let Some(id) = self.current else {
            return false;
        };
        self.group.peers.with(|peers| {
            let is_single = peers.is_single();
            let peer = peers.get(id);
            peer.is_some_and(|peer| peer.may_stay(is_single, seconds(now_ms)))
        })
    }

    /// Returns the name of the group, or the host to be resolved: for logs, variables such as `$proxy_host`, and pools.
    pub fn name(&self) -> &[u8] {
        &self.group.name
    }

    /// Returns the counts of requests to the group under a budget of retries; `None` for a group of one request.
    pub fn counts(&self) -> Option<&Arc<RetryCounts>> {
        self.group.counts.as_ref()
    }

    /// Whether the group keeps idle connections.
    pub fn has_pool(&self) -> bool {
        self.group.keepalive.is_some()
    }

    /// Returns the digest of the group's name.
    pub fn group_digest(&self) -> u64 {
        self.group.digest
    }

    /// Returns the group's pool of idle connections, if it has one. `place` is a digest of the location that passes the
    /// request. It is computed only if locations do not share connections.
    pub fn pool(&self, place: impl FnOnce() -> u64) -> Option<Pool> {
        let keepalive: &Keepalive = self.group.keepalive.as_ref()?;
        Some(self.counted(pool::pool(self.group.digest, keepalive, place)))
    }

    /// Has the idle connections of a pool counted if the group has a zone.
    #[inline]
    fn counted(&self, pool: Pool) -> Pool {
        match self.wants_figures() {
            true => Pool {
                counted: self.group.digest,
                ..pool
            },
            false => pool,
        }
    }

    /// No server of a group is usable; maybe because hosts of shared peers have no addresses so far.
    #[cold]
    fn pick_after_first_lookups(&mut self, now_ms: u64, resolve: Resolve<'_>) -> Pick {
        let group = Rc::clone(&self.group);
        let (Some(first), Peers::Shared(peers)) = (&group.first_lookups, &group.peers) else {
            return Pick::None;
        };
        if !first.look_up(peers, &mut self.asked, resolve) {
            return Pick::None;
        }
        // A server that is usable ends the wait for the other hosts.
        match self.choose(now_ms) {
            Some(chosen) => Pick::Selected(chosen),
            None if self.asked.is_waiting() => Pick::Wait,
            None => Pick::None,
        }
    }

    fn choose(&mut self, now_ms: u64) -> Option<Rc<SelectedPeer>> {
        // All under one lock: another thread may remove the peer of a shared list.
        self.group.peers.with(|peers| {
            let Some(id) = peers.pick(&mut self.tried, &self.key, now_ms) else {
                self.seen = peers.recoveries();
                return None;
            };
            peers.count_chosen(id, now_ms);
            self.measured = Measured::begin(peers, id, now_ms);
            self.current = Some(id);
            self.is_single = peers.is_single();
            self.tries = tries(peers);
            self.group.selected(peers, id)
        })
    }

    #[inline]
    fn release(&mut self) {
        if let Some(peer) = self.current.take() {
            let started_ms = self.measured.started_ms.take();
            let figures = self.figures.take();
            self.group.peers.with(|peers| {
                peers.release(peer);
                if let Some(figures) = figures {
                    peers.count_ended(peer, &figures);
                }
                if let Some(started_ms) = started_ms {
                    peers.end_measured(peer, started_ms);
                }
            });
        }
    }
}

impl Measured {
    #[inline]
    fn begin(peers: &mut PeerList, id: PeerId, now_ms: u64) -> Self {
        let what = peers.measures();
        if what == Measures::Nothing {
            return Self::default();
        }
        let counts = matches!(what, Measures::UntilHead | Measures::UntilEnd);
        if counts {
            peers.begin_measured(id, now_ms);
        }
        Self {
            what,
            started_ms: counts.then_some(now_ms),
        }
    }

    /// Adds the times of an attempt with a response to the averages, as far as they are known.
    fn finish(
        self,
        peers: &mut PeerList,
        id: PeerId,
        outcome: Outcome,
        times: Option<AttemptTimes>,
    ) {
        if let Some(started_ms) = self.started_ms {
            peers.end_measured(id, started_ms);
        }
        let Some(times) = times.filter(|_| matches!(outcome, Outcome::Alive | Outcome::Cut)) else {
            return;
        };
        if outcome == Outcome::Alive {
            peers.add_response_time(id, times.response_ms);
        }
        // With `UntilHead` it was added when the head came.
        if self.what != Measures::UntilHead {
            peers.add_header_time(id, times.header_ms);
        }
    }
}

impl Drop for Picker {
    fn drop(&mut self) {
        self.release();
        self.leave_queue(0);
    }
}

fn tries(peers: &PeerList) -> u32 {
    u32::try_from(peers.tries()).unwrap_or(u32::MAX)
}

/// Converts to whole seconds, in which failures are counted, as in nginx.
fn seconds(ms: u64) -> u64 {
    ms / 1000
}

#[cfg(test)]
#[path = "picker_tests.rs"]
mod tests;
