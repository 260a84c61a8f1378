//! The servers of a shared group: those of the configuration, and changes made at run time.
//!
//! A member is one address of a server, or a host with the addresses that name servers returned. A new configuration
//! is compared with the one before, server by server. A server without a difference stays as it is now, even if it was
//! removed or modified at run time. Servers added at run time follow those of the configuration.
//!
//! Members are copies that share no memory with the configuration, since they outlive it.
//!
//! Absent: lookups of hosts, which belong to the driver.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::DerefMut;
use std::sync::Arc;

use crate::found::{FoundAddress, servers_of};
use crate::peer::Peer;
use crate::peers::{PeerId, PeerList};
use crate::route::UpstreamAddr;
use crate::server::{Server, UnresolvedHost};

/// The servers of a shared group.
#[derive(Debug, Default)]
pub(crate) struct Members {
    list: Vec<Member>,
    /// The servers of the last configuration, and their members unless removed since.
    configured: Vec<(SingleAddress, Option<MemberId>)>,
    /// The group has no backup servers: its method has none, and no server of the configuration is one.
    is_without_backup: bool,
    next_id: u32,
    /// Number of peers of all members.
    peers: usize,
}

/// Identifies a server of a shared group, or one address of its host. It is never reused in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId(pub u32);

/// One address of a server, or a host.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: MemberId,
    /// Its parameters. It has one address, or a host.
    pub(crate) server: Server,
    /// Its peers: one, with the id of the member, or one for each address of the host.
    pub(crate) peers: Vec<(MemberId, PeerId)>,
    /// Addresses of the host; empty for a member with an address.
    pub(crate) found: Vec<FoundAddress>,
    /// The host was looked up, maybe without success.
    is_answered: bool,
    is_configured: bool,
}

/// A server of a configuration with one of its addresses or its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SingleAddress {
    server: Server,
    /// The number of the server in the configuration.
    number: usize,
}

/// The form of a member in a `state` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    /// As written.
    AsWritten,
    /// By its address.
    ByAddress,
    /// Another address of its name is stored for it.
    Nowhere,
}

/// Servers with equal keys are one server with other parameters.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    /// The server as written, or the name of the host.
    name: Vec<u8>,
    service: Option<Box<str>>,
    addr: Option<UpstreamAddr>,
}

/// Numbers of addresses of a host that have no peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The group has [`PEERS_MAX`] peers.
    pub full: usize,
    /// Their SRV records have a higher priority number, and the group has no backup servers.
    pub backup: usize,
}

/// The group has [`PEERS_MAX`] peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Members {
    /// Returns the members in the order of their peers.
    pub(crate) fn list(&self) -> &[Member] {
        &self.list
    }

    /// Whether the last configuration had these servers ([`single_addresses`]), and a method with or without backup servers
    /// like this one.
    pub(crate) fn are_configured(&self, servers: &[SingleAddress], allows_backup: bool) -> bool {
        let before = self.configured.iter().map(|(server, _)| server);
        self.is_without_backup == is_without_backup(servers, allows_backup) && before.eq(servers)
    }

    /// Takes the servers of a new configuration ([`single_addresses`]). `lock` is called after the comparison, so that
    /// choices wait for the changes alone.
    pub(crate) fn commit<G: DerefMut<Target = PeerList>>(
        &mut self,
        servers: Vec<SingleAddress>,
        allows_backup: bool,
        lock: impl FnOnce() -> G,
    ) {
        self.is_without_backup = is_without_backup(&servers, allows_backup);
        let mut before = self.configured_by_key();
        let mut left: BTreeMap<MemberId, Member> = BTreeMap::new();
        let mut order = Vec::new();
        for member in self.list.drain(..) {
            if !member.is_configured {
                order.push(member.id);
            }
            left.insert(member.id, member);
        }
        let mut added = self.added_by_key(&left, &order);
        let mut plan = Vec::new();
        for single in servers {
            let server = &single.server;
            let key = Key::of(server);
            let known = before.get_mut(&key).and_then(VecDeque::pop_front);
            let (is_same, id) = match known {
                // Also if it was removed at run time.
                Some((old, id)) if old == *server => (true, id),
                Some((_, Some(id))) => (false, Some(id)),
                _ => (false, added.get_mut(&key).and_then(VecDeque::pop_front)),
            };
            let mut member = id.and_then(|id| left.remove(&id));
            if let Some(member) = &mut member
                && !is_same
            {
                member.is_configured = true;
                member.server = server.clone();
            }
            plan.push((single, is_same, member));
        }
        let added: Vec<_> = order.iter().filter_map(|id| left.remove(id)).collect();
        let list = &mut *lock();
        // First, since the group may be full.
        for gone in left.into_values() {
            self.drop_peers(&gone, list);
        }
        self.configured = Vec::with_capacity(plan.len());
        for (single, is_same, member) in plan {
            let id = match member {
                Some(member) => Some(self.push(member, list)),
                None if is_same => None,
                None => Some(self.push_new(single.server.clone(), true, list)),
            };
            self.configured.push((single, id));
        }
        for member in added {
            self.push(member, list);
        }
        self.set_list(list);
    }

    /// Sets the addresses of a host. Returns the addresses without a peer; `None`: the group has no such host now.
    pub(crate) fn set_found(
        &mut self,
        id: MemberId,
        mut found: Vec<FoundAddress>,
        list: &mut PeerList,
    ) -> Option<LeftOut> {
        let at = self.position(id)?;
        self.list[at].is_answered = true;
        // Answers have addresses in any order.
        found.sort_unstable();
        if self.list[at].found == found {
            return Some(LeftOut::default());
        }
        self.list[at].found = found;
        let left_out = self.sync(at, list);
        self.set_list(list);
        Some(left_out)
    }

    /// Whether no lookup of a host has ended so far.
    pub(crate) fn is_unanswered(&self, id: MemberId) -> bool {
        (self.position(id)).is_some_and(|at| self.list[at].is_unanswered())
    }

    /// Records that the lookup of a host has failed.
    pub(crate) fn set_failed(&mut self, id: MemberId) {
        if let Some(at) = self.position(id) {
            self.list[at].is_answered = true;
        }
    }

    /// Adds a server with one address or a host.
    ///
    /// # Errors
    /// [`Full`].
    pub(crate) fn add(&mut self, server: Server, list: &mut PeerList) -> Result<MemberId, Full> {
        if self.peers >= PEERS_MAX {
            return Err(Full);
        }
        let id = self.push_new(server, false, list);
        self.set_list(list);
        Ok(id)
    }

    /// Removes a server. Returns whether there was one.
    pub(crate) fn remove(&mut self, id: MemberId, list: &mut PeerList) -> bool {
        let Some(at) = self.position(id) else {
            return false;
        };
        let member = self.list.remove(at);
        self.drop_peers(&member, list);
        for (_, known) in &mut self.configured {
            known.take_if(|known| *known == id);
        }
        self.set_list(list);
        true
    }

    /// Changes the parameters of a server; its address stays. Returns whether there is one.
    pub(crate) fn modify(
        &mut self,
        id: MemberId,
        list: &mut PeerList,
        change: impl FnOnce(&mut Server),
    ) -> bool {
        let Some(at) = self.position(id) else {
            return false;
        };
        change(&mut self.list[at].server);
        self.sync(at, list);
        self.set_list(list);
        true
    }

    /// Returns the servers as for a `state` file, which give the same members when they are read. A name with several
    /// addresses is written once if all of them are members with the same parameters. Otherwise each is written by its
    /// address, since a name would bring the others back.
    pub(crate) fn stored(&self) -> Vec<Server> {
        let members: HashMap<MemberId, &Server> = self
            .list
            .iter()
            .map(|member| (member.id, &member.server))
            .collect();
        let mut forms = HashMap::new();
        let of_one =
            |one: &(SingleAddress, _), other: &(SingleAddress, _)| one.0.number == other.0.number;
        for addresses in self.configured.chunk_by(of_one) {
            let mut now = addresses
                .iter()
                .map(|(_, id)| members.get(&(*id)?).copied());
            let first = now.next().flatten();
            let is_whole = first.is_some_and(|first| {
                now.all(|other| other.is_some_and(|other| differ_by_address(first, other)))
            });
            let ids = addresses.iter().map(|(_, id)| *id).enumerate();
            forms.extend(ids.filter_map(|(n, id)| {
                let form = match (is_whole, n) {
                    (true, 0) => Stored::AsWritten,
                    (true, _) => Stored::Nowhere,
                    (false, _) => Stored::ByAddress,
                };
                Some((id?, form))
            }));
        }
        let stored = self.list.iter().filter_map(|member| {
            let form = forms.get(&member.id).copied();
            let mut server = member.server.clone();
            match (form.unwrap_or(Stored::AsWritten), server.addresses.first()) {
                (Stored::Nowhere, _) => return None,
                (Stored::ByAddress, Some(addr)) => server.name = Arc::from(addr.name()),
                (Stored::ByAddress | Stored::AsWritten, _) => {}
            }
            Some(server)
        });
        stored.collect()
    }

    fn position(&self, id: MemberId) -> Option<usize> {
        self.list.iter().position(|member| member.id == id)
    }

    /// Servers of the last configuration, in order for each key.
    fn configured_by_key(&mut self) -> HashMap<Key, VecDeque<(Server, Option<MemberId>)>> {
        let mut all: HashMap<Key, VecDeque<_>> = HashMap::new();
        for (SingleAddress { server, .. }, id) in self.configured.drain(..) {
            all.entry(Key::of(&server))
                .or_default()
                .push_back((server, id));
        }
        all
    }

    /// Members added at run time, in order for each key.
    fn added_by_key(
        &self,
        members: &BTreeMap<MemberId, Member>,
        order: &[MemberId],
    ) -> HashMap<Key, VecDeque<MemberId>> {
        let mut all: HashMap<Key, VecDeque<_>> = HashMap::new();
        for id in order {
            if let Some(member) = members.get(id) {
                all.entry(Key::of(&member.server))
                    .or_default()
                    .push_back(*id);
            }
        }
        all
    }

    fn new_id(&mut self) -> MemberId {
        let id = MemberId(self.next_id);
        self.next_id += 1;
        id
    }

    fn push_new(&mut self, server: Server, is_configured: bool, list: &mut PeerList) -> MemberId {
        let member = Member {
            id: self.new_id(),
            server,
            peers: Vec::new(),
            found: Vec::new(),
            is_answered: false,
            is_configured,
        };
        self.push(member, list)
    }

    fn push(&mut self, member: Member, list: &mut PeerList) -> MemberId {
        let id = member.id;
        self.list.push(member);
        self.sync(self.list.len() - 1, list);
        id
    }

    fn drop_peers(&mut self, member: &Member, list: &mut PeerList) {
        for (_, peer) in &member.peers {
            list.remove(*peer);
        }
        self.peers -= member.peers.len();
    }

    /// Makes the peers of a member as its server and addresses require. Peers with unchanged addresses keep their place
    /// and counters. Returns the addresses without a peer.
    fn sync(&mut self, at: usize, list: &mut PeerList) -> LeftOut {
        let member = &mut self.list[at];
        let (id, is_host) = (member.id, member.server.unresolved.is_some());
        let mut wanted = member.wanted();
        let found = wanted.len();
        // A server that is written as a backup is one with each method.
        if self.is_without_backup && !member.server.is_backup {
            wanted.retain(|server| !server.is_backup);
        }
        let backup = found - wanted.len();
        let mut places: HashMap<Key, VecDeque<usize>> = HashMap::new();
        for (n, server) in wanted.iter().enumerate() {
            places.entry(Key::of(server)).or_default().push_back(n);
        }
        let mut is_taken = vec![false; wanted.len()];
        member.peers.retain(|(_, peer)| {
            let key = list.get(*peer).map(Key::of_peer);
            let place = key.and_then(|key| places.get_mut(&key)?.pop_front());
            match place {
                Some(n) => {
                    is_taken[n] = true;
                    list.set_server(*peer, &wanted[n]);
                }
                None => {
                    list.remove(*peer);
                    self.peers -= 1;
                }
            }
            place.is_some()
        });
        let new = wanted.iter().zip(is_taken);
        let new: Vec<&Server> = new
            .filter(|(_, is)| !is)
            .map(|(server, _)| server)
            .collect();
        let room = (PEERS_MAX - self.peers).min(new.len());
        for server in &new[..room] {
            let child = match is_host {
                true => self.new_id(),
                false => id,
            };
            let peer = list.add(server, &server.addresses[0]);
            self.list[at].peers.push((child, peer));
            self.peers += 1;
        }
        LeftOut {
            full: new.len() - room,
            backup,
        }
    }

    fn set_list(&self, list: &mut PeerList) {
        let all = self.list.iter().flat_map(|member| &member.peers);
        list.set_list(&all.map(|(_, peer)| *peer).collect::<Vec<_>>());
    }
}

impl Member {
    /// Whether it has a host that was not looked up so far, and no service.
    pub(crate) fn is_unanswered(&self) -> bool {
        let host = self.server.unresolved.as_ref();
        !self.is_answered && host.is_some_and(|host| host.service.is_none())
    }

    /// The servers of its peers, each with one address.
    fn wanted(&self) -> Vec<Server> {
        match &self.server.unresolved {
            Some(_) => servers_of(&self.server, &self.found),
            None => vec![self.server.clone()],
        }
    }
}

impl Key {
    fn of(server: &Server) -> Self {
        match &server.unresolved {
            // Another port makes other peers of the same host.
            Some(host) => Self {
                name: host.name.clone().into_bytes(),
                service: host.service.clone(),
                addr: None,
            },
            None => Self {
                name: server.name.to_vec(),
                service: None,
                addr: server.addresses.first().cloned(),
            },
        }
    }

    fn of_peer(peer: &Peer) -> Self {
        Self {
            name: peer.server().to_vec(),
            service: None,
            addr: Some(peer.addr().clone()),
        }
    }
}

/// Whether two servers have the same name and parameters, and each has an address.
fn differ_by_address(one: &Server, other: &Server) -> bool {
    let same = Server {
        addresses: other.addresses.clone(),
        ..one.clone()
    };
    one.unresolved.is_none() && same == *other
}

/// Whether a group of these servers has no backup servers. As in nginx, a method without them keeps servers that were
/// written before its directive.
fn is_without_backup(servers: &[SingleAddress], allows_backup: bool) -> bool {
    !allows_backup && !servers.iter().any(|single| single.server.is_backup)
}

/// Copies of servers, each with one address or a host.
pub(crate) fn single_addresses(servers: &[Server]) -> Vec<SingleAddress> {
    let copies = servers.iter().enumerate().flat_map(|(number, server)| {
        let base = Server {
            name: Arc::from(&*server.name),
            addresses: Vec::new(),
            unresolved: server
                .unresolved
                .as_ref()
                .map(UnresolvedHost::without_error),
            ..server.clone()
        };
        let host = base.unresolved.is_some().then(|| base.clone());
        let one = move |addr: &UpstreamAddr| Server {
            addresses: vec![addr.duplicate()],
            unresolved: None,
            ..base.clone()
        };
        let all = server.addresses.iter().map(one).chain(host);
        all.map(move |server| SingleAddress { server, number })
    });
    copies.collect()
}

/// Largest number of addresses of a group's servers.
pub const PEERS_MAX: usize = 65_536;

#[cfg(test)]
#[path = "members_tests.rs"]
mod tests;
