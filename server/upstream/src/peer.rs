//! One address of a server: its limits, counters and names.

use std::rc::Rc;
use std::sync::Arc;

use crate::health::active::Checks;
use crate::health::passive::Failures;
use crate::peer_stats::PeerStats;
use crate::route::UpstreamAddr;
use crate::server::Server;
use crate::server_id;
use crate::slow_start::SlowStart;
use crate::times::ResponseTimes;
use crate::weights::Weights;

/// One address of a server, and its state.
#[derive(Debug)]
pub struct Peer {
    addr: UpstreamAddr,
    /// The server as written.
    server: Arc<[u8]>,
    pub(crate) is_backup: bool,
    pub(crate) is_down: bool,
    /// Only requests bound to it are passed to it.
    pub(crate) is_draining: bool,
    /// `route`.
    route: Option<Arc<[u8]>>,
    max_conns: u64,
    /// Number of attempts in progress.
    pub(crate) conns: u64,
    pub(crate) failures: Failures,
    pub(crate) checks: Checks,
    pub(crate) weights: Weights,
    pub(crate) slow_start: SlowStart,
    pub(crate) times: ResponseTimes,
    /// Counters, if the group shows them.
    pub(crate) stats: Option<Box<PeerStats>>,
    /// Its number in its list (primary or backup).
    pub(crate) number: u32,
    /// Number of earlier peers at its index.
    pub(crate) life: u32,
}

/// Address and names of a peer, for one thread. They are copies, so that threads share no reference counter.
#[derive(Clone, Debug)]
pub struct SelectedPeer {
    /// The address.
    pub addr: UpstreamAddr,
    /// The address as in `$upstream_addr`.
    pub name: Rc<[u8]>,
    /// The server as written in the configuration, for `$upstream_last_server_name`.
    pub server: Rc<[u8]>,
    /// Its identifier, if requests may be bound to it.
    pub id: Option<Rc<[u8]>>,
}

impl Peer {
    pub(crate) fn new(server: &Server, addr: &UpstreamAddr, life: u32) -> Self {
        Self {
            addr: addr.clone(),
            server: Arc::clone(&server.name),
            is_backup: server.is_backup,
            is_down: server.is_down,
            is_draining: server.is_draining,
            route: server.route.clone(),
            max_conns: server.max_conns,
            conns: 0,
            failures: Failures::new(server.max_fails, server.fail_timeout_s),
            checks: Checks::default(),
            weights: Weights::new(server.weight),
            slow_start: SlowStart::new(server.slow_start_ms),
            times: ResponseTimes::default(),
            stats: None,
            number: 0,
            life,
        }
    }

    /// Sets the parameters of a server; counters stay.
    pub(crate) fn set_server(&mut self, server: &Server) {
        self.server = Arc::clone(&server.name);
        self.is_backup = server.is_backup;
        self.is_down = server.is_down;
        self.is_draining = server.is_draining;
        self.route.clone_from(&server.route);
        self.max_conns = server.max_conns;
        (self.failures).set_limits(server.max_fails, server.fail_timeout_s);
        self.weights.set(server.weight);
        self.slow_start.set_length(server.slow_start_ms);
    }

    /// Returns the address.
    pub fn addr(&self) -> &UpstreamAddr {
        &self.addr
    }

    /// Returns the server as written, or the name of its address in a service.
    pub fn server(&self) -> &Arc<[u8]> {
        &self.server
    }

    /// Returns the response times, if the method of the group reads them.
    pub fn times(&self) -> &ResponseTimes {
        &self.times
    }

    /// Returns the failures so far.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Whether the server is marked `down`.
    pub fn is_down(&self) -> bool {
        self.is_down
    }

    /// Returns the results of health checks so far.
    pub fn checks(&self) -> &Checks {
        &self.checks
    }

    /// Has its time without service begin or end now, if its state requires it. A `down` server has none. `now_ms` is
    /// monotonic.
    pub(crate) fn settle_downtime(&mut self, now_ms: u64) {
        let Some(stats) = self.stats.as_deref_mut() else {
            return;
        };
        if self.is_down {
            stats.up(now_ms);
        } else if self.checks.is_out() {
            stats.down(now_ms);
        } else if !self.failures.is_at_limit() {
            // After `max_fails` failures, the next choice ends it.
            stats.up(now_ms);
        }
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.max_conns > 0 && self.conns >= self.max_conns
    }

    /// Whether it may be chosen, unless its failures exclude it.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        !self.is_down && !self.is_full() && !self.checks.is_out()
    }

    /// Whether it takes part in the choice for a request that is bound to no server.
    #[inline]
    pub(crate) fn is_usable(&self, now_s: u64) -> bool {
        !self.is_draining && !self.slow_start.is_held() && self.is_usable_if_bound(now_s)
    }

    /// Whether it may be chosen for a request that is bound to it.
    #[inline]
    pub(crate) fn is_usable_if_bound(&self, now_s: u64) -> bool {
        self.is_open() && !self.failures.has_failed(now_s)
    }

    /// Whether it may get another attempt of a request that has a connection to it. Failures of a `single` peer do not
    /// count.
    pub(crate) fn may_stay(&self, single: bool, now_s: u64) -> bool {
        !self.is_down && !self.checks.is_out() && (single || !self.failures.has_failed(now_s))
    }
}

impl Peer {
    /// Returns the identifier that binds requests to it: its route, or the hash of its address.
    pub fn server_id(&self) -> Vec<u8> {
        match &self.route {
            Some(route) => route.to_vec(),
            None => server_id::hash_of(&self.addr),
        }
    }
}

impl SelectedPeer {
    /// Copies a peer's names, without its identifier.
    pub fn of(peer: &Peer) -> Self {
        let addr = peer.addr.duplicate();
        Self {
            name: addr.name().into(),
            addr,
            server: Rc::from(&*peer.server),
            id: None,
        }
    }
}
