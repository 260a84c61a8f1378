//! Connections that wait at a listener while no other can be closed for them.
//!
//! They wait for [`PATIENCE_MS`]; then they are accepted and closed, as nginx does at once. So a client learns soon that it must
//! go elsewhere. A request that is passed on to this server itself may wait for a place of its own. Then connections wait for
//! [`OWN_PATIENCE_MS`] alone, and the request fails as if its server had closed the connection.
//!
//! The kernel does not expose the wait of a connection. But a listener's queue is served in order. So a sample of its
//! length and of the connections taken until then shows later how many of these still wait. If threads share a
//! listener, the others take from its queue too, so all connections accepted by the process count as taken.
//!
//! Absent: anything to do while there are places. Source: nginx documentation, `worker_connections`; tcp(7).

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use server_base::errlog::Level;
use server_http::meters::{self, Event};
use server_http::stats;
use sys::socket;
use sys::tcp_info::tcp_info;

use super::waiting::SAMPLE_MS;
use super::{Ordering, Thread};

impl Thread {
    /// Connections wait at a port, and none can be closed for them: closes those that have waited for too long.
    #[cold]
    pub(super) fn refuse_late(&mut self, port: usize) {
        let Some(listener) = self.listeners.get(port).cloned().flatten() else {
            return;
        };
        let now_ms = self.shared.clock.mono_ms;
        let taken = self.taken(port);
        if now_ms >= self.overload.check_ms {
            self.overload.check_ms = now_ms + SAMPLE_MS;
            self.overload.waits_for_itself = self.may_wait_for_itself();
        }
        let patience_ms = match self.overload.waits_for_itself {
            true => OWN_PATIENCE_MS,
            false => PATIENCE_MS,
        };
        let queue = self.overload.queues.entry(port).or_default();
        queue.record(now_ms, taken, waiting(&listener));
        let due = queue.due(now_ms, taken, patience_ms);
        self.refuse(&listener, due);
    }

    /// All that waited at a port was taken.
    #[cold]
    pub(super) fn forget_queue(&mut self, port: usize) {
        self.overload.queues.remove(&port);
    }

    /// Accepts and closes connections.
    fn refuse(&mut self, listener: &OwnedFd, count: u64) {
        let mut refused = 0;
        for _ in 0..count.min(REFUSED_MAX) {
            if socket::accept(listener.as_fd()).is_err() {
                break;
            }
            refused += 1;
            self.took_connection();
            stats::refused();
            meters::event(Event::Refused);
        }
        let now_ms = self.shared.clock.mono_ms;
        if refused > 0 && now_ms >= self.overload.log_after_ms {
            self.overload.log_after_ms = now_ms + 1000;
            let short = match self.lacks_descriptors() {
                true => "open files".to_owned(),
                false => format!("{} worker_connections", self.setup.worker_connections),
            };
            let text = format_args!("{short} are not enough, closing new connections unserved");
            self.setup.log.write(Level::Alert, text);
        }
    }

    /// Counts a connection; returns its number.
    pub(super) fn took_connection(&mut self) -> u64 {
        self.taken += 1;
        self.counters.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The number of connections that may have been taken from a port's queue.
    fn taken(&self, port: usize) -> u64 {
        let ports = &self.shared.generation.http.ports;
        match ports.get(port) {
            // No other thread has the socket.
            Some(port) if port.listen.options.reuseport => self.taken,
            _ => self.counters.connections.load(Ordering::Relaxed),
        }
    }

    /// Returns whether a request is passed on to an address of this server: it may wait for a place of its own.
    fn may_wait_for_itself(&mut self) -> bool {
        let http = &self.shared.generation.http;
        let upstreams = &mut self.tables.upstreams;
        upstreams.keys().into_iter().take(SEARCHED_MAX).any(|key| {
            let Some(conn) = upstreams.get_mut(key) else {
                return false;
            };
            let Ok(Some(server)) = socket::peer_addr(conn.socket()) else {
                return false;
            };
            let local = socket::local_addr(conn.socket()).ok().flatten();
            // A connection within this machine mostly has one address for both its ends.
            let is_near = server.ip().is_loopback() || local.is_some_and(|l| l.ip() == server.ip());
            is_near && http.listening_port(server).is_some()
        })
    }
}

/// The number of connections that wait at a listener. The kernel does not expose it for a UNIX-domain socket: if one waits,
/// [`REFUSED_MAX`] is returned.
fn waiting(listener: &OwnedFd) -> u64 {
    let queued = tcp_info(listener.as_raw_fd()).and_then(|info| info.accept_queue());
    let is_waiting = || socket::is_waiting(listener.as_fd());
    match queued {
        Some(queued) => queued.into(),
        None if is_waiting() => REFUSED_MAX,
        None => 0,
    }
}

/// Time for which a connection waits for a place, milliseconds: it is refused within a second, ticks of the pause included.
const PATIENCE_MS: u64 = 500;
/// Time for which it waits if a request may wait for a place that it holds itself, milliseconds.
const OWN_PATIENCE_MS: u64 = 50;
/// Most connections that are refused in a turn: others have their turn too.
const REFUSED_MAX: u64 = 256;
/// Maximum number of connections to servers searched for one to this server.
const SEARCHED_MAX: usize = 64;
