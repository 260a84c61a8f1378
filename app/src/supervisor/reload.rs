//! HUP and USR1: a new configuration, new logs.
//!
//! A configuration is read and opened beside the one that serves; if anything fails, it is dropped
//! and the log says why. What the running worker can take goes to it in place, so that its
//! connections stay; the few settings that belong to a process start another worker, and the first
//! one finishes when that one is ready. Sockets that are no longer named close when the worker has
//! let go of them. A new address that is in use is tried five times, as in nginx, while everything else
//! goes on. Source: nginx documentation, "Controlling nginx".

use std::ops::ControlFlow::Continue;
use std::time::Instant;

use driver::bundle::{FromWorker, ToWorker};
use server_base::errlog::Level;
use server_http::MainConf;
use sys::heap::trim;

use super::listeners::{BIND_PAUSE, BIND_TRIES, Bind, Listener};
use super::open::OpenConfig;
use super::state::{Flow, Phase, Reloading, Supervisor};
use super::worker::{Worker, WorkerHandle, needs_new_worker};
use super::{limits, listeners, pid_file};
use crate::console::{Console, Logged};
use crate::load::{self, Loaded};

impl Supervisor {
    /// Reads the configuration again and hands it to the worker; the old one stays if anything fails, and so does one that
    /// waits for an address.
    pub(super) fn reload(&mut self) -> Flow {
        self.remove_left_files();
        self.preparing = None;
        match self.prepare() {
            true => Continue(()),
            false => self.reload_whole(),
        }
    }

    /// Reloads with the configuration as loaded by this process.
    pub(super) fn reload_whole(&mut self) -> Flow {
        match self.open_next() {
            Ok(next) => {
                // Its new addresses are bound anew, so what waits must let go of them first.
                self.abandon_reload();
                return self.try_reload(next, 0);
            }
            Err(Logged) => self.notify.refused(&self.console),
        }
        Continue(())
    }

    fn open_next(&mut self) -> Result<OpenConfig, Logged> {
        let console = &self.console;
        let loaded = load::again(&self.options, &self.current.read()).map_err(|refused| {
            console.refused(&refused);
            Logged
        })?;
        console.warnings(&loaded.cycle.warnings);
        self.generations += 1;
        let next = self.open(self.generations, loaded);
        // What was built to be judged is gone again.
        trim();
        next
    }

    /// Opens what a configuration names, beside what is open for the one that serves.
    pub(super) fn open(&self, number: u64, loaded: Loaded) -> Result<OpenConfig, Logged> {
        let listeners = self.open_listeners();
        let (logs, other) = (&self.current.logs, self.other_server());
        OpenConfig::open(number, loaded, Some(logs), &listeners, other, &self.console)
    }

    /// Binds the new addresses of `next`. One that is in use is tried again later: meanwhile this process goes on.
    pub(super) fn try_reload(&mut self, mut next: OpenConfig, tries: u32) -> Flow {
        match listeners::fill(&mut next.listeners, &self.console) {
            Ok(Bind::Done) => return self.take_up(next),
            Ok(Bind::InUse) => {
                self.reloading = Some(Reloading {
                    next,
                    tries: tries + 1,
                    due: Instant::now() + BIND_PAUSE,
                });
            }
            Err(Logged) => self.refuse(next),
        }
        Continue(())
    }

    /// Tries addresses in use again; after the last try the configuration that names them is dropped.
    pub(super) fn reload_again(&mut self) -> Flow {
        match self.reloading.take() {
            Some(Reloading { next, tries, .. }) if tries < BIND_TRIES => {
                self.try_reload(next, tries)
            }
            Some(Reloading { next, .. }) => {
                listeners::give_up(&self.console);
                self.refuse(next);
                Continue(())
            }
            None => Continue(()),
        }
    }

    /// Abandons a configuration that waits for an address in use, because another command came.
    pub(super) fn abandon_reload(&mut self) {
        self.preparing = None;
        if let Some(Reloading { next, .. }) = self.reloading.take() {
            self.console.report(
                Level::Notice,
                format_args!("reconfiguring is given up, another signal came first"),
            );
            self.drop_unused(next);
        }
    }

    /// A configuration cannot be used: the current one goes on.
    fn refuse(&mut self, next: OpenConfig) {
        self.drop_unused(next);
        self.notify.refused(&self.console);
    }

    /// Closes sockets bound for a configuration that is not used, and removes their files.
    fn drop_unused(&mut self, unused: OpenConfig) {
        let kept = self.current.listeners.clone();
        self.remove_unix_files(&unused.listeners, &kept);
    }

    pub(super) fn take_up(&mut self, mut next: OpenConfig) -> Flow {
        let begun = listeners::beside::begin(&mut next.listeners, &self.console);
        let given = begun.and_then(|()| next.give_dashboard(&self.console));
        let moved = given.and_then(|()| self.move_pid_file(&self.current.main, &next.main));
        if moved.is_err() {
            self.refuse(next);
            return Continue(());
        }
        self.console = Console::of_log(next.logs.error_log());
        next.logs.redirect_stderr(&self.console);
        listeners::apply_options(&next.listeners, &self.current.listeners, &self.console);
        let replaced = std::mem::replace(&mut self.current, next);
        self.store.renew();
        if let Some(unneeded) = self.earlier.push(replaced.number, replaced) {
            self.remove_unneeded(&unneeded.listeners);
        }
        if self.phase == Phase::Paused {
            self.phase = Phase::Serving;
        }
        let main = &self.current.main;
        let fits = |worker: &Worker| !worker.leaving && !needs_new_worker(&worker.process, main);
        match self.workers.iter().rposition(fits) {
            Some(index) => {
                let worker = &mut self.workers[index];
                let more = worker.process.worker_processes < main.worker_processes;
                worker.process.worker_processes = main.worker_processes;
                if more && let WorkerHandle::Process(pid) = worker.kind {
                    limits::set_of(pid, main, &self.console);
                }
                self.configure(index);
                Continue(())
            }
            None => self.start_worker(),
        }
    }

    fn move_pid_file(&self, old: &MainConf, new: &MainConf) -> Result<(), Logged> {
        // With a new binary the file is aside, and gets the current name when that ends.
        if old.pid != new.pid && self.successor.is_none() {
            pid_file::write(&new.pid, &self.console)?;
            pid_file::remove(&old.pid, &self.console);
        }
        Ok(())
    }

    fn configure(&mut self, index: usize) {
        let id = self.workers[index].id;
        match self.bundle(id) {
            Ok(bundle) => {
                self.workers[index].generation = self.current.number;
                self.tell(id, &ToWorker::Configure(Box::new(bundle)));
            }
            Err(error) => {
                self.console
                    .failed(Level::Emerg, format_args!("reload"), &error);
                self.go_back();
            }
        }
    }

    /// Acts on what a worker said.
    pub(super) fn handle_message(&mut self, id: u64, message: FromWorker) -> Flow {
        match message {
            FromWorker::Ready { generation } => self.ready(id, generation),
            FromWorker::Prepared { generation } => return self.prepared(generation),
            FromWorker::Unprepared { generation } => {
                if self.is_unprepared(generation) {
                    return self.reload_whole();
                }
            }
            FromWorker::Failed { generation, .. } if self.is_unprepared(generation) => {
                return self.reload_whole();
            }
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
                    format_args!("{count} connections were lost to internal errors"),
                );
                self.current.logs.save_rings(&self.console);
            }
        }
        Continue(())
    }

    /// A worker serves this generation: nothing before it is needed any more.
    fn ready(&mut self, id: u64, number: u64) {
        if number == self.current.number && self.reloading.is_none() {
            self.notify.ready(&self.console);
        }
        let gone = self.earlier.settle(number).into_iter();
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
                self.quit_worker(index);
            }
        }
        // From now on a worker that is started anew builds for itself.
        self.built = None;
        self.remove_unneeded(&gone);
        // Reading a configuration takes much memory for a while, and the next reload may be long in coming.
        trim();
    }

    /// Removes the files of sockets that no generation names which still counts.
    fn remove_unneeded(&mut self, gone: &[Listener]) {
        let kept = self.open_listeners();
        self.remove_unix_files(gone, &kept);
    }

    /// The listeners of all generations that still count, the current one's first.
    fn open_listeners(&self) -> Vec<Listener> {
        let counting = std::iter::once(&self.current).chain(self.earlier.iter());
        counting
            .flat_map(|generation| generation.listeners.iter().cloned())
            .collect()
    }

    /// A worker could not take a generation: the one before it goes on.
    fn refused(&mut self, id: u64, refused: u64) {
        if refused != self.current.number {
            // It was followed by another one already, to which the worker has still to answer.
            if let Some(gone) = self.earlier.remove(refused) {
                self.remove_unneeded(&gone.listeners);
            }
            return;
        }
        let serves = |worker: &Worker, number| {
            worker.id != id && !worker.leaving && worker.generation == number
        };
        let Some(number) = self.earlier.last() else {
            // Its first configuration: it has nothing to serve by, and a successor is started.
            self.tell(id, &ToWorker::Terminate);
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
            self.tell(id, &ToWorker::Terminate);
        }
    }

    /// Drops the current generation for the one before it.
    pub(super) fn go_back(&mut self) {
        self.abandon_reload();
        let Some(before) = self.earlier.pop() else {
            return;
        };
        // Reported where it fails; the file then keeps the newer path.
        let _ = self.move_pid_file(&self.current.main, &before.main);
        let failed = std::mem::replace(&mut self.current, before);
        self.store.renew();
        self.console = Console::of_log(self.current.logs.error_log());
        self.current.logs.redirect_stderr(&self.console);
        self.remove_unneeded(&failed.listeners);
        self.notify.refused(&self.console);
    }

    /// Opens every log anew and sends the descriptors to the workers.
    pub(super) fn reopen_logs(&mut self) {
        self.console
            .report(Level::Notice, format_args!("reopening logs"));
        let account = self.current.account.clone();
        self.current.logs.reopen(account.as_ref(), &self.console);
        if let Some(Reloading { next, .. }) = &mut self.reloading {
            // Its files were opened by names that may be others' since.
            next.logs.reopen(account.as_ref(), &self.console);
        }
        self.console = Console::of_log(self.current.logs.error_log());
        self.current.logs.redirect_stderr(&self.console);
        self.current.logs.save_rings(&self.console);
        self.store.renew();
        for worker in &self.workers {
            match self.current.logs.duplicates() {
                Ok(logs) => self.tell(worker.id, &ToWorker::Reopen(logs)),
                Err(error) => {
                    self.console
                        .failed(Level::Emerg, format_args!("reopening logs"), &error);
                }
            }
        }
    }
}
