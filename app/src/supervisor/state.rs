//! State of the supervisor, and the result of a step; steps are in the files beside.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use conf::Memory;
use server_http::LoadOptions;
use sys::poll::Poller;
use sys::signal::Signals;
use sys::title::Title;

use super::file_watcher::FileWatcher;
use super::left_file::LeftFile;
use super::notify::Notify;
use super::open::OpenConfig;
use super::pending_generations::PendingGenerations;
use super::process_init::WorkerSpawn;
use super::store_process::{StoreProcess, StoreSpawn};
use super::worker::{Respawn, Worker};
use crate::console::Console;
use crate::load::Built;

/// Reason why the supervisor's loop ends in this process.
pub(super) enum LoopExit {
    /// The server is stopped.
    Exit(u8),
    /// This process is the child of a fork: it becomes a worker when the supervisor's descriptors are
    /// dropped.
    Worker(Box<WorkerSpawn>),
    /// This process is the child of a fork, likewise: it becomes the store process.
    Store(Box<StoreSpawn>),
}

/// A step of the supervisor; `Break` leads straight out of its loop.
pub(super) type Flow<T = ()> = ControlFlow<LoopExit, T>;

/// Phase of the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// A worker serves, or is started again.
    Serving,
    /// The workers finish, the supervisor stays (WINCH).
    Paused,
    /// The workers finish, then the supervisor ends (QUIT).
    Quitting,
    /// The workers end; those that do not in time are killed (TERM, INT).
    Terminating { kill_at: Option<Instant> },
}

/// The supervisor: open files, processes that it has started, and pending work. Its actions are in the files beside.
pub(super) struct Supervisor {
    pub(super) options: LoadOptions,
    /// Arguments and environment of this process, for a new binary.
    pub(super) arguments: Vec<OsString>,
    pub(super) console: Console,
    pub(super) title: Title,
    pub(super) daemonized: bool,
    pub(super) poller: Poller,
    pub(super) signals: Signals,
    pub(super) notify: Notify,
    pub(super) phase: Phase,
    pub(super) current: OpenConfig,
    /// The first configuration as built, until a worker serves it.
    pub(super) built: Option<Built>,
    /// Generations by which workers may serve until one is ready for `current`.
    pub(super) pending_generations: PendingGenerations<OpenConfig>,
    /// A reload that waits.
    pub(super) pending_reload: Option<PendingReload>,
    /// State of watched files.
    pub(super) watcher: FileWatcher,
    /// Number of the newest generation, opened or not.
    pub(super) generations: u64,
    pub(super) workers: Vec<Worker>,
    pub(super) workers_started: u64,
    pub(super) respawn: Respawn,
    pub(super) store: StoreProcess,
    /// The supervisor that started this one in its place.
    pub(super) predecessor: Option<u32>,
    /// The new binary that this one has started.
    pub(super) successor: Option<Successor>,
    pub(super) left: Vec<LeftFile>,
}

/// A reload that waits.
#[derive(Debug)]
pub(super) struct PendingReload {
    pub(super) wait: ReloadWait,
    /// End of the wait.
    pub(super) due: Instant,
}

/// Event that a reload waits for.
#[derive(Debug)]
pub(super) enum ReloadWait {
    /// A worker builds the configuration of these files before anything is opened for it.
    Worker(u64, Arc<Memory>),
    /// Another server closes an address. With the number of tries so far.
    Address(Box<OpenConfig>, u32),
}

impl PendingReload {
    /// The worker that is waited for.
    pub(super) fn worker(&self) -> Option<u64> {
        match self.wait {
            ReloadWait::Worker(id, _) => Some(id),
            ReloadWait::Address(..) => None,
        }
    }
}

/// The new binary that this process has started.
#[derive(Debug)]
pub(super) struct Successor {
    pub(super) pid: u32,
    /// Path of this process's pid file meanwhile.
    pub(super) oldbin: PathBuf,
}

/// The poller's token of the signals; workers count from 1.
pub(super) const SIGNALS_TOKEN: u64 = 0;
