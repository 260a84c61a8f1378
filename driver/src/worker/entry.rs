//! Entries of the loop's tables: connections of clients, connections to servers, exchanges without a client.
//!
//! [`EventLoop`](super::event_loop::EventLoop) runs all of them by the functions of [`Entry`], once for each type, so that no call
//! is dynamic.

use std::convert::Infallible;

use server_base::waker::WakeKey;

use super::conn::{self, Conn};
use super::detached::DetachedExchange;
use super::disposition::Disposition;
use super::net::Net;
use super::readiness::{Readiness, TurnCause};
use super::server_state::{PoolPlace, ServerConn};
use super::servers;
use super::shared::Shared;
use super::slab::Key;
use super::tables::{Table, Tables};
use super::token::TokenKind;

/// An entry of one of the loop's tables.
pub trait Entry<N: Net>: Sized {
    /// A place that an entry may have besides its table.
    type Parking;

    /// The kind of the table.
    const KIND: TokenKind;

    /// The table of such entries.
    fn table(tables: &mut Tables<N>) -> &mut Table<Self>;

    /// A step of the entry begins; `token` wakes it.
    fn enter(_token: u64, _sh: &mut Shared<N>) {}

    /// The step has ended, or panicked.
    fn leave(&mut self, _sh: &mut Shared<N>) {}

    /// Reads ahead of the turn: all ready entries are read before the first turn. Returns false if the peer has ended the
    /// entry ([`Self::end`]).
    fn read_ready(&mut self, sh: &mut Shared<N>, ready: Readiness) -> bool;

    /// Ends the entry, since its peer has. Requests that do not outlive a client are logged.
    fn end(&mut self, sh: &mut Shared<N>) -> Disposition<Self::Parking> {
        self.turn(sh, Readiness::of(TurnCause::Broken))
    }

    /// Does all that can be done now.
    fn turn(&mut self, sh: &mut Shared<N>, ready: Readiness) -> Disposition<Self::Parking>;

    /// Runs a turn in which the streams of these keys are woken.
    fn wake(&mut self, sh: &mut Shared<N>, _keys: &[WakeKey]) -> Disposition<Self::Parking> {
        self.turn(sh, Readiness::default())
    }

    /// Puts the entry into its place at `now_ms`. Returns an entry that has to be closed for it.
    fn park(_: &mut Tables<N>, _key: Key, _place: Self::Parking, _now_ms: u64) -> Option<Key> {
        None
    }

    /// Closes the entry, which was taken out of its table.
    fn close(self, _: &mut Tables<N>, _: &mut Shared<N>, _: Key) {}
}

impl<N: Net> Entry<N> for Conn<N::Socket> {
    type Parking = Infallible;

    const KIND: TokenKind = TokenKind::Client;

    fn table(tables: &mut Tables<N>) -> &mut Table<Self> {
        &mut tables.clients
    }

    fn enter(token: u64, sh: &mut Shared<N>) {
        sh.owner = token;
        sh.arms.cpu.begin();
    }

    fn leave(&mut self, sh: &mut Shared<N>) {
        if sh.arms.cpu.is_measuring() {
            conn::add_cpu(self, sh.arms.cpu.end());
        }
    }

    fn read_ready(&mut self, sh: &mut Shared<N>, ready: Readiness) -> bool {
        conn::read_ready(self, sh, ready)
    }

    fn turn(&mut self, sh: &mut Shared<N>, ready: Readiness) -> Disposition {
        conn::turn(self, sh, ready)
    }

    fn wake(&mut self, sh: &mut Shared<N>, keys: &[WakeKey]) -> Disposition {
        conn::wake(self, sh, keys)
    }

    /// Connections to servers that are bound to the client's are closed with it.
    fn close(mut self, tables: &mut Tables<N>, sh: &mut Shared<N>, _: Key) {
        conn::end_probe(&mut self, sh);
        for group in sh.dialer.bindings.end(self.serial()) {
            tables.idle.abandon(group);
        }
    }
}

impl<N: Net> Entry<N> for ServerConn<N::Socket> {
    type Parking = PoolPlace;

    const KIND: TokenKind = TokenKind::Upstream;

    fn table(tables: &mut Tables<N>) -> &mut Table<Self> {
        &mut tables.upstreams
    }

    fn read_ready(&mut self, sh: &mut Shared<N>, ready: Readiness) -> bool {
        servers::read_ready(self, sh, ready)
    }

    /// The connection was idle.
    fn end(&mut self, _: &mut Shared<N>) -> Disposition<PoolPlace> {
        Disposition::Close
    }

    fn turn(&mut self, sh: &mut Shared<N>, ready: Readiness) -> Disposition<PoolPlace> {
        servers::turn(self, sh, ready)
    }

    fn wake(&mut self, sh: &mut Shared<N>, keys: &[WakeKey]) -> Disposition<PoolPlace> {
        servers::wake(self, sh, keys)
    }

    fn park(
        tables: &mut Tables<N>,
        key: Key,
        PoolPlace { pool, addr }: PoolPlace,
        now_ms: u64,
    ) -> Option<Key> {
        tables.idle.insert(&pool, addr, key, now_ms)
    }

    /// The attempt in progress fails, since its `UpstreamCall` is dropped. The socket is closed at the end of the turn.
    fn close(self, tables: &mut Tables<N>, _: &mut Shared<N>, key: Key) {
        if let Some(pool) = self.idle_pool() {
            tables.idle.remove(pool, key);
        }
        tables.closing.push(self);
    }
}

impl<N: Net> Entry<N> for DetachedExchange {
    type Parking = Infallible;

    const KIND: TokenKind = TokenKind::Detached;

    fn table(tables: &mut Tables<N>) -> &mut Table<Self> {
        &mut tables.detached
    }

    fn enter(token: u64, sh: &mut Shared<N>) {
        sh.owner = token;
    }

    /// There is no socket.
    fn read_ready(&mut self, _: &mut Shared<N>, _: Readiness) -> bool {
        true
    }

    fn turn(&mut self, sh: &mut Shared<N>, ready: Readiness) -> Disposition {
        self.turn(sh, ready.cause)
    }
}
