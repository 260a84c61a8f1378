//! The supervisor's loop: one wait for signals, messages of workers and times.
//!
//! Messages of the log are nginx's, since people and scripts search for them.
//! Source: nginx documentation, "Controlling nginx".

use std::convert::Infallible;
use std::ops::ControlFlow::{Break, Continue};
use std::time::{Duration, Instant};

use driver::bundle::ToWorker;
use server_base::errlog::Level;
use sys::poll::Events;
use sys::process;
use sys::signal::{self, Received};

use super::reload::ReloadStep;
use super::state::{Flow, LoopExit, Phase, ReloadWait, SIGNALS_TOKEN, Supervisor};
use super::worker::{Worker, WorkerHandle, log_exit};
use super::{listeners, pid_file};
use crate::console::Console;
use crate::keep_local_time;

impl Supervisor {
    /// Serves until the server is stopped, or until this is a new worker process.
    pub(super) fn run(mut self) -> LoopExit {
        match self.serve() {
            Break(leave) => leave,
            Continue(never) => match never {},
        }
    }

    fn serve(&mut self) -> Flow<Infallible> {
        self.console.notice(format_args!("start worker processes"));
        self.start_worker()?;
        let mut events = Events::with_capacity(EVENTS_A_TURN);
        loop {
            if let Err(error) = self.poller.wait(&mut events, self.timeout_ms()) {
                self.console
                    .failed(Level::Alert, format_args!("epoll_wait()"), &error);
                return Break(LoopExit::Exit(1));
            }
            keep_local_time();
            for index in 0..events.len() {
                match events.at(index).token {
                    SIGNALS_TOKEN => self.receive_signals()?,
                    worker => self.receive_from(worker)?,
                }
            }
            self.do_what_is_due()?;
            self.leave_if_stopped()?;
        }
    }

    fn timeout_ms(&self) -> Option<u64> {
        let kill_at = match self.phase {
            Phase::Terminating { kill_at } => kill_at,
            _ => None,
        };
        let reload = self.pending_reload.as_ref().map(|pending| pending.due);
        let watch = self.watcher.due(&self.current);
        let message = self.workers.iter().filter_map(|w| w.inbox.due()).min();
        let store = self.store.due(self.phase == Phase::Serving);
        let next = [self.respawn.due, kill_at, reload, watch, message, store]
            .into_iter()
            .flatten()
            .min()?;
        let left = next.saturating_duration_since(Instant::now());
        // Rounded up, so that it is due after the wait.
        Some(u64::try_from(left.as_micros().div_ceil(1000)).unwrap_or(u64::MAX))
    }

    fn receive_signals(&mut self) -> Flow {
        while let Ok(Some(received)) = self.signals.receive() {
            self.log_signal(received);
            match received.signo {
                signal::CHLD => self.reap()?,
                signal::TERM | signal::INT => self.terminate(),
                signal::QUIT => self.quit(),
                signal::HUP => self.reconfigure()?,
                signal::USR1 => self.reopen_logs(),
                signal::USR2 => self.change_binary(),
                signal::WINCH => self.stop_accepting(),
                _ => {}
            }
        }
        Continue(())
    }

    /// `signal 1 (SIGHUP) received from 123, reconfiguring`
    fn log_signal(&self, received: Received) {
        let Received { signo, sender, .. } = received;
        let action = match signo {
            signal::QUIT => ", shutting down",
            signal::TERM | signal::INT => ", exiting",
            signal::WINCH if self.daemonized => ", stop accepting connections",
            signal::HUP => ", reconfiguring",
            signal::USR1 => ", reopening logs",
            signal::USR2 if self.can_change_binary() => ", changing binary",
            signal::USR2 => ", ignoring",
            _ => "",
        };
        let from = if sender == 0 {
            String::new()
        } else {
            format!(" from {sender}")
        };
        let name = signal::name(signo);
        self.console.notice(format_args!(
            "signal {signo} ({name}) received{from}{action}"
        ));
    }

    fn reconfigure(&mut self) -> Flow {
        if !matches!(self.phase, Phase::Serving | Phase::Paused) {
            return Continue(());
        }
        if self.successor.is_some() {
            // The files may already belong to the new binary, so this process resumes with its loaded configuration.
            return self.resume();
        }
        self.console.notice(format_args!("reconfiguring"));
        self.notify.reloading(&self.console);
        self.remove_left_files();
        self.reload(ReloadStep::Prepare)
    }

    /// Reopens all logs and sends the descriptors to the workers.
    fn reopen_logs(&mut self) {
        self.console.notice(format_args!("reopening logs"));
        let account = self.current.account.clone();
        self.current.logs.reopen(account.as_ref(), &self.console);
        if let Some(ReloadWait::Address(next, _)) =
            self.pending_reload.as_mut().map(|p| &mut p.wait)
        {
            // The names of its files may have been rotated since it was opened.
            next.logs.reopen(account.as_ref(), &self.console);
        }
        self.console = Console::of_log(self.current.logs.error_log());
        self.current.logs.redirect_stderr(&self.console);
        self.current.logs.save_memory_logs(&self.console);
        self.store.renew();
        for worker in &self.workers {
            match self.current.logs.duplicates() {
                Ok(logs) => self.send(worker.id, &ToWorker::Reopen(logs)),
                Err(error) => {
                    self.console
                        .failed(Level::Emerg, format_args!("reopening logs"), &error);
                }
            }
        }
    }

    /// Checks watched files if it is time, and reloads with changed ones.
    fn reload_changed_files(&mut self, now: Instant) -> Flow {
        let is_due = self.watcher.is_due(&self.current, now);
        if !is_due || self.phase != Phase::Serving || self.pending_reload.is_some() {
            return Continue(());
        }
        let news = self.watcher.news(&mut self.current, &self.console);
        if news.is_empty() {
            return Continue(());
        }
        self.reload(ReloadStep::Renew(news))
    }

    fn stop_accepting(&mut self) {
        // In the foreground, WINCH only reports a new size of the terminal.
        if self.daemonized && self.phase == Phase::Serving {
            self.phase = Phase::Paused;
            self.abandon_reload();
            self.notify.refused(&self.console);
            self.respawn.due = None;
            self.quit_workers();
        }
    }

    fn quit(&mut self) {
        if !matches!(self.phase, Phase::Serving | Phase::Paused) {
            return;
        }
        self.begin_end(Phase::Quitting);
        self.quit_workers();
        // The addresses become free as soon as the workers close them, too.
        self.close_listeners();
    }

    fn terminate(&mut self) {
        if matches!(self.phase, Phase::Terminating { .. }) {
            return;
        }
        let kill_at = Some(Instant::now() + KILL_AFTER);
        self.begin_end(Phase::Terminating { kill_at });
        for index in 0..self.workers.len() {
            self.dismiss(index, &ToWorker::Terminate);
        }
    }

    fn begin_end(&mut self, phase: Phase) {
        self.phase = phase;
        self.abandon_reload();
        self.respawn.due = None;
        let successor = self.successor.as_ref().map(|successor| successor.pid);
        self.notify.stopping(successor, &self.console);
    }

    fn close_listeners(&mut self) {
        let current = std::mem::take(&mut self.current.listeners);
        let earlier = self.pending_generations.clear().into_iter();
        let earlier = earlier.map(|generation| generation.listeners);
        let all = listeners::merged(std::iter::once(current).chain(earlier));
        self.remove_unix_files(&all, &[]);
    }

    fn reap(&mut self) -> Flow {
        for (pid, exit) in process::reap() {
            let is_it =
                |worker: &Worker| matches!(worker.kind, WorkerHandle::Process(p) if p == pid);
            match self.workers.iter().position(is_it) {
                Some(index) => {
                    let mut worker = self.workers.swap_remove(index);
                    self.report_last_words(&mut worker);
                    self.worker_ended(worker, exit);
                }
                None if self.store.ended(pid, exit, &self.console) => {}
                None => match self.successor.take_if(|successor| successor.pid == pid) {
                    Some(successor) => self.successor_ended(&successor, exit)?,
                    None => log_exit(&self.console, &format!("unknown process {pid}"), exit),
                },
            }
        }
        Continue(())
    }

    fn do_what_is_due(&mut self) -> Flow {
        let now = Instant::now();
        self.lose_the_slow(now);
        if self.respawn.due.is_some_and(|due| due <= now) {
            self.start_worker()?;
        }
        self.continue_reload(now)?;
        self.reload_changed_files(now)?;
        self.update_store(now)?;
        if let Phase::Terminating {
            kill_at: Some(kill_at),
        } = self.phase
            && kill_at <= now
        {
            self.phase = Phase::Terminating { kill_at: None };
            for worker in &self.workers {
                worker.kill();
            }
            // Threads end with this process.
            self.workers
                .retain(|worker| matches!(worker.kind, WorkerHandle::Process(_)));
        }
        Continue(())
    }

    fn leave_if_stopped(&mut self) -> Flow {
        let stopping = matches!(self.phase, Phase::Quitting | Phase::Terminating { .. });
        let is_quick = matches!(self.phase, Phase::Terminating { .. });
        if !stopping || !self.workers.is_empty() || !self.store.finish(Instant::now(), is_quick) {
            return Continue(());
        }
        let aside = self.successor.as_ref().map(|successor| &successor.oldbin);
        pid_file::remove(aside.unwrap_or(&self.current.main.pid), &self.console);
        self.console.notice(format_args!("exit"));
        self.close_listeners();
        self.remove_left_files();
        Break(LoopExit::Exit(0))
    }
}

const EVENTS_A_TURN: usize = 16;

/// Time for workers to end before they are killed.
const KILL_AFTER: Duration = Duration::from_secs(1);
