//! Workers as the supervisor sees them: starting one, telling it, losing it.
//!
//! A worker that ends without a command is started again: at once the first times, so
//! that a crash costs clients as little as it can, then after a growing pause, so that a worker that
//! cannot live does not take the machine. Source: nginx documentation, "Core functionality".

use std::ops::ControlFlow::{Break, Continue};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use driver::bundle::ToWorker;
use driver::inbox::{Inbox, MESSAGE_TIME};
use server_base::errlog::Level;
use server_http::MainConf;
use sys::poll::Interest;
use sys::process::{self, Exit, Fork};
use sys::{fdpass, signal};

use super::work::{FATAL_CODE, WorkerSpawn, environment};
use super::{Flow, LoopExit, Phase, Supervisor, limits};
use crate::console::Console;
use crate::load;

/// A worker as the supervisor sees it.
#[derive(Debug)]
pub(super) struct Worker {
    /// The poller's token of its control socket.
    pub(super) id: u64,
    pub(super) control: OwnedFd,
    /// Received part of its next message.
    pub(super) inbox: Inbox,
    pub(super) kind: WorkerHandle,
    /// The settings it was started with: what of them a running process cannot change.
    pub(super) process: MainConf,
    /// The generation it was sent last.
    pub(super) generation: u64,
    /// A command to finish or to end was sent to it.
    pub(super) leaving: bool,
    started: Instant,
}

/// Process or thread of a worker.
#[derive(Debug)]
pub(super) enum WorkerHandle {
    /// A process, by its number.
    Process(u32),
    /// A thread of this process, with `master_process off`.
    Thread(Option<JoinHandle<i32>>),
}

impl Supervisor {
    /// Starts a worker and sends it the current generation; a failure is tried again later.
    pub(super) fn start_worker(&mut self) -> Flow {
        self.respawn.due = None;
        let started = self.try_start_worker()?;
        if let Err(error) = started {
            self.console
                .failed(Level::Alert, format_args!("starting a worker"), &error);
            self.respawn.after_death(Instant::now(), Duration::ZERO);
        }
        Continue(())
    }

    fn try_start_worker(&mut self) -> Flow<std::io::Result<()>> {
        let (ours, theirs) = match fdpass::pair() {
            Ok(pair) => pair,
            Err(error) => return Continue(Err(error)),
        };
        let supervisor = process::id();
        let kind = if self.current.main.master_process {
            match process::fork() {
                Ok(Fork::Child) => {
                    return Break(LoopExit::Worker(Box::new(self.seed(theirs, supervisor))));
                }
                Ok(Fork::Parent(pid)) => Ok(WorkerHandle::Process(pid)),
                Err(error) => Err(error),
            }
        } else {
            self.start_thread(theirs)
        };
        Continue(kind.and_then(|kind| self.enlist(ours, kind)))
    }

    fn seed(&mut self, control: OwnedFd, supervisor: u32) -> WorkerSpawn {
        self.title.set("firstbyte: worker process");
        WorkerSpawn {
            control,
            supervisor,
            main: self.current.main.clone(),
            account: self.current.account.clone(),
            console: self.console.clone(),
            built: self.built.take(),
        }
    }

    fn start_thread(&mut self, control: OwnedFd) -> std::io::Result<WorkerHandle> {
        if self.workers_started == 0 {
            limits::raise(&self.console);
            process::set_environment(&environment(&self.current.main))?;
        }
        let load = load::in_worker(self.built.take());
        let work = move || driver::worker::run(control, load);
        let thread = std::thread::Builder::new()
            .name("worker".to_owned())
            .spawn(work)?;
        Ok(WorkerHandle::Thread(Some(thread)))
    }

    fn enlist(&mut self, control: OwnedFd, kind: WorkerHandle) -> std::io::Result<()> {
        self.workers_started += 1;
        let id = self.workers_started;
        if let WorkerHandle::Process(pid) = &kind {
            self.console
                .report(Level::Notice, format_args!("start worker process {pid}"));
        }
        let generation = self.current.number;
        let started = Instant::now();
        self.workers.push(Worker {
            id,
            control,
            inbox: Inbox::default(),
            kind,
            process: self.current.main.clone(),
            generation,
            leaving: false,
            started,
        });
        let equipped = self.equip(id);
        if equipped.is_err()
            && let Some(worker) = self.workers.pop()
        {
            worker.kill();
        }
        equipped
    }

    fn equip(&self, id: u64) -> std::io::Result<()> {
        for worker in self.workers.iter().filter(|worker| worker.id == id) {
            self.poller.add(&worker.control, id, Interest::Readable)?;
        }
        let bundle = self.current.bundle(Some(id), &self.options)?;
        self.tell(id, &ToWorker::Configure(Box::new(bundle)));
        Ok(())
    }

    /// Sends a message; a worker that does not take it is killed, and its end is noticed as any other.
    pub(super) fn tell(&self, id: u64, message: &ToWorker) {
        let Some(worker) = self.workers.iter().find(|worker| worker.id == id) else {
            return;
        };
        if let Err(error) = message.send(&worker.control, MESSAGE_TIME) {
            if worker.leaving && error.kind() == std::io::ErrorKind::BrokenPipe {
                // It has ended before it could be told to.
                return;
            }
            let name = worker.name();
            self.console.failed(
                Level::Crit,
                format_args!("control message to {name}"),
                &error,
            );
            worker.kill();
        }
    }

    /// Has every worker finish its requests and end, unless it does so already.
    pub(super) fn quit_workers(&mut self) {
        for index in 0..self.workers.len() {
            if !self.workers[index].leaving {
                self.quit_worker(index);
            }
        }
    }

    pub(super) fn quit_worker(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        worker.leaving = true;
        let id = worker.id;
        self.tell(id, &ToWorker::Quit);
    }

    /// Logs the end of a worker as nginx does and decides whether another must start.
    pub(super) fn worker_ended(&mut self, worker: Worker, exit: Exit) {
        let name = worker.name();
        log_exit(&self.console, &name, exit);
        // A thread's socket may be gone from the poller with its last descriptor.
        let _ = self.poller.remove(&worker.control);
        if worker.leaving || self.phase != Phase::Serving {
            return;
        }
        self.current.logs.save_rings(&self.console);
        self.current.logs.rings.clear(&self.console);
        let can_go_back = !self.earlier.is_empty() && worker.generation == self.current.number;
        if exit == Exit::Code(FATAL_CODE) && can_go_back {
            // The new configuration cannot be lived with: the one before serves on.
            self.go_back();
        } else if exit == Exit::Code(FATAL_CODE) {
            self.console.report(
                Level::Alert,
                format_args!("{name} exited with fatal code 2 and cannot be respawned"),
            );
            return;
        }
        let serves = |other: &Worker| !other.leaving && other.generation == self.current.number;
        if !self.workers.iter().any(serves) {
            self.respawn
                .after_death(Instant::now(), worker.started.elapsed());
        }
    }
}

impl Worker {
    /// `worker process 123`, as nginx's log names it.
    pub(super) fn name(&self) -> String {
        match &self.kind {
            WorkerHandle::Process(pid) => format!("worker process {pid}"),
            WorkerHandle::Thread(_) => "worker thread".to_owned(),
        }
    }

    /// Waits for the end of a worker thread, which has closed its socket, and returns its code; 1 when it panicked.
    pub(super) fn join(&mut self) -> i32 {
        match &mut self.kind {
            WorkerHandle::Thread(thread) => thread
                .take()
                .and_then(|thread| thread.join().ok())
                .unwrap_or(1),
            WorkerHandle::Process(_) => 0,
        }
    }

    /// Ends the worker without its help; a thread cannot be ended so.
    pub(super) fn kill(&self) {
        if let WorkerHandle::Process(pid) = &self.kind {
            // It may have ended already; either way its end will be reaped.
            let _ = process::kill(*pid, signal::KILL);
        }
    }
}

pub(super) fn log_exit(console: &Console, name: &str, exit: Exit) {
    log_exit_at(Level::Notice, console, name, exit);
}

/// Logs an end: one with a code at this level, one by a signal as an alert.
pub(super) fn log_exit_at(level: Level, console: &Console, name: &str, exit: Exit) {
    match exit {
        Exit::Code(code) => {
            console.report(level, format_args!("{name} exited with code {code}"));
        }
        Exit::Signal { signo, core_dumped } => {
            let dumped = if core_dumped { " (core dumped)" } else { "" };
            console.report(
                Level::Alert,
                format_args!("{name} exited on signal {signo}{dumped}"),
            );
        }
    }
}

/// When the next worker starts after one was lost.
#[derive(Debug)]
pub(super) struct Respawn {
    pub(super) due: Option<Instant>,
    quick_deaths: u32,
}

impl Respawn {
    pub(super) fn new() -> Self {
        Self {
            due: None,
            quick_deaths: 0,
        }
    }

    /// Plans the next start after a worker that lived for `lifetime` was lost at `now`.
    pub(super) fn after_death(&mut self, now: Instant, lifetime: Duration) {
        self.quick_deaths = if lifetime < STABLE_AFTER {
            self.quick_deaths + 1
        } else {
            0
        };
        self.due = Some(now + pause(self.quick_deaths));
    }
}

fn pause(quick_deaths: u32) -> Duration {
    match quick_deaths.checked_sub(IMMEDIATE_RESPAWNS + 1) {
        None => Duration::ZERO,
        Some(doublings) => FIRST_PAUSE
            .saturating_mul(1 << doublings.min(10))
            .min(LONGEST_PAUSE),
    }
}

/// A worker that lived this long has served: its loss does not count as part of a crash loop.
const STABLE_AFTER: Duration = Duration::from_secs(5);

/// Workers lost in quick succession that are started again at once.
const IMMEDIATE_RESPAWNS: u32 = 3;

/// The pause after those; it doubles with each further loss.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_respawns_are_immediate_then_pauses_grow_to_a_second() {
        let pauses: Vec<u128> = (1..=10).map(|deaths| pause(deaths).as_millis()).collect();
        assert_eq!(pauses, [0, 0, 0, 50, 100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
    }

    #[test]
    fn worker_that_served_ends_the_crash_loop() {
        let now = Instant::now();
        let mut respawn = Respawn::new();
        for _ in 0..6 {
            respawn.after_death(now, Duration::from_millis(10));
        }
        assert!(respawn.due > Some(now));
        respawn.after_death(now, STABLE_AFTER);
        assert_eq!(respawn.due, Some(now));
    }
}
