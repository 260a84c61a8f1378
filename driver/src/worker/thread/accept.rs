//! Accepting connections, and the handling of too many.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use server_base::errlog::{self, Level, Topics};
use server_http::exchange::Peer;
use server_http::meters::{self, Event};
use sys::socket;

use super::{Accepting, EventLoop, Interest, Ordering, Readiness, Thread};
use crate::worker::conn::{Conn, accepted, debug};
use crate::worker::event_loop::Client;

impl Thread {
    /// Accepts from a port.
    pub(super) fn accept(&mut self, port: usize) {
        let most = if self.setup.multi_accept {
            MULTI_ACCEPTS_A_TURN
        } else {
            ACCEPTS_A_TURN
        };
        self.accept_most(port, most);
    }

    /// Stops polling the listeners, and accepts the waiting connections. A connection wakes one poller alone. If that
    /// was this thread's, another thread with the same socket learns of it only with the next connection.
    pub(super) fn accept_last(&mut self) {
        let accepting = self.accepting;
        self.pause(Accepting::Never);
        if accepting != Accepting::Yes {
            return;
        }
        self.accepting = Accepting::Yes;
        for port in 0..self.listeners.len() {
            self.accept_most(port, LAST_ACCEPTS);
        }
        self.accepting = Accepting::Never;
    }

    /// Accepts waiting connections of a listener that is closed.
    pub(super) fn accept_rest(&mut self, port: usize) {
        self.accept_most(port, LAST_ACCEPTS);
    }

    fn accept_most(&mut self, port: usize, most: usize) {
        for _ in 0..most {
            if matches!(self.accepting, Accepting::NotBefore(_)) {
                return self.refuse_late(port);
            }
            if self.accepting != Accepting::Yes {
                return;
            }
            if !self.has_room() && !self.make_room_at(port) {
                return;
            }
            let Some(Some(listener)) = self.listeners.get(port) else {
                return;
            };
            match socket::accept(listener.as_fd()) {
                Ok((socket, peer)) => {
                    let peer = peer.map_or(Peer::Unix, Peer::Inet);
                    self.accepted(socket, peer, port);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if !self.overload.is_empty() {
                        self.forget_queue(port);
                    }
                    return;
                }
                Err(e) => {
                    if !self.survive(&e) {
                        return;
                    }
                }
            }
        }
    }

    fn accepted(&mut self, socket: OwnedFd, peer: Peer, port: usize) {
        self.tight = socket.as_raw_fd() >= self.setup.descriptor_ceiling;
        let Some(port) = self.port_of(port, &socket) else {
            // A reload has removed the listener's address: the connection is closed.
            return;
        };
        let serial = self.took_connection();
        let mut conn = Conn::new(socket, peer, port, serial, self.shared.clock.mono_ms);
        self.configure_conn(port, &mut conn);
        conn.set_debug(self.is_debugged(peer));
        accepted(&mut conn, &self.shared);
        self.debug_accepted(&conn);
        let clients = &mut self.tables.clients;
        let key = clients.insert(conn);
        let token = clients.token(key);
        let Some(conn) = clients.get_mut(key) else {
            return;
        };
        let added = self.poller.add(conn.socket(), token, Interest::Connection);
        if added.is_err() {
            self.close::<Client<Self>>(key);
            return;
        }
        // Nothing has been read: this only sets the deadline for the first head.
        self.turn::<Client<Self>>(key, Readiness::default());
    }

    /// Returns the port of a connection from the listener of `port`. If the configuration no longer has the port, another one
    /// may have its address.
    fn port_of(&self, port: usize, socket: &OwnedFd) -> Option<usize> {
        let http = &self.shared.generation.http;
        if http.ports.get(port).is_none_or(|port| port.is_listening) {
            return Some(port);
        }
        let local = socket::local_addr(socket).ok().flatten()?;
        http.listening_port(local)
    }

    /// Sets the expected begin of a connection: PROXY protocol, TLS, and the protocols of its address.
    fn configure_conn(&self, port: usize, conn: &mut Conn<OwnedFd>) {
        let Some(port) = self.shared.generation.http.ports.get(port) else {
            return;
        };
        let http = &self.shared.generation.http;
        let addr = match port.addrs.as_slice() {
            [only] => only,
            several
                if several.iter().all(|addr| {
                    !addr.ssl && !addr.proxy_protocol && http.expected_protocols(addr).is_empty()
                }) =>
            {
                return;
            }
            _ => port.addr(socket::local_addr(conn.socket()).ok().flatten()),
        };
        if addr.proxy_protocol {
            conn.expect_proxy_header();
        }
        if addr.ssl {
            conn.expect_tls();
        } else {
            conn.expect(http.expected_protocols(addr));
        }
    }

    /// Whether `debug_connection` names a peer.
    pub(super) fn is_debugged(&self, peer: Peer) -> bool {
        let networks = &self.setup.debug_connections;
        networks.iter().any(|network| network.has(peer))
    }

    fn debug_accepted(&self, conn: &Conn<OwnedFd>) {
        if !errlog::debugging() {
            return;
        }
        let fd = conn.socket().as_raw_fd();
        let text = match conn.peer() {
            Peer::Inet(addr) => format!("accept: {addr} fd:{fd}"),
            Peer::Unix => format!("accept: unix: fd:{fd}"),
        };
        debug(conn, &self.shared, Topics::EVENT, format_args!("{text}"));
    }

    /// Whether accepting may continue at once after this error.
    fn survive(&mut self, error: &io::Error) -> bool {
        match error.raw_os_error() {
            // The client is gone already, or a firewall refused it.
            Some(ECONNABORTED | EPROTO | EPERM) => true,
            Some(EMFILE | ENFILE) if self.close_what_is_spare() => true,
            _ => {
                let reason = sys::os_error(error);
                self.log_full(Level::Crit, format_args!("accept4() failed ({reason})"));
                self.rest();
                false
            }
        }
    }

    /// Whether one more connection can be accepted without closing another.
    fn has_room(&self) -> bool {
        self.tables.connections() < self.setup.worker_connections && !self.lacks_descriptors()
    }

    /// Whether there may be one more connection to a server; another connection may be closed for it.
    pub(super) fn has_room_for_upstream(&mut self) -> bool {
        if self.tables.connections() < self.setup.worker_connections || self.make_room() {
            return true;
        }
        let most = self.setup.worker_connections;
        let text = format_args!("{most} worker_connections are not enough");
        self.log_full(Level::Alert, text);
        false
    }

    /// Closes unused open files, or else a connection; false if there is none.
    pub(super) fn close_what_is_spare(&mut self) -> bool {
        if self.shared.files.is_empty() {
            return self.make_room();
        }
        self.shared.files.clear();
        true
    }

    /// A connection has ended: another may take its place.
    pub(super) fn connection_closed(&mut self) {
        self.tight = false;
        if matches!(self.accepting, Accepting::NotBefore(_)) {
            self.listen();
        }
    }

    pub(super) fn lacks_descriptors(&self) -> bool {
        let short = self.counters.descriptors_short.load(Ordering::Relaxed);
        // A quitting worker needs no descriptors for the supervisor.
        (self.tight || short) && self.quit.is_none()
    }

    /// Closes a connection for one that waits at a port; false if none waits, or none can be closed.
    fn make_room_at(&mut self, port: usize) -> bool {
        let listener = self.listeners.get(port).and_then(Option::as_ref);
        if !listener.is_some_and(|listener| socket::is_waiting(listener.as_fd())) {
            self.forget_queue(port);
            return false;
        }
        let lacks_descriptors = self.lacks_descriptors();
        // The next accepted connection shows whether descriptors are still short.
        self.tight = false;
        let made = self.make_room();
        let how = if made { ", reusing connections" } else { "" };
        if lacks_descriptors {
            let text = format_args!("open files are not enough{how}");
            self.log_full(Level::Warn, text);
        } else {
            let most = self.setup.worker_connections;
            let text = format_args!("{most} worker_connections are not enough{how}");
            self.log_full(Level::Warn, text);
        }
        if !made {
            self.refuse_late(port);
            self.rest();
        }
        made
    }

    /// Logs, once a second at most, that there is no room.
    fn log_full(&mut self, level: Level, text: std::fmt::Arguments<'_>) {
        let now_ms = self.shared.clock.mono_ms;
        if now_ms >= self.log_full_after_ms {
            self.log_full_after_ms = now_ms + 1000;
            self.setup.log.write(level, text);
        }
    }

    /// Accepts no connection until one ends, and looks again soon: another one may have become idle.
    fn rest(&mut self) {
        meters::event(Event::AcceptPause);
        self.pause(Accepting::NotBefore(
            self.shared.clock.mono_ms + ACCEPT_PAUSE_MS,
        ));
    }

    pub(super) fn listen(&mut self) {
        if self.quit.is_some() {
            return;
        }
        self.poll_listeners();
        self.accepting = Accepting::Yes;
    }

    pub(super) fn pause(&mut self, until: Accepting) {
        for listener in self.listeners.iter().flatten() {
            let _ = self.poller.remove(listener.as_fd());
        }
        self.accepting = until;
    }
}

/// Connections accepted from one listener in a turn of the loop without `multi_accept`.
const ACCEPTS_A_TURN: usize = 8;
/// Maximum number of connections accepted at once by `multi_accept`: they take about a millisecond, for which others
/// wait. Those that remain are accepted in the next turn.
const MULTI_ACCEPTS_A_TURN: usize = 64;
/// Connections accepted from one listener that is closed: more than a backlog holds by default (511).
const LAST_ACCEPTS: usize = 1024;
/// Pause without room, unless a connection ends before. It is short beside a client's patience, and long beside a
/// search through all connections.
const ACCEPT_PAUSE_MS: u64 = 50;
const EPERM: i32 = 1;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const EPROTO: i32 = 71;
const ECONNABORTED: i32 = 103;
