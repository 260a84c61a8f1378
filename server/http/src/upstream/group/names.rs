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
use std::rc::Rc;
use std::sync::Arc;

use server_base::name_servers::NameServers;
use server_upstream::connector::{Lookup, Resolved};
use server_upstream::route::UpstreamAddr;

use super::conf::{Server, UnresolvedHost};
use super::peers::{Peer, Peers};
use crate::exchange::{Ctx, Exchange};

/// The servers of a group that has some without addresses.
#[derive(Debug)]
pub(super) struct Followed {
    slots: RefCell<Vec<Slot>>,
    resolver: Option<Arc<NameServers>>,
    timeout_ms: u64,
}

/// One server.
#[derive(Debug)]
struct Slot {
    server: Server,
    peers: Vec<Rc<Peer>>,
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
pub(super) struct PendingLookups(Vec<(usize, Option<Lookup>)>);

impl Followed {
    /// Follows the servers that have no addresses; `None` where all have.
    pub(super) fn new(
        servers: &[Server],
        resolver: Option<&Arc<NameServers>>,
        timeout_ms: u64,
    ) -> Option<Box<Self>> {
        if servers.iter().all(|server| server.unresolved.is_none()) {
            return None;
        }
        let slot = |server: &Server| Slot {
            peers: server
                .addresses
                .iter()
                .map(|addr| Peer::new(server, addr))
                .collect(),
            host: server.unresolved.clone().map(|at| Host {
                at,
                valid_until_ms: None,
                lookup: None,
                ask_again_ms: 0,
            }),
            server: server.clone(),
        };
        Some(Box::new(Self {
            slots: RefCell::new(servers.iter().map(slot).collect()),
            resolver: resolver.cloned(),
            timeout_ms,
        }))
    }

    /// The peers of the servers that have addresses.
    pub(super) fn peers(&self) -> Peers {
        let peers = Peers::default();
        self.fill(&peers);
        peers
    }

    /// Puts the peers into the lists of a group.
    fn fill(&self, peers: &Peers) {
        let slots = self.slots.borrow();
        for (list, is_backup) in [(&peers.primary, false), (&peers.backup, true)] {
            let of_list = slots.iter().filter(|s| s.server.is_backup == is_backup);
            let all = of_list.flat_map(|slot| slot.peers.iter().cloned());
            *list.borrow_mut() = all.collect();
        }
        peers.changes.set(peers.changes.get().wrapping_add(1));
    }

    /// Takes the answers that have come.
    pub(super) fn receive(&self, asked: &mut PendingLookups, peers: &Peers, now_ms: u64) {
        let mut slots = self.slots.borrow_mut();
        let mut changed = false;
        for (n, lookup) in &mut asked.0 {
            match lookup.as_ref().and_then(Lookup::answer) {
                Some(Ok(resolved)) => {
                    changed |= slots[*n].resolved(&resolved);
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
                Some(Ok(resolved)) => changed |= slot.resolved(&resolved),
                _ => slot.keep(now_ms),
            }
        }
        drop(slots);
        if changed {
            self.fill(peers);
        }
    }

    /// Asks for all hosts, once for a request, that it cannot do without: those whose addresses are stale, and with
    /// `needed` those that have none.
    pub(super) fn ask(
        &self,
        asked: &mut PendingLookups,
        needed: bool,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
    ) {
        let now_ms = cx.clock.mono_ms;
        for (n, slot) in self.slots.borrow().iter().enumerate() {
            let Some(host) = slot.host.as_ref().filter(|_| !slot.server.is_down) else {
                continue;
            };
            let wanted = match host.valid_until_ms {
                None => needed,
                Some(until_ms) => until_ms.saturating_add(STALE_MS) <= now_ms,
            };
            if wanted && !asked.has(n) {
                let waker = x.waker(cx);
                let (by, timeout_ms) = (self.resolver.as_ref(), self.timeout_ms);
                let lookup = cx.connector.resolve(by, &host.at.name, timeout_ms, waker);
                asked.0.push((n, Some(lookup)));
            }
        }
    }

    /// Asks for hosts that have no addresses, or whose addresses are old, without anybody waiting for the answer. Those that
    /// the request has asked for itself are as new as they can be, also where an answer has no time at all.
    pub(super) fn refresh(&self, asked: &PendingLookups, x: &mut Exchange, cx: &mut Ctx<'_>) {
        let now_ms = cx.clock.mono_ms;
        for (n, slot) in self.slots.borrow_mut().iter_mut().enumerate() {
            let is_idle = slot.server.is_down || asked.has(n);
            let Some(host) = slot.host.as_mut().filter(|_| !is_idle) else {
                continue;
            };
            let is_old = host.valid_until_ms.is_none_or(|until| until <= now_ms);
            if is_old && host.lookup.is_none() && host.ask_again_ms <= now_ms {
                // Its wake is one too many: the exchange has what it needs.
                let waker = x.waker(cx);
                let (by, timeout_ms) = (self.resolver.as_ref(), self.timeout_ms);
                host.lookup = Some(cx.connector.resolve(by, &host.at.name, timeout_ms, waker));
                host.ask_again_ms = now_ms + ASK_AGAIN_MS;
            }
        }
    }

    /// The log text of a request that has no server because names do not resolve.
    pub(super) fn error(&self, asked: &PendingLookups) -> Option<String> {
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
    pub(super) fn is_waiting(&self) -> bool {
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

    /// Takes the addresses of the host; peers whose addresses stay go on as they were. Returns whether any changed.
    fn resolved(&mut self, resolved: &Resolved) -> bool {
        let Some(host) = &mut self.host else {
            return false;
        };
        host.valid_until_ms = Some(resolved.valid_until_ms);
        host.ask_again_ms = 0;
        let port = host.at.port;
        let known = std::mem::take(&mut self.peers);
        let mut left: Vec<Option<Rc<Peer>>> = known.iter().cloned().map(Some).collect();
        let mut more = Vec::new();
        // What stays keeps its place and what is known of it; an answer has its addresses in any order. An address that
        // comes twice is two peers, as in nginx.
        let mut stay = vec![false; left.len()];
        for ip in &*resolved.addresses {
            let address = UpstreamAddr::Inet(SocketAddr::new(*ip, port));
            let is_same =
                |peer: &Option<Rc<Peer>>| peer.as_ref().is_some_and(|p| p.addr == address);
            match left.iter().position(is_same) {
                Some(at) => (left[at], stay[at]) = (None, true),
                None => more.push(Peer::new(&self.server, &address)),
            }
        }
        let stays = known.iter().zip(stay).filter(|(_, stays)| *stays);
        self.peers = stays.map(|(peer, _)| Rc::clone(peer)).chain(more).collect();
        let same = |(a, b): (&Rc<Peer>, &Rc<Peer>)| Rc::ptr_eq(a, b);
        self.peers.len() != known.len() || !self.peers.iter().zip(&known).all(same)
    }
}

/// Time after their expiry that addresses are used while newer ones are asked for, milliseconds: a busy group never
/// waits, one that was idle does not use what may be another's by now.
const STALE_MS: u64 = 10_000;
/// The shortest pause between two questions for a host that no request waits for, milliseconds.
const ASK_AGAIN_MS: u64 = 1_000;
