//! The supervisor's loop: one wait for signals, workers and what is due.
//!
//! Messages of the log are nginx's, since people and scripts search for them.
//! Source: nginx documentation, "Controlling nginx".

use std::convert::Infallible;
use std::io;
use std::ops::ControlFlow::{Break, Continue};
use std::time::{Duration, Instant};

use driver::bundle::{FromWorker, ToWorker};
use driver::inbox::Inbox;
use server_base::errlog::Level;
use sys::poll::Events;
use sys::process::{self, Exit};
use sys::signal::{self, Received};

use super::state::{Flow, LoopExit, Phase, SIGNALS_TOKEN, Supervisor};
use super::worker::{Worker, WorkerHandle, log_exit};
use super::{listeners, pid_file};
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
        self.console
            .report(Level::Notice, format_args!("start worker processes"));
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
        let reload = self.reloading.as_ref().map(|next| next.due);
        let watch = self.watcher.due(&self.current);
        let message = self.workers.iter().filter_map(|w| w.inbox.due()).min();
        let prepare = self.preparing.as_ref().map(|next| next.due);
        let store = self.store.due(self.phase);
        let next = [
            self.respawn.due,
            kill_at,
            reload,
            prepare,
            watch,
            message,
            store,
        ]
        .into_iter()
        .flatten()
        .min()?;
        let left = next.saturating_duration_since(Instant::now());
        // Rounded up, so that it is due when the wait ends.
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
        self.console.report(
            Level::Notice,
            format_args!("signal {signo} ({name}) received{from}{action}"),
        );
    }

    fn reconfigure(&mut self) -> Flow {
        if !matches!(self.phase, Phase::Serving | Phase::Paused) {
            return Continue(());
        }
        if self.successor.is_some() {
            // The files may be the new binary's already: this one serves by what it has read.
            return self.resume();
        }
        self.console
            .report(Level::Notice, format_args!("reconfiguring"));
        self.notify.reloading(&self.console);
        self.reload()
    }

    fn stop_accepting(&mut self) {
        // In the foreground WINCH only says that the terminal's window changed.
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
        self.phase = Phase::Quitting;
        self.abandon_reload();
        self.tell_end();
        self.respawn.due = None;
        self.quit_workers();
        // Closed here, the addresses are free as soon as the worker lets go of them.
        self.close_listeners();
    }

    fn terminate(&mut self) {
        if matches!(self.phase, Phase::Terminating { .. }) {
            return;
        }
        self.phase = Phase::Terminating {
            kill_at: Some(Instant::now() + KILL_AFTER),
        };
        self.abandon_reload();
        self.tell_end();
        self.respawn.due = None;
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            worker.leaving = true;
            let id = worker.id;
            self.tell(id, &ToWorker::Terminate);
        }
    }

    fn tell_end(&mut self) {
        let successor = self.successor.as_ref().map(|successor| successor.pid);
        self.notify.stopping(successor, &self.console);
    }

    fn close_listeners(&mut self) {
        let current = std::mem::take(&mut self.current.listeners);
        let earlier = self.earlier.clear().into_iter();
        let earlier = earlier.map(|generation| generation.listeners);
        let all = listeners::merged(std::iter::once(current).chain(earlier));
        self.remove_unix_files(&all, &[]);
    }

    fn receive_from(&mut self, id: u64) -> Flow {
        let Some(index) = self.workers.iter().position(|worker| worker.id == id) else {
            return Continue(());
        };
        let worker = &mut self.workers[index];
        if let Err(error) = worker.inbox.receive(&worker.control) {
            self.lost_control(index, &error);
            return Continue(());
        }
        // What it said may have led to its end.
        while let Some(index) = self.workers.iter().position(|worker| worker.id == id) {
            match self.workers[index].inbox.next(Instant::now()) {
                Ok(Some(message)) => self.handle_message(id, message)?,
                Ok(None) => break,
                Err(error) => {
                    self.lost_control(index, &error);
                    break;
                }
            }
        }
        Continue(())
    }

    /// Ends workers that have begun a message and do not finish it.
    fn lose_the_slow(&mut self, now: Instant) {
        let late = |worker: &Worker| worker.inbox.due().is_some_and(|due| due <= now);
        while let Some(index) = self.workers.iter().position(late) {
            self.workers[index].inbox = Inbox::default();
            self.lost_control(index, &io::ErrorKind::TimedOut.into());
        }
    }

    /// A worker closed its control socket, mostly because it ended.
    fn lost_control(&mut self, index: usize, error: &io::Error) {
        let worker = &self.workers[index];
        let ended = matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
        );
        if !ended {
            let name = worker.name();
            self.console.failed(
                Level::Crit,
                format_args!("control message of {name}"),
                error,
            );
            worker.kill();
        }
        // Registered until now, or gone with the worker.
        let _ = self.poller.remove(&worker.control);
        if matches!(worker.kind, WorkerHandle::Thread(_)) {
            let mut worker = self.workers.swap_remove(index);
            let code = worker.join();
            self.worker_ended(worker, Exit::Code(code));
        }
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

    /// Logs why a worker has ended, if it said so and that was not read yet.
    fn report_last_words(&self, worker: &mut Worker) {
        let inbox = &mut worker.inbox;
        for _ in 0..LAST_READS {
            if !matches!(inbox.receive(&worker.control), Ok(true)) {
                return;
            }
            while let Ok(Some(message)) = inbox.next(Instant::now()) {
                if let FromWorker::Failed { message, .. } = message {
                    self.console.report(Level::Emerg, format_args!("{message}"));
                }
            }
        }
    }

    fn do_what_is_due(&mut self) -> Flow {
        let now = Instant::now();
        self.lose_the_slow(now);
        if self.respawn.due.is_some_and(|due| due <= now) {
            self.start_worker()?;
        }
        if self.reloading.as_ref().is_some_and(|next| next.due <= now) {
            self.reload_again()?;
        }
        self.prepare_otherwise(now)?;
        self.watch(now)?;
        self.settle_store(now)?;
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
        self.console.report(Level::Notice, format_args!("exit"));
        self.close_listeners();
        self.remove_left_files();
        Break(LoopExit::Exit(0))
    }
}

const EVENTS_A_TURN: usize = 16;

/// Maximum number of reads of the control socket of an ended worker, which another process may hold open.
const LAST_READS: usize = 64;

/// Time for workers to end before they are killed.
const KILL_AFTER: Duration = Duration::from_secs(1);
