//! One thread's load: an epoll loop over its connections.
//!
//! In a closed loop each connection has as many requests under way as it may, and the next begins when one ends. At a
//! constant rate requests begin at their times; those for which no connection has room wait, and their response time counts
//! from when they should have been sent.
//!
//! What a turn has for a connection leaves in one write, and all memory is used again: nothing is allocated for a request.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use driver::sys::poll::{Events, Interest, Poller, Ready};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec,
};
use rustls::pki_types::ServerName;

use crate::engine::{Engine, Protocol, Told};
use crate::flights::Flight;
use crate::link::{Dial, Link, Stage, failed};
use crate::mix::Request;
use crate::outcome::{BIN_NS, Outcome};
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
    pub tls: Option<(std::sync::Arc<rustls::ClientConfig>, ServerName<'static>)>,
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
    /// Requests that have ended, well or not.
    pub(crate) ended: AtomicU64,
}

/// One thread.
pub(crate) struct Loader<'a> {
    plan: &'a Plan,
    shared: &'a Shared,
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
    pub(crate) fn new(plan: &'a Plan, shared: &'a Shared, thread: usize) -> std::io::Result<Self> {
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
            dial,
            poller,
            events: Events::with_capacity(links.clamp(1, EVENTS)),
            timer,
            links: (0..links).map(|_| Link::new()).collect(),
            buffer: vec![0; BUFFER_BYTES],
            tally: Outcome::default(),
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
    }

    fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Whether nothing is under way and nothing may be begun.
    fn is_over(&self, now: u64) -> bool {
        let past = self.until_ns.is_some_and(|until| now >= until);
        let begun = past || self.left == Some(0);
        begun
            && self.backlog.is_empty()
            && self.once.iter().all(Option::is_none)
            && self.links.iter().all(|link| link.flights.len() == 0)
    }

    /// Whether one more request may be begun; it is taken.
    fn take_budget(&mut self, now: u64) -> bool {
        if self.until_ns.is_some_and(|until| now >= until) {
            return false;
        }
        match &mut self.left {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
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

    /// Begins what is due at a constant rate.
    fn due(&mut self, now: u64) {
        let Some(mut pace) = self.pace.take() else {
            return;
        };
        while pace.next_ns() <= now {
            // What was due before the end of the run is sent, however late.
            let due = pace.next_ns();
            if !self.take_budget(due) {
                return;
            }
            self.backlog.push_back(pace.take());
        }
        self.set_timer(pace.next_ns());
        self.pace = Some(pace);
        for _ in 0..self.links.len() {
            if self.backlog.is_empty() {
                return;
            }
            let at = self.next_link;
            self.next_link = (at + 1) % self.links.len();
            self.begin_more(at);
        }
    }

    fn set_timer(&self, at_ns: u64) {
        let Some(timer) = &self.timer else { return };
        let setting = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: (at_ns / 1_000_000_000) as i64,
                tv_nsec: (at_ns % 1_000_000_000) as i64,
            },
        };
        // A timer that cannot be set leaves the tick, which is later.
        let _ = rustix::time::timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &setting);
    }

    /// When the next request of a connection should be sent: now, or at the time of one that waits. `None` for no request.
    fn next_intended(&mut self, now: u64) -> Option<u64> {
        if self.plan.rate.is_some() {
            return self.backlog.pop_front();
        }
        self.take_budget(now).then_some(now)
    }

    /// Begins what may be begun on a connection, and sends it.
    fn begin_more(&mut self, at: usize) {
        if !self.running {
            return;
        }
        if self.plan.connect != Connect::Warm {
            return self.begin_once(at);
        }
        let now = now_ns();
        match self.links[at].stage {
            Stage::Closed if now >= self.links[at].retry_ns => {
                if !self.is_over(now) {
                    self.dial(at);
                }
                return;
            }
            Stage::Open => {}
            _ => return,
        }
        while self.has_room(at) {
            let Some(intended_ns) = self.next_intended(now) else {
                break;
            };
            self.send(at, intended_ns, now);
        }
        self.flush(at);
    }

    fn has_room(&self, at: usize) -> bool {
        let link = &self.links[at];
        let Some(engine) = &link.engine else {
            return false;
        };
        let most = match engine.protocol().has_streams() {
            true => self.plan.streams,
            false => 1,
        };
        link.flights.len() < most && engine.room() > 0
    }

    /// Hands the next request to the engine of a connection.
    fn send(&mut self, at: usize, intended_ns: u64, sent_ns: u64) {
        let request = &self.plan.requests[self.next_request];
        self.next_request += 1;
        if self.next_request == self.plan.requests.len() {
            self.next_request = 0;
        }
        let link = &mut self.links[at];
        let Some(engine) = &mut link.engine else {
            return;
        };
        match engine.request(&request.fields, &request.body) {
            Ok(stream) => link.flights.push(
                stream,
                Flight {
                    intended_ns,
                    sent_ns,
                    first_ns: 0,
                    status: 0,
                },
            ),
            Err(refusal) => {
                let why = format!("request not sent: {refusal:?}");
                self.count_error(&why, 1, sent_ns);
            }
        }
    }

    /// Begins a connection for one request.
    fn begin_once(&mut self, at: usize) {
        let now = now_ns();
        let link = &self.links[at];
        if link.stage == Stage::Closed && self.once[at].is_none() {
            if now < link.retry_ns {
                return;
            }
            if let Some(intended) = self.next_intended(now) {
                self.once[at] = Some(intended);
                self.dial(at);
            }
            return;
        }
        if link.stage == Stage::Open
            && self.has_room(at)
            && let Some(intended) = self.once[at].take()
        {
            let begun = link.begun_ns;
            self.send(at, intended, begun);
            self.flush(at);
        }
    }

    fn dial(&mut self, at: usize) {
        let now = now_ns();
        let result = match self.links[at].dial(&self.dial, now) {
            Ok(fd) => self.poller.add(fd, at as u64, Interest::Connection),
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            self.fail(at, &failed("connect", &error), now);
        }
    }

    fn flush(&mut self, at: usize) {
        if let Err(why) = self.links[at].flush(&mut self.tally) {
            self.fail(at, &why, now_ns());
        }
    }

    /// A connection can do something.
    fn ready(&mut self, at: usize, ready: Ready) {
        let link = &mut self.links[at];
        if link.stage == Stage::Closed {
            return;
        }
        if link.stage == Stage::Connecting {
            if !ready.writable && !ready.closed {
                return;
            }
            if let Err(why) = link.connected(&self.dial, now_ns(), &mut self.tally) {
                return self.fail(at, &why, now_ns());
            }
        } else if ready.readable {
            let (buffer, tally) = (&mut self.buffer, &mut self.tally);
            let received = link.receive(buffer, ready.closed, &self.dial, now_ns, tally);
            if self.told(at, &received) {
                return;
            }
        } else if !link.is_blocked() {
            return;
        }
        self.begin_more(at);
        // Windows and answers to pings leave without a request, too.
        self.flush(at);
    }

    /// Takes what the engine of a connection tells; gives whether the connection has ended.
    fn told(&mut self, at: usize, received: &Result<bool, String>) -> bool {
        let now = now_ns();
        let mut closing = matches!(received, Ok(true));
        while let Some(told) = self.links[at].engine.as_mut().and_then(Engine::event) {
            let flights = &mut self.links[at].flights;
            match told {
                Told::Head {
                    stream,
                    status,
                    size,
                } => {
                    self.tally.head_wire_bytes += size.wire_bytes;
                    self.tally.head_text_bytes += size.text_bytes;
                    if let Some(flight) = flights.get(stream) {
                        (flight.first_ns, flight.status) = (now, status);
                    }
                }
                Told::End { stream, body_bytes } => {
                    if let Some(flight) = flights.remove(stream) {
                        self.tally.body_bytes += body_bytes;
                        self.complete(flight, now);
                    }
                }
                Told::Lost { stream, why } => {
                    if flights.remove(stream).is_some() {
                        self.count_error(&why, 1, now);
                    }
                }
                Told::Closing => closing = true,
                Told::Failed(why) => {
                    // Why the socket failed says more than that it ended early.
                    let why = received.as_ref().err().cloned().unwrap_or(why);
                    self.fail(at, &why, now);
                    return true;
                }
                Told::Other => {}
            }
        }
        let link = &mut self.links[at];
        if let Err(why) = received {
            self.fail(at, why, now);
            return true;
        }
        closing |= link.engine.as_ref().is_some_and(Engine::is_closed);
        closing |= self.plan.connect != Connect::Warm && self.once[at].is_none();
        if matches!(received, Ok(true)) && (link.flights.len() > 0 || link.engine.is_none()) {
            self.fail(at, "closed by the server", now);
            return true;
        }
        if closing && link.flights.len() == 0 {
            link.finish(&mut self.tally);
            self.begin_more(at);
            return true;
        }
        false
    }

    fn complete(&mut self, flight: Flight, now: u64) {
        let tally = &mut self.tally;
        tally.done += 1;
        tally.statuses[usize::from(flight.status / 100).min(9)] += 1;
        tally.service.record(now - flight.sent_ns);
        tally.first_byte.record(flight.first_ns - flight.sent_ns);
        if self.pace.is_some() || self.plan.rate.is_some() {
            tally
                .response
                .record(now.saturating_sub(flight.intended_ns));
        }
        let bin = ((now - self.begin_ns) / BIN_NS) as usize;
        if tally.bins.len() <= bin {
            tally.bins.resize(bin + 1, 0);
        }
        tally.bins[bin] += 1;
        self.last_ns = now;
        if tally.done.is_multiple_of(PROGRESS) {
            self.shared.ended.fetch_add(PROGRESS, Ordering::Relaxed);
        }
    }

    fn count_error(&mut self, why: &str, times: u64, now: u64) {
        self.tally.error(why, times);
        self.last_ns = self.last_ns.max(now);
    }

    /// A connection has failed, and with it what was under way on it.
    fn fail(&mut self, at: usize, why: &str, now: u64) {
        let link = &mut self.links[at];
        let lost = link.flights.drain().count() as u64;
        link.close();
        link.retry_ns = now + RETRY_NS;
        let waited = u64::from(self.once[at].take().is_some());
        if lost + waited == 0 && self.running && self.plan.rate.is_none() {
            // So that a run against a server that is not there comes to its end.
            self.take_budget(now);
        }
        self.count_error(why, (lost + waited).max(1), now);
    }

    /// What has to be looked at now and then: what takes too long, and what may be tried again.
    fn tick(&mut self, now: u64) {
        let most = self.plan.timeout_ns;
        for at in 0..self.links.len() {
            let link = &self.links[at];
            let since = match link.stage {
                Stage::Closed => {
                    self.begin_more(at);
                    continue;
                }
                Stage::Connecting | Stage::Handshake => Some(link.begun_ns),
                Stage::Open => link.flights.oldest().map(|flight| flight.sent_ns),
            };
            let why = match link.stage {
                Stage::Connecting => "connect: timed out",
                Stage::Handshake => "tls: handshake timed out",
                _ => "response: timed out",
            };
            if since.is_some_and(|since| now.saturating_sub(since) > most) {
                self.fail(at, why, now);
            }
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
/// Responses that are told at a time.
const PROGRESS: u64 = 64;
/// The token of the timer; connections have small ones.
const TIMER: u64 = u64::MAX;
