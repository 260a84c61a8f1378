//! The store process: started with a configuration that records connections, and again when it ends.
//!
//! Samples go over one socket pair for the life of the supervisor. Workers have one end; each store process in turn has the other.
//! So no sample is lost while a process takes the place of another. A store process finishes when its control socket is closed, or
//! when no worker has the sending end. With `master_process off` it is a thread. Absent: what it writes ([`crate::recorder`]).

use std::fs::DirBuilder;
use std::io;
use std::ops::ControlFlow::{Break, Continue};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use driver::bundle::{Bundle, SampleChannel};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use server_base::errlog::Level;
use server_base::lab_store::LabStoreConf;
use sys::process::{self, Exit, Fork};
use sys::{fdpass, signal};

use super::account::{self, Account};
use super::state::{Flow, LoopExit, Phase, Supervisor};
use super::worker::{Respawn, log_exit};
use crate::console::Console;
use crate::recorder::Recorder;

/// The store process as the supervisor sees it.
#[derive(Debug)]
pub(super) struct StoreProcess {
    channel: Option<Channel>,
    running: Option<Running>,
    /// Processes that finish.
    leaving: Vec<u32>,
    respawn: Respawn,
    /// When settings or logs have changed: another process takes its place.
    stale_since: Option<Instant>,
    /// When processes that have not finished by the end of the server are killed.
    kill_at: Option<Instant>,
    is_killed: bool,
}

/// Both ends of the way of samples.
#[derive(Debug)]
struct Channel {
    /// The workers' end; `None` while the server ends.
    send: Option<OwnedFd>,
    receive: OwnedFd,
    figures: OwnedFd,
}

#[derive(Debug)]
struct Running {
    handle: Handle,
    started: Instant,
    /// Closed when the process is to finish.
    _control: OwnedFd,
}

#[derive(Debug)]
enum Handle {
    Process(u32),
    Thread(JoinHandle<()>),
}

/// State with which a forked process becomes the store process.
pub(super) struct StoreSpawn {
    recorder: Recorder,
    account: Option<Account>,
    console: Console,
}

impl Channel {
    fn new() -> io::Result<Self> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (send, receive) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
        Ok(Self {
            send: Some(send),
            receive,
            figures: process::memory_file("store-figures")?,
        })
    }
}

impl StoreProcess {
    pub(super) fn new() -> Self {
        Self {
            channel: None,
            running: None,
            leaving: Vec::new(),
            respawn: Respawn::new(),
            stale_since: Some(Instant::now()),
            kill_at: None,
            is_killed: false,
        }
    }

    /// Has another process take the place of the running one: settings or logs have changed.
    pub(super) fn renew(&mut self) {
        self.stale_since = Some(Instant::now());
    }

    /// When there is something to do.
    pub(super) fn due(&self, phase: Phase) -> Option<Instant> {
        match phase {
            Phase::Serving => self.stale_since.or(self.respawn.due),
            Phase::Paused => None,
            Phase::Quitting | Phase::Terminating { .. } => self.kill_at,
        }
    }

    /// Has the running process finish with all that was sent, as no worker sends any more; returns whether all have ended.
    pub(super) fn finish(&mut self, now: Instant) -> bool {
        if let Some(channel) = &mut self.channel {
            channel.send = None;
        }
        let kill_at = *self.kill_at.get_or_insert(now + END_WAIT);
        if kill_at <= now {
            if self.is_killed {
                // A disk that does not answer holds a process for as long as it likes.
                return true;
            }
            self.kill();
            self.kill_at = Some(now + END_WAIT);
        }
        let is_thread = |running: &mut Running| matches!(running.handle, Handle::Thread(_));
        if let Some(running) = self.running.take_if(is_thread) {
            join(running);
        }
        self.running.is_none() && self.leaving.is_empty()
    }

    /// Ends store processes that take too long.
    fn kill(&mut self) {
        self.is_killed = true;
        if let Some(running) = self.running.take()
            && let Handle::Process(pid) = running.handle
        {
            self.leaving.push(pid);
        }
        for pid in &self.leaving {
            // It may have ended already; either way its end will be reaped.
            let _ = process::kill(*pid, signal::KILL);
        }
    }

    /// Notes the end of a process; returns whether it was a store process.
    pub(super) fn ended(&mut self, pid: u32, exit: Exit, console: &Console) -> bool {
        if let Some(at) = self.leaving.iter().position(|leaving| *leaving == pid) {
            self.leaving.swap_remove(at);
            if matches!(exit, Exit::Signal { .. }) {
                log_exit(console, &format!("store process {pid}"), exit);
            }
            return true;
        }
        let is_it =
            |running: &mut Running| matches!(running.handle, Handle::Process(p) if p == pid);
        let Some(running) = self.running.take_if(is_it) else {
            return false;
        };
        log_exit(console, &format!("store process {pid}"), exit);
        self.respawn
            .after_death(Instant::now(), running.started.elapsed());
        true
    }

    /// Has the running process finish.
    fn leave(&mut self) {
        match self.running.take() {
            Some(Running {
                handle: Handle::Process(pid),
                ..
            }) => self.leaving.push(pid),
            Some(running) => join(running),
            None => {}
        }
    }

    fn channel(&mut self) -> io::Result<&Channel> {
        if self.channel.is_none() {
            self.channel = Some(Channel::new()?);
        }
        self.channel
            .as_ref()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Waits for the end of a store thread.
fn join(running: Running) {
    let Running {
        handle, _control, ..
    } = running;
    drop(_control);
    if let Handle::Thread(thread) = handle {
        // A panic has been printed.
        let _ = thread.join();
    }
}

impl Supervisor {
    /// Adds the way of samples to a bundle of the current configuration.
    ///
    /// # Errors
    /// The descriptor limit is reached.
    pub(super) fn add_samples(&mut self, bundle: &mut Bundle) -> io::Result<()> {
        if self.current.main.lab_store.is_none() {
            return Ok(());
        }
        let channel = self.store.channel()?;
        if let Some(send) = &channel.send {
            bundle.samples = Some(SampleChannel {
                socket: send.try_clone()?,
                figures: channel.figures.try_clone()?,
            });
        }
        Ok(())
    }

    /// Starts the store process that the current configuration needs, or has the running one finish.
    pub(super) fn settle_store(&mut self, now: Instant) -> Flow {
        let due = self.store.due(self.phase);
        if self.phase != Phase::Serving || due.is_none_or(|due| due > now) {
            return Continue(());
        }
        (self.store.stale_since, self.store.respawn.due) = (None, None);
        self.store.leave();
        let Some(conf) = self.current.main.lab_store.clone() else {
            return Continue(());
        };
        let started = self.start_store(conf)?;
        if let Err(error) = started {
            let text = format_args!("starting the store process");
            self.console.failed(Level::Alert, text, &error);
            self.store.respawn.after_death(now, Duration::ZERO);
        }
        Continue(())
    }

    fn start_store(&mut self, conf: LabStoreConf) -> Flow<io::Result<()>> {
        let account = self.current.account.clone();
        create_parent(&conf.path, account.as_ref(), &self.console);
        let made = self.recorder(conf);
        let (recorder, control) = match made {
            Ok(made) => made,
            Err(error) => return Continue(Err(error)),
        };
        let handle = if self.current.main.master_process {
            match process::fork() {
                Ok(Fork::Child) => {
                    self.title.set("firstbyte: store process");
                    drop(control);
                    return Break(LoopExit::Store(Box::new(StoreSpawn {
                        recorder,
                        account,
                        console: self.console.clone(),
                    })));
                }
                Ok(Fork::Parent(pid)) => {
                    let text = format_args!("start store process {pid}");
                    self.console.report(Level::Notice, text);
                    Ok(Handle::Process(pid))
                }
                Err(error) => Err(error),
            }
        } else {
            let console = self.console.clone();
            let thread = std::thread::Builder::new().name("store".to_owned());
            let thread = thread.spawn(move || recorder.with_places(&console).run(&console));
            thread.map(Handle::Thread)
        };
        Continue(handle.map(|handle| {
            self.store.running = Some(Running {
                handle,
                started: Instant::now(),
                _control: control,
            });
        }))
    }

    /// Returns what a store process works with, and the end of its control socket that this process keeps.
    fn recorder(&mut self, conf: LabStoreConf) -> io::Result<(Recorder, OwnedFd)> {
        let (ours, theirs) = fdpass::pair()?;
        let channel = self.store.channel()?;
        let recorder = Recorder {
            conf,
            samples: channel.receive.try_clone()?,
            figures: channel.figures.try_clone()?.into(),
            control: theirs,
            places: None,
        };
        Ok((recorder, ours))
    }
}

/// Makes the directory of the store if it is missing, owned by the worker's user, and those above it. The store process reports
/// all other faults.
fn create_parent(path: &Path, account: Option<&Account>, console: &Console) {
    if let Some(parent) = path.parent()
        && !parent.exists()
    {
        // The directory itself cannot be made if this fails.
        let above = parent.parent().unwrap_or(parent);
        let _ = DirBuilder::new().recursive(true).mode(0o755).create(above);
        // Reported where it fails.
        let _ = account::create_directories(&[parent.to_path_buf()], account, console);
    }
}

/// Turns this process, forked and without the supervisor's descriptors, into the store process. Returns its exit code.
pub(super) fn serve(spawn: StoreSpawn) -> i32 {
    let StoreSpawn {
        recorder,
        account,
        console,
    } = spawn;
    // Databases are read with the supervisor's rights, as the configuration is.
    let recorder = recorder.with_places(&console);
    if super::work::become_store(account.as_ref(), &console).is_err() {
        return super::work::FATAL_CODE;
    }
    recorder.run(&console);
    0
}

/// Time in which store processes finish at the end of the server, before they are killed.
const END_WAIT: Duration = Duration::from_secs(5);
