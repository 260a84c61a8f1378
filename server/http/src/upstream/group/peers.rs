//! The servers of a group as one thread knows them, and the choice among them: weighted round robin.
//!
//! Each choice adds to every usable peer its effective weight; the peer with the largest sum is chosen and reduced by
//! the total. A failure lowers the effective weight, each choice raises it by one up to the weight. Peers that failed
//! as often as they may are left out until `fail_timeout` is over; a success after that makes them good again. Backup
//! servers are used where no other is usable. A group of one address has no choice, so its failures do not count.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`; nginx's behaviour.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use server_upstream::route::UpstreamAddr;

use super::conf::Server;

/// One address of a server, and how it fares.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) addr: UpstreamAddr,
    /// As `$upstream_addr` shows it.
    pub(super) name: Rc<[u8]>,
    /// The server as it is written.
    pub(super) server: Rc<[u8]>,
    weight: i64,
    max_conns: u64,
    max_fails: u64,
    fail_timeout_s: u64,
    is_down: bool,
    effective_weight: Cell<i64>,
    current_weight: Cell<i64>,
    /// Attempts that have it now.
    conns: Cell<u64>,
    fails: Cell<u64>,
    /// When it failed last, seconds.
    failed_s: Cell<u64>,
    /// Since when its failures count, seconds.
    checked_s: Cell<u64>,
}

/// All peers of a group.
#[derive(Debug, Default)]
pub(super) struct Peers {
    pub(super) primary: RefCell<Vec<Rc<Peer>>>,
    pub(super) backup: RefCell<Vec<Rc<Peer>>>,
    /// Counts changes of the lists, to which marks in [`Tried`] refer by number.
    pub(super) changes: Cell<u32>,
}

/// The peers that one request has tried, as numbers in one list.
#[derive(Debug, Default)]
pub(super) struct Tried {
    first: u64,
    more: Vec<u64>,
}

impl Tried {
    fn has(&self, n: usize) -> bool {
        let word = match n / 64 {
            0 => Some(&self.first),
            at => self.more.get(at - 1),
        };
        word.is_some_and(|word| word >> (n % 64) & 1 == 1)
    }

    fn add(&mut self, n: usize) {
        let word = match n / 64 {
            0 => &mut self.first,
            at => {
                if self.more.len() < at {
                    self.more.resize(at, 0);
                }
                &mut self.more[at - 1]
            }
        };
        *word |= 1 << (n % 64);
    }
}

impl Peer {
    /// The peer of one address. Its names are copies, so that threads share no counter of references.
    pub(super) fn new(server: &Server, addr: &UpstreamAddr) -> Rc<Self> {
        let addr = match addr {
            UpstreamAddr::Inet(addr) => UpstreamAddr::Inet(*addr),
            UpstreamAddr::Unix(path) => UpstreamAddr::Unix(Arc::from(&**path)),
        };
        let name = match &addr {
            UpstreamAddr::Unix(path) => [b"unix:", &**path].concat(),
            UpstreamAddr::Inet(addr) => addr.to_string().into_bytes(),
        };
        Rc::new(Self {
            addr,
            name: name.into(),
            server: Rc::from(&*server.name),
            weight: server.weight,
            max_conns: server.max_conns,
            max_fails: server.max_fails,
            fail_timeout_s: server.fail_timeout_s,
            is_down: server.is_down,
            effective_weight: Cell::new(server.weight),
            current_weight: Cell::new(0),
            conns: Cell::new(0),
            fails: Cell::new(0),
            failed_s: Cell::new(0),
            checked_s: Cell::new(0),
        })
    }

    fn is_full(&self) -> bool {
        self.max_conns > 0 && self.conns.get() >= self.max_conns
    }

    fn has_failed(&self, now_s: u64) -> bool {
        self.max_fails > 0
            && self.fails.get() >= self.max_fails
            && now_s - self.checked_s.get() <= self.fail_timeout_s
    }

    /// Takes a place among `max_conns`.
    pub(super) fn take(&self) {
        self.conns.set(self.conns.get() + 1);
    }

    /// Releases the place.
    pub(super) fn give_back(&self) {
        self.conns.set(self.conns.get() - 1);
    }

    /// Counts a failure; returns whether the peer is left out from now on.
    pub(super) fn fail(&self, now_s: u64) -> bool {
        self.fails.set(self.fails.get() + 1);
        self.failed_s.set(now_s);
        self.checked_s.set(now_s);
        if self.max_fails == 0 {
            return false;
        }
        // A limit beyond all weights costs none.
        let cost = self.weight / i64::try_from(self.max_fails).unwrap_or(i64::MAX);
        self.effective_weight
            .set((self.effective_weight.get() - cost).max(0));
        self.fails.get() >= self.max_fails
    }

    /// Counts an answer, which makes good what failed before the last check.
    pub(super) fn succeed(&self) {
        if self.failed_s.get() < self.checked_s.get() {
            self.fails.set(0);
        }
    }

    /// Forgets its failures.
    pub(super) fn forgive(&self) {
        self.fails.set(0);
    }
}

impl Peers {
    /// The peers of these servers.
    pub(super) fn new(servers: &[Server]) -> Self {
        let peers = Self::default();
        for server in servers {
            let list = match server.is_backup {
                true => &peers.backup,
                false => &peers.primary,
            };
            let mut list = list.borrow_mut();
            list.extend(server.addresses.iter().map(|addr| Peer::new(server, addr)));
        }
        peers
    }

    /// Maximum number of attempts of a request: one for each peer that is not down.
    pub(super) fn tries(&self) -> usize {
        let up = |list: &RefCell<Vec<Rc<Peer>>>| {
            let list = list.borrow();
            list.iter().filter(|peer| !peer.is_down).count()
        };
        up(&self.primary) + up(&self.backup)
    }

    /// Whether there is no choice.
    pub(super) fn is_single(&self) -> bool {
        self.primary.borrow().len() == 1 && self.backup.borrow().is_empty()
    }

    /// Whether there is no peer at all.
    pub(super) fn is_empty(&self) -> bool {
        self.primary.borrow().is_empty() && self.backup.borrow().is_empty()
    }

    /// The peer of a group that has one, if it may be used.
    pub(super) fn single(&self) -> Option<Rc<Peer>> {
        let list = self.primary.borrow();
        let peer = list.first()?;
        (!peer.is_down && !peer.is_full()).then(|| Rc::clone(peer))
    }
}

/// Chooses among the peers of a list that were not tried, and marks the choice.
pub(super) fn choose(list: &[Rc<Peer>], tried: &mut Tried, now_s: u64) -> Option<Rc<Peer>> {
    let mut best: Option<(usize, &Rc<Peer>)> = None;
    let mut total = 0;
    for (n, peer) in list.iter().enumerate() {
        if tried.has(n) || peer.is_down || peer.has_failed(now_s) || peer.is_full() {
            continue;
        }
        let effective = peer.effective_weight.get();
        peer.current_weight
            .set(peer.current_weight.get() + effective);
        total += effective;
        if effective < peer.weight {
            peer.effective_weight.set(effective + 1);
        }
        if best.is_none_or(|(_, best)| peer.current_weight.get() > best.current_weight.get()) {
            best = Some((n, peer));
        }
    }
    let (n, best) = best?;
    best.current_weight.set(best.current_weight.get() - total);
    tried.add(n);
    if now_s - best.checked_s.get() > best.fail_timeout_s {
        best.checked_s.set(now_s);
    }
    Some(Rc::clone(best))
}

#[cfg(test)]
#[path = "peers_tests.rs"]
mod tests;
