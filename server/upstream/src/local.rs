//! Groups of one thread, with the thread's peers, or with its copy of the names of shared peers.
//!
//! A new configuration starts with new groups, as in nginx without `zone`. Shared peers stay.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use server_base::name_servers::NameServers;

use crate::first_lookups::FirstLookups;
use crate::group::{Group, GroupId, Groups, Keepalive};
use crate::peer::{Peer, SelectedPeer};
use crate::peers::{PeerId, PeerList};
use crate::pool::{check_digest, group_digest};
use crate::queue::WaitQueue;
use crate::resolved_hosts::ResolvedHosts;
use crate::retry_budget::RetryCounts;
use crate::route::UpstreamAddr;
use crate::server::{Server, UnresolvedHost};
use crate::shared::{Peers, SharedPeers};

/// A thread's state of the groups of one configuration.
#[derive(Debug)]
pub struct LocalGroups {
    /// Each group is made for its first request, so that a request does not pay for other groups.
    groups: Vec<OnceCell<Rc<LocalGroup>>>,
    /// Digests of locations that pass requests on; 0 before the first use.
    place_digests: Box<[Cell<u64>]>,
}

/// A group of one thread: from the configuration, or for one request.
#[derive(Debug)]
pub struct LocalGroup {
    pub(crate) name: Box<[u8]>,
    pub(crate) peers: Peers,
    pub(crate) hosts: Option<Box<ResolvedHosts>>,
    /// For hosts of shared peers.
    pub(crate) first_lookups: Option<Box<FirstLookups>>,
    pub(crate) keepalive: Option<Keepalive>,
    pub(crate) queue: Option<Box<WaitQueue>>,
    /// Requests may be bound to servers.
    pub(crate) is_sticky: bool,
    /// Connections to servers may be bound to connections of clients.
    pub(crate) is_ntlm: bool,
    pub(crate) digest: u64,
    /// Of all threads; `None` for a group of one request.
    pub(crate) counts: Option<Arc<RetryCounts>>,
    /// Addresses and names by index, made with the first choice of a peer; `None` for a group of one request.
    selected: Option<RefCell<SelectedPeers>>,
}

/// Addresses and names of peers, by index.
#[derive(Debug, Default)]
struct SelectedPeers {
    peers: Vec<Option<(PeerId, Rc<SelectedPeer>)>>,
    /// Count of changes of the list for which they are valid: a peer may get another name or identifier.
    changes: u32,
}

/// Name servers for hosts without addresses, and the timeout of a lookup in milliseconds.
pub type LookupBy<'a> = (Option<&'a Arc<NameServers>>, u64);

impl LocalGroups {
    /// Makes the state for a configuration with this number of groups, and of locations that may pass requests on.
    pub fn new(groups: usize, places: usize) -> Self {
        Self {
            groups: vec![OnceCell::new(); groups],
            place_digests: vec![Cell::new(0); places].into(),
        }
    }

    /// Returns a group of the configuration.
    pub fn group(&self, groups: &Groups, id: GroupId) -> Rc<LocalGroup> {
        let made = || Rc::new(LocalGroup::new(&groups[id]));
        Rc::clone(self.groups[id.0].get_or_init(made))
    }

    /// Returns the digest of a location by its number. `digest` computes it once, and must not return 0.
    pub fn place_digest(&self, place: usize, digest: impl FnOnce() -> u64) -> u64 {
        let known = &self.place_digests[place];
        if known.get() == 0 {
            known.set(digest());
        }
        known.get()
    }

    /// Frees groups. Each group costs one of `steps`; groups remain if `steps` reaches 0 first.
    pub fn release(&mut self, steps: &mut usize) {
        while *steps > 0 && self.groups.pop().is_some() {
            *steps -= 1;
        }
    }
}

impl LocalGroup {
    /// Makes a group from the configuration.
    pub fn new(group: &Group) -> Self {
        let timeout_ms = group.resolver_timeout_ms.unwrap_or_default();
        let by = (group.resolver.as_ref(), timeout_ms);
        let local = match group.shared_peers() {
            Some(peers) => Self::of_shared(&group.name, Arc::clone(peers), by),
            None => Self::of(&group.name, &group.servers, by),
        };
        if group.method.is_some() && group.zone.is_none() {
            let method = group.method.as_deref();
            drop(local.peers.with(|peers| peers.set_method(method)));
        }
        if !group.checks.is_empty() && group.zone.is_none() {
            local.peers.with(|peers| peers.set_checks(&group.checks));
        }
        Self {
            keepalive: group.keepalive,
            queue: (group.queue).map(|limits| Box::new(WaitQueue::new(limits))),
            is_sticky: group.is_sticky,
            is_ntlm: group.is_ntlm,
            digest: group_digest(&group.name),
            counts: Some(Arc::clone(&group.counts)),
            selected: Some(RefCell::default()),
            ..local
        }
    }

    /// Makes a group for a health check of one peer: with its address and its name, and connections of its own.
    pub fn of_check(
        name: &[u8],
        peer: &Peer,
        addr: UpstreamAddr,
        keepalive: Option<Keepalive>,
    ) -> Self {
        let server = Server {
            name: Arc::clone(peer.server()),
            addresses: vec![addr],
            ..Server::new()
        };
        Self {
            keepalive,
            digest: check_digest(name),
            ..Self::of(name, &[server], (None, 0))
        }
    }

    /// Returns the name of the group.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the peers.
    pub fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Makes a group for one request from addresses.
    pub fn of_addresses(addresses: Vec<UpstreamAddr>) -> Self {
        let name = addresses.first().map(ToString::to_string);
        let name = name.unwrap_or_default();
        let server = Server {
            name: name.as_bytes().into(),
            addresses,
            ..Server::new()
        };
        Self::of(name.as_bytes(), &[server], (None, 0))
    }

    /// Makes a group for one request from a name, which is resolved.
    pub fn of_name(name: &str, port: u16, by: LookupBy<'_>) -> Self {
        let server = Server {
            name: name.as_bytes().into(),
            unresolved: Some(UnresolvedHost::new(name, port)),
            ..Server::new()
        };
        Self::of(name.as_bytes(), &[server], by)
    }

    /// Makes a group with peers shared by all threads.
    pub fn of_shared(name: &[u8], peers: Arc<SharedPeers>, by: LookupBy<'_>) -> Self {
        Self {
            selected: Some(RefCell::default()),
            first_lookups: Some(Box::new(FirstLookups::new(by.0, by.1))),
            ..Self::with(name, Peers::Shared(peers), None)
        }
    }

    /// Makes a group with a queue.
    #[cfg(test)]
    pub(crate) fn queued(peers: Peers, limits: crate::group::QueueLimits) -> Self {
        Self {
            queue: Some(Box::new(WaitQueue::new(limits))),
            ..Self::with(b"g", peers, None)
        }
    }

    /// Makes a group of these servers.
    pub(crate) fn of(name: &[u8], servers: &[Server], by: LookupBy<'_>) -> Self {
        match ResolvedHosts::new(servers, by.0, by.1) {
            Some((hosts, peers)) => Self::with(name, Peers::local(peers), Some(hosts)),
            None => Self::with(name, Peers::local(PeerList::of(servers)), None),
        }
    }

    fn with(name: &[u8], peers: Peers, hosts: Option<Box<ResolvedHosts>>) -> Self {
        Self {
            name: name.into(),
            peers,
            hosts,
            first_lookups: None,
            keepalive: None,
            queue: None,
            is_sticky: false,
            is_ntlm: false,
            digest: 0,
            counts: None,
            selected: None,
        }
    }

    /// Address and names of a peer of `peers`, the list of this group.
    pub(crate) fn selected(&self, peers: &PeerList, id: PeerId) -> Option<Rc<SelectedPeer>> {
        let Some(all) = &self.selected else {
            return peers.get(id).map(|peer| Rc::new(SelectedPeer::of(peer)));
        };
        let SelectedPeers {
            peers: all,
            changes,
        } = &mut *all.borrow_mut();
        if *changes != peers.changes() {
            *changes = peers.changes();
            all.clear();
        }
        let at = id.index();
        if all.len() <= at {
            all.resize_with(at + 1, || None);
        }
        let place = &mut all[at];
        if place.as_ref().is_none_or(|(known, _)| *known != id) {
            *place = peers.get(id).map(|peer| {
                let mut selected = SelectedPeer::of(peer);
                let has_id = self.is_sticky || self.is_ntlm;
                selected.id = has_id.then(|| peer.server_id().into());
                (id, Rc::new(selected))
            });
        }
        place.as_ref().map(|(_, selected)| Rc::clone(selected))
    }
}
