//! The servers of a group, address by address: data without locks, of one thread or behind a lock of all
//! ([`crate::shared::Peers`]).
//!
//! Peers that reached their limit of failures are left out for a while ([`crate::health`]). Backup servers are used if
//! no other is usable. A group of one address has no choice, so its failures do not count.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`; nginx's behaviour.

mod builds;
mod recovery;

use std::collections::HashMap;
use std::sync::Arc;

use server_base::waker::RemoteWaker;

use crate::balance::round_robin::TriedNumbers;
use crate::balance::{Balance, List, Measures, Method, PickKey, Progress};
use crate::health::active::{CheckSpec, Health};
use crate::health::passive::Failures;
use crate::peer::Peer;
use crate::peer_stats::{AttemptFigures, PeerStats};
use crate::route::UpstreamAddr;
use crate::server::Server;

/// Identifies a peer of a list. It never identifies a later peer at the same index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    primary: List,
    backup: List,
    /// Indices of peers in their slow start.
    starting: Vec<u32>,
    /// The first waiting request of each thread.
    waiting: Vec<RemoteWaker>,
    /// Counts changes of the lists, to which numbers in [`TriedPeers`] refer.
    changes: u32,
    /// Number of peers that are neither down nor draining.
    up: usize,
    /// The response times that the method reads.
    measures: Measures,
    /// Health checks of the group.
    checks: Arc<[CheckSpec]>,
    /// Threads share the list: peers have counters, and work of the method is done without the lock.
    is_shared: bool,
    /// Counts events after which a peer may have become usable.
    recoveries: u64,
    /// Attempts in progress of removed peers.
    removed: HashMap<PeerId, u64>,
}

/// The peers that one request has tried.
#[derive(Debug, Default)]
pub struct TriedPeers {
    numbers: TriedNumbers,
    /// The request's state in the method of the group.
    progress: Progress,
    /// Only backup servers are used from now on.
    in_backup: bool,
    /// The value of [`PeerList`]'s `changes` for which `tried` is valid.
    changes: u32,
}

impl TriedPeers {
    /// Whether the request has tried no peer, as far as is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty() && !self.in_backup
    }
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

    /// Sets the method of choosing; `None`: the servers take turns. Returns the states of the method before. Their memory
    /// may be large, so that it is not to be freed under a lock.
    pub fn set_method(&mut self, method: Option<&dyn Method>) -> [Option<Box<dyn Balance>>; 2] {
        self.close();
        self.measures = method.map_or(Measures::Nothing, Method::measures);
        let of_primary = self.primary.set_method(method, &self.peers);
        let method = method.filter(|method| method.allows_backup());
        let of_backup = self.backup.set_method(method, &self.peers);
        self.build_at_once();
        [of_primary, of_backup]
    }

    /// Ends tournaments before a change, since they refer to peers by position.
    fn close(&mut self) {
        self.primary.close(&mut self.peers);
        self.backup.close(&mut self.peers);
    }

    /// Adds a peer. It is used after [`Self::set_list`].
    pub fn add(&mut self, server: &Server, addr: &UpstreamAddr) -> PeerId {
        self.close();
        let mut peer = Peer::new(server, addr, 0);
        peer.checks.set(&self.checks);
        peer.stats = self.is_shared.then(Box::default);
        let Some(index) = self.free.pop() else {
            let index = self.peers.len() as u32;
            self.peers.push(peer);
            return PeerId { index, life: 0 };
        };
        let place = &mut self.peers[index as usize];
        peer.life = place.life;
        *place = peer;
        let life = place.life;
        PeerId { index, life }
    }

    /// Removes a peer. [`Self::set_list`] must follow.
    pub fn remove(&mut self, id: PeerId) {
        self.close();
        if let Some(peer) = self.get_mut(id) {
            peer.life = peer.life.wrapping_add(1);
            let conns = peer.conns;
            self.free.push(id.index);
            self.starting.retain(|index| *index != id.index);
            if conns > 0 {
                self.removed.insert(id, conns);
            }
        }
    }

    /// Sets the order of the peers.
    pub fn set_list(&mut self, ids: &[PeerId]) {
        let indices = ids.iter().map(|id| id.index);
        let is_backup = |index: &u32| self.peers[*index as usize].is_backup;
        let (backup, primary): (Vec<_>, Vec<_>) = indices.partition(is_backup);
        self.primary.set_list(primary, &mut self.peers);
        self.backup.set_list(backup, &mut self.peers);
        self.build_at_once();
        let is_up = |id: &&PeerId| {
            let peer = &self.peers[id.index as usize];
            !peer.is_down && !peer.is_draining
        };
        self.up = ids.iter().filter(is_up).count();
        self.wake_waiting();
        self.changes = self.changes.wrapping_add(1);
    }

    /// Sets the parameters of a peer's server. Its counters stay. [`Self::set_list`] must follow.
    pub fn set_server(&mut self, id: PeerId, server: &Server) {
        self.close();
        if let Some(peer) = self.get_mut(id) {
            peer.set_server(server);
        }
    }

    /// Makes the order of choices consistent again after a panic inside of a choice.
    pub(crate) fn recover(&mut self) {
        self.primary.reset(&mut self.peers);
        self.backup.reset(&mut self.peers);
    }

    /// Leaves the marks of a change without the change, as a panic can.
    #[cfg(test)]
    pub(crate) fn corrupt(&mut self) {
        for peer in &mut self.peers {
            peer.weights.is_changed = true;
            peer.weights.current = i64::from(peer.number) << 40;
        }
    }

    /// Sets the health checks of a configuration, once. Peers keep states of checks as far as [`CheckSpec::initial`]
    /// permits.
    pub fn set_checks(&mut self, checks: &Arc<[CheckSpec]>) {
        if Arc::ptr_eq(&self.checks, checks) || self.checks.is_empty() && checks.is_empty() {
            return;
        }
        self.close();
        self.checks = Arc::clone(checks);
        for index in self.primary.list().iter().chain(self.backup.list()) {
            self.peers[*index as usize].checks.set(checks);
        }
    }

    /// Records a result of a health check, by its id. Returns the new health of the peer by this check, if it has
    /// changed. `now_ms` is monotonic.
    pub fn record_check(
        &mut self,
        id: PeerId,
        check: u64,
        passed: bool,
        now_ms: u64,
    ) -> Option<Health> {
        let peer = self.get_mut(id)?;
        let was_out = peer.checks.is_out();
        let change = peer.checks.record(check, passed);
        peer.settle_downtime(now_ms);
        if peer.checks.is_out() != was_out {
            self.mark_changed(id.index);
            self.wake_waiting();
        }
        change
    }

    /// Returns the count of changes of the list.
    pub fn changes(&self) -> u32 {
        self.changes
    }

    /// Returns all peers, the primary ones first.
    pub fn iter(&self) -> impl Iterator<Item = (PeerId, &Peer)> {
        let indices = self.primary.list().iter().chain(self.backup.list());
        indices.map(|index| {
            let peer = &self.peers[*index as usize];
            let life = peer.life;
            (
                PeerId {
                    index: *index,
                    life,
                },
                peer,
            )
        })
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

    /// Returns the maximum number of attempts of a request: one for each peer that is neither down nor
    /// draining.
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
    /// may be tried again. `now_ms` is monotonic.
    #[inline]
    pub fn pick(&mut self, tried: &mut TriedPeers, key: &PickKey, now_ms: u64) -> Option<PeerId> {
        if !self.starting.is_empty() {
            self.advance_starting(now_ms);
        }
        let index = match self.is_single() {
            true => {
                let index = self.primary.list()[0];
                let peer = &self.peers[index as usize];
                let bound_to = key.bound_to.as_deref();
                let is_bound = || bound_to.is_some_and(|id| id == peer.server_id());
                (peer.is_open() && (!peer.is_draining || is_bound())).then_some(index)
            }
            false => self.pick_of_many(tried, key, now_ms),
        }?;
        let peer = &mut self.peers[index as usize];
        peer.conns += 1;
        let life = peer.life;
        if peer.is_full() {
            self.mark_changed(index);
        }
        Some(PeerId { index, life })
    }

    fn pick_of_many(&mut self, tried: &mut TriedPeers, key: &PickKey, now_ms: u64) -> Option<u32> {
        if tried.changes != self.changes {
            // The marks belong to an old list. The number of attempts has its own limit.
            tried.changes = self.changes;
            tried.numbers.clear();
            tried.in_backup = false;
        }
        if tried.in_backup {
            return self.pick_in_list(tried, key, now_ms);
        }
        let found = self.pick_in_list(tried, key, now_ms);
        if found.is_some() || self.backup.list().is_empty() {
            return found;
        }
        let of_primary = std::mem::take(&mut tried.numbers);
        tried.in_backup = true;
        let found = self.pick_in_list(tried, key, now_ms);
        if found.is_none() {
            // A request that waits for a server may get a primary one.
            (tried.in_backup, tried.numbers) = (false, of_primary);
        }
        found
    }

    /// Chooses a peer of the primary list, or of the backup list.
    #[inline]
    fn pick_in_list(&mut self, tried: &mut TriedPeers, key: &PickKey, now_ms: u64) -> Option<u32> {
        loop {
            let list = match tried.in_backup {
                false => &mut self.primary,
                true => &mut self.backup,
            };
            let request = (&mut tried.numbers, &mut tried.progress);
            let found = list.pick(&mut self.peers, request, key, now_ms);
            if found.is_some() || !self.release_starting() {
                return found;
            }
        }
    }

    /// Uncounts the connection of an ended attempt.
    #[inline]
    pub fn release(&mut self, id: PeerId) {
        let Some(peer) = self.get_mut(id) else {
            return self.release_removed(id);
        };
        let was_full = peer.is_full();
        peer.conns -= 1;
        if was_full {
            self.mark_changed(id.index);
            self.wake_waiting();
        }
    }

    #[cold]
    fn release_removed(&mut self, id: PeerId) {
        if let Some(conns) = self.removed.get_mut(&id) {
            *conns -= 1;
            if *conns == 0 {
                self.removed.remove(&id);
            }
        }
    }

    /// Returns the number of removed peers with attempts in progress.
    pub fn zombies(&self) -> usize {
        self.removed.len()
    }

    /// Makes a list of several threads: peers that are added from now on have counters.
    pub(crate) fn share(&mut self) {
        self.is_shared = true;
    }

    /// Sets the counters of a peer to 0. `now_ms` is monotonic.
    pub(crate) fn reset_stats(&mut self, id: PeerId, now_ms: u64) {
        if let Some(stats) = self.stats(id) {
            stats.reset(now_ms);
        }
    }

    /// Counts a choice in the counters of a peer. `now_ms` is monotonic.
    #[inline]
    pub(crate) fn count_chosen(&mut self, id: PeerId, now_ms: u64) {
        if self.is_shared
            && let Some(stats) = self.stats(id)
        {
            stats.chosen(now_ms);
        }
    }

    /// Counts an ended attempt in the counters of a peer.
    pub(crate) fn count_ended(&mut self, id: PeerId, attempt: &AttemptFigures) {
        if let Some(stats) = self.stats(id) {
            stats.ended(attempt);
        }
    }

    /// Counts a failed attempt in the counters of a peer. `is_out`: it is excluded from now on; `now_ms` is monotonic.
    pub(crate) fn count_failed(&mut self, id: PeerId, is_out: bool, now_ms: u64) {
        if let Some(stats) = self.stats(id) {
            stats.failed(is_out, now_ms);
        }
    }

    #[inline]
    fn stats(&mut self, id: PeerId) -> Option<&mut PeerStats> {
        self.get_mut(id)?.stats.as_deref_mut()
    }

    /// Returns the response times that the method reads.
    pub fn measures(&self) -> Measures {
        self.measures
    }

    /// Counts an attempt in progress for the average of their ages. `now_ms` is monotonic.
    pub(crate) fn begin_measured(&mut self, id: PeerId, now_ms: u64) {
        if let Some(peer) = self.get_mut(id) {
            peer.times.begin(now_ms);
        }
    }

    /// Uncounts an attempt in progress that began at this time, monotonic milliseconds.
    pub(crate) fn end_measured(&mut self, id: PeerId, started_ms: u64) {
        if let Some(peer) = self.get_mut(id) {
            peer.times.end(started_ms);
        }
    }

    /// Adds the time until a response head to the average, milliseconds.
    pub(crate) fn add_header_time(&mut self, id: PeerId, ms: u64) {
        if let Some(peer) = self.get_mut(id) {
            peer.times.add_header(ms);
        }
    }

    /// Adds the time until the end of a response to the average, milliseconds.
    pub(crate) fn add_response_time(&mut self, id: PeerId, ms: u64) {
        if let Some(peer) = self.get_mut(id) {
            peer.times.add_response(ms);
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
            self.wake_waiting();
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
