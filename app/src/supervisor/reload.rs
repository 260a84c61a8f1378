//! A reload: one path from HUP, or from a changed file, to a worker that serves the next generation.
//!
//! ```text
//! HUP --> Prepare   a worker builds the configuration of the files as they are now ---------+
//!            |      (no worker is steady, or it cannot build it, or takes too long)         |
//!          Read     the supervisor loads and checks the configuration                       | Prepared
//!            |                                                                              |
//!          Open     logs, directories and kept listeners <----------------------------------+
//!            |
//!          Bind     new addresses; one in use is tried again, BIND_TRIES times
//!            |
//!          Adopt    the generation is `current`, the one before becomes pending <-- Renew <-- changed file
//!            |
//!          Deliver  a bundle to the worker; settings of a process start another worker
//!            |
//!          Ready: earlier generations close      Failed: `go_back` to the one before
//! ```
//!
//! If a step fails, its generation is dropped, the log has the reason, and the current one serves on. A reload that waits for
//! a worker or for an address is a [`PendingReload`]; meanwhile the supervisor does everything else.
//!
//! `Prepare` suits most reloads, which change nothing that the supervisor opens. The supervisor reads only changed
//! files of the last load, and does not parse them. The worker compares `Cycle::fingerprint`, which covers everything
//! that the supervisor opens. If it differs, the supervisor reads the configuration itself, since it opens only names
//! from a text that it has parsed. Source: nginx documentation, "Controlling nginx".

use std::mem;
use std::ops::ControlFlow::Continue;
use std::time::{Duration, Instant};

use driver::bundle::ToWorker;
use server_base::errlog::{Level, Printable};
use server_http::MainConf;
use sys::heap::trim;

use super::listeners::{BIND_PAUSE, BIND_TRIES, Bind, Listener};
use super::open::{FileContents, OpenConfig};
use super::state::{Flow, PendingReload, Phase, ReloadWait, Supervisor};
use super::worker::{Worker, WorkerHandle, needs_new_worker};
use super::{limits, listeners, pid_file};
use crate::console::{Console, Logged};
use crate::load::{self, Loaded};

/// Step of a reload, and its input.
pub(super) enum ReloadStep {
    Prepare,
    Read,
    /// With the worker that has built the configuration, if one has.
    Open(Box<Loaded>, Option<u64>),
    /// With the number of tries that found an address in use.
    Bind(Box<OpenConfig>, u32),
    Renew(Vec<FileContents>),
    Adopt(Box<OpenConfig>),
    Deliver,
}

impl Supervisor {
    /// Runs a reload from this step to its end, or to the next wait.
    pub(super) fn reload(&mut self, step: ReloadStep) -> Flow {
        let mut next = Some(step);
        while let Some(step) = next {
            next = match step {
                ReloadStep::Prepare => self.prepare(),
                ReloadStep::Read => self.read(),
                ReloadStep::Open(loaded, worker) => self.open(*loaded, worker),
                ReloadStep::Bind(next, tries) => self.bind(next, tries),
                ReloadStep::Renew(news) => self.renew(&news),
                ReloadStep::Adopt(next) => self.adopt(*next),
                ReloadStep::Deliver => return self.deliver(),
            };
        }
        Continue(())
    }

    /// Continues the pending reload if its time is over, or if its worker is gone.
    pub(super) fn continue_reload(&mut self, now: Instant) -> Flow {
        let workers = &self.workers;
        let is_over = |pending: &mut PendingReload| {
            let lives = |id| workers.iter().any(|one| one.id == id && !one.leaving);
            pending.due <= now || pending.worker().is_some_and(|id| !lives(id))
        };
        let Some(PendingReload { wait, .. }) = self.pending_reload.take_if(is_over) else {
            return Continue(());
        };
        self.reload(match wait {
            ReloadWait::Worker(..) => ReloadStep::Read,
            ReloadWait::Address(next, tries) => ReloadStep::Bind(next, tries),
        })
    }

    /// Makes the serving worker build the configuration from the present files.
    fn prepare(&mut self) -> Option<ReloadStep> {
        // An earlier build has older files.
        self.pending_reload
            .take_if(|pending| pending.worker().is_some());
        let number = self.generations + 1;
        let bundled = || {
            let id = self.steady_worker()?;
            let record = load::repeated(&self.current.read())?;
            let bundle = self.current.preparation(number, &record, &self.options);
            Some((id, record, bundle.ok()?))
        };
        let Some((id, record, bundle)) = bundled() else {
            return Some(ReloadStep::Read);
        };
        self.generations = number;
        self.pending_reload = Some(PendingReload {
            wait: ReloadWait::Worker(id, record),
            due: Instant::now() + BUILD_WAIT,
        });
        self.send(id, &ToWorker::Configure(Box::new(bundle)));
        None
    }

    /// Returns the worker that serves the current generation, if no other change is in progress.
    fn steady_worker(&self) -> Option<u64> {
        let is_steady = self.phase == Phase::Serving
            && self.pending_generations.is_empty()
            && self.pending_reload.is_none()
            && self.built.is_none();
        // Watched files are known only from the parsed text.
        if !is_steady || !self.current.watches.is_empty() {
            return None;
        }
        let OpenConfig { number, main, .. } = &self.current;
        let serves = |worker: &&Worker| {
            !worker.leaving
                && worker.generation == *number
                && !needs_new_worker(&worker.process, main)
        };
        self.workers.iter().find(serves).map(|worker| worker.id)
    }

    /// A worker has built the configuration with this number, unless the reload has gone on without it.
    pub(super) fn prepared(&mut self, number: u64) -> Flow {
        let Some(ReloadWait::Worker(id, record)) = self.take_build(number) else {
            return Continue(());
        };
        self.console.warnings(self.current.warnings());
        let loaded = Box::new(self.current.again(record));
        self.reload(ReloadStep::Open(loaded, Some(id)))
    }

    /// Ends the wait for a worker that builds the configuration with this number.
    pub(super) fn take_build(&mut self, number: u64) -> Option<ReloadWait> {
        let is_it = number == self.generations;
        let is_build = |pending: &mut PendingReload| is_it && pending.worker().is_some();
        self.pending_reload
            .take_if(is_build)
            .map(|pending| pending.wait)
    }

    /// Loads the configuration in this process. A reload that waits for an address stays if that fails.
    fn read(&mut self) -> Option<ReloadStep> {
        let console = &self.console;
        match load::again(&self.options, &self.current.read()) {
            Ok(loaded) => {
                console.warnings(&loaded.cycle.warnings);
                self.generations += 1;
                Some(ReloadStep::Open(Box::new(loaded), None))
            }
            Err(refused) => {
                console.refused(&refused);
                self.notify.refused(console);
                None
            }
        }
    }

    /// Opens everything in a configuration except new addresses.
    fn open(&mut self, loaded: Loaded, worker: Option<u64>) -> Option<ReloadStep> {
        let (number, logs) = (self.generations, &self.current.logs);
        let listeners = self.open_listeners();
        let (other, console) = (self.other_server(), &self.console);
        let opened = OpenConfig::open(number, loaded, Some(logs), &listeners, other, console);
        if worker.is_none() {
            // The configuration that this process has built is freed.
            trim();
        }
        let Ok(mut next) = opened else {
            self.notify.refused(&self.console);
            return None;
        };
        // The pending reload must close its new addresses before they can be bound again.
        self.abandon_reload();
        next.prepared_by = worker;
        Some(ReloadStep::Bind(Box::new(next), 0))
    }

    /// Binds new addresses. If one is in use, the reload waits; after the last try it fails.
    fn bind(&mut self, mut next: Box<OpenConfig>, tries: u32) -> Option<ReloadStep> {
        let bound = match tries {
            BIND_TRIES => Err(listeners::give_up(&self.console)),
            _ => listeners::fill(&mut next.listeners, &self.console),
        };
        match bound {
            Ok(Bind::Done) => return Some(ReloadStep::Adopt(next)),
            Ok(Bind::InUse) => {
                self.pending_reload = Some(PendingReload {
                    wait: ReloadWait::Address(next, tries + 1),
                    due: Instant::now() + BIND_PAUSE,
                });
            }
            Err(Logged) => self.refuse(*next),
        }
        None
    }

    /// Makes a generation of the current one with new contents of files, if a worker can build it.
    fn renew(&mut self, news: &[FileContents]) -> Option<ReloadStep> {
        let number = self.generations + 1;
        let next = self.current.renewed(number, news);
        let built = match next.bundle(None, &self.options) {
            Ok(bundle) => load::check_bundle(bundle),
            Err(error) => Err(sys::os_error(&error)),
        };
        if let Err(why) = built {
            self.watcher.refuse(news, &why, &self.console);
            return None;
        }
        self.generations = number;
        for (path, ..) in news {
            let shown = Printable::path(path);
            self.console
                .notice(format_args!("\"{shown}\" has changed and is reloaded"));
        }
        Some(ReloadStep::Adopt(Box::new(next)))
    }

    /// Makes a generation the current one.
    fn adopt(&mut self, mut next: OpenConfig) -> Option<ReloadStep> {
        let begun = listeners::beside::begin(&mut next.listeners, &self.console);
        let given = begun.and_then(|()| next.give_dashboard(&self.console));
        let moved = given.and_then(|()| self.move_pid_file(&self.current.main, &next.main));
        if moved.is_err() {
            self.refuse(next);
            return None;
        }
        let replaced = self.replace_current(next);
        let (new, old) = (&self.current.listeners, &replaced.listeners);
        listeners::apply_options(new, old, &self.console);
        if let Some(unneeded) = self.pending_generations.push(replaced.number, replaced) {
            self.remove_unneeded(&unneeded.listeners);
        }
        if self.phase == Phase::Paused {
            self.phase = Phase::Serving;
        }
        Some(ReloadStep::Deliver)
    }

    fn move_pid_file(&self, old: &MainConf, new: &MainConf) -> Result<(), Logged> {
        // While a successor runs, the file has another name. It gets the current name when the successor ends.
        if old.pid != new.pid && self.successor.is_none() {
            pid_file::write(&new.pid, &self.console)?;
            pid_file::remove(&old.pid, &self.console);
        }
        Ok(())
    }

    /// Returns the generation that was current.
    fn replace_current(&mut self, next: OpenConfig) -> OpenConfig {
        self.console = Console::of_log(next.logs.error_log());
        next.logs.redirect_stderr(&self.console);
        self.store.renew();
        mem::replace(&mut self.current, next)
    }

    /// Sends the current generation to the worker, or starts another worker.
    fn deliver(&mut self) -> Flow {
        let main = &self.current.main;
        let fits = |worker: &Worker| !worker.leaving && !needs_new_worker(&worker.process, main);
        let Some(index) = self.workers.iter().rposition(fits) else {
            return self.start_worker();
        };
        let worker = &mut self.workers[index];
        let more = worker.process.worker_processes < main.worker_processes;
        worker.process.worker_processes = main.worker_processes;
        if more && let WorkerHandle::Process(pid) = worker.kind {
            limits::set_of(pid, main, &self.console);
        }
        let id = worker.id;
        match self.bundle(id) {
            Ok(bundle) => {
                self.workers[index].generation = self.current.number;
                self.send(id, &ToWorker::Configure(Box::new(bundle)));
            }
            Err(error) => {
                self.console
                    .failed(Level::Emerg, format_args!("reload"), &error);
                self.go_back();
            }
        }
        Continue(())
    }

    /// Drops the current generation for the one before it.
    pub(super) fn go_back(&mut self) {
        self.abandon_reload();
        let Some(before) = self.pending_generations.pop() else {
            return;
        };
        // A failure is reported; the file then keeps the newer path.
        let _ = self.move_pid_file(&self.current.main, &before.main);
        let failed = self.replace_current(before);
        self.remove_unneeded(&failed.listeners);
        self.notify.refused(&self.console);
    }

    /// Abandons the pending reload in favour of another command.
    pub(super) fn abandon_reload(&mut self) {
        if let Some(pending) = self.pending_reload.take()
            && let ReloadWait::Address(next, _) = pending.wait
        {
            self.console
                .notice(format_args!("reconfiguring is canceled by another signal"));
            self.remove_unneeded(&next.listeners);
        }
    }

    /// Drops a generation that cannot be used: the current one serves on.
    fn refuse(&mut self, next: OpenConfig) {
        self.remove_unneeded(&next.listeners);
        drop(next);
        self.notify.refused(&self.console);
    }

    /// Removes the files of sockets that no current or pending generation uses.
    pub(super) fn remove_unneeded(&mut self, gone: &[Listener]) {
        let kept = self.open_listeners();
        self.remove_unix_files(gone, &kept);
    }

    /// Listeners of the current generation, then those of earlier ones.
    pub(super) fn open_listeners(&self) -> Vec<Listener> {
        let all = std::iter::once(&self.current).chain(self.pending_generations.iter());
        all.flat_map(|generation| generation.listeners.iter().cloned())
            .collect()
    }
}

/// Time limit of a build in the worker: enough for half a second of work on busy CPUs. A worker that hangs must not
/// block a reload that starts another one.
const BUILD_WAIT: Duration = Duration::from_secs(5);
