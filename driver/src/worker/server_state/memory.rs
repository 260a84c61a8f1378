//! Memory of a thread for its connections to servers.

use server_upstream::protocol::ProtocolId;
use server_upstream::request::UpstreamCall;
use server_upstream::route::{Pool, Route, UpstreamAddr};

use super::available::Available;
use super::{ActiveConn, Attempt, Io, Requests, Sending};
use crate::worker::dialer::Dial;

/// Memory for connections to servers, and facts about servers.
#[derive(Default)]
pub struct ServerMemory {
    /// Unused memory of connections in use, by protocol: its engine serves no other.
    #[allow(clippy::vec_box, reason = "connections in use move as pointers")]
    spare: [Vec<Box<ActiveConn>>; PROTOCOLS],
    /// Buffer for reads from sockets; a body may take its memory along.
    pub(crate) buffer: Vec<u8>,
    /// Connections that take more streams.
    pub available: Available,
    /// Servers that get one request at a time on a connection.
    paused: Vec<Pause>,
}

/// How a request gets its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// It has a connection for itself.
    Alone,
    /// It may share a queue with others of this turn.
    Queue,
    /// It may be a stream beside others.
    Streams,
}

/// A server that gets one request at a time on a connection.
struct Pause {
    pool: u64,
    addr: UpstreamAddr,
    until_ms: u64,
}

impl ServerMemory {
    /// A connection in use, with one request that begins now, in the memory of another one if there is any.
    pub(crate) fn take(
        &mut self,
        route: Route,
        call: UpstreamCall,
        request: Sending,
        now_ms: u64,
    ) -> Box<ActiveConn> {
        let Some(mut active) = self.spare[route.protocol.id as usize].pop() else {
            return Box::new(ActiveConn {
                io: Io::new(&route, now_ms),
                requests: Requests::One(Attempt::new(call, request, now_ms)),
            });
        };
        let ActiveConn { io, requests } = &mut *active;
        io.protocol = route.protocol;
        io.addr = route.addr;
        io.pool = route.pool;
        io.timeouts = route.timeouts;
        (io.since_ms, io.wrote_ms) = (now_ms, now_ms);
        io.reused = false;
        io.acknowledged = false;
        io.unwritable = None;
        *requests = Requests::One(Attempt::new(call, request, now_ms));
        active
    }

    /// Lets go of the requests, and keeps the memory; an engine with streams is of one connection alone.
    pub(crate) fn release(&mut self, mut active: Box<ActiveConn>) {
        match &mut active.requests {
            Requests::One(one) => drop((one.take_call(), one.last_of.take())),
            Requests::Queue(_) | Requests::Streams(_) => return,
        }
        let spare = &mut self.spare[active.io.protocol.id as usize];
        if spare.len() < SPARE_MAX {
            active.io.out.clear();
            spare.push(active);
        }
    }

    /// Lets go of memory that only saves time.
    pub(crate) fn relieve(&mut self) {
        self.spare = Default::default();
        self.buffer = Vec::new();
    }

    /// How a request gets its connection.
    #[inline]
    pub fn sharing(&mut self, dial: &Dial, now_ms: u64) -> Sharing {
        let protocol = dial.route.protocol;
        if protocol.streams {
            return Sharing::Streams;
        }
        match &dial.route.pool {
            Some(pool) if protocol.pipelining.is_some() && !dial.alone => {
                self.paused.retain(|pause| pause.until_ms > now_ms);
                let mut paused = self.paused.iter();
                match paused.any(|pause| pause.pool == pool.id && pause.addr == dial.route.addr) {
                    true => Sharing::Alone,
                    false => Sharing::Queue,
                }
            }
            _ => Sharing::Alone,
        }
    }

    /// For [`PAUSE_MS`] from now the server gets one request at a time on a connection.
    pub(crate) fn pause(&mut self, pool: Option<Pool>, addr: &UpstreamAddr, now_ms: u64) {
        if self.paused.len() == PAUSED_MAX {
            self.paused.remove(0);
        }
        self.paused.push(Pause {
            pool: pool.map_or(0, |pool| pool.id),
            addr: addr.clone(),
            until_ms: now_ms.saturating_add(PAUSE_MS),
        });
    }
}

/// Number of protocols.
const PROTOCOLS: usize = ProtocolId::Http2 as usize + 1;
/// Maximum number of unused connections kept in memory for each protocol.
const SPARE_MAX: usize = 256;
/// Time for which a server gets one request at a time on a connection after requests of a queue were not answered.
const PAUSE_MS: u64 = 1000;
/// Maximum number of servers remembered for that.
const PAUSED_MAX: usize = 64;
