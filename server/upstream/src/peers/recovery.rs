//! Peers that become usable again: their slow start, their downtime, and the wakes of requests that wait for a peer.
//!
//! Absent: the share of a starting peer ([`crate::slow_start`]), and the queues ([`crate::queue`]).

use server_base::waker::RemoteWaker;

use super::{PeerId, PeerList};
use crate::peer::Peer;

impl PeerList {
    /// Counts a response at this time in monotonic milliseconds. If the peer has recovered by it, its slow start begins.
    #[inline]
    pub fn succeed_at(&mut self, id: PeerId, now_ms: u64) {
        let is_out = |list: &Self| (list.get(id)).is_some_and(|peer| peer.failures.is_at_limit());
        let was_out = is_out(self);
        self.succeed(id);
        if was_out && !is_out(self) {
            self.begin_slow_start(id, now_ms);
        }
    }

    /// Begins the slow start of a peer that has recovered, at this time in monotonic milliseconds. Without `slow_start`, and for
    /// the only peer of a group, this has no effect.
    pub fn begin_slow_start(&mut self, id: PeerId, now_ms: u64) {
        if !self.is_single()
            && let Some(peer) = self.get_mut(id)
            && peer.slow_start.begin(now_ms)
            && !self.starting.contains(&id.index)
        {
            self.starting.push(id.index);
        }
    }

    /// Decides which peers take no part in the next choice because of their slow start.
    #[cold]
    pub(super) fn advance_starting(&mut self, now_ms: u64) {
        let mut starting = std::mem::take(&mut self.starting);
        starting.retain(|index| {
            let slow_start = &mut self.peers[*index as usize].slow_start;
            let changed = slow_start.advance(now_ms);
            if changed != Some(false) {
                self.mark_changed(*index);
            }
            changed.is_some()
        });
        self.starting = starting;
    }

    /// Lets all peers take part in the current choice. Returns whether one of them was held.
    pub(super) fn release_starting(&mut self) -> bool {
        let starting = std::mem::take(&mut self.starting);
        let mut any = false;
        for index in &starting {
            if self.peers[*index as usize].slow_start.release() {
                self.mark_changed(*index);
                any = true;
            }
        }
        self.starting = starting;
        any
    }

    /// Returns the count of events after which a peer may have become usable.
    pub(crate) fn recoveries(&self) -> u64 {
        self.recoveries
    }

    /// Wakes the exchange once, after an event that may make a peer usable. `seen` is the count of these events at its last
    /// choice. If there was one since, it is woken now: the end of a connection on another thread is not missed.
    pub(crate) fn wake_on_recovery(&mut self, waker: &RemoteWaker, seen: u64) {
        if seen != self.recoveries {
            waker.wake();
        } else if !self.waiting.iter().any(|known| known.is_same(waker)) {
            self.waiting.push(waker.clone());
        }
    }

    /// Forgets the waker of an exchange that waits no longer.
    pub(crate) fn forget_waker(&mut self, waker: &RemoteWaker) {
        self.waiting.retain(|known| !known.is_same(waker));
    }

    #[inline]
    pub(super) fn wake_waiting(&mut self) {
        self.recoveries += 1;
        if !self.waiting.is_empty() {
            self.waiting.drain(..).for_each(|waker| waker.wake());
        }
    }

    /// Uncounts the connection of an attempt without a failure, if nothing else of the peer changes by its end. Returns whether
    /// it was uncounted.
    #[inline]
    pub(crate) fn release_plain(&mut self, id: PeerId) -> bool {
        match self.get_mut(id) {
            Some(peer) if !peer.is_full() && peer.failures.count() == 0 => {
                peer.conns -= 1;
                true
            }
            _ => false,
        }
    }

    /// Has the times of all peers without service begin or end now, if their states require it. Changes of checks and
    /// parameters have no time of their own. `now_ms` is monotonic.
    pub fn settle_downtime(&mut self, now_ms: u64) {
        for index in self.primary.list().iter().chain(self.backup.list()) {
            self.peers[*index as usize].settle_downtime(now_ms);
        }
    }

    /// Returns a peer after [`Peer::settle_downtime`], unless it was removed. `now_ms` is monotonic.
    pub(crate) fn settled(&mut self, id: PeerId, now_ms: u64) -> Option<&Peer> {
        let peer = self.get_mut(id)?;
        peer.settle_downtime(now_ms);
        Some(peer)
    }
}
