//! The things that a loop has, in a table for each kind, and the order of a turn of the loop.
//!
//! A thread and the simulator are both an [`EventLoop`]: they say where events come from, what a panic costs and what is
//! noted when a connection is closed. Everything else about a turn is here, so that the order under test is the order that
//! serves:
//!
//! ```text
//! intake    reads from all that is ready, and carries out orders
//! turns     of clients that were read from
//! wakes     turns of clients whose exchanges were woken; again while there are wakes, up to a limit
//! timers    turns of clients whose deadline has passed
//! ```

use std::ops::ControlFlow;

use super::conn::{Conn, Disposition, Readiness, end_sampling, read_ready, turn, wake};
use super::net::Net;
use super::shared::Shared;
use super::slab::{Key, Slab};
use super::wakes::run_woken;
use crate::io::timer::Timers;

/// Things of one kind, each with a timer.
pub struct Table<T> {
    kind: Kind,
    slab: Slab<T>,
    timers: Timers,
}

/// A kind of things, and its place in the tokens that name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Connections of clients.
    Client,
}

/// All tables of a loop.
pub struct Tables<N: Net> {
    /// Connections of clients.
    pub clients: Table<Conn<N::Socket>>,
    /// Clients that have been read from and wait for their turn.
    pub ready: Vec<Key>,
}

impl<T> Table<T> {
    /// An empty table whose timers start at `now_ms`.
    pub fn new(kind: Kind, now_ms: u64) -> Self {
        Self {
            kind,
            slab: Slab::new(),
            timers: Timers::new(now_ms),
        }
    }

    /// The token that names a thing among those of all kinds.
    #[inline]
    pub fn token(&self, key: Key) -> u64 {
        (self.kind as u64) << KIND_SHIFT | key.token()
    }

    /// Adds a thing.
    pub fn insert(&mut self, value: T) -> Key {
        self.slab.insert(value)
    }

    /// The thing of a key, if it is still there.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.slab.get_mut(key)
    }

    /// Takes a thing out, and its timer.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let value = self.slab.remove(key)?;
        self.timers.cancel(key.index);
        Some(value)
    }

    /// The keys of all things.
    pub fn keys(&self) -> Vec<Key> {
        self.slab.keys()
    }

    /// How many things there are.
    pub fn len(&self) -> usize {
        self.slab.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }

    /// How many of them have a timer.
    pub fn timers(&self) -> usize {
        self.timers.len()
    }

    /// When the first timer is due.
    pub fn next_deadline(&self) -> Option<u64> {
        self.timers.next_deadline()
    }

    /// Sets the timer of a thing, unless it is due before. One that comes too early finds the real deadline; most never come
    /// at all.
    #[inline]
    fn arm(&mut self, key: Key, deadline_ms: u64) {
        let armed = self.timers.deadline(key.index);
        if armed.is_none_or(|at_ms| deadline_ms < at_ms) {
            self.timers.arm(key.index, deadline_ms);
        }
    }

    /// Takes the keys of things whose timer is due.
    fn expire(&mut self, now_ms: u64) -> Vec<Key> {
        let mut expired = Vec::new();
        self.timers.expire(now_ms, &mut expired);
        let keys = expired.into_iter().filter_map(|at| self.slab.key_at(at));
        keys.collect()
    }
}

impl<N: Net> Tables<N> {
    /// Empty tables whose timers start at `now_ms`.
    pub fn new(now_ms: u64) -> Self {
        Self {
            clients: Table::new(Kind::Client, now_ms),
            ready: Vec::new(),
        }
    }
}

/// What has tables and gives the things in them their turns.
pub trait EventLoop: Sized {
    /// The sockets of the connections.
    type Net: Net;

    /// The tables, and what all connections share.
    fn parts(&mut self) -> (&mut Tables<Self::Net>, &mut Shared<Self::Net>);

    /// Reads from all that is ready ([`Self::read`]), and carries out orders; breaks where the loop is to end.
    fn intake(&mut self) -> ControlFlow<()>;

    /// Calls a step of one connection; `None` if it panicked and that costs no more than the connection.
    fn contain<T>(step: impl FnOnce() -> T) -> Option<T>;

    /// A panic was contained to a connection, which is closed now.
    fn panicked(&mut self);

    /// A connection was closed.
    fn closed(&mut self, key: Key);

    /// One turn of the loop, in the order of the module's documentation.
    fn turn_all(&mut self) -> ControlFlow<()> {
        self.intake()?;
        // The list is put back with its memory; nobody is read from meanwhile.
        let mut ready = std::mem::take(&mut self.parts().0.ready);
        for key in ready.drain(..) {
            self.turn(key, Readiness::default());
        }
        self.parts().0.ready = ready;
        let (_, shared) = self.parts();
        if !shared.wakers.is_empty() {
            let wakers = shared.wakers.clone();
            run_woken(&wakers, |key, keys| {
                self.decide(key, |conn, shared| wake(conn, shared, keys));
            });
        }
        let (tables, shared) = self.parts();
        let expired = Readiness {
            expired: true,
            ..Readiness::default()
        };
        for key in tables.clients.expire(shared.clock.mono_ms) {
            self.turn(key, expired);
        }
        ControlFlow::Continue(())
    }

    /// Reads from a client that is ready and notes it for its turn.
    fn read(&mut self, key: Key, ready: Readiness) {
        match self.step(key, |conn, shared| read_ready(conn, shared, ready)) {
            Some(true) => self.parts().0.ready.push(key),
            // The turn that follows logs what was in progress.
            Some(false) => self.abort(key),
            None => {}
        }
    }

    /// Gives a client its turn.
    fn turn(&mut self, key: Key, ready: Readiness) {
        self.decide(key, |conn, shared| turn(conn, shared, ready));
    }

    /// Closes a client at once; what was in progress is logged as far as it came.
    fn abort(&mut self, key: Key) {
        let broken = Readiness {
            broken: true,
            ..Readiness::default()
        };
        self.turn(key, broken);
    }

    /// Does something with a client that decides over it.
    fn decide(
        &mut self,
        key: Key,
        step: impl FnOnce(&mut ConnOf<Self>, &mut Shared<Self::Net>) -> Disposition,
    ) {
        match self.step(key, step) {
            Some(Disposition::Keep { deadline_ms }) => {
                self.parts().0.clients.arm(key, deadline_ms);
            }
            Some(Disposition::Close) => self.close(key),
            None => {}
        }
    }

    /// Does something with a client; `None` if it is gone, or has gone by a panic.
    fn step<T>(
        &mut self,
        key: Key,
        step: impl FnOnce(&mut ConnOf<Self>, &mut Shared<Self::Net>) -> T,
    ) -> Option<T> {
        let (tables, shared) = self.parts();
        shared.owner = tables.clients.token(key);
        let conn = tables.clients.get_mut(key)?;
        let result = Self::contain(|| step(conn, shared));
        if result.is_none() {
            self.panicked();
            self.close(key);
        }
        result
    }

    /// Takes a client out.
    fn close(&mut self, key: Key) {
        let (tables, shared) = self.parts();
        if let Some(mut conn) = tables.clients.remove(key) {
            end_sampling(&mut conn, shared);
        }
        self.closed(key);
    }
}

/// A connection of a loop.
type ConnOf<L> = Conn<<<L as EventLoop>::Net as Net>::Socket>;

/// Where the kind stands in a token, above the life of a slot.
const KIND_SHIFT: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_a_thing_of_a_kind() {
        let mut table = Table::new(Kind::Client, 0);
        let key = table.insert('a');
        assert_eq!(Key::from_token(table.token(key)), key);
        assert_eq!(table.token(key) >> KIND_SHIFT, Kind::Client as u64);
    }

    #[test]
    fn a_timer_is_only_set_to_an_earlier_time_and_goes_with_its_thing() {
        let mut table = Table::new(Kind::Client, 0);
        let (a, b) = (table.insert('a'), table.insert('b'));
        table.arm(a, 100);
        table.arm(a, 200);
        table.arm(b, 50);
        assert_eq!((table.next_deadline(), table.timers()), (Some(50), 2));
        assert_eq!(table.expire(60), [b]);
        assert_eq!(table.remove(a), Some('a'));
        assert_eq!((table.timers(), table.len()), (0, 1));
        assert_eq!(table.expire(1000), []);
    }
}
