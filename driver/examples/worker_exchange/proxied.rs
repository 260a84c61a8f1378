//! Proxied requests, over connections to a server with sockets in memory.

use std::io;
use std::ops::ControlFlow;

use driver::worker::conn::Conn;
use driver::worker::event_loop::{Client, EventLoop, Server};
use driver::worker::readiness::{Readiness, SocketFlags};
use driver::worker::shared::Shared;
use driver::worker::slab::Key;
use driver::worker::tables::Tables;
use driver::worker::token::TokenKind;

use super::{Memory, Socket};

/// Configuration of the proxied cases.
pub(super) const GROUP: &str = "upstream back { server 127.0.0.1:8001; keepalive 64; }";
pub(super) const LOCATION: &str = "location /px/ {
    proxy_pass http://back/;
    proxy_http_version 1.1;
    proxy_set_header Connection '';
}";

/// A loop with one client.
pub(super) struct Loop {
    tables: Tables<Memory>,
    shared: Shared<Memory>,
    client: Key,
    servers: Vec<Key>,
}

impl Loop {
    pub(super) fn new(shared: Shared<Memory>, client: Conn<Socket>) -> Self {
        let mut tables = Tables::new(0);
        let client = tables.clients.insert(client);
        Self {
            tables,
            shared,
            client,
            servers: Vec::new(),
        }
    }

    /// Returns the client, if its connection was kept.
    pub(super) fn client(&mut self) -> Option<&mut Socket> {
        let conn = self.tables.clients.get_mut(self.client);
        conn.map(Conn::socket_mut)
    }

    /// Returns the number of served requests.
    pub(super) fn requests(&self) -> u64 {
        self.shared.requests
    }

    /// Runs two turns: requests go to the server, and its responses to the client.
    pub(super) fn exchange(&mut self, mono_ms: u64, unix_ms: u64) -> bool {
        self.shared.set_now(mono_ms, unix_ms);
        self.turn_all().is_continue() && self.turn_all().is_continue()
    }
}

impl EventLoop for Loop {
    type Net = Memory;

    fn parts(&mut self) -> (&mut Tables<Memory>, &mut Shared<Memory>) {
        (&mut self.tables, &mut self.shared)
    }

    fn read_ready(&mut self) -> ControlFlow<()> {
        let ready = Readiness::of_socket(SocketFlags::READABLE);
        if self.client().is_some_and(|socket| socket.asked) {
            self.read::<Client<Self>>(self.client, ready);
        }
        for at in 0..self.servers.len() {
            let key = self.servers[at];
            let conn = self.tables.upstreams.get_mut(key);
            if conn.is_some_and(|conn| conn.socket().asked) {
                self.read::<Server<Self>>(key, ready);
            }
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
        self.servers.push(key);
        Ok(())
    }
}
