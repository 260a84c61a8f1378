//! One list of peers, primary or backup, with the method that chooses among them.

use std::sync::Arc;

use super::round_robin::{RoundRobin, TriedNumbers};
use super::{Balance, Build, Candidates, Method, PickKey, Progress};
use crate::binding::IdIndex;
use crate::peer::Peer;

/// A list of peers.
#[derive(Debug, Default)]
pub(crate) struct List {
    round_robin: RoundRobin,
    /// `None`: the peers take turns.
    balance: Option<Box<dyn Balance>>,
    ids: IdIndex,
}

impl List {
    /// Returns the indices of the peers in the order of the list.
    pub(crate) fn list(&self) -> &[u32] {
        self.round_robin.list()
    }

    /// Sets the method; `None`: the peers take turns. Returns the state of the method before.
    pub(crate) fn set_method(
        &mut self,
        method: Option<&dyn Method>,
        peers: &[Peer],
    ) -> Option<Box<dyn Balance>> {
        let before = self.balance.take();
        self.balance = method.map(|method| match &before {
            Some(before) => method.make_after(&**before),
            None => method.make(),
        });
        self.read(peers);
        before
    }

    /// Returns work that the last change has left ([`Balance::build`]).
    pub(crate) fn build(&self) -> Option<Arc<dyn Build>> {
        self.balance.as_ref()?.build()
    }

    /// Makes choices by the result of [`Self::build`], if it is done.
    pub(crate) fn use_build(&mut self) {
        if let Some(balance) = &mut self.balance {
            balance.use_build();
        }
    }

    /// Sets the list. Peers that stay keep their sums. [`Self::close`] must have been called.
    pub(crate) fn set_list(&mut self, list: Vec<u32>, peers: &mut [Peer]) {
        self.round_robin.set_list(list, peers);
        self.ids.clear();
        self.read(peers);
    }

    fn read(&mut self, peers: &[Peer]) {
        if let Some(balance) = &mut self.balance {
            balance.set_list(peers, self.round_robin.list());
        }
    }

    /// Stores the sums in the peers, before a change of the list.
    pub(crate) fn close(&mut self, peers: &mut [Peer]) {
        self.round_robin.close(peers);
    }

    /// Begins again without sums, and with a new state of the method. The list stays.
    pub(crate) fn reset(&mut self, peers: &mut [Peer]) {
        self.round_robin.reset(peers);
        self.read(peers);
    }

    /// Records that a peer has failed or recovered, or that it is full or no longer full.
    pub(crate) fn mark_changed(&mut self, peer: &mut Peer) {
        self.round_robin.mark_changed(peer);
    }

    /// Chooses a peer that was not tried, adds it to `tried`, and returns its index.
    pub(crate) fn pick(
        &mut self,
        peers: &mut [Peer],
        (tried, progress): (&mut TriedNumbers, &mut Progress),
        key: &PickKey,
        now_ms: u64,
    ) -> Option<u32> {
        let now_s = now_ms / 1000;
        let round_robin = &mut self.round_robin;
        if let Some(id) = &key.bound_to {
            let is_usable =
                |n: u32, peer: &Peer| !tried.contains(n) && peer.is_usable_if_bound(now_s);
            if let Some(n) = self.ids.find(id, round_robin.list(), peers, is_usable) {
                // As in nginx, methods do not count bound requests.
                if self.balance.is_none() {
                    round_robin.count_turn(n, peers, tried, now_s);
                }
                return Some(self.record(n, peers, tried, now_s));
            }
        }
        let n = match &mut self.balance {
            Some(balance) if round_robin.list().len() > 1 => balance.pick(&mut Candidates {
                peers,
                round_robin,
                tried,
                key,
                progress,
                now_ms,
            }),
            _ => round_robin.choose(peers, tried, now_s),
        }?;
        Some(self.record(n, peers, tried, now_s))
    }

    /// Adds a chosen peer to `tried`, and returns its index.
    #[inline]
    fn record(&mut self, n: u32, peers: &mut [Peer], tried: &mut TriedNumbers, now_s: u64) -> u32 {
        tried.add(n);
        let at = self.round_robin.list()[n as usize];
        let peer = &mut peers[at as usize];
        peer.failures.chosen(now_s);
        if peer.failures.count() > 0 {
            self.round_robin.mark_changed(peer);
        }
        at
    }

    /// Whether the last choice was made by a tournament.
    #[cfg(test)]
    pub(crate) fn has_tournament(&self) -> bool {
        self.round_robin.has_tournament()
    }
}
