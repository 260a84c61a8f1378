//! One address of a server: its limits, counters and names.

use std::rc::Rc;
use std::sync::Arc;

use crate::health::active::Checks;
use crate::health::passive::Failures;
use crate::route::UpstreamAddr;
use crate::server::Server;
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
    max_conns: u64,
    /// Number of attempts in progress.
    pub(crate) conns: u64,
    pub(crate) failures: Failures,
    pub(crate) checks: Checks,
    pub(crate) weights: Weights,
    pub(crate) times: ResponseTimes,
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
}

impl Peer {
    pub(crate) fn new(server: &Server, addr: &UpstreamAddr, life: u32) -> Self {
        Self {
            addr: addr.clone(),
            server: Arc::clone(&server.name),
            is_backup: server.is_backup,
            is_down: server.is_down,
            max_conns: server.max_conns,
            conns: 0,
            failures: Failures::new(server.max_fails, server.fail_timeout_s),
            checks: Checks::default(),
            weights: Weights::new(server.weight),
            times: ResponseTimes::default(),
            number: 0,
            life,
        }
    }

    /// Sets the parameters of a server; counters stay.
    pub(crate) fn set_server(&mut self, server: &Server) {
        self.server = Arc::clone(&server.name);
        self.is_backup = server.is_backup;
        self.is_down = server.is_down;
        self.max_conns = server.max_conns;
        (self.failures).set_limits(server.max_fails, server.fail_timeout_s);
        self.weights.set(server.weight);
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

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.max_conns > 0 && self.conns >= self.max_conns
    }

    /// Whether it may be chosen, unless its failures exclude it.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        !self.is_down && !self.is_full() && !self.checks.is_out()
    }

    /// Whether it may be chosen now.
    #[inline]
    pub(crate) fn is_usable(&self, now_s: u64) -> bool {
        self.is_open() && !self.failures.has_failed(now_s)
    }
}

impl SelectedPeer {
    /// Copies a peer's names.
    pub fn of(peer: &Peer) -> Self {
        let addr = peer.addr.duplicate();
        let name = match &addr {
            UpstreamAddr::Unix(path) => [b"unix:", &**path].concat(),
            UpstreamAddr::Inet(addr) => addr.to_string().into_bytes(),
        };
        Self {
            addr,
            name: name.into(),
            server: Rc::from(&*peer.server),
        }
    }
}
