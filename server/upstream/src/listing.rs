//! Reads of the servers of a shared group in bounded steps, for the API and for metrics.
//!
//! Every choice of a server waits for the lock of the peers. So a reader collects the ids of all peers first, which needs the
//! lock of the members alone, and then locks the peers for [`PEERS_A_LOCK`] of them at a time. A peer that was removed meanwhile
//! is left out; one that was added meanwhile is not read. The consumer works on a step before it reads the next one, so
//! that waiting threads get the lock between two steps.
//!
//! Source: nginx documentation, `ngx_http_api_module`.

use std::sync::Arc;
use std::vec;

use crate::control::{PeerState, PeerView, ServerView};
use crate::members::{Member, MemberId};
use crate::peer::Peer;
use crate::peers::{PeerId, PeerList};
use crate::server::Server;
use crate::shared::SharedPeers;

/// Maximum number of peers that are read or reset under one lock.
pub const PEERS_A_LOCK: usize = 256;

/// Reads the addresses of a group. Each item has [`PEERS_A_LOCK`] of them at most, in order.
pub struct PeerViews<'p> {
    peers: &'p SharedPeers,
    left: vec::IntoIter<ListedPeer>,
    now_ms: u64,
}

/// All addresses of a group.
#[derive(Clone, Debug)]
pub struct GroupView {
    /// The addresses, in order.
    pub peers: Vec<PeerView>,
    /// Number of removed addresses with attempts in progress.
    pub zombies: usize,
}

/// A peer to be read, and the parameters that only its member has.
struct ListedPeer {
    id: MemberId,
    peer: PeerId,
    name: Arc<[u8]>,
    service: Option<Box<str>>,
    max_conns: u64,
}

impl SharedPeers {
    /// Returns the addresses with their state, step by step. `now_ms` is monotonic.
    pub fn peer_views(&self, now_ms: u64) -> PeerViews<'_> {
        let members = self.members();
        let listed = members.list().iter().flat_map(ListedPeer::of_member);
        PeerViews {
            peers: self,
            left: listed.collect::<Vec<_>>().into_iter(),
            now_ms,
        }
    }

    /// Returns all addresses with their state. `now_ms` is monotonic.
    pub fn group_view(&self, now_ms: u64) -> GroupView {
        GroupView {
            peers: self.peer_views(now_ms).flatten().collect(),
            zombies: self.zombies(),
        }
    }

    /// Returns the number of removed addresses with attempts in progress.
    pub fn zombies(&self) -> usize {
        self.lock().zombies()
    }

    /// Returns the servers in order. The addresses of a host follow it.
    pub fn server_views(&self) -> Vec<ServerView> {
        let members = self.members();
        let mut views = Vec::new();
        for member in members.list() {
            views.push(ServerView::of(member));
            // An address without a host needs no lock of the peers.
            if member.server.unresolved.is_some() {
                self.in_steps(&member.peers, |list, step| {
                    views.extend(step.iter().filter_map(|child| member.child(*child, list)));
                });
            }
        }
        views
    }

    /// Returns a server, or an address of a host; `None` if the group has none with this number.
    pub fn server_view(&self, id: MemberId) -> Option<ServerView> {
        let members = self.members();
        let list = members.list();
        if let Some(member) = list.iter().find(|member| member.id == id) {
            return Some(ServerView::of(member));
        }
        let mut children = list.iter().flat_map(|member| {
            let children = member.peers.iter();
            children.map(move |child| (member, *child))
        });
        let (member, child) = children.find(|(_, (child, _))| *child == id)?;
        member.child(child, &self.lock())
    }

    /// Sets the counters of all addresses, and that of rejected requests, to 0. `now_ms` is monotonic.
    pub fn reset_stats(&self, now_ms: u64) {
        self.queue_counts().reset();
        let members = self.members();
        let all = members.list().iter().flat_map(|member| &member.peers);
        let ids: Vec<PeerId> = all.map(|(_, peer)| *peer).collect();
        drop(members);
        self.in_steps(&ids, |list, step| {
            for id in step {
                list.reset_stats(*id, now_ms);
            }
        });
    }

    /// Passes all items to `act`, [`PEERS_A_LOCK`] of them at most under each lock of the peers.
    fn in_steps<T>(&self, items: &[T], mut act: impl FnMut(&mut PeerList, &[T])) {
        for step in items.chunks(PEERS_A_LOCK) {
            act(&mut self.lock(), step);
        }
    }
}

impl Iterator for PeerViews<'_> {
    type Item = Vec<PeerView>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.as_slice().is_empty() {
            return None;
        }
        let step = self.left.by_ref().take(PEERS_A_LOCK);
        let mut views = Vec::with_capacity(PEERS_A_LOCK);
        let mut list = self.peers.lock();
        views.extend(step.filter_map(|listed| {
            let peer = list.settled(listed.peer, self.now_ms)?;
            Some(listed.view(peer, self.now_ms))
        }));
        Some(views)
    }
}

impl ListedPeer {
    /// Lists the peers of a member.
    fn of_member(member: &Member) -> impl Iterator<Item = Self> {
        member.peers.iter().map(|(id, peer)| Self {
            id: *id,
            peer: *peer,
            name: Arc::clone(&member.server.name),
            service: (member.server.unresolved.as_ref()).and_then(|host| host.service.clone()),
            max_conns: member.server.max_conns,
        })
    }

    fn view(self, peer: &Peer, now_ms: u64) -> PeerView {
        PeerView {
            id: self.id,
            addr: peer.addr().clone(),
            name: self.name,
            service: self.service,
            is_backup: peer.is_backup,
            weight: peer.weights.weight,
            max_conns: self.max_conns,
            state: PeerState::of(peer, now_ms),
            checks: peer.checks().counts(),
            active: peer.conns,
            stats: peer.stats.as_deref().cloned().unwrap_or_default(),
        }
    }
}

impl ServerView {
    fn of(member: &Member) -> Self {
        Self {
            id: member.id,
            parent: None,
            server: member.server.clone(),
        }
    }
}

impl Member {
    /// Returns an address of its host.
    fn child(&self, (id, peer): (MemberId, PeerId), list: &PeerList) -> Option<ServerView> {
        let peer = list.get(peer)?;
        Some(ServerView {
            id,
            parent: Some(self.id),
            server: Server {
                name: Arc::clone(peer.server()),
                addresses: vec![peer.addr().clone()],
                unresolved: None,
                weight: peer.weights.weight,
                is_backup: peer.is_backup,
                ..self.server.clone()
            },
        })
    }
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
