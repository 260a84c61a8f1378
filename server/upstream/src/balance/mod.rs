//! Methods of choosing a server of a group, one file each.
//!
//! A [`Method`] is a setting of the configuration. For each list of peers it makes a [`Balance`], which chooses among
//! [`Candidates`]. Without a method, servers take turns ([`round_robin`]). Primary and backup servers are two lists.
//!
//! Absent: limits and failures of peers ([`crate::peer`]), and the groups ([`crate::peers`]).
//!
//! Source: nginx documentation, `ngx_http_upstream_module`.

pub mod hash;
pub mod ip_hash;
pub mod ketama;
pub mod least_conn;
pub mod least_time;
mod list;
pub mod random;
mod ranges;
pub mod round_robin;
#[cfg(test)]
#[path = "testing_tests.rs"]
mod testing;
mod tournament;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

pub(crate) use list::List;
use round_robin::{RoundRobin, TriedNumbers};

use crate::peer::Peer;
use crate::server::Server;

/// A method in the configuration.
pub trait Method: fmt::Debug + Send + Sync {
    /// Returns the name of its directive.
    fn name(&self) -> &'static str;

    /// Whether `server` may have `backup` and `slow_start`. Backup servers of other methods take turns.
    fn allows_backup(&self) -> bool {
        true
    }

    /// Returns the response times that its choices read.
    fn measures(&self) -> Measures {
        Measures::Nothing
    }

    /// Does work for the configured servers in advance, at the end of the load.
    fn prepare(&self, servers: &[Server]) {
        let _ = servers;
    }

    /// Makes the state for one list of peers.
    fn make(&self) -> Box<dyn Balance>;

    /// Makes the state for a list with an older state, which may be that of another method.
    fn make_after(&self, before: &dyn Balance) -> Box<dyn Balance> {
        let _ = before;
        self.make()
    }
}

/// Response times that a method reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measures {
    /// None.
    #[default]
    Nothing,
    /// Averages of finished attempts.
    Finished,
    /// Averages, and attempts in progress until their response heads.
    UntilHead,
    /// Averages, and attempts in progress until their ends.
    UntilEnd,
}

/// A method's state for one list of peers.
pub trait Balance: fmt::Debug + Send {
    /// Reads the list after a change of its peers, their order or their weights. `list` has the indices of the peers.
    fn set_list(&mut self, peers: &[Peer], list: &[u32]);

    /// Chooses a peer, and returns its number in the list. The list has at least two peers.
    fn pick(&mut self, candidates: &mut Candidates<'_>) -> Option<u32>;

    /// Returns work that [`Self::set_list`] has left, since it takes longer than a lock may be held. Until it is done, choices
    /// are made by the state before the change.
    fn build(&self) -> Option<Arc<dyn Build>> {
        None
    }

    /// Makes choices by the result of [`Self::build`], if it is done. The memory of the state before belongs to the build.
    fn use_build(&mut self) {}

    /// Returns state that another instance of the method may share, if there is any.
    fn shared_state(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }
}

/// Work on a changed list, for one method.
pub trait Build: Send + Sync {
    /// Does the work, once.
    fn run(&self);
}

/// Values of a request that its choices depend on.
#[derive(Clone, Debug, Default)]
pub struct PickKey {
    /// The key of a method by hash; empty if the method has none.
    pub bytes: Vec<u8>,
    /// The identifier of the server to which the request is bound (`sticky`). Peers with it come first, in their order; backup
    /// servers with it only if no other server is usable.
    pub bound_to: Option<Vec<u8>>,
}

/// State of one request in a method, over its attempts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Choices so far that met an unusable peer.
    pub(crate) tries: u32,
    /// The hash so far.
    pub(crate) hash: u32,
    /// Number of hash steps so far.
    pub(crate) rounds: u32,
}

/// The peers of a list, for one choice.
#[derive(Debug)]
pub struct Candidates<'a> {
    peers: &'a mut [Peer],
    round_robin: &'a mut RoundRobin,
    tried: &'a TriedNumbers,
    /// The request's key.
    pub(crate) key: &'a PickKey,
    /// The request's state.
    pub(crate) progress: &'a mut Progress,
    /// Monotonic milliseconds.
    pub(crate) now_ms: u64,
}

impl Candidates<'_> {
    /// Returns the number of peers in the list.
    pub fn len(&self) -> usize {
        self.round_robin.list().len()
    }

    /// Whether the list has no peers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a peer by its number in the list, which is below [`Self::len`].
    pub fn peer(&self, n: u32) -> &Peer {
        &self.peers[self.round_robin.list()[n as usize] as usize]
    }

    pub(crate) fn peer_mut(&mut self, n: u32) -> &mut Peer {
        &mut self.peers[self.round_robin.list()[n as usize] as usize]
    }

    /// Returns the time in seconds, as failures are counted.
    pub(crate) fn now_s(&self) -> u64 {
        self.now_ms / 1000
    }

    /// Whether a peer may be chosen: it is usable, and the request has not tried it.
    pub fn is_free(&self, n: u32) -> bool {
        !self.tried.contains(n) && self.peer(n).is_usable(self.now_s())
    }

    /// Replaces `free` with the numbers of all peers that may be chosen, in ascending order.
    pub(crate) fn free_numbers(&self, free: &mut Vec<u32>) {
        let now_s = self.now_s();
        let tried = self.tried.marks(self.len());
        free.clear();
        for (n, at) in (0..).zip(self.round_robin.list()) {
            if tried.get(n as usize) != Some(&true) && self.peers[*at as usize].is_usable(now_s) {
                free.push(n);
            }
        }
    }

    /// Chooses by round robin among all peers.
    pub fn turn(&mut self) -> Option<u32> {
        let now_s = self.now_s();
        self.round_robin.choose(self.peers, self.tried, now_s)
    }

    /// Chooses by round robin among these peers, which may be chosen.
    pub fn turn_of(&mut self, numbers: &[u32]) -> Option<u32> {
        self.round_robin.choose_of(self.peers, numbers)
    }

    /// Chooses by round robin among these peers, which may be chosen. As in nginx, weights do not change if there is one.
    pub(crate) fn turn_of_equal(&mut self, numbers: &[u32]) -> Option<u32> {
        match numbers {
            [] => None,
            [n] => Some(*n),
            _ => self.turn_of(numbers),
        }
    }
}
