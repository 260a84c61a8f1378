//! One worker thread under virtual time: connections, timers and the loop, as `worker::thread` has them.
//!
//! The simulation calls [`World::poll`] for one turn of the loop; between two it moves the clock, the clients and the
//! configuration. The order of a turn is that of [`EventLoop`], as in `Thread`; orders come between events. A panic is not
//! contained: it ends the run.

use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use driver::io::files::Limits;
use driver::worker::conn::{Conn, drain};
use driver::worker::event_loop::{Client, EventLoop, Server};
use driver::worker::readiness::Readiness;
use driver::worker::reload::{Change, Changes, Reloads};
use driver::worker::shared::Shared;
use driver::worker::slab::Key;
use driver::worker::tables::Tables;
use driver::worker::thread_config::ThreadConfig;
use driver::worker::token::TokenKind;
use server_base::waker::WakeKey;
use server_http::exchange::{Env, Peer};
use server_http::http::Http;
use server_upstream::route::Route;

use super::{Hands, Random, SimNet, SimSocket, Wire};

/// Cause of a connection's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedBy {
    /// A turn of its own.
    Turn,
    /// A change of the configuration, a request to end, or the time for the old configuration.
    Command,
}

/// One connection that was made, open or closed.
#[derive(Debug)]
pub struct Link {
    /// Number of the connection, from 1.
    pub serial: u64,
    /// Both directions.
    pub wire: Rc<RefCell<Wire>>,
    /// When it was accepted, and the number of the configuration then.
    pub accepted: (u64, u64),
    /// Bytes taken and sent when it began to drain.
    pub drained_at: Option<(usize, usize)>,
    /// Its port is gone: it may be closed at once by order of that.
    pub lost: bool,
    /// Number of the configuration before which nothing may be in progress.
    pub swept: Option<u64>,
    /// Time and cause of its close.
    pub closed: Option<(u64, ClosedBy)>,
    key: Key,
}

/// One worker thread.
pub struct World {
    /// State shared by connections.
    pub shared: Shared<SimNet>,
    /// Time and configuration.
    pub hands: Rc<Hands>,
    /// All connections of the run.
    pub links: Vec<Link>,
    tables: Tables<SimNet>,
    /// Changes the ways to servers before connections are made.
    #[allow(clippy::type_complexity, reason = "a function")]
    pub adjust: Option<Box<dyn Fn(&mut Route)>>,
    /// Connections to servers.
    dialed: Vec<(Key, Rc<RefCell<Wire>>)>,
    /// Share of events that the loop gets, per mille.
    permille: u32,
    random: Random,
    unix_start_ms: u64,
    polled_ms: u64,
    /// Steps of a configuration change in one turn of the loop.
    pub piece: usize,
    changes: Changes<Option<u64>>,
    /// Whether each port has stopped accepting connections.
    left: Vec<bool>,
    /// The connection that is ended because its time is over.
    swept: Option<Key>,
    pending: Option<Command>,
}

/// An order that is carried out among the events of the next turn of the loop.
pub enum Command {
    /// Changes the configuration, [`World::piece`] by piece.
    Configure {
        /// The configuration, prepared or not.
        generation: ThreadConfig,
        /// Whether connections are kept over the change.
        keep: bool,
        /// Time after which the rest of the previous one is closed, in milliseconds.
        timeout_ms: Option<u64>,
    },
    /// Ends idle connections, and others after their response.
    Quit,
}

impl World {
    /// A thread without connections; `scratch` is the size of one read in bytes.
    pub fn new(
        mut generation: ThreadConfig,
        mut random: Random,
        unix_start_ms: u64,
        scratch: usize,
    ) -> Self {
        generation.prepare(&mut { usize::MAX });
        let hands = Rc::new(Hands::default());
        hands.now_ms.set(1);
        hands.generation.set(generation.http.number);
        let mut shared = Shared::new(SimNet::default(), generation, Env::default());
        shared.scratch = vec![0; scratch].into_boxed_slice();
        // A turn does all work that waits for nothing, so that tests can require its result.
        shared.turn.passes_max = usize::MAX;
        shared.turn.bytes_max = u64::MAX;
        let random = random.fork();
        let mut world = Self {
            shared,
            hands,
            links: Vec::new(),
            tables: Tables::new(0),
            adjust: None,
            dialed: Vec::new(),
            permille: 1000,
            random,
            unix_start_ms,
            polled_ms: 1,
            piece: usize::MAX,
            changes: Changes::default(),
            left: Vec::new(),
            swept: None,
            pending: None,
        };
        world.tick();
        world
    }

    /// Now, monotonic milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.hands.now_ms.get()
    }

    /// When the loop had its last turn: timers of later timings are not its fault.
    pub fn polled_ms(&self) -> u64 {
        self.polled_ms
    }

    /// Moves the clock; the loop sees it at its next turn.
    pub fn advance(&mut self, ms: u64) {
        self.hands.now_ms.set(self.now_ms() + ms);
    }

    /// When the loop would wake up by itself.
    pub fn next_deadline(&self) -> Option<u64> {
        if self.is_woken() {
            return Some(self.now_ms());
        }
        let change = self.changes.due_ms().map(|at| at.max(self.now_ms()));
        self.tables.next_deadline().into_iter().chain(change).min()
    }

    /// Open connections and exchanges without a client, and armed timers of both.
    pub fn counts(&self) -> (usize, usize) {
        let (clients, detached) = (&self.tables.clients, &self.tables.detached);
        let open = clients.len() + detached.len();
        (open, clients.timers() + detached.timers())
    }

    /// Open connections to servers and armed timers.
    pub fn upstream_counts(&self) -> (usize, usize) {
        (self.tables.upstreams.len(), self.tables.upstreams.timers())
    }

    /// Whether an event or a timer waits for the next turn of the loop.
    pub fn is_ready(&self) -> bool {
        self.pending.is_some()
            || self.is_woken()
            || self.is_changing()
            || self
                .tables
                .next_deadline()
                .is_some_and(|at| at <= self.now_ms())
            || self.links.iter().any(|l| l.wire.borrow().is_ready())
            || self.dialed.iter().any(|(_, wire)| wire.borrow().is_ready())
    }

    /// Whether an exchange was woken and waits for the next turn of the loop.
    fn is_woken(&self) -> bool {
        self.shared.queues.wakers.receive();
        !self.shared.queues.wakers.is_empty() || !self.shared.dialer.calls.is_empty()
    }

    /// Whether a configuration change has a step to do now.
    pub fn is_changing(&self) -> bool {
        let due_ms = self.changes.due_ms();
        due_ms.is_some_and(|at_ms| at_ms <= self.now_ms())
    }

    /// Whether connections are accepted on a port.
    pub fn listens(&self, port: usize) -> bool {
        let ports = &self.shared.generation.ports;
        ports.get(port).is_some_and(|port| port.is_listening)
            && !self.left.get(port).is_some_and(|left| *left)
    }

    /// Accepts a connection on a port and returns its index in [`World::links`].
    pub fn accept(&mut self, wire: Wire, port: usize, peer: Peer) -> usize {
        self.tick();
        let wire = Rc::new(RefCell::new(wire));
        let serial = self.links.len() as u64 + 1;
        let socket = SimSocket::new(Rc::clone(&wire));
        let mut conn = Conn::new(socket, peer, port, serial, self.now_ms());
        let http = &self.shared.generation.http;
        let addr = http.ports[port].addr(None);
        conn.expect(http.expected_protocols(addr));
        let key = self.tables.clients.insert(conn);
        let accepted = (self.now_ms(), self.shared.generation.http.number);
        self.links.push(Link {
            serial,
            wire,
            accepted,
            drained_at: None,
            lost: false,
            swept: None,
            closed: None,
            key,
        });
        self.turn::<Client<Self>>(key, Readiness::default());
        self.links.len() - 1
    }

    /// Whether an order waits to be carried out.
    pub fn is_ordered(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns whether another configuration may be ordered: no order is pending, and the end was not ordered. In one
    /// of ten calls this method orders the end.
    pub fn may_change(&mut self, quitting: &mut bool, random: &mut Random) -> bool {
        if *quitting || self.is_ordered() {
            return false;
        }
        *quitting = random.chance(100);
        if *quitting {
            self.command(Command::Quit);
        }
        !*quitting
    }

    /// Queues a command.
    pub fn command(&mut self, order: Command) {
        self.pending = Some(order);
    }

    /// Runs a turn of the loop. An event is reported with a chance of `permille`, otherwise later.
    pub fn poll(&mut self, permille: u32) {
        self.tick();
        self.polled_ms = self.now_ms();
        self.shared.queues.wakers.receive();
        self.permille = permille;
        // Nothing that happens in a simulation ends the loop.
        let _ = self.turn_all();
        self.housekeep();
    }

    /// A turn for nothing, of a connection that may be gone.
    pub fn spurious(&mut self, index: usize, cause: Readiness) {
        self.tick();
        self.turn::<Client<Self>>(self.links[index].key, cause);
    }

    /// A turn for nothing, of a connection to a server.
    pub fn spurious_upstream(&mut self, dice: u64, cause: Readiness) {
        self.tick();
        if let Some((key, _)) = self.dialed.get(dice as usize % self.dialed.len().max(1)) {
            self.turn::<Server<Self>>(*key, cause);
        }
    }

    /// A wake for nothing, of a stream of a connection, either of which may be gone.
    pub fn wake_spuriously(&mut self, index: usize, stream: u32) {
        let owner = self.tables.clients.token(self.links[index].key);
        self.shared.queues.wakers.push(WakeKey { owner, stream });
    }

    fn tick(&mut self) {
        let now_ms = self.now_ms();
        let unix_ms = self.unix_start_ms + now_ms;
        self.shared.set_now(now_ms, unix_ms);
    }

    /// Reads from a connection that is ready.
    fn hear(&mut self, index: usize) {
        let link = &self.links[index];
        let key = link.key;
        if self.tables.clients.get_mut(key).is_none() {
            return;
        }
        let event = link.wire.borrow_mut().event();
        self.read::<Client<Self>>(key, Readiness::of_socket(event));
    }

    /// Reads from the connections to servers that are ready.
    fn hear_servers(&mut self) {
        self.dialed.retain(|(_, wire)| !wire.borrow().closed);
        for at in 0..self.dialed.len() {
            let (key, wire) = &self.dialed[at];
            if !wire.borrow().is_ready() || !self.random.chance(self.permille) {
                continue;
            }
            let (key, event) = (*key, wire.borrow_mut().event());
            self.read::<Server<Self>>(key, Readiness::of_socket(event));
        }
    }

    fn link(&mut self, key: Key) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.key == key)
    }

    fn handle_command(&mut self) {
        match self.pending.take() {
            None => {}
            Some(Command::Configure {
                generation,
                keep,
                timeout_ms,
            }) => {
                let change = Change::new(timeout_ms, generation, keep, false);
                self.changes.order(change);
            }
            Some(Command::Quit) => self.quit(),
        }
        self.reload_some(self.piece);
    }

    fn quit(&mut self) {
        self.reload_all();
        self.shared.stopping = true;
        while self.close_idle_upstream() {}
        for key in self.tables.clients.keys() {
            self.retire(key);
        }
    }

    fn retire(&mut self, key: Key) {
        // Recorded first, since received requests are still served.
        self.record_retired(key);
        self.decide::<Client<Self>>(key, drain);
    }

    fn record_retired(&mut self, key: Key) {
        if let Some(link) = self.links.iter_mut().find(|l| l.key == key) {
            let wire = link.wire.borrow();
            link.drained_at
                .get_or_insert((wire.taken(), wire.sent().len()));
        }
    }

    fn housekeep(&mut self) {
        let now_ms = self.now_ms();
        self.shared.files.sweep(now_ms);
    }
}

impl EventLoop for World {
    type Net = SimNet;

    fn parts(&mut self) -> (&mut Tables<SimNet>, &mut Shared<SimNet>) {
        (&mut self.tables, &mut self.shared)
    }

    /// Some connections that are ready, in any order, with the order that was given somewhere between them.
    fn read_ready(&mut self) -> ControlFlow<()> {
        self.hear_servers();
        let is_ready = |n: &usize| self.links[*n].wire.borrow().is_ready();
        let mut ready: Vec<usize> = (0..self.links.len()).filter(is_ready).collect();
        self.random.shuffle(&mut ready);
        let order_at = self.random.within(0..ready.len() + 1);
        for (n, index) in ready.iter().enumerate() {
            if n == order_at {
                self.handle_command();
            }
            if self.random.chance(self.permille) {
                self.hear(*index);
            }
        }
        self.handle_command();
        ControlFlow::Continue(())
    }

    fn adjust(&mut self, route: &mut Route) {
        if let Some(adjust) = &self.adjust {
            adjust(route);
        }
    }

    fn admit_upstream(&mut self) -> bool {
        true
    }

    fn free_descriptor(&mut self) -> bool {
        false
    }

    /// Readiness of connections to servers is checked like that of clients.
    fn register_upstream(&mut self, key: Key) -> io::Result<()> {
        let conn = self.tables.upstreams.get_mut(key);
        let wire = conn.map(|conn| Rc::clone(conn.socket().wire()));
        self.dialed.extend(wire.map(|wire| (key, wire)));
        Ok(())
    }

    /// A panic ends the run.
    fn contain<T>(step: impl FnOnce() -> T) -> Option<T> {
        Some(step())
    }

    fn panicked(&mut self) {}

    fn closed(&mut self, kind: TokenKind, key: Key) {
        if kind != TokenKind::Client {
            return;
        }
        let now_ms = self.now_ms();
        let is_swept = self.swept == Some(key);
        if let Some(link) = self.link(key) {
            let by = match link.lost || is_swept {
                true => ClosedBy::Command,
                false => ClosedBy::Turn,
            };
            link.closed = Some((now_ms, by));
        }
    }
}

impl Reloads for World {
    /// Time for which requests of the previous configuration may continue, milliseconds.
    type Setup = Option<u64>;

    fn changes(&mut self) -> &mut Changes<Option<u64>> {
        &mut self.changes
    }

    fn leave_listener(&mut self, port: usize, _: &Option<u64>) {
        self.left.resize(self.left.len().max(port + 1), false);
        self.left[port] = true;
    }

    fn join_listener(&mut self, port: usize) {
        if let Some(left) = self.left.get_mut(port) {
            *left = false;
        }
    }

    fn last_serial(&self) -> u64 {
        self.links.len() as u64
    }

    fn switch(
        &mut self,
        timeout_ms: Option<u64>,
        next: ThreadConfig,
    ) -> (ThreadConfig, Option<u64>) {
        self.shared.files.configure(Limits::default());
        self.hands.generation.set(next.http.number);
        (self.shared.configure(next), timeout_ms)
    }

    fn renew(&mut self, _: Key) {}

    fn ending(&mut self, key: Key, is_gone: bool) {
        // Recorded first, since received requests are still served.
        self.record_retired(key);
        if is_gone && let Some(link) = self.link(key) {
            link.lost = true;
        }
    }

    fn sweeping(&mut self, key: Key, number: u64, ends: bool) {
        self.swept = ends.then_some(key);
        if let Some(link) = self.link(key) {
            link.swept = Some(number);
        }
    }

    fn release_config(&mut self, http: Arc<Http>) {
        drop(http);
    }
}
