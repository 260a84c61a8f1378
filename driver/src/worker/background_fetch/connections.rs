//! The connections of background fetches: a loop of the main thread that has servers and no clients.
//!
//! A request is an attempt as exchanges have them, with a mailbox and without an exchange: a turn of the loop connects,
//! sends, receives and keeps connections for the next request (`worker::servers`).

use std::io;
use std::ops::ControlFlow;

use server_base::waker::{WakeKey, Waker};
use server_http::exchange::Env;
use server_upstream::connector::Connector;
use server_upstream::request::{RequestSpec, UpstreamRequest};
use server_upstream::route::Route;
use sys::poll::{Poller, Ready};

use super::super::unix_s;
use crate::worker::event_loop::{EventLoop, Server};
use crate::worker::net::Sockets;
use crate::worker::readiness::Readiness;
use crate::worker::shared::Shared;
use crate::worker::slab::Key;
use crate::worker::tables::Tables;
use crate::worker::thread_config::ThreadConfig;
use crate::worker::token::TokenKind;

/// The connections of all fetches.
pub(super) struct Connections {
    tables: Tables<Sockets>,
    shared: Shared<Sockets>,
    /// Events since the last turn.
    events: Vec<Ready>,
}

/// One turn of the loop.
struct Turn<'a> {
    connections: &'a mut Connections,
    poller: &'a Poller,
}

impl Connections {
    /// No connections; nothing of the configuration is used.
    pub(super) fn new(config: ThreadConfig) -> Self {
        Self {
            tables: Tables::new(0),
            shared: Shared::new(Sockets::default(), config, Env::default()),
            events: Vec::new(),
        }
    }

    /// Begins a request, which leaves in the next turn.
    pub(super) fn call(&mut self, route: Route, request: RequestSpec) -> UpstreamRequest {
        // No connection has this key: the fetches read their mailboxes after each turn.
        let key = WakeKey {
            owner: u64::MAX,
            stream: 0,
        };
        let waker = Waker::new(key, &self.shared.queues.wakers);
        self.shared.dialer.call(route, request, waker)
    }

    /// Records an event; false if it belongs to another socket.
    pub(super) fn ready(&mut self, ready: Ready) -> bool {
        let is_own = TokenKind::of(ready.token) == Some(TokenKind::Upstream);
        if is_own {
            self.events.push(ready);
        }
        is_own
    }

    /// Whether a connection was woken since the last turn, as by a mailbox with room again.
    pub(super) fn is_woken(&self) -> bool {
        !self.shared.queues.wakers.is_empty()
    }

    /// When the next turn is due, milliseconds in the clock of [`Self::turn`].
    pub(super) fn deadline(&self) -> Option<u64> {
        self.tables.next_deadline()
    }

    /// Runs a turn of the loop.
    pub(super) fn turn(&mut self, poller: &Poller, now_ms: u64) {
        self.shared.set_now(now_ms, unix_s().unsigned_abs() * 1000);
        let mut turn = Turn {
            connections: self,
            poller,
        };
        // Nothing ends this loop.
        let _ = turn.turn_all();
    }
}

impl EventLoop for Turn<'_> {
    type Net = Sockets;

    fn parts(&mut self) -> (&mut Tables<Sockets>, &mut Shared<Sockets>) {
        (&mut self.connections.tables, &mut self.connections.shared)
    }

    fn read_ready(&mut self) -> ControlFlow<()> {
        for ready in std::mem::take(&mut self.connections.events) {
            self.read::<Server<Self>>(Key::from_token(ready.token), Readiness::of_socket(ready));
        }
        ControlFlow::Continue(())
    }

    fn contain<T>(step: impl FnOnce() -> T) -> Option<T> {
        Some(step())
    }

    fn panicked(&mut self) {}

    fn closed(&mut self, _: TokenKind, _: Key) {}

    fn admit_upstream(&mut self) -> bool {
        true
    }

    fn free_descriptor(&mut self) -> bool {
        false
    }

    fn register_upstream(&mut self, key: Key) -> io::Result<()> {
        self.connections.tables.register_upstream(self.poller, key)
    }
}
