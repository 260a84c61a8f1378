//! The store process: started with a configuration that records connections, and restarted when it ends.
//!
//! Samples use one socket pair for the life of the supervisor. Workers have one end, the current store process the
//! other. So no sample is lost when a process takes over from one that has ended. A store process finishes when its
//! control socket is closed, or when all sending ends are closed. With `master_process off` at the start it is a
//! thread. Absent: its work ([`crate::recorder`]).

use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use driver::bundle::SampleChannel;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use server_base::errlog::Level;
use server_base::lab_store::{LabEngine, LabStoreConf};
use server_http::MainConf;
use sys::process::{self, Exit, Fork};
use sys::{fdpass, signal};

use super::account::{self, Account};
use super::listeners::Listener;
use super::open::OpenConfig;
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
    /// Time of a change of settings or logs; another process then replaces this one.
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

    /// Has another process replace the running one after a change of settings or logs.
    pub(super) fn renew(&mut self) {
        self.stale_since = Some(Instant::now());
    }

    /// When there is something to do.
    pub(super) fn due(&self, is_serving: bool) -> Option<Instant> {
        match &self.leaving {
            // The end of a thread brings no signal.
            Some((Handle::Thread(_), _)) => Some(Instant::now() + THREAD_LOOK),
            Some((Handle::Process(_), kill_at)) => Some(*kill_at),
            None if is_serving => self.stale_since.or(self.respawn.due),
            None => None,
        }
    }

    /// Starts the store process that a configuration needs, or has a stale one finish. In the forked process itself its state is
    /// returned.
    pub(super) fn update(
        &mut self,
        current: &OpenConfig,
        is_serving: bool,
        now: Instant,
        console: &Console,
    ) -> Option<StoreSpawn> {
        self.settle(now);
        let is_due = self.due(is_serving).is_some_and(|due| due <= now);
        if !is_serving || self.leaving.is_some() || !is_due {
            return None;
        }
        if let Some(running) = self.running.take() {
            // The next one is started when this one has ended.
            self.leave(Some(running), now + LEAVE_WAIT);
            return None;
        }
        (self.stale_since, self.respawn.due) = (None, None);
        let Some(conf) = current.main.lab_store.clone() else {
            // Samples of earlier settings belong to no later store.
            self.channel = None;
            return None;
        };
        self.start(conf, current, console).unwrap_or_else(|error| {
            let text = format_args!("starting the store process");
            console.failed(Level::Alert, text, &error);
            self.respawn.after_death(now, Duration::ZERO);
            None
        })
    }

    fn start(
        &mut self,
        conf: LabStoreConf,
        current: &OpenConfig,
        console: &Console,
    ) -> io::Result<Option<StoreSpawn>> {
        let (ours, theirs) = fdpass::pair()?;
        let recorder = self.recorder(conf, &current.listeners, theirs)?;
        let console = console.clone();
        let handle = if !self.is_thread {
            match process::fork()? {
                Fork::Child => {
                    let account = current.account.clone();
                    return Ok(Some(StoreSpawn {
                        recorder,
                        account,
                        console,
                    }));
                }
                Fork::Parent(pid) => {
                    console.notice(format_args!("start store process {pid}"));
                    Handle::Process(pid)
                }
            }
        } else {
            let thread = std::thread::Builder::new().name("store".to_owned());
            Handle::Thread(thread.spawn(move || {
                create_directories(&recorder.conf, None, &console);
                recorder.with_files(&console).run(&console);
            })?)
        };
        self.running = Some(Running {
            handle,
            started: Instant::now(),
            _control: ours,
        });
        Ok(None)
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

    /// Removes an ended process from the state, and kills one that exceeds its time.
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

    /// The workers' end of the way of samples, for a bundle of this configuration.
    ///
    /// # Errors
    /// The descriptor limit is reached.
    pub(super) fn samples(&mut self, main: &MainConf) -> io::Result<Option<SampleChannel>> {
        if !main.lab_store.as_ref().is_some_and(LabStoreConf::writes) {
            return Ok(None);
        }
        let channel = self.channel()?;
        Ok(Some(SampleChannel {
            socket: channel.send.try_clone()?,
            figures: channel.figures.try_clone()?,
        }))
    }

    fn recorder(
        &mut self,
        conf: LabStoreConf,
        listeners: &[Listener],
        control: OwnedFd,
    ) -> io::Result<Recorder> {
        let dashboard = listeners.iter().find(|listener| listener.is_dashboard());
        let dashboard = dashboard.map(Listener::for_store_process).transpose()?;
        let channel = self.channel()?;
        Ok(Recorder {
            conf,
            samples: channel.receive.try_clone()?,
            figures: channel.figures.try_clone()?.into(),
            control,
            dashboard,
            files: Files::default(),
        })
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
    // A failure is reported by `create_directories`.
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
/// Interval of checks of a finishing thread.
const THREAD_LOOK: Duration = Duration::from_millis(20);
