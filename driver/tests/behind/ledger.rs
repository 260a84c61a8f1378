//! Account of requests, their arrival at servers, and the answers, read by both judges.

use std::cell::RefCell;
use std::rc::Rc;

use sim::Random;

use super::locations::{LOCATIONS, LocationSpec};
use super::plan::{After, Plan};
use super::protocol::ServerProtocol;
use super::site::{LEAST_MS, STREAM_PLACES};

/// Request of a client.
#[derive(Clone, Debug)]
pub(crate) struct ClientRequest {
    pub(crate) id: usize,
    pub(crate) location: usize,
    pub(crate) method: &'static str,
    /// Its body, or the bytes for the tunnel if it requests an upgrade.
    pub(crate) body: Rc<[u8]>,
    pub(crate) has_body: bool,
    pub(crate) upgrade: bool,
    pub(crate) gzip: bool,
    /// When its first byte was sent.
    pub(crate) begun_ms: u64,
    /// All of it was sent, and the client still waits for the response.
    pub(crate) is_sent: bool,
    /// The client has ended, reset or cancelled, or does not read.
    pub(crate) spoiled: bool,
}

impl ClientRequest {
    pub(crate) fn location(&self) -> &'static LocationSpec {
        &LOCATIONS[self.location]
    }

    /// To how many servers it may be sent over new connections; for memcached each time with others, then alone.
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
    /// Whether the request may pass.
    Auth,
    /// A copy. No client gets its answer.
    Copy,
}

/// A request as a server got it.
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
    /// It was sent after one with a wrong response, so its own response need not be accepted.
    pub(crate) is_behind_wrong: bool,
    /// Sent bytes of the response, and whether the action after it was done.
    pub(crate) sent: usize,
    pub(crate) is_over: bool,
}

impl Attempt {
    /// Whether the client may have got the answer whole.
    pub(crate) fn may_be_whole(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| {
            let ended = !plan.until_close || self.is_over;
            !plan.bad && self.sent >= plan.enough_at.unwrap_or(plan.whole_at) && ended
        })
    }

    /// Whether the answer must reach the client whole, were it the last.
    pub(crate) fn is_sound(&self) -> bool {
        let is_sound = |plan: &Plan| plan.is_sound() && self.sent >= plan.whole_at;
        self.may_be_whole() && self.plan.as_ref().is_some_and(is_sound)
    }

    /// Whether the response violates the protocol, so that later bytes of the connection need not be accepted.
    pub(crate) fn is_wrong(&self) -> bool {
        let is_wrong = |plan: &Plan| plan.bad || plan.whole_at != plan.text.len();
        let spoken =
            self.protocol == ServerProtocol::Memcached && self.plan.as_ref().is_some_and(is_wrong);
        self.is_behind_wrong || spoken
    }

    /// Whether the server skips the pipelined request, and responds to later ones.
    pub(crate) fn is_left_out(&self) -> bool {
        let is_silent = |plan: &Plan| plan.text.is_empty() && plan.after == After::Silent;
        let is_pipelined = self.protocol == ServerProtocol::Memcached;
        is_pipelined && self.plan.as_ref().is_some_and(is_silent)
    }

    /// Whether the attempt may fail though nothing of the answer is missing but its end: that is broken, or does not come in
    /// time.
    pub(crate) fn may_fail_late(&self, now_ms: u64) -> bool {
        let is_late = now_ms >= self.begun_ms + LEAST_MS;
        let fails = |plan: &Plan| {
            let ends = plan.is_sound() && (self.sent >= plan.whole_at || !is_late);
            plan.enough_at.is_some() && !ends
        };
        self.may_be_whole() && self.plan.as_ref().is_some_and(fails)
    }

    /// Whether the head of an answer was sent whole.
    pub(crate) fn has_head(&self) -> bool {
        let sent = |plan: &Plan| !plan.bad_head && self.sent >= plan.head_at;
        self.plan.as_ref().is_some_and(sent)
    }
}

/// The account of one run.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) asks: Vec<ClientRequest>,
    pub(crate) attempts: Vec<Attempt>,
    /// Requests that were sent to servers that had closed, and when.
    pub(crate) lost: Vec<(usize, u64)>,
    /// Connections that were refused or held back.
    pub(crate) unconnected: usize,
    /// Connections that are not established yet.
    pub(crate) pending: usize,
    /// All requests are of one kind, so that many share a connection.
    pub(crate) only: Option<ServerProtocol>,
    /// Requests that came together with others on a connection.
    pub(crate) pipelined: usize,
    /// The most requests that were in progress on one connection.
    pub(crate) streams_at_once: usize,
    /// Complaints of servers about the proxy.
    pub(crate) faults: Vec<String>,
}

pub(crate) type Book = Rc<RefCell<Ledger>>;

impl Ledger {
    /// A request of any kind.
    pub(crate) fn ask(&mut self, random: &mut Random) -> usize {
        let id = self.asks.len();
        let location = match self.only {
            Some(ServerProtocol::Memcached) => {
                LOCATIONS.len() - 1 - usize::from(random.chance(600))
            }
            Some(_) => LOCATIONS.len() - 3 - random.within(0..STREAM_PLACES),
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

    /// Numbers of the attempts of which a client may get the answer.
    pub(crate) fn attempts_of(&self, ask: usize) -> impl Iterator<Item = (usize, &Attempt)> {
        let attempts = self.attempts.iter().enumerate();
        attempts.filter(move |(_, a)| a.ask == ask && !matches!(a.part, Part::Auth | Part::Copy))
    }

    /// Requests to servers for a client's request, with those that decide whether it may pass.
    pub(crate) fn all_of(&self, ask: usize) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(move |a| a.ask == ask)
    }
}

/// Bytes such that a piece from the wrong place or body shows.
pub(crate) fn bytes(seed: usize, len: usize) -> Rc<[u8]> {
    let byte = |at: usize| {
        let mixed = (at as u32 + 1)
            .wrapping_mul(2_654_435_761)
            .wrapping_add(seed as u32 * 97);
        b'a' + ((mixed >> 13) % 26) as u8
    };
    (0..len).map(byte).collect()
}
