//! One thread's load: an epoll loop over its connections.
//!
//! In a closed loop each connection has its limit of requests in progress, and the next one begins when one ends. At a constant
//! rate requests begin at scheduled times. If no connection has room, a request waits, and its response time counts from its
//! scheduled time.
//!
//! All data of a turn for one connection is sent in one write. Memory is reused: a request allocates nothing.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use rustix::time::{TimerfdClockId, TimerfdFlags};
use sys::poll::{Events, Interest, Poller};
use tls::ClientConn;

use super::cpu;
use super::filter::SampleFilter;
use super::plan::{Connect, Plan};
use super::result::LoadResult;
use super::schedule::Schedule;
use super::window::End;
use crate::client::{Connection, Stage, Target, now_ns};

/// State that the threads of a run share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The run is to end now.
    pub(super) stop: AtomicBool,
    /// Threads with all connections opened or failed.
    pub(super) ready: AtomicUsize,
    /// Responses so far, approximately.
    pub(super) ended: AtomicU64,
}

/// One thread.
pub(super) struct Loader<'a> {
    pub(super) plan: &'a Plan,
    pub(super) shared: &'a Shared,
    pub(super) filter: Option<&'a dyn SampleFilter>,
    pub(super) target: Target,
    pub(super) poller: Poller,
    events: Events,
    pub(super) timer: Option<std::os::fd::OwnedFd>,
    pub(super) slots: Vec<Slot>,
    pub(super) buffer: Vec<u8>,
    pub(super) result: LoadResult,
    pub(super) next_request: usize,
    /// Requests left to begin.
    pub(super) left: Option<u64>,
    pub(super) begin_ns: u64,
    pub(super) until_ns: Option<u64>,
    pub(super) end: End,
    pub(super) last_ns: u64,
    pub(super) schedule: Option<Schedule>,
    /// All requests of the schedule were due.
    pub(super) schedule_is_over: bool,
    /// Scheduled times of requests that wait for a free connection.
    pub(super) backlog: VecDeque<u64>,
    pub(super) next_slot: usize,
    pub(super) running: bool,
}

/// A connection with its state in the load.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) connection: Connection,
    /// With one request per connection: the start of its response time, until it is sent.
    pub(super) once: Option<u64>,
    /// When the server may be tried again.
    pub(super) retry_ns: u64,
}

impl<'a> Loader<'a> {
    /// Thread number `thread` of a run.
    pub(super) fn new(
        plan: &'a Plan,
        filter: Option<&'a dyn SampleFilter>,
        shared: &'a Shared,
        thread: usize,
    ) -> std::io::Result<Self> {
        let part = |all: usize| all / plan.threads + usize::from(thread < all % plan.threads);
        let slots = part(plan.connections);
        let total = plan.total.map(|total| {
            let threads = plan.threads as u64;
            total / threads + u64::from((thread as u64) < total % threads)
        });
        let target = Target {
            address: plan.address,
            tls: plan.tls.clone(),
            plain: plan.plain,
            keep_alive: plan.connect == Connect::Warm,
            spdy_level: plan.spdy_level,
        };
        if let Some((config, name)) = &plan.tls {
            // The first TLS connection of a thread initializes shared state, which must not be measured.
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
            filter,
            target,
            poller,
            events: Events::with_capacity(slots.clamp(1, EVENTS)),
            timer,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            buffer: vec![0; BUFFER_BYTES],
            result: LoadResult {
                unfiltered: filter.map(|_| Vec::new()),
                ..LoadResult::default()
            },
            // Threads begin at different places of a mix.
            next_request: thread * plan.requests.len() / plan.threads,
            left: total,
            begin_ns: 0,
            until_ns: None,
            end: End::default(),
            last_ns: 0,
            schedule: None,
            schedule_is_over: false,
            backlog: VecDeque::new(),
            next_slot: 0,
            running: false,
        })
    }

    /// Opens the connections that are to be there before the first request.
    pub(super) fn prepare(&mut self) {
        if self.plan.connect != Connect::Warm {
            return;
        }
        for at in 0..self.slots.len() {
            self.dial(at);
        }
        let end = now_ns() + self.plan.timeout_ns;
        let waits =
            |slot: &Slot| matches!(slot.connection.stage, Stage::Connecting | Stage::Handshake);
        while self.slots.iter().any(waits) && now_ns() < end && !self.is_stopped() {
            self.wait(TICK_MS);
        }
    }

    /// The load itself, from `begin_ns` on.
    pub(super) fn run(&mut self, begin_ns: u64, thread: usize) {
        self.begin_ns = begin_ns;
        self.last_ns = begin_ns;
        self.running = true;
        let used_ns = cpu::thread_ns();
        self.until_ns = self.plan.duration_ns.map(|duration| begin_ns + duration);
        let scheduled_ns = self.scheduled_ns();
        self.schedule = self
            .plan
            .rate
            .map(|rate| Schedule::new(begin_ns, rate, thread, self.plan.threads));
        let mut tick_ns = begin_ns;
        for at in 0..self.slots.len() {
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
        self.measure(scheduled_ns);
        let used_ns = cpu::thread_ns().saturating_sub(used_ns);
        self.result.busiest_thread = used_ns as f64 / (now_ns() - begin_ns).max(1) as f64;
        for at in 0..self.slots.len() {
            self.finish(at);
            self.result.received_bytes += self.slots[at].connection.received_bytes;
            self.result.sent_bytes += self.slots[at].connection.sent_bytes();
        }
        self.settle();
    }

    /// The length of the schedule of a constant rate, nanoseconds.
    fn scheduled_ns(&self) -> Option<u64> {
        let rate = self.plan.rate? / self.plan.threads as f64;
        let of_all = self.left.map(|left| (left as f64 / rate * 1e9) as u64);
        of_all.into_iter().chain(self.plan.duration_ns).min()
    }

    /// End of a closed loop; `None` at a constant rate.
    #[inline]
    pub(super) fn closed_until_ns(&self) -> Option<u64> {
        self.until_ns.filter(|_| self.plan.rate.is_none())
    }

    /// Records the length of the run, and the part of it for the rate.
    fn measure(&mut self, scheduled_ns: Option<u64>) {
        let (now, begin_ns) = (now_ns(), self.begin_ns);
        let closed_until_ns = self.closed_until_ns();
        let result = &mut self.result;
        result.connections = self.slots.len() as u64;
        result.interrupted = self.shared.stop.load(Ordering::Relaxed);
        if result.interrupted {
            result.elapsed_ns = now - begin_ns;
            result.window_ns = result.elapsed_ns;
            result.steady_ns = result.elapsed_ns;
            return;
        }
        result.elapsed_ns = self.last_ns - begin_ns;
        let last_begun_ns = self.end.last_begun_ns.or(closed_until_ns);
        let window_ns = last_begun_ns.map(|end| end.saturating_sub(begin_ns));
        result.window_ns = window_ns.or(scheduled_ns).unwrap_or(result.elapsed_ns);
        result.steady_ns = self.end.steady_ns(result.window_ns, scheduled_ns);
    }

    fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Whether a request waits or may begin.
    pub(super) fn may_begin(&self, now: u64) -> bool {
        let past = self.until_ns.is_some_and(|until| now >= until);
        !self.backlog.is_empty() || !(past || self.left == Some(0))
    }

    /// Whether no request is in progress and none may begin.
    fn is_over(&self, now: u64) -> bool {
        !self.may_begin(now)
            && self
                .slots
                .iter()
                .all(|slot| slot.once.is_none() && slot.connection.in_flight.len() == 0)
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
            // The number of expirations adds nothing to the clock.
            let _ = rustix::io::read(timer, &mut [0; 8]);
        }
    }
}

/// Bytes that are received at a time.
const BUFFER_BYTES: usize = 64 << 10;
/// Most events that are taken at a time.
const EVENTS: usize = 512;
/// Interval of checks that have no event, milliseconds.
const TICK_MS: u64 = 20;
/// Delay before a failed connection is retried, nanoseconds.
pub(super) const RETRY_NS: u64 = 10_000_000;
/// Attempts for each connection of a closed loop as long as none has received a response.
pub(super) const TRIES_MAX: u64 = 100;
/// Responses after which the shared count is raised.
pub(super) const PROGRESS: u64 = 64;
/// The token of the timer; connections have small ones.
const TIMER: u64 = u64::MAX;
