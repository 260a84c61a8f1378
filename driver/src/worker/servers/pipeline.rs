//! Attempts that share a connection to a server: how they are found, and what is kept of them.
//!
//! Requests that may be repeated and were made in one turn for the same server share a connection, so that none waits for
//! company; `pipelined` says what becomes of them.

use std::collections::VecDeque;

use server_upstream::request::UpstreamCall;
use server_upstream::route::{Route, UpstreamAddr};

/// Attempts that get one connection.
pub struct Group {
    /// Their route.
    pub route: Route,
    /// The first.
    pub call: UpstreamCall,
    /// The others.
    pub behind: Vec<UpstreamCall>,
}

/// Attempts of one turn, by their routes.
#[derive(Default)]
pub struct Groups(VecDeque<Group>);

/// State of a connection shared by pipelined attempts.
pub(super) struct Pipeline {
    /// The way to the server, for those that are asked again.
    pub(super) route: Route,
    /// Bytes of the request in front, and those of them that the socket has not taken.
    pub(super) front_bytes: u64,
    pub(super) front_left: u64,
    pub(super) behind: VecDeque<Request>,
    /// When the socket had taken all requests.
    pub(super) sent_ms: u64,
    /// Bytes received, and those of them that belong to delivered answers.
    pub(super) received_bytes: u64,
    pub(super) told_bytes: u64,
    /// Length of the answer being delivered.
    pub(super) answer_bytes: u64,
}

/// A request behind another.
pub(super) struct Request {
    pub(super) call: UpstreamCall,
    pub(super) bytes: u64,
    /// Those of them that the socket has not taken.
    pub(super) left: u64,
}

/// A server that gets one request at a time on a connection.
pub(super) struct Pause {
    pub(super) pool: u64,
    pub(super) addr: UpstreamAddr,
    pub(super) until_ms: u64,
}

impl Group {
    /// An attempt that gets a connection for itself.
    pub fn alone(route: Route, call: UpstreamCall) -> Self {
        Self {
            route,
            call,
            behind: Vec::new(),
        }
    }

    /// All attempts.
    pub fn calls(&self) -> impl Iterator<Item = &UpstreamCall> {
        std::iter::once(&self.call).chain(&self.behind)
    }
}

impl Groups {
    /// Adds an attempt to the last group that takes it, or makes it one.
    pub fn add(&mut self, route: Route, call: UpstreamCall) {
        let mut last = self.0.iter_mut().rev().take(LOOKED_AT);
        let most = route.protocol.pipelining.map_or(1, |own| own.requests_max);
        let fits = |group: &Group| 1 + group.behind.len() < most && group.route == route;
        match last.find(|group| fits(group)) {
            Some(group) => group.behind.push(call),
            None => self.0.push_back(Group::alone(route, call)),
        }
    }

    /// Takes the first group.
    pub fn take(&mut self) -> Option<Group> {
        self.0.pop_front()
    }
}

/// Maximum number of groups that are looked at for one that takes an attempt.
const LOOKED_AT: usize = 16;
