//! Change of the configuration on a thread.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use server_base::logs::Logs;
use server_http::http::Http;

use super::{Accepting, Key, LISTENER_BIT, Level, Ordering, Thread, ThreadConfig};
use crate::worker::reload::{Change, Changes, Reloads, STEPS_A_TURN};
use crate::worker::thread_commands::{Setup, Unused};

/// Tasks of a thread besides serving.
#[derive(Default)]
pub(super) struct Deferred {
    changes: Changes<Box<Setup>>,
    /// Logs to flush, and the sender to drop after that.
    flushes: Vec<(Logs, Option<Sender<()>>)>,
    /// Ports of listeners to leave, each with the time, monotonic milliseconds, in the order of these.
    leaving: VecDeque<(usize, u64)>,
}

impl Deferred {
    /// When there is something to do, monotonic milliseconds; 0: at once.
    pub(super) fn due_ms(&self) -> Option<u64> {
        match self.flushes.is_empty() {
            true => {
                let leaving = self.leaving.front().map(|(_, at_ms)| *at_ms);
                let due = [self.changes.due_ms(), leaving];
                due.into_iter().flatten().min()
            }
            false => Some(0),
        }
    }
}

impl Thread {
    /// Has the configuration changed, piece by piece.
    pub(super) fn configure(&mut self, setup: Box<Setup>) {
        let config = ThreadConfig::unprepared(Arc::clone(&setup.http), setup.number);
        let debugs = |setup: &Setup| !setup.debug_connections.is_empty();
        let renew = debugs(&self.setup) || debugs(&setup) || self.debugs;
        // Changes that wait before this one may have networks that the setup in use has not.
        self.debugs = debugs(&setup);
        let keep = setup.keep_connections;
        self.changes()
            .order(Change::new(setup, config, keep, renew));
    }

    /// Has the buffers of logs written out, piece by piece; then `done` is dropped.
    pub(super) fn flush_logs(&mut self, done: Option<Sender<()>>) {
        let logs = std::mem::take(&mut self.shared.logs);
        self.deferred
            .get_or_insert_default()
            .flushes
            .push((logs, done));
    }

    /// Does a piece of the deferred work besides serving.
    #[cold]
    pub(super) fn do_deferred(&mut self) {
        self.reload_some(STEPS_A_TURN);
        self.leave_covered();
        let Some(deferred) = &mut self.deferred else {
            return;
        };
        if let Some((logs, _)) = deferred.flushes.first_mut()
            && logs.flush_some(FLUSHES_A_TURN)
        {
            logs.report(&self.setup.log);
            deferred.flushes.remove(0);
        }
        if deferred.flushes.is_empty() && deferred.leaving.is_empty() && deferred.changes.is_over()
        {
            self.deferred = None;
        }
    }

    /// Leaves listeners of covered ports when no connection comes there any more.
    fn leave_covered(&mut self) {
        let now_ms = self.shared.clock.mono_ms;
        while let Some(deferred) = &mut self.deferred
            && let Some((port, _)) = deferred.leaving.pop_front_if(|(_, at_ms)| *at_ms <= now_ms)
        {
            self.accept_rest(port);
            self.leave(port);
        }
    }

    /// Polls a listener no more.
    fn leave(&mut self, port: usize) {
        if let Some(listener) = self.listeners.get_mut(port).and_then(Option::take) {
            let _ = self.poller.remove(listener.as_fd());
        }
    }

    /// Makes all changes that wait, and writes all buffers out, at once.
    pub(super) fn finish_deferred(&mut self) {
        if self.deferred.is_some() {
            self.reload_all();
        }
        if let Some(deferred) = &mut self.deferred {
            deferred.flushes.clear();
        }
    }

    fn poll_listener(&self, port: usize, listener: &OwnedFd) {
        let token = LISTENER_BIT | port as u64;
        if let Err(e) = self.poller.add_exclusive(listener.as_fd(), token) {
            self.setup.log.write(
                Level::Alert,
                format_args!("epoll_ctl() failed for a listener ({})", sys::os_error(&e)),
            );
        }
    }

    /// Polls all listeners.
    pub(super) fn poll_listeners(&self) {
        for (port, listener) in self.listeners.iter().enumerate() {
            if let Some(listener) = listener {
                self.poll_listener(port, listener);
            }
        }
    }
}

impl Reloads for Thread {
    type Setup = Box<Setup>;

    fn changes(&mut self) -> &mut Changes<Box<Setup>> {
        &mut self.deferred.get_or_insert_default().changes
    }

    fn leave_listener(&mut self, port: usize, setup: &Box<Setup>) {
        let next = setup.listeners.get(port).and_then(Option::as_ref);
        let own = self.listeners.get(port).and_then(Option::as_ref);
        if own.is_none_or(|own| next.is_some_and(|next| Arc::ptr_eq(next, own))) {
            return;
        }
        if let Some(deferred) = &mut self.deferred {
            let before = deferred.leaving.len();
            deferred.leaving.retain(|(leaving, _)| *leaving != port);
            if deferred.leaving.len() < before {
                self.accept_rest(port);
            }
        }
        self.leave(port);
    }

    fn leave_later(&mut self, port: usize) {
        if self.listeners.get(port).is_some_and(Option::is_some) {
            let at_ms = self.shared.clock.mono_ms + COVERED_MS;
            let deferred = self.deferred.get_or_insert_default();
            deferred.leaving.push_back((port, at_ms));
        }
    }

    fn join_listener(&mut self, port: usize) {
        if self.quit.is_some() || self.listeners.get(port).is_some_and(Option::is_some) {
            return;
        }
        let Some(Some(listener)) = self.setup.listeners.get(port).cloned() else {
            return;
        };
        if self.accepting == Accepting::Yes {
            self.poll_listener(port, &listener);
        }
        if self.listeners.len() <= port {
            self.listeners.resize(port + 1, None);
        }
        self.listeners[port] = Some(listener);
    }

    fn last_serial(&self) -> u64 {
        self.counters.connections.load(Ordering::Relaxed)
    }

    fn switch(&mut self, mut setup: Box<Setup>, next: ThreadConfig) -> (ThreadConfig, Option<u64>) {
        self.flush_logs(None);
        self.shared.files.configure(setup.file_limits);
        let old = self.shared.configure(next);
        // The box goes back with the old setup: the memory is the main thread's.
        std::mem::swap(&mut self.setup, &mut setup);
        self.begin_checks();
        self.shared.dialer.names.set_log(self.setup.log.clone());
        let timeout_ms = setup.shutdown_timeout_ms;
        self.counters.returned.push(Unused::Setup(setup));
        (old, timeout_ms)
    }

    fn renew(&mut self, key: Key) {
        let Some(conn) = self.tables.clients.get_mut(key) else {
            return;
        };
        let networks = &self.setup.debug_connections;
        let peer = conn.peer();
        conn.set_debug(networks.iter().any(|network| network.has(peer)));
    }

    fn ending(&mut self, _: Key, _: bool) {}

    fn sweeping(&mut self, _: Key, _: u64, _: bool) {}

    fn release_config(&mut self, http: Arc<Http>) {
        self.counters.returned.push(Unused::Http(http));
    }
}

/// Time for which the listener of a covered port is polled, milliseconds. Handshakes that have begun end within it, also those
/// that `deferred` delays by 1 s.
const COVERED_MS: u64 = 3000;
/// Buffers of logs written in a turn of the loop: the largest that are usual, compressed, take about a millisecond each.
const FLUSHES_A_TURN: usize = 8;
