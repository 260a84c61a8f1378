//! One thread's load: an epoll loop over its connections.
//!
//! In a closed loop each connection has as many requests under way as it may, and the next begins when one ends. At a
//! constant rate requests begin at their times; those for which no connection has room wait, and their response time counts
//! from when they should have been sent.
//!
//! What a turn has for a connection leaves in one write, and all memory is used again: nothing is allocated for a request.

mod begin;
mod turn;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use rustix::time::{ClockId, TimerfdClockId, TimerfdFlags};
use rustls::pki_types::ServerName;
use sys::poll::{Events, Interest, Poller};
use tls::{ClientConfig, ClientConn};

use crate::engine::Protocol;
use crate::judge::Judge;
use crate::link::{Dial, Link, Stage};
use crate::mix::Request;
use crate::outcome::Outcome;
use crate::pace::Pace;

/// What connections are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// They are open before the first request, and kept.
    Warm,
    /// Each carries one request, and its time counts from the first packet.
    Cold,
    /// The same, and TLS resumes earlier sessions.
    Resumed,
}

impl Connect {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
            Self::Resumed => "resumed",
        }
    }
}

/// A run that is asked for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the server is.
    pub address: std::net::SocketAddr,
    /// TLS, and the name that the certificate must have.
    pub tls: Option<(ClientConfig, ServerName<'static>)>,
    /// What is spoken without TLS; with it, ALPN says.
    pub plain: Protocol,
    /// The requests, which are gone through in turn.
    pub requests: Vec<Request>,
    /// Connections at a time, of all threads.
    pub connections: usize,
    /// Requests at a time on a connection that carries several.
    pub streams: usize,
    /// Threads.
    pub threads: usize,
    /// How many requests; the run also ends with its time.
    pub total: Option<u64>,
    /// For how long requests are begun.
    pub duration_ns: Option<u64>,
    /// Requests a second; a closed loop without.
    pub rate: Option<f64>,
    /// What connections are used for.
    pub connect: Connect,
    /// How long a connection or response may take.
    pub timeout_ns: u64,
    /// zlib's level for SPDY's request heads.
    pub spdy_level: u8,
    /// The process whose CPU time and memory are looked at, with its children.
    pub pid: Option<u32>,
}

/// What the threads of a run share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The run is to end now.
    pub(crate) stop: AtomicBool,
    /// Threads whose connections are open, or have failed.
    pub(crate) ready: AtomicUsize,
    /// Responses so far, about.
    pub(crate) ended: AtomicU64,
}

/// One thread.
pub(crate) struct Loader<'a> {
    plan: &'a Plan,
    shared: &'a Shared,
    judge: Option<&'a dyn Judge>,
    dial: Dial,
    poller: Poller,
    events: Events,
    timer: Option<std::os::fd::OwnedFd>,
    links: Vec<Link>,
    buffer: Vec<u8>,
    pub(crate) tally: Outcome,
    next_request: usize,
    /// Requests that may still be begun.
    left: Option<u64>,
    begin_ns: u64,
    until_ns: Option<u64>,
    last_ns: u64,
    pace: Option<Pace>,
    /// Times at which requests should have been sent that no connection has had room for.
    backlog: VecDeque<u64>,
    /// Of each connection that is used once: the time from which its request counts.
    once: Vec<Option<u64>>,
    next_link: usize,
    running: bool,
}

impl<'a> Loader<'a> {
    /// Thread number `thread` of a run.
    pub(crate) fn new(
        plan: &'a Plan,
        judge: Option<&'a dyn Judge>,
        shared: &'a Shared,
        thread: usize,
    ) -> std::io::Result<Self> {
        let part = |all: usize| all / plan.threads + usize::from(thread < all % plan.threads);
        let links = part(plan.connections);
        let total = plan.total.map(|total| {
            let threads = plan.threads as u64;
            total / threads + u64::from((thread as u64) < total % threads)
        });
        let dial = Dial {
            address: plan.address,
            tls: plan.tls.clone(),
            plain: plan.plain,
            keep_alive: plan.connect == Connect::Warm,
            spdy_level: plan.spdy_level,
        };
        if let Some((config, name)) = &plan.tls {
            // The first connection of a thread makes what all need, which would be measured with it.
            ClientConn::new(config, name.clone()).map_err(std::io::Error::other)?;
        }
        let poller = Poller::new()?;
        let timer = match plan.rate {
            None => None,
            Some(_) => {
                let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
                let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
                poller.add(&timer, TIMER, Interest::Readable)?;
                Some(timer)
            }
        };
        Ok(Self {
            plan,
            shared,
            judge,
            dial,
            poller,
            events: Events::with_capacity(links.clamp(1, EVENTS)),
            timer,
            links: (0..links).map(|_| Link::new()).collect(),
            buffer: vec![0; BUFFER_BYTES],
            tally: Outcome {
                unjudged: judge.map(|_| Vec::new()),
                ..Outcome::default()
            },
            // Threads begin at different places of a mix.
            next_request: thread * plan.requests.len() / plan.threads,
            left: total,
            begin_ns: 0,
            until_ns: None,
            last_ns: 0,
            pace: None,
            backlog: VecDeque::new(),
            once: vec![None; links],
            next_link: 0,
            running: false,
        })
    }

    /// Opens the connections that are to be there before the first request.
    pub(crate) fn prepare(&mut self) {
        if self.plan.connect != Connect::Warm {
            return;
        }
        for at in 0..self.links.len() {
            self.dial(at);
        }
        let end = now_ns() + self.plan.timeout_ns;
        let waits = |link: &Link| matches!(link.stage, Stage::Connecting | Stage::Handshake);
        while self.links.iter().any(waits) && now_ns() < end && !self.is_stopped() {
            self.wait(TICK_MS);
        }
    }

    /// The load itself, from `begin_ns` on.
    pub(crate) fn run(&mut self, begin_ns: u64, thread: usize) {
        self.begin_ns = begin_ns;
        self.last_ns = begin_ns;
        self.running = true;
        self.until_ns = self.plan.duration_ns.map(|duration| begin_ns + duration);
        self.pace = self
            .plan
            .rate
            .map(|rate| Pace::new(begin_ns, rate, thread, self.plan.threads));
        let mut tick_ns = begin_ns;
        for at in 0..self.links.len() {
            self.begin_more(at);
        }
        loop {
            let now = now_ns();
            self.due(now);
            if now >= tick_ns {
                tick_ns = now + TICK_MS * 1_000_000;
                self.tick(now);
            }
            if self.is_over(now) || self.is_stopped() {
                break;
            }
            self.wait(TICK_MS);
        }
        self.tally.interrupted = self.is_stopped();
        self.tally.elapsed_ns = match self.tally.interrupted {
            true => now_ns() - begin_ns,
            false => self.last_ns - begin_ns,
        };
        for link in &mut self.links {
            link.finish(&mut self.tally);
        }
        self.settle();
    }

    fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Whether a request waits, or may still be begun.
    fn may_begin(&self, now: u64) -> bool {
        let past = self.until_ns.is_some_and(|until| now >= until);
        !self.backlog.is_empty() || !(past || self.left == Some(0))
    }

    /// Whether nothing is under way and nothing may be begun.
    fn is_over(&self, now: u64) -> bool {
        !self.may_begin(now)
            && self.once.iter().all(Option::is_none)
            && self.links.iter().all(|link| link.flights.len() == 0)
    }

    /// Waits for something to happen, and lets it.
    fn wait(&mut self, most_ms: u64) {
        if self.poller.wait(&mut self.events, Some(most_ms)).is_err() {
            return;
        }
        for n in 0..self.events.len() {
            let ready = self.events.at(n);
            match ready.token {
                TIMER => self.clear_timer(),
                token => self.ready(token as usize, ready),
            }
        }
    }

    fn clear_timer(&self) {
        if let Some(timer) = &self.timer {
            // The count of expirations says nothing that the clock does not.
            let _ = rustix::io::read(timer, &mut [0; 8]);
        }
    }
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    // Neither part is negative on this clock.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Bytes that are received at a time.
const BUFFER_BYTES: usize = 64 << 10;
/// Most events that are taken at a time.
const EVENTS: usize = 512;
/// How often what has no event is looked at, milliseconds.
const TICK_MS: u64 = 20;
/// How long a connection that failed waits, nanoseconds.
const RETRY_NS: u64 = 10_000_000;
/// How many times each connection of a closed loop is tried while none has come to a response.
const TRIES_MAX: u64 = 100;
/// Responses that are told at a time.
const PROGRESS: u64 = 64;
/// The token of the timer; connections have small ones.
const TIMER: u64 = u64::MAX;
