//! The worker process: one main thread that obeys the supervisor, and the threads that serve.
//!
//! [`run`] takes a bundle, builds its configuration and hands it to every thread; on a reload it swaps one reference.
//! `conn` is the way of a byte, `servers` the way of one to a server, `thread` the loop around them. `shared` is the state
//! that the connections of one thread have in common.

mod apply_config;
pub mod arm_look;
mod background_fetch;
pub mod client_bindings;
mod config_thread;
pub mod conn;
pub mod cpu;
pub mod detached;
pub mod dialer;
pub mod disposition;
pub mod entry;
pub mod event_loop;
mod followed_hosts;
mod handshake_result;
mod huge_pages;
mod limit;
mod logs;
pub mod names;
pub mod net;
mod offload;
mod periodic_task;
pub mod readiness;
pub mod reload;
mod reserve;
pub mod samples;
pub mod server_state;
pub mod servers;
pub mod shared;
pub mod slab;
pub mod state;
mod state_files;
mod supervisor_channel;
pub mod tables;
pub mod thread;
pub mod thread_commands;
pub mod thread_config;
pub mod token;
pub mod transport;
pub mod wakes;

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use conf::Memory;
use server_base::errlog::{self, ErrorLog, Level};
use server_base::experiment::set_open_arms;
use server_http::exchange::Env;
use server_http::http::Http;
use server_http::port_slots::PortSlots;
use server_http::{Cycle, arm_meters};
use sys::heap::trim;
use sys::poll::{Events, Interest, Poller, Waker};
use sys::signal::{self, Signals};
use sys::{clock, process, schedule};

use crate::bundle::{Bundle, FromWorker, ToWorker};
use crate::io::tcp_info::tcp_info;
use background_fetch::BackgroundFetches;
use config_thread::{Built, ConfigThread};
use followed_hosts::FollowedHosts;
use limit::MemoryWatch;
use periodic_task::{TaskTimer, unix_s};
use reserve::Reserve;
use samples::SampleQueue;
use thread::Thread;
use thread_commands::{Command, Counters, Setup, Unused};

/// Builds a configuration from a bundle and the texts of its files, or returns a built one. Returns the texts too, as the
/// worker keeps them.
pub type Load = Arc<dyn Fn(&Bundle, Memory) -> Result<(Cycle, Memory), String> + Send + Sync>;

/// Serves until the supervisor ends it or goes away. Returns the exit code; 2 if a new worker would only repeat the
/// failure.
pub fn run(control: OwnedFd, load: Load) -> i32 {
    let message = match Worker::first_message(&control) {
        Ok(message) => message,
        Err(code) => return code,
    };
    let mut worker = match Worker::start(control, load, message) {
        Ok(worker) => worker,
        Err(code) => return code,
    };
    let code = worker.serve();
    worker.join();
    worker.samples.flush(worker.is_terminating);
    code
}

struct Worker {
    control: OwnedFd,
    load: Load,
    poller: Poller,
    /// Signals sent to the worker itself; none if it is a thread of the supervisor's process.
    signals: Option<Signals>,
    /// Woken when a thread ends, or returns an object.
    ended: Arc<Waker>,
    threads: Vec<ThreadHandle>,
    counters: Arc<Counters>,
    reserve: Reserve,
    reported_panics: u64,
    listeners: HashMap<String, Vec<Arc<OwnedFd>>>,
    places: PortSlots,
    files: HashMap<PathBuf, Arc<File>>,
    log: ErrorLog,
    /// A configuration that is served once the supervisor commits it.
    prepared: Option<Built>,
    /// The files that the last configuration was built of, and its generation: the next has most of them, too.
    texts: Option<(u64, Memory)>,
    /// Threads of the configurations in use.
    config_threads: Vec<ConfigThread>,
    /// Configurations that requests may still run under.
    older: Vec<Weak<Http>>,
    env: Env,
    samples: Arc<SampleQueue>,
    tasks: TaskTimer,
    fetches: BackgroundFetches,
    followed: FollowedHosts,
    shutdown_timeout_ms: Option<u64>,
    /// Present if `worker_memory_limit` is set.
    memory: Option<MemoryWatch>,
    leaving: bool,
    /// The supervisor kills this process if it does not end at once.
    is_terminating: bool,
}

struct ThreadHandle {
    commands: Sender<Command>,
    waker: Arc<Waker>,
    /// Set by the thread before it reports its end: its handle does so only a moment later.
    ended: Arc<AtomicBool>,
    handle: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(control: OwnedFd, load: Load, first: ToWorker) -> Result<Self, i32> {
        let prepared = || -> std::io::Result<(Poller, Option<Signals>, Arc<Waker>)> {
            let poller = Poller::new()?;
            poller.add(&control, CONTROL, Interest::Readable)?;
            let ended = Arc::new(Waker::new()?);
            poller.add(&*ended, ENDED, Interest::Readable)?;
            let mut signals = None;
            // In tests the worker is a thread of the test program, and the signals belong to that.
            if process::is_main_thread() {
                let own = Signals::new(&[signal::TERM, signal::INT, signal::QUIT])?;
                poller.add(&own, SIGNAL, Interest::Readable)?;
                signals = Some(own);
            }
            Ok((poller, signals, ended))
        };
        let (poller, signals, ended) = prepared().map_err(|_| 1)?;
        errlog::set_thread(process::thread_id());
        let samples: Arc<SampleQueue> = Arc::default();
        set_open_arms(arm_meters::each_open);
        let env = Env {
            hostname: process::hostname(),
            pid: std::process::id(),
            tcp_info: Some(tcp_info),
            clock_us: Some(clock::monotonic_us),
            cpu_ns: Some(clock::thread_cpu_ns),
            offload: Some(offload::offload),
            samples: Some(Arc::clone(&samples) as _),
        };
        let counters: Arc<Counters> = Arc::default();
        counters.returned.wake(&ended);
        let mut worker = Self {
            reserve: Reserve::new(Arc::clone(&ended), Arc::clone(&counters)),
            control,
            load,
            poller,
            signals,
            ended,
            threads: Vec::new(),
            counters,
            reported_panics: 0,
            listeners: HashMap::new(),
            places: PortSlots::default(),
            files: HashMap::new(),
            log: ErrorLog::new(Vec::new()),
            prepared: None,
            texts: None,
            config_threads: Vec::new(),
            older: Vec::new(),
            env,
            samples,
            tasks: TaskTimer::default(),
            fetches: BackgroundFetches::none(FETCHES),
            followed: FollowedHosts::new(),
            shutdown_timeout_ms: None,
            memory: None,
            leaving: false,
            is_terminating: false,
        };
        // The first message is the configuration: a worker without threads could not take it up.
        worker.handle_command(first);
        if worker.threads.is_empty() {
            Err(2)
        } else {
            Ok(worker)
        }
    }

    /// Obeys until all threads have ended.
    fn serve(&mut self) -> i32 {
        let mut events = Events::with_capacity(8);
        loop {
            let wait_ms = self.reserve.wait_ms(HOUSEKEEP_MS);
            let wait_ms = self.fetches.wait_ms(self.tasks.wait_ms(wait_ms));
            let wait_ms = self.followed.wait_ms(wait_ms);
            let watch = self.memory.as_ref();
            let wait_ms = watch.map_or(wait_ms, |watch| watch.wait_ms(wait_ms));
            if self.poller.wait(&mut events, Some(wait_ms)).is_err() {
                return 1;
            }
            self.reserve.refill();
            let watch = self.memory.as_mut();
            if watch.is_some_and(|watch| watch.check(&self.log)) {
                self.command(|| Command::Relieve);
            }
            self.tasks.run_due(&self.log);
            self.fetches.run_due(&self.poller, &self.log);
            self.followed.run_due(&self.poller, &self.log);
            server_base::clock::set_utc_offset(process::local_offset_s(unix_s()));
            for n in 0..events.len() {
                let ready = events.at(n);
                match ready.token {
                    CONTROL => self.receive_message(),
                    SIGNAL => self.handle_signals(),
                    ENDED => self.ended.drain(),
                    token if names::is_token(token) => {
                        self.followed.ready(ready, &self.poller, &self.log);
                    }
                    _ => self.fetches.ready(ready, &self.poller, &self.log),
                }
            }
            self.free_returned();
            self.report_panics();
            let ended = |t: &ThreadHandle| t.ended.load(Ordering::Acquire);
            if self.threads.iter().all(ended) {
                // A thread may have changed servers in its last turn.
                self.followed.take_changes(&self.log);
                return i32::from(!self.leaving);
            }
            if !self.leaving && self.threads.iter().any(ended) {
                self.log.write(
                    Level::Alert,
                    format_args!("a worker thread has ended unexpectedly"),
                );
                return 1;
            }
        }
    }

    fn handle_signals(&mut self) {
        let Some(signals) = &self.signals else { return };
        match signals.receive() {
            Ok(Some(received)) if received.signo == signal::QUIT => self.quit(),
            Ok(Some(_)) => self.terminate(),
            _ => {}
        }
    }

    fn quit(&mut self) {
        if self.leaving {
            return;
        }
        self.leaving = true;
        self.log
            .write(Level::Notice, format_args!("gracefully shutting down"));
        // Threads drop their references; the sockets stop accepting with the last one.
        self.listeners.clear();
        let timeout_ms = self.shutdown_timeout_ms;
        self.command(|| Command::Quit(timeout_ms));
    }

    fn terminate(&mut self) {
        if !self.leaving {
            self.log.write(Level::Notice, format_args!("exiting"));
        }
        self.leaving = true;
        self.is_terminating = true;
        // The control socket may be at its end: no further message comes.
        let _ = self.poller.remove(&self.control);
        self.command(|| Command::Terminate);
    }

    fn command(&self, command: impl Fn() -> Command) {
        for thread in &self.threads {
            // A thread that has ended takes no commands.
            let _ = thread.commands.send(command());
            thread.waker.wake();
        }
    }

    fn join(&mut self) {
        for thread in &mut self.threads {
            if let Some(handle) = thread.handle.take()
                && (self.leaving || thread.ended.load(Ordering::Acquire))
            {
                let _ = handle.join();
            }
        }
    }

    fn report_panics(&mut self) {
        let count = self.counters.panics.load(Ordering::Relaxed);
        if count > self.reported_panics {
            self.reported_panics = count;
            self.say(FromWorker::Panicked { count });
        }
    }

    /// Frees objects that threads returned, and releases memory of configurations to the kernel.
    fn free_returned(&mut self) {
        for unused in self.counters.returned.take() {
            if let Unused::Http(http) = unused {
                let mut http = Some(http);
                self.config_threads
                    .iter_mut()
                    .any(|thread| thread.take(&mut http));
            }
        }
        let config_threads = self.config_threads.len();
        self.config_threads.retain(|thread| !thread.is_over());
        if self.config_threads.len() < config_threads {
            self.older.retain(|older| older.strong_count() > 0);
            self.settle_memory();
        }
    }

    /// Releases unused memory to the kernel, and has huge pages under that of the configuration in use.
    fn settle_memory(&self) {
        trim();
        if let Some(http) = self.older.last().and_then(Weak::upgrade) {
            huge_pages::collapse(&http);
        }
    }

    fn spawn(&mut self, n: usize, setup: Setup, affinity: &[Vec<usize>]) -> std::io::Result<()> {
        let (commands, inbox) = channel();
        let waker = Arc::new(Waker::new()?);
        let theirs = Arc::clone(&waker);
        let ended = Arc::new(AtomicBool::new(false));
        let notice = EndNotice(Arc::clone(&self.ended), Arc::clone(&ended));
        let (counters, env) = (Arc::clone(&self.counters), self.env.clone());
        let cpus = affinity
            .get(n)
            .or(affinity.last())
            .cloned()
            .unwrap_or_default();
        let log = self.log.clone();
        let body = move || {
            let _notice = notice;
            errlog::set_thread(process::thread_id());
            // A woken thread then need not wait for the end of another thread's slice, such as that of a thread that
            // builds a configuration. If the kernel refuses, the thread keeps the default slice.
            let _ = schedule::shorten_time_slice();
            if !cpus.is_empty()
                && let Err(e) = schedule::set_affinity(&cpus)
            {
                log.write(
                    Level::Alert,
                    format_args!("sched_setaffinity() failed ({})", sys::os_error(&e)),
                );
            }
            match Thread::new(setup, theirs, inbox, counters, env) {
                Ok(thread) => thread.run(),
                Err(e) => log.write(
                    Level::Alert,
                    format_args!("a worker thread could not start ({})", sys::os_error(&e)),
                ),
            }
        };
        let handle = std::thread::Builder::new()
            .name(format!("serve-{n}"))
            .spawn(body)?;
        self.threads.push(ThreadHandle {
            commands,
            waker,
            ended,
            handle: Some(handle),
        });
        Ok(())
    }
}

/// Notifies the main thread, however the thread ends.
struct EndNotice(Arc<Waker>, Arc<AtomicBool>);

impl Drop for EndNotice {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Release);
        self.0.wake();
    }
}

const CONTROL: u64 = 0;
const ENDED: u64 = 1;
const SIGNAL: u64 = 2;
/// First token of the sockets of background fetches.
const FETCHES: u64 = 3;
/// Maximum interval between updates of the local time's offset and reports of panics.
const HOUSEKEEP_MS: u64 = 10_000;
