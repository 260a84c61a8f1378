//! The entries of a loop, in a table for each kind.
//!
//! A key identifies an entry of its table, a token an entry of any table. Pollers and
//! [`WakeKey`](server_base::waker::WakeKey) carry tokens. Each entry has a timer.

use std::collections::VecDeque;
use std::io;

use sys::poll::{Interest, Poller};

use super::conn::Conn;
use super::detached::DetachedExchange;
use super::net::{Net, Sockets};
use super::server_state::ServerConn;
use super::servers::pool::IdleConnections;
use super::slab::{Key, Slab};
use super::token::TokenKind;
use crate::io::timer::Timers;

/// Entries of one kind, each with a timer.
pub struct Table<T> {
    kind: TokenKind,
    slab: Slab<T>,
    timers: Timers,
    /// Entries with an expired timer beyond [`EXPIRED_A_TURN`].
    overdue: VecDeque<Key>,
    /// Entries with input that wait for their turn.
    pub ready: Vec<Key>,
}

/// All tables of a loop.
pub struct Tables<N: Net> {
    /// Connections of clients.
    pub clients: Table<Conn<N::Socket>>,
    /// Connections to servers.
    pub upstreams: Table<ServerConn<N::Socket>>,
    /// Exchanges without a client.
    pub detached: Table<DetachedExchange>,
    /// Connections to servers that are idle.
    pub idle: IdleConnections,
    /// Connections to servers that are over; their sockets are closed at the end of the turn.
    pub(super) closing: Vec<ServerConn<N::Socket>>,
}

impl<T> Table<T> {
    /// An empty table whose timers start at `now_ms`.
    pub fn new(kind: TokenKind, now_ms: u64) -> Self {
        Self {
            kind,
            slab: Slab::new(),
            timers: Timers::new(now_ms),
            overdue: VecDeque::new(),
            ready: Vec::new(),
        }
    }

    /// The token of an entry, unique among entries of all kinds.
    #[inline]
    pub fn token(&self, key: Key) -> u64 {
        self.kind.first_token() | key.token()
    }

    /// Adds an entry.
    pub fn insert(&mut self, value: T) -> Key {
        self.slab.insert(value)
    }

    /// The entry of a key, if it is still there.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.slab.get_mut(key)
    }

    /// Takes an entry out, and its timer.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let value = self.slab.remove(key)?;
        self.timers.cancel(key.index);
        Some(value)
    }

    /// The keys of all entries.
    pub fn keys(&self) -> Vec<Key> {
        self.slab.keys()
    }

    /// The key of the entry in a slot.
    pub fn key_at(&self, slot: u32) -> Option<Key> {
        self.slab.key_at(slot)
    }

    /// Returns the number of slots, used now or before.
    pub fn slots(&self) -> u32 {
        self.slab.slots()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.slab.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }

    /// Returns the number of entries with a timer.
    pub fn timers(&self) -> usize {
        self.timers.len() + self.overdue.len()
    }

    /// When the first timer is due.
    pub fn next_deadline(&self) -> Option<u64> {
        if !self.overdue.is_empty() {
            return Some(0);
        }
        self.timers.next_deadline()
    }

    /// Sets the timer of an entry, unless it is due earlier. An early timer finds the real deadline; most timers are
    /// cancelled before.
    #[inline]
    pub(super) fn arm(&mut self, key: Key, deadline_ms: u64) {
        let armed = self.timers.deadline(key.index);
        if armed.is_none_or(|at_ms| deadline_ms < at_ms) {
            self.timers.arm(key.index, deadline_ms);
        }
    }

    /// Takes the keys of entries with an expired timer, [`EXPIRED_A_TURN`] at most; the rest are due in the next turn.
    /// Connections made at the same time end at the same time, and closing thousands of them in one turn would delay
    /// all others. An entry that has its turn before then may have a timer again, and gets one turn too many.
    pub(super) fn expire(&mut self, now_ms: u64) -> Vec<Key> {
        let mut expired = Vec::new();
        self.timers.expire(now_ms, &mut expired);
        if expired.is_empty() && self.overdue.is_empty() {
            return Vec::new();
        }
        let suffices = self.overdue.is_empty() && expired.len() <= EXPIRED_A_TURN;
        let keys = expired.into_iter().filter_map(|at| self.slab.key_at(at));
        if suffices {
            return keys.collect();
        }
        self.overdue.extend(keys);
        let count = self.overdue.len().min(EXPIRED_A_TURN);
        self.overdue.drain(..count).collect()
    }
}

impl Tables<Sockets> {
    /// Registers the socket of a connection to a server with a poller.
    ///
    /// # Errors
    /// The poller cannot.
    pub(super) fn register_upstream(&mut self, poller: &Poller, key: Key) -> io::Result<()> {
        let token = self.upstreams.token(key);
        match self.upstreams.get_mut(key) {
            Some(conn) => poller.add(conn.socket(), token, Interest::Connection),
            None => Ok(()),
        }
    }
}

impl<N: Net> Tables<N> {
    /// Empty tables whose timers start at `now_ms`.
    pub fn new(now_ms: u64) -> Self {
        Self {
            clients: Table::new(TokenKind::Client, now_ms),
            upstreams: Table::new(TokenKind::Upstream, now_ms),
            detached: Table::new(TokenKind::Detached, now_ms),
            idle: IdleConnections::default(),
            closing: Vec::new(),
        }
    }

    /// When the first timer is due.
    pub fn next_deadline(&self) -> Option<u64> {
        let clients = self.clients.next_deadline();
        let upstreams = self.upstreams.next_deadline();
        let detached = self.detached.next_deadline();
        let times = clients.into_iter().chain(upstreams).chain(detached);
        times.chain(self.idle.surplus_due_ms()).min()
    }

    /// Returns the number of connections to servers that are not idle.
    pub fn upstreams_in_use(&self) -> usize {
        self.upstreams.len().saturating_sub(self.idle.len())
    }

    /// Whether there are neither clients nor detached exchanges.
    pub fn is_unused(&self) -> bool {
        self.clients.is_empty() && self.detached.is_empty()
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        self.clients.len() + self.upstreams.len()
    }
}

/// Maximum number of timers of one kind handled in a turn of the loop: closing this many connections takes about a
/// millisecond.
const EXPIRED_A_TURN: usize = 128;

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;
    use crate::worker::servers::pool::IDLE_BYTES;

    #[test]
    fn a_token_names_an_entry_of_a_kind() {
        let mut table = Table::new(TokenKind::Client, 0);
        let key = table.insert('a');
        assert_eq!(Key::from_token(table.token(key)), key);
        assert_eq!(TokenKind::of(table.token(key)), Some(TokenKind::Client));
        let mut other = Table::new(TokenKind::Upstream, 0);
        let same = other.insert('b');
        assert_eq!(same, key);
        let token = other.token(same);
        assert_eq!(
            (TokenKind::of(token), Key::from_token(token)),
            (Some(TokenKind::Upstream), same)
        );
        assert_eq!(
            TokenKind::of(TokenKind::Resolver.first_token() + 7),
            Some(TokenKind::Resolver)
        );
        assert_eq!(
            (TokenKind::of(u64::MAX), TokenKind::of(1 << 63)),
            (None, None)
        );
    }

    #[test]
    fn an_idle_connection_to_a_server_costs_less_than_300_bytes() {
        const TIMER_BYTES: usize = 16;
        let slot_bytes = Slab::<ServerConn<OwnedFd>>::SLOT_BYTES;
        let bytes = slot_bytes + TIMER_BYTES + IDLE_BYTES;
        // Slabs and lists grow by doubling: up to half of a list is unused.
        assert!(
            slot_bytes + 2 * (bytes - slot_bytes) <= 300,
            "{slot_bytes} + {IDLE_BYTES}"
        );
    }

    #[test]
    fn timers_that_are_due_together_have_several_turns() {
        for more in [0, 1, EXPIRED_A_TURN + 1] {
            let mut table = Table::new(TokenKind::Client, 0);
            let count = EXPIRED_A_TURN + more;
            let mut keys: Vec<Key> = (0..count).map(|n| table.insert(n)).collect();
            for key in &keys {
                table.arm(*key, 50);
            }
            let mut expired = Vec::new();
            while table.next_deadline().is_some_and(|at_ms| at_ms <= 50) {
                let turn = table.expire(50);
                assert!(turn.len() <= EXPIRED_A_TURN);
                expired.push(turn.len());
                for key in turn {
                    keys.retain(|other| *other != key);
                }
            }
            assert!(keys.is_empty() && table.timers() == 0, "{more} more");
            assert_eq!(expired.len(), count.div_ceil(EXPIRED_A_TURN));
        }
    }

    #[test]
    fn a_timer_is_only_set_to_an_earlier_time_and_goes_with_its_entry() {
        let mut table = Table::new(TokenKind::Client, 0);
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
