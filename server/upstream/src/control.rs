//! Views and changes of the servers of a shared group, for the API and for metrics.
//!
//! A change is made under the lock of the group's servers, so that no other change comes between its checks and its
//! effect. Absent: the lists themselves ([`crate::members`]), their reading ([`crate::listing`]), and the forms in which
//! views are shown.
//!
//! Source: nginx documentation, `ngx_http_api_module`.

use std::sync::Arc;

use crate::health::active::{CheckCounts, Health};
use crate::members::{Full, Member, MemberId};
use crate::peer::Peer;
use crate::peer_stats::PeerStats;
use crate::route::UpstreamAddr;
use crate::server::Server;
use crate::shared::SharedPeers;

/// A server of a group as it is configured now, or an address of its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerView {
    /// Identifies it in the group.
    pub id: MemberId,
    /// The server of the host, for an address of the host.
    pub parent: Option<MemberId>,
    /// Its parameters. It has one address, or a host.
    pub server: Server,
}

/// An address of a group with its state and counters.
#[derive(Clone, Debug)]
pub struct PeerView {
    /// Identifies it in the group.
    pub id: MemberId,
    /// The address.
    pub addr: UpstreamAddr,
    /// The server as written.
    pub name: Arc<[u8]>,
    /// `service` of its server.
    pub service: Option<Box<str>>,
    /// `backup`.
    pub is_backup: bool,
    /// `weight`.
    pub weight: i64,
    /// `max_conns`; 0: no limit.
    pub max_conns: u64,
    /// Its state.
    pub state: PeerState,
    /// Attempts in progress.
    pub active: u64,
    /// Results of its health checks.
    pub checks: CheckCounts,
    /// Its counters.
    pub stats: PeerStats,
}

/// The state of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// It is used.
    Up,
    /// `down`.
    Down,
    /// `drain`: only requests bound to it are passed to it.
    Draining,
    /// It is left out after failures.
    Unavailable,
    /// It is left out until its first health check.
    Checking,
    /// It is left out after failed health checks.
    Unhealthy,
}

/// A server was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddError {
    /// The group has a server with this address or host.
    Exists,
    /// The group has as many addresses as are allowed.
    Full,
}

/// A server was neither changed nor removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// The group has no server with this number.
    NotFound,
    /// It is an address of a host, which name servers decide.
    Resolved,
}

impl PeerState {
    pub(crate) fn of(peer: &Peer, now_ms: u64) -> Self {
        if peer.is_down {
            return Self::Down;
        }
        match peer.checks().health() {
            Health::Checking => Self::Checking,
            Health::Unhealthy => Self::Unhealthy,
            Health::Up if peer.is_draining => Self::Draining,
            Health::Up if peer.failures().has_failed(now_ms / 1000) => Self::Unavailable,
            Health::Up => Self::Up,
        }
    }

    /// Whether it may be chosen.
    pub fn is_up(self) -> bool {
        self == Self::Up
    }

    /// Returns the name in nginx's API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Draining => "draining",
            Self::Unavailable => "unavail",
            Self::Checking => "checking",
            Self::Unhealthy => "unhealthy",
        }
    }
}

impl SharedPeers {
    /// Adds a server with one address or a host, unless the group has that address or host.
    ///
    /// # Errors
    /// The reason. Nothing was changed.
    pub fn add_unique(&self, server: Server) -> Result<MemberId, AddError> {
        let added = self.with_members(|members, list| {
            let mut known = members.list().iter();
            if known.any(|known| is_same(&known.server, &server)) {
                return Err(AddError::Exists);
            }
            members.add(server, list).map_err(|Full| AddError::Full)
        })?;
        self.changed();
        Ok(added)
    }

    /// Changes a server, at once for all threads.
    ///
    /// # Errors
    /// The reason. Nothing was changed.
    pub fn change(
        &self,
        id: MemberId,
        change: impl FnOnce(&mut Server),
    ) -> Result<(), ChangeError> {
        self.with_members(|members, list| {
            check(members.list(), id)?;
            members.modify(id, list, change);
            Ok(())
        })?;
        self.changed();
        Ok(())
    }

    /// Removes a server, at once for all threads. Its requests in progress go on.
    ///
    /// # Errors
    /// The reason. Nothing was changed.
    pub fn remove_server(&self, id: MemberId) -> Result<(), ChangeError> {
        self.with_members(|members, list| {
            check(members.list(), id)?;
            members.remove(id, list);
            Ok(())
        })?;
        self.changed();
        Ok(())
    }
}

/// Checks that a number is that of a server.
fn check(members: &[Member], id: MemberId) -> Result<(), ChangeError> {
    if members.iter().any(|member| member.id == id) {
        return Ok(());
    }
    let mut children = members.iter().flat_map(|member| &member.peers);
    match children.any(|(child, _)| *child == id) {
        true => Err(ChangeError::Resolved),
        false => Err(ChangeError::NotFound),
    }
}

/// Whether two servers have the same address or host.
fn is_same(one: &Server, other: &Server) -> bool {
    match (&one.unresolved, &other.unresolved) {
        (Some(one), Some(other)) => {
            one.name == other.name && one.port == other.port && one.service == other.service
        }
        (None, None) => one.addresses == other.addresses,
        _ => false,
    }
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
