//! A connection to a server and the states it goes through.
//!
//! ```text
//! Connecting -> Busy <-> Idle
//!               Busy  -> Draining -> Idle      an exchange has given its attempt up, and little of the response is left
//! Connecting -> Pipelined -> Busy              the answer to the last of several requests begins
//! ```
//!
//! Any state can become `Closed`. This file changes no state; `mod`, `turn` and `ending` do.

use engines::http::OutputQueue;
use server_upstream::protocol::ProtocolSpec;
use server_upstream::request::{Failure, UpstreamCall};
use server_upstream::route::{Pool, Route, Timeouts, UpstreamAddr};

use super::engine::{self, Engine};
use super::pipeline::{Pause, Pipeline};
use crate::worker::disposition;
use crate::worker::readiness::SocketFlags;

/// A connection to a server.
pub struct ServerConn<S> {
    pub(super) socket: S,
    pub(super) state: State,
    /// When it was begun.
    pub(super) since_ms: u64,
    /// Bytes of the requests before the one in progress.
    pub(super) sent_before: u64,
    /// Requests, with the one in progress.
    pub(super) requests: u32,
    pub(super) flags: SocketFlags,
    /// TCP_NODELAY has been set.
    pub(super) nodelay: bool,
}

pub(super) enum State {
    /// The connection is not established yet.
    Connecting(Box<ActiveAttempt>),
    /// An attempt is in progress.
    Busy(Box<ActiveAttempt>),
    /// Several attempts are in progress; that whose answer comes next is the [`ActiveAttempt::call`].
    Pipelined(Box<ActiveAttempt>),
    /// The unwanted rest of a response is read and dropped.
    Draining(Box<ActiveAttempt>, Draining),
    /// It waits in its pool for the next attempt.
    Idle {
        /// The number of the pool.
        pool: u64,
        /// Until when.
        until_ms: u64,
    },
    /// Over.
    Closed,
}

/// The limits of a response that is dropped.
pub(super) struct Draining {
    pub(super) left_bytes: u64,
    pub(super) until_ms: u64,
}

/// An attempt in progress, and the memory that it needs.
pub(super) struct ActiveAttempt {
    /// None while the memory waits for an attempt.
    call: Option<UpstreamCall>,
    pub(super) tools: Tools,
    pub(super) protocol: &'static ProtocolSpec,
    pub(super) addr: UpstreamAddr,
    pub(super) pool: Option<Pool>,
    pub(super) timeouts: Timeouts,
    pub(super) since_ms: u64,
    /// When the socket last took something, or there was something for it first.
    pub(super) wrote_ms: u64,
    /// When something last came, or could first be waited for.
    pub(super) read_ms: u64,
    /// Bytes of the request that the socket took.
    pub(super) sent_bytes: u64,
    /// The connection was idle before.
    pub(super) reused: bool,
    pub(super) request: Sending,
    pub(super) response: Receiving,
    /// Nothing is read, since the exchange has no room.
    pub(super) paused: bool,
    /// A part of the response was acknowledged at once.
    pub(super) acknowledged: bool,
    /// Why nothing can be written any more; what the server has said before is still read.
    pub(super) unwritable: Option<i32>,
    /// The requests behind this one; without any, it had been behind others.
    pub(super) pipeline: Option<Box<Pipeline>>,
}

/// State of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// Its body is still to come, or a part of it; or the tunnel is open.
    Body,
    /// All of it is in the output queue.
    Queued,
    /// The socket has taken all of it.
    Sent,
}

/// State of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiving {
    /// Nothing of it has come.
    Nothing,
    /// A part of its head has come, or an interim response.
    Head,
    /// Its head has come; this many bytes are left, where that is known.
    Body(Option<u64>),
    /// The connection is a tunnel.
    Tunnel,
    /// The server has ended its side of the tunnel.
    TunnelEnded,
    /// The server has ended its side before it said anything: a reset may follow, until then.
    Unanswered {
        /// Monotonic milliseconds.
        until_ms: u64,
    },
}

/// Engine and buffers of one attempt.
pub(super) struct Tools {
    pub(super) engine: Engine,
    pub(super) out: OutputQueue,
}

/// Memory for the attempts of a thread.
#[derive(Default)]
pub struct Attempts {
    /// Unused memory of attempts, by engine.
    #[allow(clippy::vec_box, reason = "attempts move as pointers")]
    spare: [Vec<Box<ActiveAttempt>>; engine::ENGINE_KINDS],
    /// Where sockets are read into; a body takes it along.
    pub(super) buffer: Vec<u8>,
    /// Servers that get one request at a time on a connection.
    pub(super) paused: Vec<Pause>,
}

/// Disposition of a connection after its turn.
pub type Disposition = disposition::Disposition<PoolPlace>;

/// The place of an idle connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolPlace {
    /// The pool.
    pub pool: Pool,
    /// Its server.
    pub addr: UpstreamAddr,
}

/// Why an attempt is over.
pub(super) enum Ending {
    /// The response is complete, or its rest has been dropped.
    Complete,
    /// The exchange does not want it any more.
    GivenUp,
    /// It has failed.
    Failed(Failure),
    /// Requests that share the connection are asked again, each alone.
    AskAgain,
}

impl Attempts {
    /// An attempt that begins now, in the memory of another one if there is any.
    pub(super) fn take(
        &mut self,
        route: Route,
        call: UpstreamCall,
        now_ms: u64,
    ) -> Box<ActiveAttempt> {
        let kind = engine::kind_of(route.protocol);
        let Some(mut active) = self.spare[kind as usize].pop() else {
            return Box::new(ActiveAttempt {
                call: Some(call),
                tools: Tools {
                    engine: Engine::new(route.protocol),
                    out: OutputQueue::default(),
                },
                protocol: route.protocol,
                addr: route.addr,
                pool: route.pool,
                timeouts: route.timeouts,
                since_ms: now_ms,
                wrote_ms: now_ms,
                read_ms: now_ms,
                sent_bytes: 0,
                reused: false,
                request: Sending::Queued,
                response: Receiving::Nothing,
                paused: false,
                acknowledged: false,
                unwritable: None,
                pipeline: None,
            });
        };
        let a = &mut *active;
        a.call = Some(call);
        a.protocol = route.protocol;
        a.addr = route.addr;
        a.pool = route.pool;
        a.timeouts = route.timeouts;
        (a.since_ms, a.wrote_ms, a.read_ms) = (now_ms, now_ms, now_ms);
        a.sent_bytes = 0;
        a.reused = false;
        a.request = Sending::Queued;
        a.response = Receiving::Nothing;
        a.paused = false;
        a.acknowledged = false;
        a.unwritable = None;
        active
    }

    /// Lets go of an attempt, and keeps its memory.
    pub(super) fn give(&mut self, mut active: Box<ActiveAttempt>) {
        active.call = None;
        active.pipeline = None;
        let spare = &mut self.spare[active.tools.engine.kind() as usize];
        if spare.len() < SPARE_MAX {
            active.tools.out.clear();
            spare.push(active);
        }
    }
}

impl State {
    /// The state of a connection that stands, with what is to be asked over it.
    pub(super) fn connected(active: Box<ActiveAttempt>) -> Self {
        match active.pipeline {
            Some(_) => Self::Pipelined(active),
            None => Self::Busy(active),
        }
    }
}

impl ActiveAttempt {
    /// The exchange's attempt.
    #[inline]
    pub(super) fn call(&self) -> &UpstreamCall {
        self.call.as_ref().expect("it has one until it is let go")
    }

    /// The attempt that is answered next.
    pub(super) fn set_call(&mut self, call: UpstreamCall) {
        self.call = Some(call);
    }

    /// Lets go of the exchange's attempt.
    pub(super) fn take_call(&mut self) -> Option<UpstreamCall> {
        self.call.take()
    }
}

impl<S> ServerConn<S> {
    /// A connection that has just been begun, for an attempt, and may be established already.
    pub fn new(socket: S, established: bool, now_ms: u64) -> Self {
        Self {
            socket,
            state: State::Closed,
            since_ms: now_ms,
            sent_before: 0,
            requests: 0,
            flags: SocketFlags {
                writable: established,
                ..SocketFlags::default()
            },
            nodelay: false,
        }
    }

    /// The number of the pool in which the connection is idle.
    pub fn idle_pool(&self) -> Option<u64> {
        match self.state {
            State::Idle { pool, .. } => Some(pool),
            _ => None,
        }
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }
}

/// Memory kept for the next attempts with each kind of engine.
const SPARE_MAX: usize = 256;
