//! The servers of a group, address by address: data without locks, of one thread or behind a lock of all
//! ([`crate::shared::Peers`]).
//!
//! Peers that reached their limit of failures are left out for a while ([`crate::health`]). Backup servers are used if
//! no other is usable. A group of one address has no choice, so its failures do not count.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`; nginx's behaviour.

use std::collections::HashMap;

use crate::balance::round_robin::{RoundRobin, TriedNumbers};
use crate::group::Server;
use crate::health::passive::Failures;
use crate::peer::Peer;
use crate::route::UpstreamAddr;

/// Identifies a peer of a list. It never identifies a later peer at the same index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerId {
    index: u32,
    life: u32,
}

impl PeerId {
    /// Returns its index in the list. Earlier peers may have had this index.
    #[inline]
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// All peers of a group.
#[derive(Debug, Default)]
pub struct PeerList {
    /// Peers by index. `free` has the indices of removed peers.
    peers: Vec<Peer>,
    free: Vec<u32>,
    primary: RoundRobin,
    backup: RoundRobin,
    /// Counts changes of the lists, to which numbers in [`TriedPeers`] refer.
    changes: u32,
    /// Number of peers that are not down.
    up: usize,
}

/// The peers that one request has tried.
#[derive(Debug, Default)]
pub struct TriedPeers {
    numbers: TriedNumbers,
    /// Only backup servers are used from now on.
    in_backup: bool,
    /// The value of [`PeerList`]'s `changes` for which `tried` is valid.
    changes: u32,
}

impl PeerList {
    /// Makes the peers of the servers' known addresses.
    pub fn of(servers: &[Server]) -> Self {
        let mut list = Self::default();
        let all = servers.iter();
        let all = all.flat_map(|server| server.addresses.iter().map(move |addr| (server, addr)));
        let ids: Vec<PeerId> = all.map(|(server, addr)| list.add(server, addr)).collect();
        list.set_list(&ids);
        list
    }

    /// Ends tournaments before a change, since they refer to peers by position.
    fn close(&mut self) {
        self.primary.close(&mut self.peers);
        self.backup.close(&mut self.peers);
    }

    /// Adds a peer. It is used after [`Self::set_list`].
    pub fn add(&mut self, server: &Server, addr: &UpstreamAddr) -> PeerId {
        self.close();
        let Some(index) = self.free.pop() else {
            let index = self.peers.len() as u32;
            self.peers.push(Peer::new(server, addr, 0));
            return PeerId { index, life: 0 };
        };
        let place = &mut self.peers[index as usize];
        let life = place.life;
        *place = Peer::new(server, addr, life);
        PeerId { index, life }
    }

    /// Removes a peer. [`Self::set_list`] must follow.
    pub fn remove(&mut self, id: PeerId) {
        self.close();
        if let Some(peer) = self.get_mut(id) {
            peer.life = peer.life.wrapping_add(1);
            self.free.push(id.index);
        }
    }

    /// Sets the order of the peers.
    pub fn set_list(&mut self, ids: &[PeerId]) {
        let indices = ids.iter().map(|id| id.index);
        let is_backup = |index: &u32| self.peers[*index as usize].is_backup;
        let (backup, primary): (Vec<_>, Vec<_>) = indices.partition(is_backup);
        self.primary.set_list(primary, &mut self.peers);
        self.backup.set_list(backup, &mut self.peers);
        let is_up = |id: &&PeerId| !self.peers[id.index as usize].is_down;
        self.up = ids.iter().filter(is_up).count();
        self.changes = self.changes.wrapping_add(1);
    }

    /// Replaces the servers. Peers with the same address keep their counters.
    pub fn set_servers(&mut self, servers: &[Server]) {
        self.close();
        let mut before: HashMap<UpstreamAddr, Vec<PeerId>> = HashMap::new();
        // Reversed, since peers are taken from the end.
        for index in self.primary.list().iter().chain(self.backup.list()).rev() {
            let peer = &self.peers[*index as usize];
            let id = PeerId {
                index: *index,
                life: peer.life,
            };
            before.entry(peer.addr().clone()).or_default().push(id);
        }
        let mut ids = Vec::new();
        for server in servers {
            for addr in &server.addresses {
                let id = match before.get_mut(addr).and_then(Vec::pop) {
                    Some(id) => {
                        self.peers[id.index as usize].set_server(server);
                        id
                    }
                    None => self.add(server, addr),
                };
                ids.push(id);
            }
        }
        for gone in before.into_values().flatten() {
            self.remove(gone);
        }
        self.set_list(&ids);
    }

    /// Returns a peer, unless it was removed.
    pub fn get(&self, id: PeerId) -> Option<&Peer> {
        let peer = self.peers.get(id.index as usize);
        peer.filter(|peer| peer.life == id.life)
    }

    #[inline]
    fn get_mut(&mut self, id: PeerId) -> Option<&mut Peer> {
        let peer = self.peers.get_mut(id.index as usize);
        peer.filter(|peer| peer.life == id.life)
    }

    /// Returns the maximum number of attempts of a request: one for each peer that is not down.
    pub fn tries(&self) -> usize {
        self.up
    }

    /// Whether the group has exactly one peer.
    #[inline]
    pub fn is_single(&self) -> bool {
        self.primary.list().len() == 1 && self.backup.list().is_empty()
    }

    /// Whether there is no peer.
    pub fn is_empty(&self) -> bool {
        self.primary.list().is_empty() && self.backup.list().is_empty()
    }

    /// Chooses a peer that the request has not tried, and counts a connection for `max_conns`. The only peer of a group
    /// may be tried again.
    #[inline]
    pub fn pick(&mut self, tried: &mut TriedPeers, now_s: u64) -> Option<PeerId> {
        let index = match self.is_single() {
            true => {
                let index = self.primary.list()[0];
                let peer = &self.peers[index as usize];
                (!peer.is_down && !peer.is_full()).then_some(index)
            }
            false => self.pick_of_many(tried, now_s),
        }?;
        let peer = &mut self.peers[index as usize];
        peer.conns += 1;
        let life = peer.life;
        if peer.is_full() {
            self.mark_changed(index);
        }
        Some(PeerId { index, life })
    }

    fn pick_of_many(&mut self, tried: &mut TriedPeers, now_s: u64) -> Option<u32> {
        if tried.changes != self.changes {
            // The marks belong to an old list. The number of attempts has its own limit.
            tried.changes = self.changes;
            tried.numbers.clear();
            tried.in_backup = false;
        }
        let (peers, numbers) = (&mut self.peers, &mut tried.numbers);
        if !tried.in_backup {
            let found = self.primary.pick(peers, numbers, now_s);
            if found.is_some() || self.backup.list().is_empty() {
                return found;
            }
            tried.in_backup = true;
            numbers.clear();
        }
        self.backup.pick(peers, numbers, now_s)
    }

    /// Uncounts the connection of an ended attempt.
    #[inline]
    pub fn release(&mut self, id: PeerId) {
        let Some(peer) = self.get_mut(id) else {
            return;
        };
        let was_full = peer.is_full();
        peer.conns -= 1;
        if was_full {
            self.mark_changed(id.index);
        }
    }

    /// Counts a failure. Returns whether the peer is excluded from now on.
    pub fn fail(&mut self, id: PeerId, now_s: u64) -> bool {
        let Some(peer) = self.get_mut(id) else {
            return false;
        };
        let is_out = peer.failures.fail(now_s);
        if peer.failures.max() > 0 {
            peer.weights.fail(peer.failures.max());
        }
        self.mark_changed(id.index);
        is_out
    }

    /// Counts a response, which cancels the failures before the last check.
    #[inline]
    pub fn succeed(&mut self, id: PeerId) {
        self.update_failures(id, Failures::succeed);
    }

    /// Clears the failures of a peer.
    #[inline]
    pub fn reset_failures(&mut self, id: PeerId) {
        self.update_failures(id, Failures::reset);
    }

    #[inline]
    fn update_failures(&mut self, id: PeerId, change: fn(&mut Failures)) {
        if let Some(peer) = self.get_mut(id)
            && peer.failures.count() > 0
        {
            change(&mut peer.failures);
            self.mark_changed(id.index);
        }
    }

    #[inline]
    fn mark_changed(&mut self, index: u32) {
        let peer = &mut self.peers[index as usize];
        match peer.is_backup {
            true => self.backup.mark_changed(peer),
            false => self.primary.mark_changed(peer),
        }
    }
}

#[cfg(test)]
#[path = "peers_tests.rs"]
mod tests;
