//! Accepting connections, and what happens when there are too many.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use server_core::errlog::{self, Level, Topics};
use server_core::exchange::Peer;
use server_core::http::PortAddr;

use super::{Accepting, Cause, Conn, Interest, Key, LISTENER_BIT, Ordering, Thread};
use crate::sys::socket;
use crate::worker::conn::{Choice, debug};

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

    /// Stops to poll the listeners, and takes what waits there. A connection wakes one poller alone, and if that was this
    /// thread's, nobody else who shares the socket hears of it before the next one comes.
    pub(super) fn accept_last(&mut self) {
        let accepting = self.accepting;
        self.pause(Accepting::Never);
        if accepting != Accepting::Yes {
            return;
        }
        self.accepting = Accepting::Yes;
        for port in 0..self.setup.listeners.len() {
            self.accept_most(port, LAST_ACCEPTS);
        }
        self.accepting = Accepting::Never;
    }

    fn accept_most(&mut self, port: usize, most: usize) {
        for _ in 0..most {
            if self.accepting != Accepting::Yes {
                return;
            }
            if self.conns.len() >= self.setup.worker_connections && !self.make_room() {
                self.tell_full();
                self.pause(Accepting::Full);
                return;
            }
            let Some(listener) = self.setup.listeners.get(port) else {
                return;
            };
            match socket::accept(listener.as_fd()) {
                Ok((socket, peer)) => self.accepted(socket, peer, port),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) => {
                    if !self.survive(&e) {
                        return;
                    }
                }
            }
        }
    }

    fn accepted(&mut self, socket: OwnedFd, peer: Peer, port: usize) {
        let serial = self.counters.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let mut conn = Conn::new(socket, peer, port, serial, self.shared.clock.mono_ms);
        self.introduce(port, &mut conn);
        conn.set_debug(self.is_debugged(peer));
        self.tell_accepted(&conn);
        let key = self.conns.insert(conn);
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        if self
            .poller
            .add(conn.socket(), key.token(), Interest::Connection)
            .is_err()
        {
            self.close(key);
            return;
        }
        // Nothing has been read: this only sets the deadline for the first head.
        self.turn(key, Cause::default());
    }

    /// Tells the connection what its address expects before the first request.
    fn introduce(&self, port: usize, conn: &mut Conn<OwnedFd>) {
        let Some(port) = self.shared.generation.http.ports.get(port) else {
            return;
        };
        let http = &self.shared.generation.http;
        let choice = |addr: &PortAddr| {
            let http2 = http.expects_http2(addr);
            let spdy = addr.spdy;
            (http2 || spdy).then_some(Choice { http2, spdy })
        };
        let addr = match port.addrs.as_slice() {
            [only] => only,
            several
                if several
                    .iter()
                    .all(|addr| choice(addr).is_none() && !addr.ssl && !addr.proxy_protocol) =>
            {
                return;
            }
            _ => port.addr(socket::local_addr(conn.socket()).ok().flatten()),
        };
        if addr.proxy_protocol {
            conn.expect_preface();
        }
        if addr.ssl {
            conn.expect_tls();
        } else if let Some(choice) = choice(addr) {
            conn.expect(choice);
        }
    }

    /// Whether `debug_connection` names a peer.
    pub(super) fn is_debugged(&self, peer: Peer) -> bool {
        let networks = &self.setup.debug_connections;
        networks.iter().any(|network| network.has(peer))
    }

    fn tell_accepted(&self, conn: &Conn<OwnedFd>) {
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

    /// Whether accepting may go on at once after this error.
    fn survive(&mut self, error: &io::Error) -> bool {
        let now_ms = self.shared.clock.mono_ms;
        match error.raw_os_error() {
            // The client is gone already, or a firewall refused it.
            Some(ECONNABORTED | EPROTO | EPERM) => true,
            Some(EMFILE | ENFILE) if !self.shared.files.is_empty() => {
                self.shared.files.clear();
                true
            }
            Some(EMFILE | ENFILE) if self.make_room() => true,
            _ => {
                let text = format_args!("accept4() failed ({error})");
                self.setup.log.write(Level::Crit, text);
                self.pause(Accepting::NotBefore(now_ms + ACCEPT_PAUSE_MS));
                false
            }
        }
    }

    /// Warns, once a second at most, that the limit of connections is reached.
    fn tell_full(&mut self) {
        let now_ms = self.shared.clock.mono_ms;
        if now_ms < self.told_full_ms {
            return;
        }
        self.told_full_ms = now_ms + 1000;
        let most = self.setup.worker_connections;
        let text = format_args!("{most} worker_connections are not enough");
        self.setup.log.write(Level::Warn, text);
    }

    /// Closes the connections that have been idle for longest, several at a time since looking for them reads the whole
    /// table; false if there is none. One that has not sent its first request is spared for a second.
    fn make_room(&mut self) -> bool {
        let now_ms = self.shared.clock.mono_ms;
        let (conns, heard) = (&mut self.conns, &self.heard);
        let mut idle: Vec<(u64, Key)> = Vec::new();
        for key in conns.keys() {
            let Some(conn) = conns.get_mut(key) else {
                continue;
            };
            let ripe = conn.is_kept_alive() || conn.mark_ms() + FIRST_REQUEST_MS <= now_ms;
            if conn.is_idle() && ripe && !heard.contains(&key) {
                idle.push((conn.mark_ms(), key));
            }
        }
        let batch = EVICTED_AT_ONCE.min(idle.len().div_ceil(8));
        if batch == 0 {
            return false;
        }
        idle.select_nth_unstable_by_key(batch - 1, |(mark, _)| *mark);
        for (_, key) in idle.drain(..batch) {
            self.close(key);
        }
        true
    }

    pub(super) fn listen(&mut self) {
        if self.quit.is_some() {
            return;
        }
        for (port, listener) in self.setup.listeners.iter().enumerate() {
            if let Err(e) = self
                .poller
                .add_exclusive(listener.as_fd(), LISTENER_BIT | port as u64)
            {
                self.setup.log.write(
                    Level::Alert,
                    format_args!("epoll_ctl() failed for a listener ({e})"),
                );
            }
        }
        self.accepting = Accepting::Yes;
    }

    pub(super) fn pause(&mut self, until: Accepting) {
        for listener in &self.setup.listeners {
            let _ = self.poller.remove(listener.as_fd());
        }
        self.accepting = until;
    }
}

/// Connections accepted from one listener in a turn of the loop without `multi_accept`.
const ACCEPTS_A_TURN: usize = 8;
/// The same with it.
const MULTI_ACCEPTS_A_TURN: usize = 1024;
/// Connections accepted from one listener that is given up: more than a backlog holds by default (511).
const LAST_ACCEPTS: usize = 1024;
/// Pause after descriptors ran out.
const ACCEPT_PAUSE_MS: u64 = 500;
/// Idle connections closed at once to make room.
const EVICTED_AT_ONCE: usize = 32;
/// Time in which a new connection without a request is not closed to make room.
const FIRST_REQUEST_MS: u64 = 1000;
const EPERM: i32 = 1;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const EPROTO: i32 = 71;
const ECONNABORTED: i32 = 103;
