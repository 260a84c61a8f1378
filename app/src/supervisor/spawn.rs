//! Workers: starting one, sending it messages, replacing a lost one; and the start of the store process.
//!
//! A worker that ends without a command is restarted. The first restarts are immediate, so that a crash costs clients
//! little. Then a growing pause keeps a worker that cannot run from using up the CPU. Source: nginx documentation,
//! "Core functionality".

use std::io;
use std::ops::ControlFlow::{Break, Continue};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use driver::bundle::{Bundle, ToWorker};
use driver::inbox::{Inbox, MESSAGE_TIME};
use server_base::errlog::Level;
use sys::fdpass;
use sys::poll::Interest;
use sys::process::{self, Exit, Fork};

use super::limits;
use super::process_init::{FATAL_CODE, WorkerSpawn, environment};
use super::state::{Flow, LoopExit, Phase, Supervisor};
use super::worker::{Worker, WorkerHandle, log_exit};
use crate::load;

impl Supervisor {
    /// Starts a worker and sends it the current generation; a failure is tried again later.
    pub(super) fn start_worker(&mut self) -> Flow {
        self.respawn.due = None;
        match self.try_start_worker() {
            Ok(None) => {}
            Ok(Some(child)) => return Break(LoopExit::Worker(Box::new(child))),
            Err(error) => {
                self.console
                    .failed(Level::Alert, format_args!("starting a worker"), &error);
                self.respawn.after_death(Instant::now(), Duration::ZERO);
            }
        }
        Continue(())
    }

    /// In the forked process itself its state is returned.
    fn try_start_worker(&mut self) -> io::Result<Option<WorkerSpawn>> {
        let (ours, theirs) = fdpass::pair()?;
        let supervisor = process::id();
        let kind = if self.current.main.master_process {
            match process::fork()? {
                Fork::Child => return Ok(Some(self.seed(theirs, supervisor))),
                Fork::Parent(pid) => WorkerHandle::Process(pid),
            }
        } else {
            self.start_thread(theirs)?
        };
        self.enlist(ours, kind)?;
        Ok(None)
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
            respawned: self.respawn.respawned,
        }
    }

    fn start_thread(&mut self, control: OwnedFd) -> io::Result<WorkerHandle> {
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

    fn enlist(&mut self, control: OwnedFd, kind: WorkerHandle) -> io::Result<()> {
        self.workers_started += 1;
        let id = self.workers_started;
        if let WorkerHandle::Process(pid) = &kind {
            self.console
                .notice(format_args!("start worker process {pid}"));
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

    fn equip(&mut self, id: u64) -> io::Result<()> {
        for worker in self.workers.iter().filter(|worker| worker.id == id) {
            self.poller.add(&worker.control, id, Interest::Readable)?;
        }
        let bundle = self.bundle(id)?;
        self.send(id, &ToWorker::Configure(Box::new(bundle)));
        Ok(())
    }

    /// Returns the bundle of the current configuration for a worker.
    pub(super) fn bundle(&mut self, worker: u64) -> io::Result<Bundle> {
        let mut bundle = self.current.bundle(Some(worker), &self.options)?;
        bundle.samples = self.store.samples(&self.current.main)?;
        Ok(bundle)
    }

    /// Sends a message. A worker that does not receive it in time is killed, and its exit is handled like any other.
    pub(super) fn send(&self, id: u64, message: &ToWorker) {
        let Some(worker) = self.workers.iter().find(|worker| worker.id == id) else {
            return;
        };
        if let Err(error) = message.send(&worker.control, MESSAGE_TIME) {
            if worker.leaving && error.kind() == io::ErrorKind::BrokenPipe {
                // The worker ended before the command.
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
                self.dismiss(index, &ToWorker::Quit);
            }
        }
    }

    /// Sends a worker its last command.
    pub(super) fn dismiss(&mut self, index: usize, command: &ToWorker) {
        let worker = &mut self.workers[index];
        worker.leaving = true;
        let id = worker.id;
        self.send(id, command);
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
        self.current.logs.save_memory_logs(&self.console);
        self.current.logs.memory_logs.clear(&self.console);
        let can_go_back =
            !self.pending_generations.is_empty() && worker.generation == self.current.number;
        if exit == Exit::Code(FATAL_CODE) && can_go_back {
            // No worker can serve by the new configuration: the one before serves on.
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
            self.respawn.respawned += 1;
            self.respawn
                .after_death(Instant::now(), worker.started.elapsed());
        }
    }

    /// Starts the store process that the current configuration needs, or has the running one finish.
    pub(super) fn update_store(&mut self, now: Instant) -> Flow {
        let is_serving = self.phase == Phase::Serving;
        let store = &mut self.store;
        let Some(child) = store.update(&self.current, is_serving, now, &self.console) else {
            return Continue(());
        };
        self.title.set("firstbyte: store process");
        Break(LoopExit::Store(Box::new(child)))
    }
}
