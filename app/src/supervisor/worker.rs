//! A worker from the supervisor's view: its last bundle, its exit, and the delay before a replacement.

use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use driver::inbox::Inbox;
use server_base::errlog::Level;
use server_http::MainConf;
use sys::process::{self, Exit};
use sys::signal;

use crate::console::Console;

/// A worker as the supervisor sees it.
#[derive(Debug)]
pub(super) struct Worker {
    /// The poller's token of its control socket.
    pub(super) id: u64,
    pub(super) control: OwnedFd,
    /// Received part of its next message.
    pub(super) inbox: Inbox,
    pub(super) kind: WorkerHandle,
    /// Settings at its start. A running process cannot change some of them.
    pub(super) process: MainConf,
    /// The generation it was sent last.
    pub(super) generation: u64,
    /// A command to finish or to end was sent to it.
    pub(super) leaving: bool,
    pub(super) started: Instant,
}

/// Process or thread of a worker.
#[derive(Debug)]
pub(super) enum WorkerHandle {
    /// A process, by its number.
    Process(u32),
    /// A thread of this process, with `master_process off`.
    Thread(Option<JoinHandle<i32>>),
}

impl Worker {
    /// Returns `worker process 123`, the name in nginx's log.
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

/// Settings that belong to a process and cannot change while it runs.
pub(super) fn needs_new_worker(old: &MainConf, new: &MainConf) -> bool {
    old.worker != new.worker || old.worker_processes > new.worker_processes
}

/// When the next worker starts after one was lost.
#[derive(Debug)]
pub(super) struct Respawn {
    pub(super) due: Option<Instant>,
    /// Number of workers that were lost and are replaced, since the start.
    pub(super) respawned: u64,
    quick_deaths: u32,
}

impl Respawn {
    pub(super) fn new() -> Self {
        Self {
            due: None,
            respawned: 0,
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
    use server_http::LoadOptions;

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

    fn main_conf() -> MainConf {
        MainConf::new(&LoadOptions {
            conf_path: "/x/nginx.conf".into(),
            prefix: "/x/".into(),
            globals: None,
            error_log: None,
            access_log: "/x/access.log".into(),
        })
    }

    #[test]
    fn settings_of_a_process_need_a_new_worker() {
        let changes: [fn(&mut MainConf); 8] = [
            |main| main.worker.user = Some(("www".to_owned(), None)),
            |main| main.worker.env.push(("A".to_owned(), None)),
            |main| main.worker.rlimit_nofile = Some(1),
            |main| main.worker.rlimit_core = Some(1),
            |main| main.worker.working_directory = Some("/".into()),
            |main| main.worker.priority = 1,
            |main| main.worker_processes = 1,
            |main| main.worker.binds_transparently = true,
        ];
        let mut old = main_conf();
        old.worker_processes = 2;
        for change in changes {
            let mut new = old.clone();
            change(&mut new);
            assert!(needs_new_worker(&old, &new));
        }
    }

    #[test]
    fn everything_else_is_taken_in_place() {
        let old = main_conf();
        let mut new = old.clone();
        new.daemon = !old.daemon;
        new.worker_processes = old.worker_processes + 1;
        new.events.connections = 10;
        new.pid = "/other.pid".into();
        new.shutdown_timeout_ms = Some(5);
        assert!(!needs_new_worker(&old, &new));
    }
}
