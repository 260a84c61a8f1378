//! A change of the configuration, in pieces: each turn of the loop does a bounded part of it, so that no request waits
//! long.
//!
//! ```text
//! under the old configuration   listeners of this configuration alone are polled no more
//!                               connections of removed ports end, at once or after their response
//!                               the settings of each port are prepared
//! in one go                     the configuration is changed: requests that begin after that have the new one;
//!                               connections of removed ports move to the ports that have their addresses now
//! under the new one             new listeners are polled
//!                               older connections are drained, with `reload_connections drain`
//! when its requests are over    the thread's state for the old one is freed; the configuration itself goes back to the
//!                               main thread of the process, for its `ConfigThread` to free
//! ```
//!
//! Unchanged connections need no step, since ports keep their index ([`server_http::port_slots`]). Changes are made in
//! the order of their commands. A thread and the simulator are both [`Reloads`]. Absent: steps for the end of the
//! server, when no further request comes.

mod change;

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use server_http::http::{Http, LocalHttp};

use super::detached::DetachedExchange;
use super::event_loop::{Client, EventLoop};
use super::slab::Key;
use super::thread_config::ThreadConfig;

pub use change::Change;

/// A loop that can change its configuration.
pub trait Reloads: EventLoop {
    /// Setup of a configuration.
    type Setup;

    /// The changes, in progress and to come.
    fn changes(&mut self) -> &mut Changes<Self::Setup>;

    /// Polls the listener of a port no more, if `setup` has another one there or none.
    fn leave_listener(&mut self, port: usize, setup: &Self::Setup);

    /// Polls the listener of a port for a while, then no more. The kernel sends new connections to another port, but
    /// some may already be in this queue.
    fn leave_later(&mut self, _port: usize) {}

    /// Polls the listener of a port, unless it is polled already.
    fn join_listener(&mut self, port: usize);

    /// The number of the connection that was accepted last.
    fn last_serial(&self) -> u64;

    /// Changes the configuration; returns the previous one, and the time limit of its requests, milliseconds.
    fn switch(&mut self, setup: Self::Setup, next: ThreadConfig) -> (ThreadConfig, Option<u64>);

    /// A connection has another setup.
    fn renew(&mut self, key: Key);

    /// Ends a connection at once, or after its response: its port was removed, or is drained.
    fn ending(&mut self, key: Key, is_gone: bool);

    /// A connection is swept: its requests under configurations before `number` must be over; with `ends` it ends now.
    fn sweeping(&mut self, key: Key, number: u64, ends: bool);

    /// Takes a configuration that this thread no longer uses.
    fn release_config(&mut self, http: Arc<Http>);

    /// Does `steps` steps of the pending changes. A step costs about as much as a request.
    fn reload_some(&mut self, steps: usize) {
        let steps = &mut { steps };
        while *steps > 0
            && let Some(mut change) = self.changes().waiting.pop_front()
        {
            if !change.resume(self, steps) {
                self.changes().waiting.push_front(change);
            }
        }
        self.sweep_some(steps);
        self.changes().unprepare(steps);
        while let Some(http) = self.changes().take_unused(steps) {
            self.release_config(http);
        }
    }

    /// Makes all changes at once.
    fn reload_all(&mut self) {
        while !self.changes().waiting.is_empty() {
            self.reload_some(usize::MAX);
        }
    }

    /// Ends requests of older configurations after their time limit.
    fn sweep_some(&mut self, steps: &mut usize) {
        let now_ms = self.parts().1.clock.mono_ms;
        while let Some(mut sweep) = self.changes().take_sweep(now_ms) {
            loop {
                let tables = self.parts().0;
                if sweep.next >= tables.clients.slots() + tables.detached.slots() {
                    break;
                }
                if *steps == 0 {
                    return self.changes().sweeps.push_front(sweep);
                }
                *steps -= 1;
                self.sweep_slot(sweep.next, sweep.number);
                sweep.next += 1;
            }
        }
    }

    /// Ends the exchanges in a slot that began under configurations before this number. Slots of detached exchanges are
    /// numbered after those of clients.
    fn sweep_slot(&mut self, slot: u32, number: u64) {
        let clients = &mut self.parts().0.clients;
        if slot >= clients.slots() {
            let slot = slot - clients.slots();
            return self.sweep_detached(slot, number);
        }
        let Some(key) = clients.key_at(slot) else {
            return;
        };
        let conn = clients.get_mut(key);
        let is_older = conn.is_some_and(|conn| conn.is_older_than(number));
        self.sweeping(key, number, is_older);
        if is_older {
            self.abort::<Client<Self>>(key);
        }
    }

    /// Ends an exchange without a client.
    fn sweep_detached(&mut self, slot: u32, number: u64) {
        let detached = &mut self.parts().0.detached;
        let Some(key) = detached.key_at(slot) else {
            return;
        };
        let exchange = detached.get_mut(key);
        if exchange.is_some_and(|exchange| exchange.is_older_than(number)) {
            self.abort::<DetachedExchange>(key);
        }
    }
}

/// Operations of a loop for changes of the configuration.
pub struct Changes<S> {
    /// Changes to be made, the first of them in progress.
    waiting: VecDeque<Change<S>>,
    /// Sweeps of configurations with requests in progress, in the order of their times.
    sweeps: VecDeque<Sweep>,
    /// Configurations with port settings that are to be freed.
    prepared: Vec<ThreadConfig>,
    /// Older configurations. That exchanges refer to them as well is why none of these frees one.
    older: Vec<Rc<LocalHttp>>,
    /// Those of them that are not referenced elsewhere.
    unused: Vec<LocalHttp>,
}

/// When all connections are checked for requests of older configurations.
struct Sweep {
    at_ms: u64,
    /// Of configurations before this.
    number: u64,
    /// The next slot to check.
    next: u32,
}

impl<S> Default for Changes<S> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            sweeps: VecDeque::new(),
            prepared: Vec::new(),
            older: Vec::new(),
            unused: Vec::new(),
        }
    }
}

impl<S> Changes<S> {
    /// Queues a change behind the earlier ones.
    pub fn order(&mut self, change: Change<S>) {
        self.waiting.push_back(change);
    }

    /// Nothing is to be done, now or later.
    pub fn is_over(&self) -> bool {
        self.waiting.is_empty()
            && self.sweeps.is_empty()
            && self.prepared.is_empty()
            && self.older.is_empty()
            && self.unused.is_empty()
    }

    /// When there is something to do, monotonic milliseconds; 0: at once.
    pub fn due_ms(&self) -> Option<u64> {
        let is_unused = |older: &Rc<LocalHttp>| Rc::strong_count(older) == 1;
        let at_once = !self.waiting.is_empty()
            || !self.prepared.is_empty()
            || !self.unused.is_empty()
            || self.older.iter().any(is_unused);
        match at_once {
            true => Some(0),
            false => self.sweeps.front().map(|sweep| sweep.at_ms),
        }
    }

    /// Schedules the end of all requests under configurations before a number. Later sweeps are dropped, since this one
    /// covers them.
    fn order_sweep(&mut self, at_ms: u64, number: u64) {
        self.sweeps.retain(|sweep| sweep.at_ms < at_ms);
        self.sweeps.push_back(Sweep {
            at_ms,
            number,
            next: 0,
        });
    }

    /// Takes the first sweep, if its time has come.
    fn take_sweep(&mut self, now_ms: u64) -> Option<Sweep> {
        self.sweeps.pop_front_if(|sweep| sweep.at_ms <= now_ms)
    }

    /// Takes a configuration that is not served by any more.
    fn retire(&mut self, old: ThreadConfig) {
        self.prepared.push(old);
    }

    /// Frees the settings of ports.
    fn unprepare(&mut self, steps: &mut usize) {
        while *steps > 0
            && let Some(mut old) = self.prepared.pop()
        {
            old.release(steps);
            match *steps {
                0 => self.prepared.push(old),
                _ => self.older.push(old.http),
            }
        }
    }

    /// Frees the thread's state for unreferenced configurations. Returns a configuration after the last of its state is
    /// freed.
    fn take_unused(&mut self, steps: &mut usize) -> Option<Arc<Http>> {
        let unused = |older: &mut Rc<LocalHttp>| Rc::strong_count(older) == 1;
        let gone = self.older.extract_if(.., unused);
        self.unused.extend(gone.filter_map(Rc::into_inner));
        self.unused.last_mut()?.release(steps);
        match *steps {
            0 => None,
            _ => self.unused.pop().map(|gone| gone.http),
        }
    }
}

/// Steps of one turn of the loop: a millisecond of work at most, if each closes a connection of HTTP/2 over TLS.
pub const STEPS_A_TURN: usize = 64;
