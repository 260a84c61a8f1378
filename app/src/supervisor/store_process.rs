//! The store process: started with a configuration that records connections, and again when it ends.
//!
//! Samples go over one socket pair for the life of the supervisor. Workers have one end; each store process in turn has the other.
//! So no sample is lost while a process takes the place of another, which it does when the other has ended. A store process
//! finishes when its control socket is closed, or when nobody has the sending end. With `master_process off` at the start it
//! is a thread. Absent: what it writes ([`crate::recorder`]).

use std::fs::DirBuilder;
use std::io;
use std::ops::ControlFlow::{Break, Continue};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use driver::bundle::{Bundle, SampleChannel};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use server_base::errlog::Level;
use server_base::lab_store::{LabEngine, LabStoreConf};
use sys::process::{self, Exit, Fork};
use sys::{fdpass, signal};

use super::account::{self, Account};
use super::state::{Flow, LoopExit, Phase, Supervisor};
use super::worker::{Respawn, log_exit};
use crate::console::Console;
use crate::recorder::{Files, Recorder};

/// The store process as the supervisor sees it.
#[derive(Debug)]
pub(super) struct StoreProcess {
    channel: Option<Channel>,
    running: Option<Running>,
    /// A process or thread that finishes, and when it is killed or left alone.
    leaving: Option<(Handle, Instant)>,
    respawn: Respawn,
    /// When settings or logs have changed: another process takes its place.
    stale_since: Option<Instant>,
    /// It is a thread of this process, as the first worker is.
    is_thread: bool,
    /// The one that finishes has been killed.
    is_killed: bool,
}

/// Both ends of the way of samples.
#[derive(Debug)]
struct Channel {
    /// The workers' end.
    send: OwnedFd,
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
            send,
            receive,
            figures: process::memory_file("store-figures")?,
        })
    }
}

impl StoreProcess {
    pub(super) fn new(is_thread: bool) -> Self {
        Self {
            channel: None,
            running: None,
            leaving: None,
            respawn: Respawn::new(),
            stale_since: Some(Instant::now()),
            is_thread,
            is_killed: false,
        }
    }

    /// Has another process take the place of the running one: settings or logs have changed.
    pub(super) fn renew(&mut self) {
        self.stale_since = Some(Instant::now());
    }

    /// When there is something to do.
    pub(super) fn due(&self, phase: Phase) -> Option<Instant> {
        match (&self.leaving, phase) {
            // The end of a thread brings no signal.
            (Some((Handle::Thread(_), _)), _) => Some(Instant::now() + THREAD_LOOK),
            (Some((Handle::Process(_), kill_at)), _) => Some(*kill_at),
            (None, Phase::Serving) => self.stale_since.or(self.respawn.due),
            (None, _) => None,
        }
    }

    /// Has the running process finish with all that was sent, as no worker sends any more; returns whether it has ended.
    pub(super) fn finish(&mut self, now: Instant, is_quick: bool) -> bool {
        let limit = if is_quick { QUICK_END_WAIT } else { END_WAIT };
        let running = self.running.take();
        self.leave(running, now + limit);
        self.settle(now);
        self.leaving.is_none()
    }

    /// Closes the control socket: the process or thread writes all samples that were sent, and ends.
    fn leave(&mut self, running: Option<Running>, kill_at: Instant) {
        if let Some(Running { handle, .. }) = running {
            self.is_killed = false;
            self.leaving = Some((handle, kill_at));
        }
    }

    /// Forgets what has ended, and kills what takes too long.
    fn settle(&mut self, now: Instant) {
        let Some((handle, kill_at)) = &mut self.leaving else {
            return;
        };
        let is_late = *kill_at <= now;
        match handle {
            Handle::Thread(thread) if !thread.is_finished() && !is_late => {}
            Handle::Process(pid) if is_late && !self.is_killed => {
                // It may have ended already; either way its end will be reaped.
                let _ = process::kill(*pid, signal::KILL);
                self.is_killed = true;
                *kill_at = now + QUICK_END_WAIT;
            }
            Handle::Process(_) if !is_late => {}
            // A disk that does not answer holds a thread or a process for as long as it likes.
            Handle::Thread(_) | Handle::Process(_) => self.leaving = None,
        }
    }

    /// Notes the end of a process; returns whether it was a store process.
    pub(super) fn ended(&mut self, pid: u32, exit: Exit, console: &Console) -> bool {
        let is_it = |handle: &Handle| matches!(handle, Handle::Process(p) if *p == pid);
        if self.leaving.take_if(|(handle, _)| is_it(handle)).is_some() {
            log_exit(console, &format!("store process {pid}"), exit);
            return true;
        }
        let Some(running) = self.running.take_if(|running| is_it(&running.handle)) else {
            return false;
        };
        log_exit(console, &format!("store process {pid}"), exit);
        self.respawn
            .after_death(Instant::now(), running.started.elapsed());
        true
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

impl Supervisor {
    /// Adds the way of samples to a bundle of the current configuration.
    ///
    /// # Errors
    /// The descriptor limit is reached.
    pub(super) fn add_samples(&mut self, bundle: &mut Bundle) -> io::Result<()> {
        let lab_store = self.current.main.lab_store.as_ref();
        if lab_store.is_none_or(|lab_store| !lab_store.writes()) {
            return Ok(());
        }
        let channel = self.store.channel()?;
        bundle.samples = Some(SampleChannel {
            socket: channel.send.try_clone()?,
            figures: channel.figures.try_clone()?,
        });
        Ok(())
    }

    /// Starts the store process that the current configuration needs, or has the running one finish.
    pub(super) fn settle_store(&mut self, now: Instant) -> Flow {
        self.store.settle(now);
        let due = self.store.due(self.phase);
        let is_due = due.is_some_and(|due| due <= now);
        if self.phase != Phase::Serving || self.store.leaving.is_some() || !is_due {
            return Continue(());
        }
        if let Some(running) = self.store.running.take() {
            // The next one is started when this one has ended.
            self.store.leave(Some(running), now + LEAVE_WAIT);
            return Continue(());
        }
        (self.store.stale_since, self.store.respawn.due) = (None, None);
        let Some(conf) = self.current.main.lab_store.clone() else {
            // Samples of earlier settings belong to no later store.
            self.store.channel = None;
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
        let made = self.recorder(conf);
        let (recorder, control) = match made {
            Ok(made) => made,
            Err(error) => return Continue(Err(error)),
        };
        let handle = if !self.store.is_thread {
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
            let thread = thread.spawn(move || {
                create_directories(&recorder.conf, None, &console);
                recorder.with_files(&console).run(&console);
            });
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
        let mut listeners = self.current.listeners.iter();
        let dashboard = listeners.find(|listener| listener.is_dashboard());
        let dashboard = dashboard.map(|listener| listener.for_store_process());
        let channel = self.store.channel()?;
        let recorder = Recorder {
            conf,
            samples: channel.receive.try_clone()?,
            figures: channel.figures.try_clone()?.into(),
            control: theirs,
            dashboard: dashboard.transpose()?,
            files: Files::default(),
        };
        Ok((recorder, ours))
    }
}

/// Makes the directory that the store process writes to, if it is missing, owned by the worker's user, and those above it. The
/// store process reports all other faults.
fn create_directories(conf: &LabStoreConf, account: Option<&Account>, console: &Console) {
    let directory = match &conf.engine {
        LabEngine::Sqlite(path) => path.parent(),
        LabEngine::ClickHouse(conf) => Some(conf.spill.as_path()),
    };
    let Some(directory) = directory.filter(|it| conf.writes() && !it.exists()) else {
        return;
    };
    // The directory itself cannot be made if this fails.
    let above = directory.parent().unwrap_or(directory);
    let _ = DirBuilder::new().recursive(true).mode(0o755).create(above);
    // Reported where it fails.
    let _ = account::create_directories(&[directory.to_path_buf()], account, console);
}

/// Turns this process, forked and without the supervisor's descriptors, into the store process. Returns its exit code.
pub(super) fn serve(spawn: StoreSpawn) -> i32 {
    let StoreSpawn {
        recorder,
        account,
        console,
    } = spawn;
    create_directories(&recorder.conf, account.as_ref(), &console);
    // Databases and passwords are read with the supervisor's rights, as the configuration is.
    let recorder = recorder.with_files(&console);
    if super::process_init::become_store(account.as_ref(), &console).is_err() {
        return super::process_init::FATAL_CODE;
    }
    recorder.run(&console);
    0
}

/// Time in which a store process finishes that another one follows, before it is killed.
const LEAVE_WAIT: Duration = Duration::from_secs(30);
/// Time in which a store process finishes at the end of the server, and at its quick end.
const END_WAIT: Duration = Duration::from_secs(15);
const QUICK_END_WAIT: Duration = Duration::from_secs(4);
/// Interval of looks at a thread that finishes.
const THREAD_LOOK: Duration = Duration::from_millis(20);
