//! One worker thread: its poller, its listeners, its connections, and the loop.
//!
//! Commands of the process's main thread come through a channel and a waker.

mod accept;
mod coalesce;
mod health_checks;
mod overload;
mod reload;
mod shedding;
mod waiting;

use std::io;
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use server_base::clock::mono_start;
use server_base::errlog::Level;
use server_base::waker::WakeQueue;
use server_http::exchange::Env;
use server_http::upstream::health::Prober;
use sys::clock;
use sys::heap::trim;
use sys::poll::{Events, Interest, Poller, Waker};

use super::conn::drain;
use super::detached::DetachedExchange;
use super::event_loop::{Client, EventLoop, Server};
use super::names;
use super::net::Sockets;
use super::readiness::Readiness;
use super::shared::Shared;
use super::slab::Key;
use super::tables::Tables;
use super::thread_commands::{Command, Counters, Setup};
use super::thread_config::ThreadConfig;
use super::token::TokenKind;
use coalesce::Coalescing;
use reload::Deferred;
use shedding::Candidates;
use waiting::Overload;

/// One worker thread.
pub struct Thread {
    poller: Poller,
    waker: Arc<Waker>,
    commands: Receiver<Command>,
    counters: Arc<Counters>,
    setup: Setup,
    /// The listeners that are polled while connections are accepted, by port.
    listeners: Vec<Option<Arc<OwnedFd>>>,
    shared: Shared<Sockets>,
    tables: Tables<Sockets>,
    events: Events,
    started: Instant,
    accepting: Accepting,
    quit: Option<Quit>,
    /// Boxed, since there is hardly ever something to do.
    deferred: Option<Box<Deferred>>,
    /// The latest setup has `debug_connection`.
    debugs: bool,
    /// The connection accepted last has one of the descriptors that are left to files.
    tight: bool,
    /// Connections that may be closed to make room.
    candidates: Candidates,
    /// When they may be searched again, monotonic milliseconds.
    search_after_ms: u64,
    /// When to log again that there is no room, monotonic milliseconds.
    log_full_after_ms: u64,
    coalescing: Coalescing,
    overload: Overload,
    /// Connections that this thread has accepted.
    taken: u64,
    /// Makes the health checks, on one thread.
    prober: Option<Box<Prober>>,
}

/// Whether the listeners are polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepting {
    /// They are.
    Yes,
    /// Not until then, or until a connection ends: there is no room.
    NotBefore(u64),
    /// No more.
    Never,
}

/// The thread is to end.
#[derive(Clone, Copy, Debug)]
struct Quit {
    deadline_ms: Option<u64>,
}

impl Thread {
    /// Prepares a thread.
    ///
    /// # Errors
    /// The poller cannot be made.
    pub fn new(
        setup: Setup,
        waker: Arc<Waker>,
        commands: Receiver<Command>,
        counters: Arc<Counters>,
        env: Env,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(&*waker, WAKER_TOKEN, Interest::Readable)?;
        let generation = ThreadConfig::new(Arc::clone(&setup.http), setup.number);
        let mut shared = Shared::new(Sockets::default(), generation, env);
        let theirs = Arc::clone(&waker);
        shared.set_wakers(WakeQueue::new(move || theirs.wake()));
        shared.dialer.names.set_log(setup.log.clone());
        shared.files.configure(setup.file_limits);
        let mut thread = Self {
            poller,
            waker,
            commands,
            counters,
            shared,
            listeners: setup.listeners.clone(),
            debugs: !setup.debug_connections.is_empty(),
            setup,
            tables: Tables::new(mono_start().elapsed().as_millis() as u64),
            events: Events::with_capacity(EVENTS),
            started: mono_start(),
            accepting: Accepting::Never,
            quit: None,
            deferred: None,
            tight: false,
            candidates: Candidates::new(),
            search_after_ms: 0,
            log_full_after_ms: 0,
            coalescing: Coalescing::new(0),
            overload: Overload::default(),
            taken: 0,
            prober: None,
        };
        thread.tick();
        thread.begin_checks();
        thread.listen();
        Ok(thread)
    }

    /// Serves until a command ends the thread.
    pub fn run(mut self) {
        // Without it a sleep of 50 us takes 100.
        let _ = clock::set_timer_slack(TIMER_SLACK_NS);
        self.serve();
        for key in self.tables.clients.keys() {
            self.abort::<Client<Self>>(key);
        }
        for key in self.tables.detached.keys() {
            self.abort::<DetachedExchange>(key);
        }
    }

    fn serve(&mut self) {
        loop {
            if std::mem::take(&mut self.shared.timer_set) {
                // A turn may take long, as for a slow password hash. A wait counted from the begin of the turn would
                // reveal that time by its end.
                self.tick();
            }
            self.ask_names();
            let timeout = self.timeout();
            if timeout != Some(0) {
                self.gather_events();
            }
            if self.poller.wait(&mut self.events, timeout).is_err() {
                return;
            }
            self.tick();
            self.record_events();
            self.expire_names();
            if self.turn_all().is_break() || self.housekeep() {
                return;
            }
        }
    }

    /// Reads the clocks.
    fn tick(&mut self) {
        let mono_ms = self.started.elapsed().as_millis() as u64 + 1;
        let unix_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_millis() as u64);
        self.shared.set_now(mono_ms, unix_ms);
    }

    /// Lets events gather before they are taken, if that is worth it.
    fn gather_events(&self) {
        if let Some(delay) = self.coalescing.delay()
            && self.setup.coalesces_events
        {
            std::thread::sleep(delay);
        }
    }

    /// Records the events of this turn, for the delay before the next ones.
    fn record_events(&mut self) {
        let now_ms = self.shared.clock.mono_ms;
        let in_use = self.tables.upstreams_in_use();
        self.coalescing.record(now_ms, self.events.len(), in_use);
    }

    /// Sends queued questions to name servers.
    fn ask_names(&mut self) {
        let now_ms = self.shared.clock.mono_ms;
        self.shared.dialer.names.transmit(&self.poller, now_ms);
    }

    /// Wakes requests after their time limit for a name.
    fn expire_names(&mut self) {
        let now_ms = self.shared.clock.mono_ms;
        self.shared.dialer.names.expire(&self.poller, now_ms);
    }

    /// Returns the time to wait for events.
    fn timeout(&mut self) -> Option<u64> {
        if !self.shared.queues.wakers.is_empty() || !self.shared.dialer.calls.is_empty() {
            return Some(0);
        }
        let now = self.shared.clock.mono_ms;
        let mut next = self.tables.next_deadline();
        let mut consider = |at: Option<u64>| {
            if let Some(at) = at {
                next = Some(next.map_or(at, |n| n.min(at)));
            }
        };
        consider(self.shared.logs.flush_due(now));
        self.shared.logs.report(&self.setup.log);
        consider(self.shared.dialer.names.deadline());
        consider(self.quit.and_then(|q| q.deadline_ms));
        consider(
            self.deferred
                .as_ref()
                .and_then(|deferred| deferred.due_ms()),
        );
        if let Accepting::NotBefore(at) = self.accepting {
            consider(Some(at));
        }
        consider(self.shared.files.sweep_due());
        consider(self.prober.as_ref().map(|prober| prober.due_ms()));
        consider(self.shared.arms.look.due_ms());
        next.map(|at| at.saturating_sub(now))
    }

    /// Carries out commands; true to end.
    fn handle_commands(&mut self) -> bool {
        self.waker.drain();
        self.shared.queues.wakers.receive();
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Configure(setup) => self.configure(setup),
                Command::FlushLogs(done) => self.flush_logs(Some(done)),
                Command::Quit(timeout_ms) => self.quit(timeout_ms),
                Command::Relieve => self.relieve(),
                Command::Terminate => return true,
            }
        }
        false
    }

    /// Memory is short: closes connections that are idle after a request, and releases pools.
    fn relieve(&mut self) {
        for key in self.tables.clients.keys() {
            if self
                .tables
                .clients
                .get_mut(key)
                .is_some_and(|c| c.is_kept_alive())
            {
                self.drain(key);
            }
        }
        while self.close_idle_upstream() {}
        self.shared.relieve();
        trim();
    }

    /// Ends an idle connection, unless `keepalive_min_timeout` spares it, and any other after its next response.
    fn drain(&mut self, key: Key) {
        self.decide::<Client<Self>>(key, drain);
    }

    fn quit(&mut self, timeout_ms: Option<u64>) {
        self.finish_deferred();
        let now = self.shared.clock.mono_ms;
        self.quit = Some(Quit {
            deadline_ms: timeout_ms.map(|t| now + t),
        });
        self.begin_checks();
        self.accept_last();
        self.setup.listeners.clear();
        self.listeners.clear();
        self.shared.stopping = true;
        while self.close_idle_upstream() {}
        for key in self.tables.clients.keys() {
            self.drain(key);
        }
    }

    /// Runs tasks that are due besides connections; true to end.
    fn housekeep(&mut self) -> bool {
        let now = self.shared.clock.mono_ms;
        self.shared.files.sweep(now);
        if let Accepting::NotBefore(at) = self.accepting
            && at <= now
        {
            self.listen();
        }
        if self.deferred.is_some() {
            self.do_deferred();
        }
        if let Some(prober) = &mut self.prober
            && prober.due_ms() <= now
        {
            prober.run(&self.shared.ctx());
        }
        match self.quit {
            Some(quit) => {
                // A wake may begin a detached exchange.
                (self.tables.is_unused() && self.shared.queues.wakers.is_empty())
                    || quit.deadline_ms.is_some_and(|at| at <= now)
            }
            None => false,
        }
    }
}

impl EventLoop for Thread {
    type Net = Sockets;

    fn parts(&mut self) -> (&mut Tables<Sockets>, &mut Shared<Sockets>) {
        (&mut self.tables, &mut self.shared)
    }

    fn read_ready(&mut self) -> ControlFlow<()> {
        for n in 0..self.events.len() {
            let ready = self.events.at(n);
            match ready.token {
                WAKER_TOKEN => {
                    if self.handle_commands() {
                        return ControlFlow::Break(());
                    }
                }
                token if names::is_token(token) => {
                    let now_ms = self.shared.clock.mono_ms;
                    self.shared.dialer.names.ready(&self.poller, now_ms, ready);
                }
                token if token & LISTENER_BIT != 0 => self.accept((token & !LISTENER_BIT) as usize),
                token => {
                    let key = Key::from_token(token);
                    let ready = Readiness::of_socket(ready);
                    match TokenKind::of(token) {
                        Some(TokenKind::Upstream) => self.read::<Server<Self>>(key, ready),
                        _ => self.read::<Client<Self>>(key, ready),
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn contain<T>(step: impl FnOnce() -> T) -> Option<T> {
        catch_unwind(AssertUnwindSafe(step)).ok()
    }

    fn panicked(&mut self) {
        let count = self.counters.panics.fetch_add(1, Ordering::Relaxed) + 1;
        let text = format_args!("a panic was contained to its connection; {count} so far");
        self.setup.log.write(Level::Crit, text);
    }

    fn closed(&mut self, _: TokenKind, _: Key) {
        self.connection_closed();
    }

    fn admit_upstream(&mut self) -> bool {
        self.has_room_for_upstream()
    }

    fn free_descriptor(&mut self) -> bool {
        self.close_what_is_spare()
    }

    fn register_upstream(&mut self, key: Key) -> io::Result<()> {
        self.tables.register_upstream(&self.poller, key)
    }
}

/// Token of the waker.
const WAKER_TOKEN: u64 = u64::MAX;
/// Tokens of listeners have this bit; keys of connections never do.
const LISTENER_BIT: u64 = 1 << 63;
/// By how much the kernel may prolong a thread's sleep to wake it with others, nanoseconds.
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::new(1000).expect("it is not 0");
/// Events taken at a time.
const EVENTS: usize = 512;
