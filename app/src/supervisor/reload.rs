//! HUP and USR1: a new configuration, new logs.
//!
//! A configuration is read and opened beside the one that serves; if anything fails, it is dropped
//! and the log says why. What the running worker can take goes to it in place, so that its
//! connections stay; the few settings that belong to a process start another worker, and the first
//! one finishes when that one is ready. Sockets that are no longer named close when the worker has
//! let go of them. Source: nginx documentation, "Controlling nginx".

use std::ops::ControlFlow::Continue;

use driver::bundle::{FromWorker, ToWorker};
use server_core::MainConf;
use server_core::errlog::Level;

use super::child::Worker;
use super::open::Generation;
use super::{Flow, Phase, Reported, Supervisor, listeners, pid_file};
use crate::console::Console;
use crate::load;

impl Supervisor {
    /// Reads the configuration again and hands it to the worker; the old one stays if anything fails.
    pub(super) fn reload(&mut self) -> Flow {
        let Ok(next) = self.open_next() else {
            self.notify.refused(&self.console);
            return Continue(());
        };
        self.console = Console::of_log(next.logs.error_log());
        next.logs.redirect_stderr(&self.console);
        listeners::apply_options(&next.listeners, &self.current.listeners, &self.console);
        let replaced = std::mem::replace(&mut self.current, next);
        // Until a worker is ready, what it serves is the generation before all that came since.
        self.previous.get_or_insert(replaced);
        if self.phase == Phase::Paused {
            self.phase = Phase::Serving;
        }
        let main = &self.current.main;
        let fits = |worker: &Worker| !worker.leaving && !needs_new_worker(&worker.process, main);
        match self.workers.iter().rposition(fits) {
            Some(index) => {
                self.workers[index].process.worker_processes = main.worker_processes;
                self.configure(index);
                Continue(())
            }
            None => self.start_worker(),
        }
    }

    fn open_next(&mut self) -> Result<Generation, Reported> {
        let console = self.console.clone();
        let loaded = load::from_disk(&self.options).map_err(|refused| {
            console.refused(&refused);
            Reported
        })?;
        console.warnings(&loaded.cycle.warnings);
        self.generations += 1;
        let next = Generation::open(self.generations, loaded, Some(&self.current), &console)?;
        if let Err(reported) = self.move_pid_file(&self.current.main, &next.main) {
            listeners::remove_unix_files(&next.listeners, &self.current.listeners, &console);
            return Err(reported);
        }
        Ok(next)
    }

    fn move_pid_file(&self, old: &MainConf, new: &MainConf) -> Result<(), Reported> {
        if old.pid != new.pid {
            pid_file::write(&new.pid, &self.console)?;
            pid_file::remove(&old.pid, &self.console);
        }
        Ok(())
    }

    fn configure(&mut self, index: usize) {
        match self.current.bundle(&self.options) {
            Ok(bundle) => {
                let worker = &mut self.workers[index];
                worker.generation = self.current.number;
                let id = worker.id;
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
    pub(super) fn heard(&mut self, id: u64, message: FromWorker) -> Flow {
        match message {
            FromWorker::Ready { generation } if generation == self.current.number => {
                self.ready(id);
            }
            FromWorker::Failed {
                generation,
                message,
            } => {
                self.console.report(Level::Emerg, format_args!("{message}"));
                if generation == self.current.number {
                    self.refused(id);
                }
            }
            FromWorker::Panicked { count } => {
                self.console.report(
                    Level::Crit,
                    format_args!("{count} connections were lost to internal errors"),
                );
                self.current.logs.save_rings(&self.console);
            }
            FromWorker::Ready { .. } | FromWorker::Retired { .. } => {}
        }
        Continue(())
    }

    /// A worker serves the current generation: nothing before it is needed any more.
    fn ready(&mut self, id: u64) {
        self.notify.ready(&self.console);
        for index in 0..self.workers.len() {
            let worker = &self.workers[index];
            if worker.id != id && !worker.leaving {
                self.quit_worker(index);
            }
        }
        if let Some(previous) = self.previous.take() {
            let kept = &self.current.listeners;
            listeners::remove_unix_files(&previous.listeners, kept, &self.console);
        }
    }

    /// A worker could not take the current generation: the one before goes on.
    fn refused(&mut self, id: u64) {
        let serves = |worker: &Worker, number| {
            worker.id != id && !worker.leaving && worker.generation == number
        };
        let previous = self.previous.as_ref().map(|previous| previous.number);
        let Some(number) = previous else {
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

    pub(super) fn go_back(&mut self) {
        let Some(previous) = self.previous.take() else {
            return;
        };
        // Reported where it fails; the file then keeps the newer path.
        let _ = self.move_pid_file(&self.current.main, &previous.main);
        let failed = std::mem::replace(&mut self.current, previous);
        let kept = &self.current.listeners;
        listeners::remove_unix_files(&failed.listeners, kept, &self.console);
        self.console = Console::of_log(self.current.logs.error_log());
        self.current.logs.redirect_stderr(&self.console);
        self.notify.refused(&self.console);
    }

    /// Opens every log anew and sends the descriptors to the workers.
    pub(super) fn reopen_logs(&mut self) {
        self.console
            .report(Level::Notice, format_args!("reopening logs"));
        let account = self.current.account.clone();
        self.current.logs.reopen(account.as_ref(), &self.console);
        self.console = Console::of_log(self.current.logs.error_log());
        self.current.logs.redirect_stderr(&self.console);
        self.current.logs.save_rings(&self.console);
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

/// Settings that belong to a process and cannot change while it runs.
fn needs_new_worker(old: &MainConf, new: &MainConf) -> bool {
    old.user != new.user
        || old.env != new.env
        || old.worker_rlimit_nofile != new.worker_rlimit_nofile
        || old.worker_rlimit_core != new.worker_rlimit_core
        || old.working_directory != new.working_directory
        || old.worker_priority != new.worker_priority
        || old.worker_processes > new.worker_processes
}

#[cfg(test)]
mod tests {
    use super::*;
    use server_core::LoadOptions;

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
        let changes: [fn(&mut MainConf); 7] = [
            |main| main.user = Some(("www".to_owned(), None)),
            |main| main.env.push(("A".to_owned(), None)),
            |main| main.worker_rlimit_nofile = Some(1),
            |main| main.worker_rlimit_core = Some(1),
            |main| main.working_directory = Some("/".into()),
            |main| main.worker_priority = 1,
            |main| main.worker_processes = 1,
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
        new.worker_connections = 10;
        new.pid = "/other.pid".into();
        new.shutdown_timeout_ms = Some(5);
        assert!(!needs_new_worker(&old, &new));
    }
}
