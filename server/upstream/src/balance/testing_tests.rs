//! Servers and requests for tests of methods, and a plain model of nginx's state of peers.

use std::sync::Arc;

use super::{Method, PickKey};
use crate::health::passive::Failures;
use crate::peers::{PeerId, PeerList, TriedPeers};
use crate::route::UpstreamAddr;
use crate::server::Server;

/// A server with this port as its number.
pub(super) fn server(port: u16, weight: i64) -> Server {
    Server {
        name: Arc::from(format!("127.0.0.1:{port}").as_bytes()),
        addresses: vec![UpstreamAddr::Inet(([127, 0, 0, 1], port).into())],
        weight,
        ..Server::new()
    }
}

/// Servers with ports from 8081 and these weights.
pub(super) fn servers(weights: &[i64]) -> Vec<Server> {
    (8081..)
        .zip(weights)
        .map(|(port, weight)| server(port, *weight))
        .collect()
}

/// A server with random parameters.
pub(super) fn any_server(rng: &mut fastrand::Rng, port: u16) -> Server {
    Server {
        weight: [1, 1, 1, 2, 5, rng.i64(1..100)][rng.usize(..6)],
        max_conns: [0, 0, 0, 3][rng.usize(..4)],
        max_fails: [0, 1, 1, 3][rng.usize(..4)],
        fail_timeout_s: rng.u64(..5),
        is_down: rng.u8(..10) == 0,
        ..server(port, 1)
    }
}

/// Peers of these servers with a method.
pub(super) fn peers(servers: &[Server], method: &dyn Method) -> PeerList {
    method.prepare(servers);
    let mut peers = PeerList::of(servers);
    drop(peers.set_method(Some(method)));
    peers
}

/// Returns the port of a peer.
pub(super) fn port(peers: &PeerList, id: PeerId) -> u16 {
    match peers.get(id).map(|peer| peer.addr()) {
        Some(UpstreamAddr::Inet(addr)) => addr.port(),
        _ => 0,
    }
}

/// A key of these bytes.
pub(super) fn key(bytes: &[u8]) -> PickKey {
    PickKey {
        bytes: bytes.to_vec(),
        ..PickKey::default()
    }
}

/// Chooses a peer for a new request with this key. It ends at once with success.
pub(super) fn pick(peers: &mut PeerList, key: &PickKey) -> u16 {
    let id = peers.pick(&mut TriedPeers::default(), key, NOW_MS);
    let id = id.expect("a server is usable");
    peers.release(id);
    port(peers, id)
}

/// The ports that one request tries, if all servers fail without being excluded.
pub(super) fn tried(peers: &mut PeerList, key: &PickKey) -> String {
    let mut state = TriedPeers::default();
    let mut ports = Vec::new();
    while let Some(id) = peers.pick(&mut state, key, NOW_MS) {
        peers.release(id);
        ports.push(port(peers, id).to_string());
    }
    ports.join(" ")
}

/// The time of all choices, monotonic milliseconds.
pub(super) const NOW_MS: u64 = 1_000_000;
/// The number of choices that are compared with a formula.
pub(super) const PICKS: usize = 100_000;

/// The state of one peer in the model.
pub(super) struct ModelPeer {
    pub(super) server: Server,
    pub(super) effective: i64,
    pub(super) current: i64,
    pub(super) conns: u64,
    pub(super) failures: Failures,
}

/// A plain model of a list of peers.
pub(super) struct Model(pub(super) Vec<ModelPeer>);

impl Model {
    pub(super) fn of(servers: &[Server]) -> Self {
        let peers = servers.iter().map(|server| ModelPeer {
            effective: server.weight,
            current: 0,
            conns: 0,
            failures: Failures::new(server.max_fails, server.fail_timeout_s),
            server: server.clone(),
        });
        Self(peers.collect())
    }

    /// The peers that may be chosen.
    pub(super) fn usable(&self, tried: &[usize], now_s: u64) -> Vec<usize> {
        let is_usable = |n: &usize| {
            let ModelPeer {
                server,
                conns,
                failures,
                ..
            } = &self.0[*n];
            let is_full = server.max_conns > 0 && *conns >= server.max_conns;
            !tried.contains(n) && !server.is_down && !is_full && !failures.has_failed(now_s)
        };
        (0..self.0.len()).filter(is_usable).collect()
    }

    /// Of these peers, the one with the least load for its weight; equal ones take turns.
    pub(super) fn least(
        &mut self,
        usable: &[usize],
        load: impl Fn(&ModelPeer, usize) -> u64,
    ) -> Option<usize> {
        let ratio = |n: usize| load(&self.0[n], n) as f64 / self.0[n].server.weight as f64;
        let least = usable
            .iter()
            .map(|n| ratio(*n))
            .fold(f64::INFINITY, f64::min);
        // Loads and weights of tests are small: equal ratios differ by rounding alone.
        let is_least = |n: &&usize| ratio(**n) <= least * (1.0 + 1e-12);
        let equal: Vec<usize> = usable.iter().filter(is_least).copied().collect();
        match equal.len() {
            1 => Some(equal[0]),
            _ => self.turn(&equal),
        }
    }

    /// Smooth weighted round robin among these peers.
    pub(super) fn turn(&mut self, among: &[usize]) -> Option<usize> {
        let mut best: Option<usize> = None;
        let mut total = 0;
        for n in among {
            let peer = &mut self.0[*n];
            peer.current += peer.effective;
            total += peer.effective;
            peer.effective += i64::from(peer.effective < peer.server.weight);
            if best.is_none_or(|best| self.0[*n].current > self.0[best].current) {
                best = Some(*n);
            }
        }
        self.0[best?].current -= total;
        best
    }

    /// Counts an attempt with a chosen peer.
    pub(super) fn begin(&mut self, n: usize, now_s: u64) {
        self.0[n].conns += 1;
        self.0[n].failures.chosen(now_s);
    }

    /// Counts a failure.
    pub(super) fn fail(&mut self, n: usize, now_s: u64) {
        let peer = &mut self.0[n];
        peer.failures.fail(now_s);
        if let Some(cost) = peer.server.weight.checked_div(peer.server.max_fails as i64) {
            peer.effective = (peer.effective - cost).max(0);
        }
    }
}
