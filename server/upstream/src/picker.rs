//! The choice of servers for one request.
//!
//! A [`Picker`] tries each server of a group at most once; the server of a group that has one address any number of times. A
//! name without addresses is looked up first, and the request waits.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`.

use std::rc::Rc;

use crate::connector::Resolve;
use crate::group::Keepalive;
use crate::local::LocalGroup;
use crate::peer::SelectedPeer;
use crate::peers::{PeerId, TriedPeers};
use crate::pool;
use crate::resolved_hosts::PendingLookups;
use crate::route::Pool;

/// The result of [`Picker::pick`].
#[derive(Debug)]
pub enum Pick {
    /// A server.
    Selected(SelectedPeer),
    /// None is alive and free ("no live upstreams").
    None,
    /// Names are being resolved; the waker of the lookup wakes.
    Wait,
    /// The name does not resolve: the text for the log.
    Unresolved(String),
}

/// How an attempt ended, as the group counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server has answered.
    Alive,
    /// The attempt failed in a way that counts against the server.
    Failed,
    /// Another server is to be tried, but this one is not to blame (`http_403`, `http_404`).
    Next,
}

/// Chooses servers for one request.
#[derive(Debug)]
pub struct Picker {
    group: Rc<LocalGroup>,
    /// Its place among `max_conns` is taken.
    current: Option<PeerId>,
    /// The group had no choice when `current` was chosen.
    is_single: bool,
    tried: TriedPeers,
    asked: PendingLookups,
}

impl Picker {
    /// For a request to this group.
    pub fn new(group: Rc<LocalGroup>) -> Self {
        Self {
            group,
            current: None,
            is_single: false,
            tried: TriedPeers::default(),
            asked: PendingLookups::default(),
        }
    }

    /// Maximum number of attempts, as nginx counts them (`pc->tries`); known once a server was chosen, since names may
    /// have to be resolved before.
    pub fn tries(&self) -> u32 {
        let tries = self.group.peers.with(|peers| peers.tries());
        u32::try_from(tries).unwrap_or(u32::MAX)
    }

    /// Chooses a server. Its place among `max_conns` is released by [`Picker::finish`] or on drop. `now_ms` is monotonic.
    pub fn pick(&mut self, now_ms: u64, resolve: Resolve<'_>) -> Pick {
        self.release();
        if self.group.hosts.is_none() {
            return self.choose(now_ms).map_or(Pick::None, Pick::Selected);
        }
        let group = Rc::clone(&self.group);
        let Some(hosts) = &group.hosts else {
            return Pick::None;
        };
        if hosts.is_idle(&self.asked, now_ms)
            && let Some(chosen) = self.choose(now_ms)
        {
            return Pick::Selected(chosen);
        }
        // First without waiting, if the known addresses are not stale; then with all hosts.
        for needed in [false, true] {
            hosts.look_up(&mut self.asked, needed, now_ms, resolve);
            hosts.receive(&mut self.asked, &group.peers, now_ms);
            if self.asked.is_waiting() {
                return Pick::Wait;
            }
            if let Some(chosen) = self.choose(now_ms) {
                hosts.refresh(&self.asked, now_ms, resolve);
                return Pick::Selected(chosen);
            }
        }
        let error = hosts.error(&self.asked);
        let is_empty = group.peers.with(|peers| peers.is_empty());
        match error.filter(|_| is_empty) {
            Some(error) => Pick::Unresolved(error),
            None => Pick::None,
        }
    }

    /// The attempt with the server that was chosen last has ended. Returns whether that server is now left out for a while,
    /// which the caller logs ("upstream server temporarily disabled").
    #[inline]
    pub fn finish(&mut self, now_ms: u64, outcome: Outcome) -> bool {
        let Some(peer) = self.current.take() else {
            return false;
        };
        self.group.peers.with(|peers| {
            peers.release(peer);
            if self.is_single {
                peers.reset_failures(peer);
                return false;
            }
            if outcome == Outcome::Failed {
                return peers.fail(peer, seconds(now_ms));
            }
            peers.succeed(peer);
            false
        })
    }

    /// The name of the group, or the host that is resolved: for logs, `$proxy_host`-like variables and pools.
    pub fn name(&self) -> &[u8] {
        &self.group.name
    }

    /// Whether the group keeps idle connections.
    pub fn has_pool(&self) -> bool {
        self.group.keepalive.is_some()
    }

    /// The pool of idle connections of the group, if it keeps any. `place` is a digest of the location that passes the request on,
    /// and is computed only if locations do not share connections.
    pub fn pool(&self, place: impl FnOnce() -> u64) -> Option<Pool> {
        let keepalive: &Keepalive = self.group.keepalive.as_ref()?;
        Some(pool::pool(self.group.digest, keepalive, place))
    }

    fn choose(&mut self, now_ms: u64) -> Option<SelectedPeer> {
        // All under one lock: another thread may remove the peer of a shared list.
        let (id, is_single, selected) = self.group.peers.with(|peers| {
            let id = peers.pick(&mut self.tried, seconds(now_ms))?;
            Some((id, peers.is_single(), self.group.selected(peers, id)?))
        })?;
        (self.current, self.is_single) = (Some(id), is_single);
        Some(selected)
    }

    #[inline]
    fn release(&mut self) {
        if let Some(peer) = self.current.take() {
            self.group.peers.with(|peers| peers.release(peer));
        }
    }
}

impl Drop for Picker {
    fn drop(&mut self) {
        self.release();
    }
}

/// Failures are counted in whole seconds, as in nginx.
fn seconds(ms: u64) -> u64 {
    ms / 1000
}

#[cfg(test)]
#[path = "picker_tests.rs"]
mod tests;
