//! Groups of servers, and which of them is tried next.
//!
//! A group is data of the configuration ([`Group`]); how its servers fare is state of each thread (`Peers`), which begins
//! anew with each configuration, as in nginx without `zone`.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`.

mod conf;
mod names;
mod peers;
mod pool;

use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;

use server_upstream::route::{Pool, UpstreamAddr};

use super::gateway::Target;
use crate::conf_core::{NameServers, ResolverLoc};
use crate::exchange::{Ctx, Exchange, Wait};
use crate::http::LocalState;

pub use conf::{
    Group, Groups, Keepalive, Server, UnresolvedHost, add, define, finish, server_address, target,
};
use names::{Followed, PendingLookups};
use peers::{Peer, Peers, Tried, choose};
pub(super) use pool::of_protocol;

/// The index of a group in its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupId(pub usize);

/// A server that was chosen for an attempt.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Its address.
    pub addr: UpstreamAddr,
    /// The address as `$upstream_addr` shows it.
    pub name: Rc<[u8]>,
    /// The server as it is written in the configuration, for `$upstream_last_server_name`.
    pub server: Rc<[u8]>,
    /// The pool of idle connections of its group, if the group keeps any.
    pub pool: Option<Pool>,
}

/// The result of [`Picker::pick`].
#[derive(Debug)]
pub enum Pick {
    /// A server.
    Chosen(Chosen),
    /// None is alive and free ("no live upstreams").
    None,
    /// Names are being resolved; the exchange is woken.
    Wait(Wait),
    /// The name does not resolve; what is to be logged.
    Unresolved(String),
}

/// How an attempt ended, as the group counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server has answered.
    Alive,
    /// The attempt failed in a way that counts against the server.
    Failed,
    /// Another server is to be tried, but this one is not to blame (`http_403`, `http_404`, `http_429`, `non_idempotent`).
    Next,
}

/// Chooses servers for one request, each at most once; the server of a group that has one address any number of times.
#[derive(Debug)]
pub struct Picker {
    group: Rc<LocalGroup>,
    /// Whose place among `max_conns` is taken.
    current: Option<Rc<Peer>>,
    /// The group had no choice when `current` was chosen.
    is_single: bool,
    /// Backup servers are used from here on.
    in_backup: bool,
    tried: Tried,
    /// The state of the lists that `tried` is about.
    changes: u32,
    asked: PendingLookups,
}

/// A thread's state of servers, for one configuration.
struct LocalGroups {
    /// Each made when it is asked for first: a request does not pay for the groups of others.
    groups: Vec<OnceCell<Rc<LocalGroup>>>,
    /// Digests of locations, where they have been asked for; else 0.
    location_digests: Box<[Cell<u64>]>,
}

impl LocalGroups {
    /// The state of the exchange's thread.
    fn of(x: &Exchange) -> &Self {
        x.route.http.upstreams(|http| Self {
            groups: vec![OnceCell::new(); http.main::<Groups>().iter().count()],
            location_digests: vec![Cell::new(0); http.locations.len()].into(),
        })
    }

    /// A group of the configuration.
    fn group(x: &Exchange, id: GroupId) -> Rc<LocalGroup> {
        let made = || LocalGroup::new(&x.route.http.main::<Groups>()[id]);
        Rc::clone(Self::of(x).groups[id.0].get_or_init(made))
    }
}

impl LocalState for LocalGroups {
    fn let_go(&mut self, steps: &mut usize) {
        while *steps > 0 && self.groups.pop().is_some() {
            *steps -= 1;
        }
    }
}

/// A group of one thread: of the configuration, or of a request alone.
#[derive(Debug)]
pub(crate) struct LocalGroup {
    name: Box<[u8]>,
    peers: Peers,
    followed: Option<Box<Followed>>,
    keepalive: Option<Keepalive>,
    digest: u64,
}

impl Picker {
    /// For these servers.
    pub fn new(x: &Exchange, target: Target) -> Self {
        let group = match target {
            Target::Group(id) => LocalGroups::group(x, id),
            Target::Addresses(addresses) => Rc::new(LocalGroup::of_addresses(addresses)),
            Target::Name(name, port) => Rc::new(LocalGroup::of_name(x, &name, port)),
        };
        Self::of(group)
    }

    fn of(group: Rc<LocalGroup>) -> Self {
        Self {
            changes: group.peers.changes.get(),
            group,
            current: None,
            is_single: false,
            in_backup: false,
            tried: Tried::default(),
            asked: PendingLookups::default(),
        }
    }

    /// Maximum number of attempts, as nginx counts them (`pc->tries`); known once a server was chosen, since names may
    /// have to be resolved before.
    pub fn tries(&self) -> u32 {
        u32::try_from(self.group.peers.tries()).unwrap_or(u32::MAX)
    }

    /// Chooses a server. Its place among `max_conns` is released by [`Picker::finish`] or on drop.
    pub fn pick(&mut self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Pick {
        self.give_back();
        let group = Rc::clone(&self.group);
        let Some(followed) = &group.followed else {
            return match self.choose(x, cx) {
                Some(chosen) => Pick::Chosen(chosen),
                None => Pick::None,
            };
        };
        // First without waiting, where what is known is not stale; then with all that can be known.
        for needed in [false, true] {
            followed.ask(&mut self.asked, needed, x, cx);
            followed.receive(&mut self.asked, &group.peers, cx.clock.mono_ms);
            if self.asked.is_waiting() {
                return Pick::Wait(Wait::woken());
            }
            if let Some(chosen) = self.choose(x, cx) {
                followed.refresh(&self.asked, x, cx);
                return Pick::Chosen(chosen);
            }
        }
        let error = followed.error(&self.asked);
        match error.filter(|_| group.peers.is_empty()) {
            Some(error) => Pick::Unresolved(error),
            None => Pick::None,
        }
    }

    /// The attempt with the server that was chosen last has ended. Returns whether that server is now left out for a while,
    /// which the caller logs ("upstream server temporarily disabled").
    pub fn finish(&mut self, _: &Exchange, cx: &Ctx<'_>, outcome: Outcome) -> bool {
        let Some(peer) = self.current.take() else {
            return false;
        };
        peer.give_back();
        if self.is_single {
            peer.forgive();
            return false;
        }
        if outcome == Outcome::Failed {
            return peer.fail(now_s(cx));
        }
        peer.succeed();
        false
    }

    /// The name of the group, or the host that is resolved: for logs, `$proxy_host`-like variables and pools.
    pub fn name(&self) -> &[u8] {
        &self.group.name
    }

    fn choose(&mut self, x: &Exchange, cx: &Ctx<'_>) -> Option<Chosen> {
        let group = Rc::clone(&self.group);
        let peers = &group.peers;
        self.is_single = peers.is_single();
        let peer = match self.is_single {
            true => peers.single()?,
            false => self.choose_of_many(peers, now_s(cx))?,
        };
        peer.take();
        let keepalive = group.keepalive.as_ref();
        let chosen = Chosen {
            addr: peer.addr.clone(),
            name: Rc::clone(&peer.name),
            server: Rc::clone(&peer.server),
            pool: keepalive.map(|keepalive| pool::pool(x, group.digest, keepalive)),
        };
        self.current = Some(peer);
        Some(chosen)
    }

    fn choose_of_many(&mut self, peers: &Peers, now_s: u64) -> Option<Rc<Peer>> {
        if self.changes != peers.changes.get() {
            // The marks are about a list that is no more; how often a server is tried has a limit of its own.
            self.changes = peers.changes.get();
            self.tried = Tried::default();
        }
        if !self.in_backup {
            let found = choose(&peers.primary.borrow(), &mut self.tried, now_s);
            if found.is_some() || peers.backup.borrow().is_empty() {
                return found;
            }
            self.in_backup = true;
            self.tried = Tried::default();
        }
        choose(&peers.backup.borrow(), &mut self.tried, now_s)
    }

    fn give_back(&mut self) {
        if let Some(peer) = self.current.take() {
            peer.give_back();
        }
    }
}

impl Drop for Picker {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl LocalGroup {
    /// A group of the configuration.
    pub(crate) fn new(group: &Group) -> Rc<Self> {
        let timeout_ms = group.resolver_timeout_ms.unwrap_or_default();
        let by = (group.resolver.as_ref(), timeout_ms);
        Rc::new(Self {
            keepalive: group.keepalive,
            digest: pool::group_digest(&group.name),
            ..Self::of(&group.name, &group.servers, by)
        })
    }

    /// Servers of one request, which are known by their addresses.
    fn of_addresses(addresses: Vec<UpstreamAddr>) -> Self {
        let name = addresses.first().map(ToString::to_string);
        let name = name.unwrap_or_default();
        let server = Server {
            name: name.as_bytes().into(),
            addresses,
            ..Server::new()
        };
        Self::of(name.as_bytes(), &[server], (None, 0))
    }

    /// Servers of one request, whose name is resolved for it.
    fn of_name(x: &Exchange, name: &str, port: u16) -> Self {
        let server = Server {
            name: name.as_bytes().into(),
            unresolved: Some(UnresolvedHost::new(name, port)),
            ..Server::new()
        };
        let conf: &ResolverLoc = x.route.loc();
        let by = (conf.servers.as_ref(), conf.timeout.0);
        Self::of(name.as_bytes(), &[server], by)
    }

    /// A group of these servers; `by`: the name servers for hosts without addresses, and the time limit of a lookup,
    /// milliseconds.
    fn of(name: &[u8], servers: &[Server], by: (Option<&Arc<NameServers>>, u64)) -> Self {
        let followed = Followed::new(servers, by.0, by.1);
        let peers = match &followed {
            Some(followed) => followed.peers(),
            None => Peers::new(servers),
        };
        Self {
            name: name.into(),
            peers,
            followed,
            keepalive: None,
            digest: 0,
        }
    }
}

/// Failures are counted in whole seconds, as in nginx.
fn now_s(cx: &Ctx<'_>) -> u64 {
    cx.clock.mono_ms / 1000
}

#[cfg(test)]
#[path = "group/tests.rs"]
mod tests;
