//! A waiter for an answer: a caller's lookup, or the lookup of one host of a service.

use super::event::Failure;
use super::service::Hosts;
use super::slab::Key;

use core::net::IpAddr;

use fastrand::Rng;

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) role: Role,
    pub(super) stage: Wait,
    /// Aliases that were followed.
    pub(super) aliases: usize,
    /// When it has waited long enough.
    pub(super) deadline_ms: Option<u64>,
    /// Time limit of the wait; 0: none.
    pub(super) timeout_ms: u64,
    /// Numbers to choose by.
    pub(super) random: Rng,
}

/// Owner of the lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The caller's.
    Asker,
    /// Another waiter's lookup, for one of its hosts.
    Host { of: Key, index: usize },
}

/// Question that it waits for.
#[derive(Debug)]
pub(super) enum Wait {
    /// Not attached to a question yet; only within the call that made it.
    Nothing,
    /// The answer to the question of this entry.
    Entry(Key),
    /// The addresses of the hosts that offer a service.
    Hosts(Hosts),
}

/// The addresses of a host, or why there are none.
pub(super) type HostResult = Result<Vec<IpAddr>, Failure>;
