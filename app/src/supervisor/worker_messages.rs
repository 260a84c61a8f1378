//! Messages of workers: how they are read, and the two ends of a reload, [`Supervisor::ready`] and [`Supervisor::refused`].
//!
//! A worker that breaks the format, or does not finish a message in time, is killed.

use std::io;
use std::ops::ControlFlow::Continue;
use std::time::Instant;

use driver::bundle::{FromWorker, ToWorker};
use driver::inbox::{Inbox, is_end};
use server_base::errlog::Level;
use sys::heap::trim;
use sys::process::Exit;

use super::listeners;
use super::reload::ReloadStep;
use super::state::{Flow, Supervisor};
use super::worker::{Worker, WorkerHandle};

impl Supervisor {
    /// Reads messages of a worker.
    pub(super) fn receive_from(&mut self, id: u64) -> Flow {
        let Some(index) = self.workers.iter().position(|worker| worker.id == id) else {
            return Continue(());
        };
        let worker = &mut self.workers[index];
        if let Err(error) = worker.inbox.receive(&worker.control) {
            self.lost_control(index, &error);
            return Continue(());
        }
        // A message may have led to its end.
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
    pub(super) fn lose_the_slow(&mut self, now: Instant) {
        let late = |worker: &Worker| worker.inbox.due().is_some_and(|due| due <= now);
        while let Some(index) = self.workers.iter().position(late) {
            self.workers[index].inbox = Inbox::default();
            self.lost_control(index, &io::ErrorKind::TimedOut.into());
        }
    }

    /// A worker closed its control socket, mostly because it ended.
    fn lost_control(&mut self, index: usize, error: &io::Error) {
        let worker = &self.workers[index];
        if !is_end(error) {
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

    /// Logs the reason for the end of a worker from its messages that were not read yet.
    pub(super) fn report_last_words(&self, worker: &mut Worker) {
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

    /// Acts on a message of a worker.
    fn handle_message(&mut self, id: u64, message: FromWorker) -> Flow {
        match message {
            FromWorker::Ready { generation } => self.ready(id, generation),
            FromWorker::Prepared { generation } => return self.prepared(generation),
            FromWorker::Unprepared { generation } | FromWorker::Failed { generation, .. }
                if self.take_build(generation).is_some() =>
            {
                return self.reload(ReloadStep::Read);
            }
            FromWorker::Unprepared { .. } => {}
            FromWorker::Failed {
                generation,
                message,
            } => {
                self.console.report(Level::Emerg, format_args!("{message}"));
                self.refused(id, generation);
            }
            FromWorker::Panicked { count } => {
                self.console.report(
                    Level::Crit,
                    format_args!("{count} connections were closed by internal errors"),
                );
                self.current.logs.save_memory_logs(&self.console);
            }
        }
        Continue(())
    }

    /// A worker serves this generation: earlier ones are not needed any more.
    fn ready(&mut self, id: u64, number: u64) {
        if number == self.current.number && self.pending_reload.is_none() {
            self.notify.ready(&self.console);
        }
        let gone = self.pending_generations.settle(number).into_iter();
        let gone = listeners::merged(gone.map(|generation| generation.listeners));
        listeners::beside::divert(
            &gone,
            &self.open_listeners(),
            self.other_server(),
            &self.console,
        );
        for index in 0..self.workers.len() {
            let worker = &self.workers[index];
            if worker.id != id && !worker.leaving && worker.generation <= number {
                self.dismiss(index, &ToWorker::Quit);
            }
        }
        // From now on a restarted worker builds the configuration itself.
        self.built = None;
        self.remove_unneeded(&gone);
        // Memory that reading the configuration took may not be needed again soon.
        trim();
    }

    /// Handles a worker that could not load a generation: the one before it serves on.
    fn refused(&mut self, id: u64, refused: u64) {
        if refused != self.current.number {
            // The worker has still to answer for a newer one.
            if let Some(gone) = self.pending_generations.remove(refused) {
                self.remove_unneeded(&gone.listeners);
            }
            return;
        }
        let serves = |worker: &Worker, number| {
            worker.id != id && !worker.leaving && worker.generation == number
        };
        let Some(number) = self.pending_generations.last() else {
            // It has no earlier configuration to serve by: another worker is started.
            self.send(id, &ToWorker::Terminate);
            return;
        };
        let other_serves = self.workers.iter().any(|worker| serves(worker, number));
        self.go_back();
        let Some(worker) = self.workers.iter_mut().find(|worker| worker.id == id) else {
            return;
        };
        worker.generation = number;
        worker.leaving = other_serves;
        if other_serves {
            self.send(id, &ToWorker::Terminate);
        }
    }
}

/// Maximum number of reads of the control socket of an ended worker, which another process may hold open.
const LAST_READS: usize = 64;
