//! The order of a turn of the loop.
//!
//! A thread and the simulator are both an [`EventLoop`]: they supply events, contain panics and handle closed
//! connections. Everything else about a turn is here, so that tests run the order that serves. The steps of an entry
//! are written once for all tables ([`Entry`]):
//!
//! ```text
//! intake    reads from all ready entries, and carries out commands; idle connections to servers that have ended are closed
//! turns     of connections to servers that are ready: their responses wake exchanges
//! turns     of clients with input: some responses of HTTP/1 are made, then written
//! rounds    turns of woken entries; then new attempts get connections, so that requests leave in this turn;
//!           again while there are wakes or attempts, up to a limit
//! timers    turns of entries after their deadline
//! closing   of connections to servers that are over: their responses have left by then
//! ```

use std::io;
use std::ops::ControlFlow;

use server_base::waker::WakeKey;
use server_upstream::request::Failure;
use server_upstream::route::Route;
use sys::connect::Connecting;

use super::conn::{AnswerResult, Conn, answer, report_arms};
use super::detached::DetachedExchange;
use super::disposition::Disposition;
use super::entry::Entry;
use super::net::Net;
use super::readiness::{Part, Readiness, TurnCause};
use super::server_state::{Group, Groups, ServerConn, Sharing};
use super::servers;
use super::shared::Shared;
use super::slab::Key;
use super::tables::Tables;
use super::token::TokenKind;
use super::wakes::{ROUNDS_MAX, run_woken};

/// A client of a loop.
pub type Client<L> = Conn<<<L as EventLoop>::Net as Net>::Socket>;
/// A connection of a loop to a server.
pub type Server<L> = ServerConn<<<L as EventLoop>::Net as Net>::Socket>;

/// A loop that has tables of entries and runs their turns.
pub trait EventLoop: Sized {
    /// The sockets of the connections.
    type Net: Net;

    /// The tables, and the state shared by all entries.
    fn parts(&mut self) -> (&mut Tables<Self::Net>, &mut Shared<Self::Net>);

    /// Reads from all ready entries ([`Self::read`]), and carries out commands; breaks if the loop is to end.
    fn read_ready(&mut self) -> ControlFlow<()>;

    /// Calls a step of one entry; `None` if it panicked and that costs no more than the entry.
    fn contain<T>(step: impl FnOnce() -> T) -> Option<T>;

    /// A panic was contained to an entry, which is closed now.
    fn panicked(&mut self);

    /// An entry was closed.
    fn closed(&mut self, kind: TokenKind, key: Key);

    /// Whether one more connection to a server may be made; another one may be closed for it.
    fn admit_upstream(&mut self) -> bool;

    /// Lets go of something that holds a descriptor, since there are no more; false if there is nothing.
    fn free_descriptor(&mut self) -> bool;

    /// Changes the way to a server before an attempt begins: for simulations.
    fn adjust(&mut self, _: &mut Route) {}

    /// Registers a new connection to a server; [`Self::read_ready`] then gets its events.
    ///
    /// # Errors
    /// The poller cannot.
    fn register_upstream(&mut self, key: Key) -> io::Result<()>;

    /// One turn of the loop, in the order of the module's documentation.
    fn turn_all(&mut self) -> ControlFlow<()> {
        self.read_ready()?;
        if !self.parts().0.upstreams.ready.is_empty() {
            let mut ready = std::mem::take(&mut self.parts().0.upstreams.ready);
            for key in ready.drain(..) {
                self.turn::<Server<Self>>(key, Readiness::default());
            }
            self.parts().0.upstreams.ready = ready;
        }
        // The list is put back with its memory; no client is read meanwhile.
        let mut ready = std::mem::take(&mut self.parts().0.clients.ready);
        match ready.as_slice() {
            [key] => self.turn::<Client<Self>>(*key, Readiness::default()),
            keys => self.turn_together(keys),
        }
        ready.clear();
        let (tables, shared) = self.parts();
        tables.clients.ready = ready;
        shared.files.end_turn();
        if !shared.queues.wakers.is_empty() || !shared.dialer.calls.is_empty() {
            self.run_rounds();
        }
        let now_ms = self.parts().1.clock.mono_ms;
        self.expire::<Client<Self>>(now_ms);
        if !self.parts().0.detached.is_empty() {
            self.expire::<DetachedExchange>(now_ms);
        }
        if !self.parts().0.upstreams.is_empty() {
            self.expire::<Server<Self>>(now_ms);
            for key in self.parts().0.idle.take_surplus(now_ms) {
                self.close::<Server<Self>>(key);
            }
        }
        self.parts().0.closing.clear();
        let (tables, shared) = self.parts();
        if shared.wants.has_arms() {
            let clients = &mut tables.clients;
            shared
                .arms
                .look
                .turned(clients.slots(), now_ms, |slot, each| {
                    let key = clients.key_at(slot);
                    if let Some(conn) = key.and_then(|key| clients.get_mut(key)) {
                        report_arms(conn, each);
                    }
                });
        }
        ControlFlow::Continue(())
    }

    /// Turns of woken entries, and attempts that begin in them: rounds, since each may wake others.
    fn run_rounds(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let (_, shared) = self.parts();
            if shared.queues.wakers.is_empty() && shared.dialer.calls.is_empty() {
                return;
            }
            let wakers = shared.queues.wakers.clone();
            run_woken(&wakers, |token, keys| {
                let key = Key::from_token(token);
                match TokenKind::of(token) {
                    Some(TokenKind::Client) => self.wake::<Client<Self>>(key, keys),
                    Some(TokenKind::Upstream) => self.wake::<Server<Self>>(key, keys),
                    Some(TokenKind::Detached) => self.wake_detached(key, keys),
                    _ => {}
                }
            });
            self.dial();
        }
    }

    /// Begins the detached requests that were started, and runs the turn of an exchange that was woken.
    #[cold]
    fn wake_detached(&mut self, key: Key, keys: &[WakeKey]) {
        for request in self.parts().1.queues.take_detached() {
            let exchange = DetachedExchange::new(request);
            let begun = self.parts().0.detached.insert(exchange);
            self.turn::<DetachedExchange>(begun, Readiness::default());
        }
        self.wake::<DetachedExchange>(key, keys);
    }

    /// Reads from a ready entry and queues it for its turn.
    fn read<E: Entry<Self::Net>>(&mut self, key: Key, ready: Readiness) {
        match self.step(key, |entry: &mut E, shared| entry.read_ready(shared, ready)) {
            Some(true) => E::table(self.parts().0).ready.push(key),
            Some(false) => self.decide::<E>(key, E::end),
            None => {}
        }
    }

    /// Runs the turns of clients with input. Responses are made first and then written in sequence. The code of each
    /// step stays in the CPU cache, and a client process that is woken by the first response finds the others too.
    fn turn_together(&mut self, keys: &[Key]) {
        let mut parts = [Part::Whole; WRITTEN_TOGETHER];
        let mut written = 0;
        for (at, key) in keys.iter().enumerate() {
            if at % WRITTEN_TOGETHER == 0 {
                self.parts().1.files.prefetch_requests(WRITTEN_TOGETHER);
            }
            self.parts().1.files.begin_expected();
            let ahead = self
                .step::<Client<Self>, _>(*key, answer)
                .unwrap_or(AnswerResult::Nothing);
            self.parts().1.files.end_expected();
            parts[at - written] = match ahead {
                AnswerResult::Response | AnswerResult::CostlyResponse => Part::Write,
                AnswerResult::Nothing | AnswerResult::End => Part::Whole,
            };
            if ahead == AnswerResult::End {
                self.close::<Client<Self>>(*key);
            }
            let next = at + 1;
            if next - written == WRITTEN_TOGETHER
                || ahead == AnswerResult::CostlyResponse
                || next == keys.len()
            {
                for (key, part) in keys[written..next].iter().zip(parts) {
                    self.turn::<Client<Self>>(*key, Readiness::of_part(part));
                }
                written = next;
            }
        }
    }

    /// Runs the turn of an entry.
    fn turn<E: Entry<Self::Net>>(&mut self, key: Key, ready: Readiness) {
        self.decide(key, |entry: &mut E, shared| entry.turn(shared, ready));
    }

    /// Runs the turn of an entry for its woken streams.
    fn wake<E: Entry<Self::Net>>(&mut self, key: Key, keys: &[WakeKey]) {
        self.decide(key, |entry: &mut E, shared| entry.wake(shared, keys));
    }

    /// Runs the turns of entries after their deadline.
    fn expire<E: Entry<Self::Net>>(&mut self, now_ms: u64) {
        for key in E::table(self.parts().0).expire(now_ms) {
            self.turn::<E>(key, Readiness::of(TurnCause::Expired));
        }
    }

    /// Closes an entry at once; exchanges in progress are logged as far as they came.
    fn abort<E: Entry<Self::Net>>(&mut self, key: Key) {
        self.turn::<E>(key, Readiness::of(TurnCause::Aborted));
    }

    /// Runs a step of an entry, then keeps, parks or closes it.
    fn decide<E: Entry<Self::Net>>(
        &mut self,
        key: Key,
        step: impl FnOnce(&mut E, &mut Shared<Self::Net>) -> Disposition<E::Parking>,
    ) {
        match self.step(key, step) {
            Some(Disposition::Keep { deadline_ms }) => {
                E::table(self.parts().0).arm(key, deadline_ms);
            }
            Some(Disposition::Park { place, deadline_ms }) => {
                let (tables, shared) = self.parts();
                E::table(tables).arm(key, deadline_ms);
                if let Some(surplus) = E::park(tables, key, place, shared.clock.mono_ms) {
                    self.close::<E>(surplus);
                }
            }
            Some(Disposition::Close) => self.close::<E>(key),
            None => {}
        }
    }

    /// Runs a step of an entry; `None` if the entry is gone, or was removed after a panic.
    fn step<E: Entry<Self::Net>, T>(
        &mut self,
        key: Key,
        step: impl FnOnce(&mut E, &mut Shared<Self::Net>) -> T,
    ) -> Option<T> {
        let (tables, shared) = self.parts();
        let table = E::table(tables);
        let token = table.token(key);
        let entry = table.get_mut(key)?;
        E::enter(token, shared);
        let result = Self::contain(|| step(entry, shared));
        entry.leave(shared);
        if result.is_none() {
            self.panicked();
            self.close::<E>(key);
        }
        result
    }

    /// Takes an entry out.
    fn close<E: Entry<Self::Net>>(&mut self, key: Key) {
        let (tables, shared) = self.parts();
        if let Some(entry) = E::table(tables).remove(key) {
            entry.close(tables, shared, key);
            self.closed(E::KIND, key);
        }
    }

    /// Assigns connections to requested attempts: each its own, or one to several.
    fn dial(&mut self) {
        let mut calls = std::mem::take(&mut self.parts().1.dialer.calls);
        let mut groups: Option<Groups> = None;
        for mut dial in calls.drain(..) {
            if dial.call.is_given_up() {
                continue;
            }
            self.adjust(&mut dial.route);
            let shared = self.parts().1;
            match shared.attempts.sharing(&dial, shared.clock.mono_ms) {
                Sharing::Alone => self.begin_attempt(Group::alone(dial.route, dial.call)),
                Sharing::Queue => groups.get_or_insert_default().add(dial.route, dial.call),
                Sharing::Streams => self.join_streams(Group::alone(dial.route, dial.call)),
            }
        }
        if let Some(groups) = groups {
            self.dial_groups(groups);
        }
        let dialer = &mut self.parts().1.dialer;
        if dialer.calls.is_empty() {
            // The list is put back with its memory.
            dialer.calls = calls;
        }
    }

    /// Assigns connections to attempts that may share one.
    #[inline(never)]
    fn dial_groups(&mut self, mut groups: Groups) {
        while let Some(group) = groups.take() {
            self.begin_attempt(group);
        }
    }

    /// Assigns a free stream to an attempt, or else a connection.
    #[inline(never)]
    fn join_streams(&mut self, group: Group) {
        let (tables, shared) = self.parts();
        let route = &group.route;
        let pool = route.pool.map_or(0, |pool| pool.id);
        while let Some(key) = shared.attempts.available.take(pool, &route.addr) {
            let Some(conn) = tables.upstreams.get_mut(key) else {
                // One that is gone by a panic is still noted.
                continue;
            };
            // Pools are found by a digest, which clients may make equal for two names.
            if servers::is_secured_for(conn, route) {
                return self.decide(key, |conn: &mut Server<Self>, shared| {
                    servers::join(conn, shared, group)
                });
            }
        }
        self.begin_attempt(group);
    }

    /// Begins attempts on the idle connection that was used last, or on a new one.
    #[inline(always)] // Nearly all come one by one, and a call moves the group.
    fn begin_attempt(&mut self, group: Group) {
        let (tables, _) = self.parts();
        let route = &group.route;
        let pool = route.pool.as_ref();
        let idle = pool.and_then(|pool| tables.idle.take(pool.id, &route.addr));
        let (key, established) = match idle {
            Some(key) => (key, true),
            None => match self.connect(route) {
                Ok(connected) => connected,
                Err(failure) => return group.fail(&failure),
            },
        };
        let wake_key = WakeKey {
            owner: self.parts().0.upstreams.token(key),
            stream: 0,
        };
        self.decide(key, |conn: &mut Server<Self>, shared| {
            servers::begin(conn, shared, group, wake_key, established)
        });
    }

    /// Begins a connection; returns its key and whether it is established.
    fn connect(&mut self, route: &Route) -> Result<(Key, bool), Failure> {
        if !self.admit_upstream() {
            return Err(Failure::NoConnection);
        }
        let net = &mut self.parts().1.net;
        let mut result = net.connect(&route.addr, &route.options);
        if let Err(error) = &result
            && matches!(error.error.raw_os_error(), Some(EMFILE | ENFILE))
            && (self.close_sockets() || self.free_descriptor())
        {
            let net = &mut self.parts().1.net;
            result = net.connect(&route.addr, &route.options);
        }
        let Connecting {
            socket,
            established,
        } = result.map_err(|error| of_socket(error.call, &error.error))?;
        let (tables, shared) = self.parts();
        let conn = ServerConn::new(socket, established, shared.clock.mono_ms);
        let key = tables.upstreams.insert(conn);
        match self.register_upstream(key) {
            Ok(()) => Ok((key, established)),
            Err(error) => {
                self.close::<Server<Self>>(key);
                Err(of_socket("epoll_ctl()", &error))
            }
        }
    }

    /// Closes the sockets of connections to servers that are over; false if there are none.
    fn close_sockets(&mut self) -> bool {
        let closing = &mut self.parts().0.closing;
        let any = !closing.is_empty();
        closing.clear();
        any
    }

    /// Closes the connection to a server that has been idle for longest; false if there is none.
    fn close_idle_upstream(&mut self) -> bool {
        let oldest = self.parts().0.idle.take_oldest();
        if let Some(key) = oldest {
            self.close::<Server<Self>>(key);
            self.close_sockets();
        }
        oldest.is_some()
    }
}

fn of_socket(call: &'static str, error: &io::Error) -> Failure {
    Failure::Socket {
        call,
        errno: error.raw_os_error().unwrap_or(EINVAL),
    }
}

/// Maximum number of responses made before the first of them is written, and of file lookups done together.
pub const WRITTEN_TOGETHER: usize = 32;

const EINVAL: i32 = 22;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
