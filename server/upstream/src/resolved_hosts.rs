//! Servers whose hosts were not found when the configuration was read, and hosts that one request names.
//!
//! Such a host is asked for when a request could use it: a request waits where it has no other server, else the answer
//! serves those that come after it. Once it is resolved its addresses are followed: when their time is over, the next
//! request asks again and goes on with what is known, unless that is stale by [`STALE_MS`]: then it waits. Addresses stay
//! when a later answer is an error, which also ends the waits for as long. Nothing is asked where no request comes.
//!
//! Absent: sockets and the cache of answers, which are the connector's.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;

use server_base::name_servers::NameServers;

use crate::connector::{Lookup, Resolve, Resolved};
use crate::group::{Server, UnresolvedHost};
use crate::peers::{PeerId, PeerList};
use crate::route::UpstreamAddr;
use crate::shared::Peers;

/// The servers of a group that has some without addresses.
#[derive(Debug)]
pub(crate) struct ResolvedHosts {
    slots: RefCell<Vec<Slot>>,
    resolver: Option<Arc<NameServers>>,
    timeout_ms: u64,
}

/// One server.
#[derive(Debug)]
struct Slot {
    server: Server,
    peers: Vec<PeerId>,
    host: Option<Host>,
}

/// The lookup state of a server's host.
#[derive(Debug)]
struct Host {
    at: UnresolvedHost,
    /// Until when the addresses are valid, monotonic milliseconds; `None`: there are none yet.
    valid_until_ms: Option<u64>,
    /// A question that no request waits for.
    lookup: Option<Lookup>,
    /// When another one may be asked.
    ask_again_ms: u64,
}

/// The questions that one request waits for or has asked: the number of the server, and what came.
#[derive(Debug, Default)]
pub(crate) struct PendingLookups(Vec<(usize, Option<Lookup>)>);

impl ResolvedHosts {
    /// Follows the servers that have no addresses, with the peers of those that have; `None`: all have addresses.
    pub(crate) fn new(
        servers: &[Server],
        resolver: Option<&Arc<NameServers>>,
        timeout_ms: u64,
    ) -> Option<(Box<Self>, PeerList)> {
        if servers.iter().all(|server| server.unresolved.is_none()) {
            return None;
        }
        let mut peers = PeerList::default();
        let slot = |server: &Server| Slot {
            peers: (server.addresses.iter())
                .map(|addr| peers.add(server, addr))
                .collect(),
            host: server.unresolved.clone().map(|at| Host {
                at,
                valid_until_ms: None,
                lookup: None,
                ask_again_ms: 0,
            }),
            server: server.clone(),
        };
        let slots: Vec<Slot> = servers.iter().map(slot).collect();
        set_list(&slots, &mut peers);
        let hosts = Self {
            slots: RefCell::new(slots),
            resolver: resolver.cloned(),
            timeout_ms,
        };
        Some((Box::new(hosts), peers))
    }

    /// Takes the answers that have come.
    pub(crate) fn receive(&self, asked: &mut PendingLookups, peers: &Peers, now_ms: u64) {
        let mut slots = self.slots.borrow_mut();
        let mut changed = false;
        for (n, lookup) in &mut asked.0 {
            match lookup.as_ref().and_then(Lookup::answer) {
                Some(Ok(resolved)) => {
                    changed |= peers.with(|peers| slots[*n].resolved(&resolved, peers));
                    *lookup = None;
                }
                Some(Err(_)) => slots[*n].keep(now_ms),
                None => {}
            }
        }
        for slot in slots.iter_mut() {
            let lookup = slot.host.as_mut().map(|host| &mut host.lookup);
            let Some(lookup) = lookup.filter(|l| l.as_ref().is_some_and(Lookup::is_answered))
            else {
                continue;
            };
            // The pause before the next question was set when this one was asked.
            match lookup.take().and_then(|lookup| lookup.answer()) {
                Some(Ok(resolved)) => {
                    changed |= peers.with(|peers| slot.resolved(&resolved, peers));
                }
                _ => slot.keep(now_ms),
            }
        }
        if changed {
            peers.with(|peers| set_list(&slots, peers));
        }
    }

    /// Asks for hosts with stale addresses, once for a request; with `needed` also for hosts without addresses.
    pub(crate) fn ask(
        &self,
        asked: &mut PendingLookups,
        needed: bool,
        now_ms: u64,
        resolve: Resolve<'_>,
    ) {
        for (n, slot) in self.slots.borrow().iter().enumerate() {
            let Some(host) = slot.host.as_ref().filter(|_| !slot.server.is_down) else {
                continue;
            };
            let wanted = match host.valid_until_ms {
                None => needed,
                Some(until_ms) => until_ms.saturating_add(STALE_MS) <= now_ms,
            };
            if wanted && !asked.has(n) {
                let lookup = resolve(self.resolver.as_ref(), &host.at.name, self.timeout_ms);
                asked.0.push((n, Some(lookup)));
            }
        }
    }

    /// Asks for hosts that have no addresses, or whose addresses are old, without anybody waiting for the answer. Those that
    /// the request has asked for itself are as new as they can be, also where an answer has no time at all.
    pub(crate) fn refresh(&self, asked: &PendingLookups, now_ms: u64, resolve: Resolve<'_>) {
        for (n, slot) in self.slots.borrow_mut().iter_mut().enumerate() {
            let is_idle = slot.server.is_down || asked.has(n);
            let Some(host) = slot.host.as_mut().filter(|_| !is_idle) else {
                continue;
            };
            let is_old = host.valid_until_ms.is_none_or(|until| until <= now_ms);
            if is_old && host.lookup.is_none() && host.ask_again_ms <= now_ms {
                // Its wake is one too many: the exchange has what it needs.
                let lookup = resolve(self.resolver.as_ref(), &host.at.name, self.timeout_ms);
                host.lookup = Some(lookup);
                host.ask_again_ms = now_ms + ASK_AGAIN_MS;
            }
        }
    }

    /// The log text of a request that has no server because names do not resolve.
    pub(crate) fn error(&self, asked: &PendingLookups) -> Option<String> {
        let slots = self.slots.borrow();
        let failed = asked.0.iter().find_map(|(n, lookup)| {
            let why = lookup.as_ref()?.answer()?.err()?;
            Some((slots[*n].host.as_ref()?, why))
        });
        failed.map(|(host, why)| format!("{} could not be resolved ({why})", host.at.name))
    }
}

impl PendingLookups {
    /// Whether the host of a server has been asked for.
    fn has(&self, n: usize) -> bool {
        self.0.iter().any(|(known, _)| *known == n)
    }

    /// Whether an answer is still to come.
    pub(crate) fn is_waiting(&self) -> bool {
        let mut lookups = self.0.iter().filter_map(|(_, lookup)| lookup.as_ref());
        lookups.any(|lookup| !lookup.is_answered())
    }
}

impl Slot {
    /// There is no answer: known addresses serve on, and for a while no request waits again.
    fn keep(&mut self, now_ms: u64) {
        let until_ms = self.host.as_mut().and_then(|h| h.valid_until_ms.as_mut());
        if let Some(until_ms) = until_ms {
            *until_ms = now_ms.max(*until_ms);
        }
    }

    /// Takes the addresses of the host; peers with addresses that stay go on as they were. Returns whether any changed.
    fn resolved(&mut self, resolved: &Resolved, list: &mut PeerList) -> bool {
        let Some(host) = &mut self.host else {
            return false;
        };
        host.valid_until_ms = Some(resolved.valid_until_ms);
        host.ask_again_ms = 0;
        let port = host.at.port;
        let known = std::mem::take(&mut self.peers);
        let mut left: Vec<Option<PeerId>> = known.iter().copied().map(Some).collect();
        // A peer that stays keeps its place; an answer has its addresses in any order. An address that comes twice is two
        // peers, as in nginx.
        let mut more = Vec::new();
        for ip in &*resolved.addresses {
            let address = UpstreamAddr::Inet(SocketAddr::new(*ip, port));
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

/// Puts the peers of all servers into their list.
fn set_list(slots: &[Slot], peers: &mut PeerList) {
    peers.set_list(slots.iter().flat_map(|slot| slot.peers.iter().copied()));
}

/// Time after their expiry that addresses are used while newer ones are asked for, milliseconds. A busy group never waits; an
/// idle one does not use an address that may be another host's by now.
const STALE_MS: u64 = 10_000;
/// The shortest pause between two questions for a host that no request waits for, milliseconds.
const ASK_AGAIN_MS: u64 = 1_000;
