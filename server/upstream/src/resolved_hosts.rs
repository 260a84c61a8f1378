//! Addresses of hosts that are resolved while serving: those not found at the load, and the host of one request.
//!
//! A host is looked up when a request could use it. A request without another server waits for the first useful answer;
//! otherwise the answer serves later requests. When the addresses expire, the next request starts a lookup and uses the
//! known addresses.
//! If they expired [`STALE_MS`] ago or earlier, it waits. An error keeps the addresses, and ends the waits for as long.
//! Without requests nothing is looked up.
//!
//! The cost of a request does not grow with the group: hosts are visited at [`Hosts::due_ms`], if an answer has arrived, or
//! if no server is usable. Failed hosts are due at common times, so during an outage of name servers one request in
//! [`LOOKUP_GRID_MS`] visits them.
//!
//! Absent: sockets and the cache of answers, which belong to the connector.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use server_base::name_servers::NameServers;

use crate::connector::{Lookup, Resolve, Resolved};
use crate::peers::{PeerId, PeerList};
use crate::route::UpstreamAddr;
use crate::server::{Server, UnresolvedHost};
use crate::shared::Peers;

/// The hosts of a group that are resolved while serving.
#[derive(Debug)]
pub(crate) struct ResolvedHosts {
    hosts: RefCell<Hosts>,
    resolver: Option<Arc<NameServers>>,
    timeout_ms: u64,
}

/// The state of all hosts.
#[derive(Debug)]
struct Hosts {
    hosts: Vec<Host>,
    /// Peers of servers with addresses, in the order of the configuration.
    constant: Vec<PeerId>,
    /// Lookups that no request waits for, with the numbers of their hosts.
    lookups: Vec<(usize, Lookup)>,
    /// Number of `lookups` with an answer.
    answers: Rc<Cell<usize>>,
    /// The first time at which a host can need a lookup though a server is usable, monotonic milliseconds.
    due_ms: u64,
}

/// A server with a host that is resolved while serving.
#[derive(Debug)]
struct Host {
    /// The parameters of its peers.
    server: Server,
    at: UnresolvedHost,
    /// Number of constant peers before it in the configuration.
    position: usize,
    peers: Vec<PeerId>,
    /// Expiry of the addresses, monotonic milliseconds; `None`: there are none yet.
    valid_until_ms: Option<u64>,
    /// One of [`Hosts::lookups`] is for this host.
    is_looked_up: bool,
    /// The earliest time of the next lookup that no request waits for, monotonic milliseconds.
    next_lookup_ms: u64,
}

/// The lookups that one request waits for or has made: the number of the host; `None` once the answer was used.
///
/// `None` for most requests, which look up nothing.
#[derive(Debug, Default)]
pub(crate) struct PendingLookups(Option<BTreeMap<usize, Option<Lookup>>>);

impl ResolvedHosts {
    /// The hosts of servers without addresses, and the peers of the other servers. `None`: no host is to be resolved.
    /// `timeout_ms` limits a lookup; 0: no limit.
    pub(crate) fn new(
        servers: &[Server],
        resolver: Option<&Arc<NameServers>>,
        timeout_ms: u64,
    ) -> Option<(Box<Self>, PeerList)> {
        let is_resolved = |server: &Server| server.unresolved.is_some() && !server.is_down;
        if !servers.iter().any(is_resolved) {
            return None;
        }
        let mut peers = PeerList::default();
        let (mut hosts, mut constant) = (Vec::new(), Vec::new());
        for server in servers {
            let added = server.addresses.iter().map(|addr| peers.add(server, addr));
            constant.extend(added);
            let at = server.unresolved.clone().filter(|_| is_resolved(server));
            hosts.extend(at.map(|at| Host {
                server: server.clone(),
                at,
                position: constant.len(),
                peers: Vec::new(),
                valid_until_ms: None,
                is_looked_up: false,
                next_lookup_ms: 0,
            }));
        }
        peers.set_list(&constant);
        let hosts = Hosts {
            hosts,
            constant,
            lookups: Vec::new(),
            answers: Rc::default(),
            due_ms: 0,
        };
        let resolved = Self {
            hosts: RefCell::new(hosts),
            resolver: resolver.cloned(),
            timeout_ms,
        };
        Some((Box::new(resolved), peers))
    }

    /// Whether a request with a usable server needs none of the other methods now.
    pub(crate) fn is_idle(&self, asked: &PendingLookups, now_ms: u64) -> bool {
        let hosts = self.hosts.borrow();
        asked.is_empty() && now_ms < hosts.due_ms && hosts.answers.get() == 0
    }

    /// Applies the answers that have arrived.
    pub(crate) fn receive(&self, asked: &mut PendingLookups, peers: &Peers, now_ms: u64) {
        let Hosts {
            hosts,
            constant,
            lookups,
            answers,
            due_ms,
        } = &mut *self.hosts.borrow_mut();
        let mut changed = false;
        for (n, lookup) in asked.0.iter_mut().flatten() {
            match lookup.as_ref().and_then(Lookup::answer) {
                Some(Ok(resolved)) => {
                    // A request that has tried servers meanwhile may have an answer older than that of another one.
                    if !hosts[*n].has_newer(&resolved) {
                        changed |= peers.with(|peers| hosts[*n].set_addresses(&resolved, peers));
                    }
                    *lookup = None;
                }
                Some(Err(_)) => hosts[*n].extend_validity(now_ms),
                None => {}
            }
        }
        let is_answered = |(_, lookup): &mut (usize, Lookup)| lookup.is_answered();
        let looked_at = if answers.take() > 0 { lookups.len() } else { 0 };
        for (n, lookup) in lookups.extract_if(..looked_at, is_answered) {
            let host = &mut hosts[n];
            host.is_looked_up = false;
            match lookup.answer() {
                Some(Ok(resolved)) => {
                    changed |= peers.with(|peers| host.set_addresses(&resolved, peers));
                }
                _ => {
                    let next_ms = now_ms.next_multiple_of(LOOKUP_GRID_MS);
                    host.next_lookup_ms = host.next_lookup_ms.max(next_ms);
                    host.extend_validity(now_ms);
                }
            }
            // A request may end before it computes the next time.
            *due_ms = host.due_ms().min(*due_ms);
        }
        if changed {
            peers.with(|peers| peers.set_list(&in_order(hosts, constant)));
        }
    }

    /// Whether an answer is missing that replaces stale addresses.
    pub(crate) fn is_waiting_for_stale(&self, asked: &PendingLookups) -> bool {
        let hosts = &self.hosts.borrow().hosts;
        let mut pending = asked.pending();
        pending.any(|n| hosts[n].valid_until_ms.is_some())
    }

    /// Looks up hosts with stale addresses, once for a request; with `needed` also hosts without addresses.
    pub(crate) fn look_up(
        &self,
        asked: &mut PendingLookups,
        needed: bool,
        now_ms: u64,
        resolve: Resolve<'_>,
    ) {
        for (n, host) in self.hosts.borrow().hosts.iter().enumerate() {
            let wanted = match host.valid_until_ms {
                None => needed,
                Some(until_ms) => until_ms.saturating_add(STALE_MS) <= now_ms,
            };
            if wanted && !asked.has(n) {
                let lookup = resolve(self.resolver.as_ref(), &host.at.name, self.timeout_ms);
                asked.insert(n, lookup);
            }
        }
    }

    /// Looks up hosts without addresses or with expired ones, for later requests. Hosts that this request has looked up itself
    /// are left out, even if their answers have expired already.
    pub(crate) fn refresh(&self, asked: &PendingLookups, now_ms: u64, resolve: Resolve<'_>) {
        let hosts = &mut *self.hosts.borrow_mut();
        for (n, host) in hosts.hosts.iter_mut().enumerate() {
            let is_old = host.valid_until_ms.is_none_or(|until| until <= now_ms);
            let may_look_up = !host.is_looked_up && host.next_lookup_ms <= now_ms;
            if is_old && may_look_up && !asked.has(n) {
                // The exchange is woken once more than it needs.
                let lookup = resolve(self.resolver.as_ref(), &host.at.name, self.timeout_ms);
                lookup.count_in(&hosts.answers);
                hosts.lookups.push((n, lookup));
                host.is_looked_up = true;
                // Hosts that fail are due at one time, so that one request visits them all.
                host.next_lookup_ms = (now_ms + LOOKUP_GRID_MS).next_multiple_of(LOOKUP_GRID_MS);
            }
        }
        hosts.due_ms = hosts.hosts.iter().map(Host::due_ms).min().unwrap_or(0);
    }

    /// The log text of a request without a server because names do not resolve.
    pub(crate) fn error(&self, asked: &PendingLookups) -> Option<String> {
        let hosts = &self.hosts.borrow().hosts;
        asked.iter().find_map(|(n, lookup)| {
            let why = lookup.as_ref()?.answer()?.err()?;
            Some(format!(
                "{} could not be resolved ({why})",
                hosts[*n].at.name
            ))
        })
    }
}

impl PendingLookups {
    /// Adds a lookup.
    pub(crate) fn insert(&mut self, n: usize, lookup: Lookup) {
        self.0.get_or_insert_default().insert(n, Some(lookup));
    }

    /// Whether the request has looked up no host.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn iter(&self) -> impl Iterator<Item = (&usize, &Option<Lookup>)> {
        self.0.iter().flatten()
    }

    /// Takes the answers that have arrived.
    pub(crate) fn take_answers(&mut self) -> Vec<(usize, Result<Resolved, String>)> {
        let all = self.0.iter_mut().flatten();
        let taken = all.filter_map(|(n, lookup)| {
            let answer = lookup.as_ref()?.answer()?;
            *lookup = None;
            Some((*n, answer))
        });
        taken.collect()
    }

    /// Whether the request has looked up a host.
    pub(crate) fn has(&self, n: usize) -> bool {
        (self.0.as_ref()).is_some_and(|all| all.contains_key(&n))
    }

    /// Whether an answer is missing.
    pub(crate) fn is_waiting(&self) -> bool {
        self.pending().next().is_some()
    }

    /// Returns the numbers of hosts without an answer.
    fn pending(&self) -> impl Iterator<Item = usize> {
        let is_pending = |lookup: &Lookup| !lookup.is_answered();
        let pending = self
            .iter()
            .filter(move |(_, lookup)| lookup.as_ref().is_some_and(is_pending));
        pending.map(|(n, _)| *n)
    }
}

impl Host {
    /// The first time at which the host can need a lookup though a server is usable, monotonic milliseconds.
    fn due_ms(&self) -> u64 {
        let stale_ms = (self.valid_until_ms).map_or(u64::MAX, |ms| ms.saturating_add(STALE_MS));
        match self.is_looked_up {
            true => stale_ms,
            false => (self.valid_until_ms.unwrap_or(0))
                .max(self.next_lookup_ms)
                .min(stale_ms),
        }
    }

    /// A lookup has failed: known addresses stay valid, and for [`STALE_MS`] no request waits again.
    fn extend_validity(&mut self, now_ms: u64) {
        if let Some(until_ms) = &mut self.valid_until_ms {
            *until_ms = now_ms.max(*until_ms);
        }
    }

    /// Whether its addresses are valid for longer than these.
    fn has_newer(&self, resolved: &Resolved) -> bool {
        self.valid_until_ms > Some(resolved.valid_until_ms)
    }

    /// Takes the addresses of the host. Peers with unchanged addresses keep their state. Returns whether any address changed.
    fn set_addresses(&mut self, resolved: &Resolved, list: &mut PeerList) -> bool {
        self.valid_until_ms = Some(resolved.valid_until_ms);
        self.next_lookup_ms = 0;
        let known = std::mem::take(&mut self.peers);
        let mut left: Vec<Option<PeerId>> = known.iter().copied().map(Some).collect();
        // A peer that stays keeps its place, since answers have addresses in any order. An address that comes twice makes two
        // peers, as in nginx.
        let mut more = Vec::new();
        for ip in &*resolved.addresses {
            let address = UpstreamAddr::Inet(SocketAddr::new(*ip, self.at.port));
            let has = |id: PeerId| list.get(id).is_some_and(|peer| *peer.addr() == address);
            match left.iter().position(|id| id.is_some_and(has)) {
                Some(at) => left[at] = None,
                None => more.push(address),
            }
        }
        let changed = !more.is_empty() || left.iter().any(Option::is_some);
        let stays = known.iter().zip(&left).filter(|(_, left)| left.is_none());
        self.peers = stays.map(|(id, _)| *id).collect();
        let more = more.iter().map(|addr| list.add(&self.server, addr));
        self.peers.extend(more);
        for gone in left.into_iter().flatten() {
            list.remove(gone);
        }
        changed
    }
}

/// The peers of all servers in the order of the configuration.
fn in_order(hosts: &[Host], constant: &[PeerId]) -> Vec<PeerId> {
    let (mut all, mut taken) = (Vec::new(), 0);
    for host in hosts {
        all.extend(&constant[taken..host.position]);
        all.extend(&host.peers);
        taken = host.position;
    }
    all.extend(&constant[taken..]);
    all
}

/// Time after their expiry during which addresses are used while new ones are looked up, milliseconds. So a busy group never
/// waits, and an idle one does not use an address that may belong to another host by now.
const STALE_MS: u64 = 10_000;
/// Lookups that no request waits for are this far apart at least, and twice as far at most, milliseconds.
const LOOKUP_GRID_MS: u64 = 500;
