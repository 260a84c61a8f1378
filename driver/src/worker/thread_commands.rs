//! Interface of the worker's main thread and the serving threads: setups, commands, counters.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use server_base::errlog::ErrorLog;
use server_base::networks::Network;
use server_http::http::Http;
use sys::poll::Waker;

use crate::io::files::Limits;

/// A configuration as a thread gets it.
#[derive(Clone)]
pub struct Setup {
    /// The configuration; without an `http` block it has no ports.
    pub http: Arc<Http>,
    /// Counts reloads.
    pub number: u64,
    /// The listening sockets of this thread by port of the configuration; `None` for a removed port.
    pub listeners: Vec<Option<Arc<OwnedFd>>>,
    /// The main error log.
    pub log: ErrorLog,
    /// Most connections.
    pub worker_connections: usize,
    /// A connection with this descriptor or a higher one is the last before another one goes.
    pub descriptor_ceiling: i32,
    /// Limits of this thread's file cache.
    pub file_limits: Limits,
    /// Clients with connections that are logged at level debug.
    pub debug_connections: Arc<[Network]>,
    /// Accept all waiting connections at a time.
    pub multi_accept: bool,
    /// Gather events before they are taken, if many requests are in progress with servers.
    pub coalesces_events: bool,
    /// Keep idle connections over the change to this configuration.
    pub keep_connections: bool,
    /// This thread makes the health checks.
    pub probes: bool,
    /// Time limit of requests under the previous configuration, in milliseconds.
    pub shutdown_timeout_ms: Option<u64>,
}

/// Command of the main thread to a serving thread.
pub enum Command {
    /// Serve by this configuration.
    Configure(Box<Setup>),
    /// Write buffered logs out before files change; dropping the sender reports that it is done.
    FlushLogs(Sender<()>),
    /// Finish requests in progress, then end; at the latest after this time, milliseconds.
    Quit(Option<u64>),
    /// Memory is short: close idle connections, and free pools.
    Relieve,
    /// End now.
    Terminate,
}

/// Counters shared by all threads.
#[derive(Debug, Default)]
pub struct Counters {
    /// Serial numbers of connections.
    pub connections: AtomicU64,
    /// Panics contained to a connection.
    pub panics: AtomicU64,
    /// Objects that threads do not use any more.
    pub returned: Returned,
    /// Descriptors that are kept for control messages are missing: a connection is accepted only in the place of another.
    pub descriptors_short: AtomicBool,
}

/// Objects that threads return to the main thread. To free a large configuration takes long, so a thread that serves must not
/// free it.
#[derive(Debug, Default)]
pub struct Returned {
    returned: Mutex<Vec<Unused>>,
    /// Wakes the main thread.
    waker: OnceLock<Arc<Waker>>,
}

/// An object to free on a thread that serves no requests.
pub enum Unused {
    /// A configuration, as far as its thread is concerned.
    Http(Arc<Http>),
    /// Its setup. A listener in it may be the last of its socket, which costs the more the more clients wait there.
    Setup(Box<Setup>),
}

impl std::fmt::Debug for Unused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unused")
    }
}

impl Returned {
    /// Sets the waker for released configurations.
    pub fn wake(&self, waker: &Arc<Waker>) {
        let _ = self.waker.set(Arc::clone(waker));
    }

    /// Returns an object to the main thread.
    pub fn push(&self, unused: Unused) {
        let lock = self.returned.lock();
        lock.unwrap_or_else(PoisonError::into_inner).push(unused);
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    /// Takes all released configurations.
    pub fn take(&self) -> Vec<Unused> {
        let lock = self.returned.lock();
        std::mem::take(&mut *lock.unwrap_or_else(PoisonError::into_inner))
    }
}
