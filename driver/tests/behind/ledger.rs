//! Ledger of client requests, their attempts at servers, and the responses; used by all checks.

use std::cell::RefCell;
use std::rc::Rc;

use sim::Random;

use super::locations::{LOCATIONS, LocationSpec};
use super::plan::{After, Plan};
use super::protocol::ServerProtocol;
use super::site::{LEAST_MS, STREAM_LOCATIONS};

/// A request of a client.
#[derive(Clone, Debug)]
pub(crate) struct ClientRequest {
    pub(crate) id: usize,
    pub(crate) location: usize,
    pub(crate) method: &'static str,
    /// Body of the request; for an upgrade, the bytes sent through the tunnel.
    pub(crate) body: Rc<[u8]>,
    pub(crate) has_body: bool,
    pub(crate) upgrade: bool,
    pub(crate) gzip: bool,
    /// Time of its first byte, milliseconds.
    pub(crate) begun_ms: u64,
    /// It was sent completely, and the client waits properly.
    pub(crate) is_sent: bool,
    /// The client has ended, reset or cancelled it, or does not read.
    pub(crate) spoiled: bool,
}

impl ClientRequest {
    pub(crate) fn location(&self) -> &'static LocationSpec {
        &LOCATIONS[self.location]
    }

    /// Returns the maximum number of attempts over new connections. A memcached request is first pipelined, then sent
    /// alone.
    pub(crate) fn tries(&self, part: Part, protocol: ServerProtocol) -> usize {
        let each = if protocol == ServerProtocol::Memcached {
            2
        } else {
            1
        };
        match part {
            Part::Whole => each * self.location().tries,
            _ => 1,
        }
    }

    pub(crate) fn path(&self) -> String {
        format!("/{}/{}", self.location().name, self.id)
    }

    pub(crate) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}

/// Purpose of a request to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// After `X-Accel-Redirect`.
    Inner,
    /// An authorization subrequest (`auth_request`).
    Auth,
    /// A detached copy. Its response reaches no client.
    Copy,
    /// A copy with the method and the body, by `mirror`.
    Mirror,
}

/// A request as received by a server.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) ask: usize,
    pub(crate) part: Part,
    pub(crate) protocol: ServerProtocol,
    /// The first one of its connection.
    pub(crate) is_fresh: bool,
    pub(crate) begun_ms: u64,
    pub(crate) is_whole: bool,
    pub(crate) plan: Option<Plan>,
    /// It was sent after a request with an invalid response, so its own response is not trusted either.
    pub(crate) is_behind_wrong: bool,
    /// Number of sent bytes of the response; `is_over` if the action after it was done, too.
    pub(crate) sent: usize,
    pub(crate) is_over: bool,
}

impl Attempt {
    /// Whether the client may have received the complete response.
    pub(crate) fn may_be_whole(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| {
            let ended = !plan.until_close || self.is_over;
            !plan.bad && self.sent >= plan.enough_at.unwrap_or(plan.whole_at) && ended
        })
    }

    /// Whether the client must receive the complete response, if no attempt follows.
    pub(crate) fn is_sound(&self) -> bool {
        let is_sound = |plan: &Plan| plan.is_sound() && self.sent >= plan.whole_at;
        self.may_be_whole() && self.plan.as_ref().is_some_and(is_sound)
    }

    /// Whether the response violates the protocol, so that later responses of the connection are not trusted.
    pub(crate) fn is_wrong(&self) -> bool {
        let is_wrong = |plan: &Plan| plan.bad || plan.whole_at != plan.text.len();
        let spoken =
            self.protocol == ServerProtocol::Memcached && self.plan.as_ref().is_some_and(is_wrong);
        self.is_behind_wrong || spoken
    }

    /// Whether the server skips this pipelined request and answers later ones.
    pub(crate) fn is_left_out(&self) -> bool {
        let is_silent = |plan: &Plan| plan.text.is_empty() && plan.after == After::Silent;
        let is_pipelined = self.protocol == ServerProtocol::Memcached;
        is_pipelined && self.plan.as_ref().is_some_and(is_silent)
    }

    /// Whether the attempt may fail although only the end of its response is missing. The end is broken or late.
    pub(crate) fn may_fail_late(&self, now_ms: u64) -> bool {
        let is_late = now_ms >= self.begun_ms + LEAST_MS;
        let fails = |plan: &Plan| {
            let ends = plan.is_sound() && (self.sent >= plan.whole_at || !is_late);
            plan.enough_at.is_some() && !ends
        };
        self.may_be_whole() && self.plan.as_ref().is_some_and(fails)
    }

    /// Whether the head of a response was sent completely.
    pub(crate) fn has_head(&self) -> bool {
        let sent = |plan: &Plan| !plan.bad_head && self.sent >= plan.head_at;
        self.plan.as_ref().is_some_and(sent)
    }
}

/// The ledger of one run.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) asks: Vec<ClientRequest>,
    pub(crate) attempts: Vec<Attempt>,
    /// Requests sent to servers that had closed, and the times.
    pub(crate) lost: Vec<(usize, u64)>,
    /// Number of refused or delayed connections.
    pub(crate) unconnected: usize,
    /// Number of connections being established.
    pub(crate) pending: usize,
    /// If set, all requests use this protocol, so that many share a connection.
    pub(crate) only: Option<ServerProtocol>,
    /// Number of requests that arrived together with others on a connection.
    pub(crate) pipelined: usize,
    /// Maximum number of requests in progress on one connection.
    pub(crate) streams_at_once: usize,
    /// Faults of the proxy, found by servers.
    pub(crate) faults: Vec<String>,
}

pub(crate) type Book = Rc<RefCell<Ledger>>;

impl Ledger {
    /// Returns the number of copies by `mirror` that servers have received.
    pub(crate) fn mirrored(&self) -> u64 {
        let all = self.attempts.iter();
        all.filter(|a| a.part == Part::Mirror).count() as u64
    }

    /// Makes a random request; returns its index.
    pub(crate) fn ask(&mut self, random: &mut Random) -> usize {
        let id = self.asks.len();
        let location = match self.only {
            Some(ServerProtocol::Memcached) => {
                LOCATIONS.len() - 1 - usize::from(random.chance(600))
            }
            Some(_) => LOCATIONS.len() - 3 - random.within(0..STREAM_LOCATIONS),
            None => random.within(0..LOCATIONS.len()),
        };
        let upgrade = LOCATIONS[location].upgrades && random.chance(700);
        let method = match random.below(10) {
            _ if upgrade => "GET",
            6.. if LOCATIONS[location].reads_only => "HEAD",
            0..5 => "GET",
            5 => "HEAD",
            6 => "PUT",
            _ => "POST",
        };
        let has_body = matches!(method, "PUT" | "POST");
        let len = match random.below(10) {
            0 => 0,
            1..4 => random.within(0..20),
            4..8 => random.within(0..5000),
            8 => random.within(0..40_000),
            _ if random.chance(300) => random.within(60_000..200_000),
            _ => 1,
        };
        let len = if has_body || upgrade { len } else { 0 };
        self.asks.push(ClientRequest {
            id,
            location,
            method,
            body: bytes(id * 2, len),
            has_body,
            upgrade,
            gzip: random.chance(300),
            begun_ms: 0,
            is_sent: false,
            spoiled: false,
        });
        id
    }

    /// Returns the attempts with responses for the client, and their indices.
    pub(crate) fn attempts_of(&self, ask: usize) -> impl Iterator<Item = (usize, &Attempt)> {
        let attempts = self.attempts.iter().enumerate();
        attempts.filter(move |(_, a)| {
            a.ask == ask && !matches!(a.part, Part::Auth | Part::Copy | Part::Mirror)
        })
    }

    /// Returns all requests to servers for a client's request.
    pub(crate) fn all_of(&self, ask: usize) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(move |a| a.ask == ask)
    }
}

/// Returns bytes that reveal a piece from a wrong position or body.
pub(crate) fn bytes(seed: usize, len: usize) -> Rc<[u8]> {
    let byte = |at: usize| {
        let mixed = (at as u32 + 1)
            .wrapping_mul(2_654_435_761)
            .wrapping_add(seed as u32 * 97);
        b'a' + ((mixed >> 13) % 26) as u8
    };
    (0..len).map(byte).collect()
}
