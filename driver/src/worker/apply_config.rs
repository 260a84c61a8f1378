//! Configurations that the supervisor sends: built at once, or first prepared and then served by all threads.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use conf::Memory;
use server_base::errlog::Level;
use server_http::MainConf;
use server_http::conf_core::FilesMain;
use server_http::http::{Http, Port};
use server_http::meters::{self, Event};
use server_http::stats;
use server_upstream::group::Groups;
use server_upstream::shared::Notify;
use server_upstream::zones;
use sys::process;

use super::background_fetch::BackgroundFetches;
use super::config_thread::{Built, ConfigThread};
use super::limit::MemoryWatch;
use super::periodic_task::{TaskTimer, unix_ms};
use super::samples::SampleChannel;
use super::thread_commands::{Command, Setup};
use super::{FETCHES, Worker, reserve};
use crate::bundle::{Bundle, FromWorker, Step};
use crate::io::files::Limits;

impl Worker {
    /// Serves by a new configuration, or stays with the one before. Returns the answer to the supervisor.
    pub(super) fn configure(&mut self, bundle: Bundle) -> FromWorker {
        let generation = bundle.generation;
        let first = self.threads.is_empty();
        let applied = self
            .build_or_take(bundle)
            .and_then(|built| self.apply(built));
        match &applied {
            // Memory that the build needed is not needed again soon.
            Ok(()) if first => self.settle_memory(),
            Ok(()) => meters::event(Event::Reload),
            Err(_) => meters::event(Event::ReloadFailed),
        }
        match applied {
            Ok(()) => FromWorker::Ready { generation },
            Err(message) => FromWorker::Failed {
                generation,
                message,
            },
        }
    }

    /// Has all threads serve by a configuration.
    fn apply(&mut self, built: Built) -> Result<(), String> {
        let Built {
            bundle,
            mut cycle,
            mut thread,
        } = built;
        if let Some(http) = &mut cycle.http {
            let unshared = Arc::get_mut(http).expect("nobody else has got it yet");
            self.places.arrange(unshared);
            thread.keep(http);
        }
        self.config_threads.push(thread);
        let Some(http) = cycle.http.clone() else {
            return Err("the configuration has no http part".to_owned());
        };
        if http.tls.iter().any(|tls| tls.config.is_some()) {
            // Before the threads accept: the first handshake is not to pay for it.
            tls::warm_up();
        }
        let (number, renewed) = (bundle.generation, bundle.renewed);
        self.take_listeners(bundle.listeners);
        self.attach_samples(bundle.samples);
        self.change_logs(bundle.logs, &cycle, &http);
        let groups = http.main::<Groups>();
        let ended = Arc::clone(&self.ended);
        let notify: Notify = Arc::new(move || ended.wake());
        let tasks = TaskTimer::start(&http.periodic_tasks, &notify, &self.log);
        zones::adopt(groups, &notify);
        self.shutdown_timeout_ms = cycle.main.shutdown_timeout_ms;
        let limit = cycle.main.memory_limit_bytes;
        self.memory = limit.and_then(|bytes| MemoryWatch::begin(bytes, &self.log));
        self.configure_threads(&http, &cycle.main, number, renewed)?;
        // Last, since peers in use change, which nothing undoes.
        zones::commit(groups);
        self.tasks = tasks;
        self.followed.set_groups(groups, &self.log);
        self.fetches = BackgroundFetches::new(&http, number, FETCHES);
        self.fetches.run_due(&self.poller, &self.log);
        stats::set_loaded(unix_ms());
        Ok(())
    }

    /// Sends each thread its setup, and starts missing threads.
    fn configure_threads(
        &mut self,
        http: &Arc<Http>,
        main: &MainConf,
        number: u64,
        renewed: bool,
    ) -> Result<(), String> {
        let count = main.worker_processes.max(1) as usize;
        stats::set_threads(count as u64);
        let files: &FilesMain = http.main();
        let descriptors = process::rlimit_nofile().unwrap_or(u64::MAX);
        let shared = Setup {
            http: Arc::clone(http),
            number,
            listeners: Vec::new(),
            log: self.log.clone(),
            worker_connections: main.events.connections as usize,
            descriptor_ceiling: reserve::ceiling(),
            file_limits: Limits {
                watches: *files.watches,
                ..Limits::shared(files.memory.0, descriptors, count as u64)
            },
            debug_connections: main.events.debug_connections.clone().into(),
            multi_accept: main.events.multi_accept,
            coalesces_events: main.events.coalescing,
            keep_connections: main.reload.keeps_connections || renewed,
            probes: false,
            shutdown_timeout_ms: self.shutdown_timeout_ms,
        };
        for n in 0..count.max(self.threads.len()) {
            let setup = Setup {
                listeners: self.listeners_of(http, n)?,
                probes: n == 0,
                ..shared.clone()
            };
            match self.threads.get(n) {
                Some(thread) => {
                    let _ = thread.commands.send(Command::Configure(Box::new(setup)));
                    thread.waker.wake();
                }
                None => self
                    .spawn(n, setup, &main.cpu_affinity)
                    .map_err(|e| sys::os_error(&e))?,
            }
        }
        Ok(())
    }

    /// Every bundle brings fresh descriptors of all listeners; known sockets keep theirs, since a poller must not get
    /// one socket twice.
    fn take_listeners(&mut self, listeners: Vec<(String, OwnedFd)>) {
        let mut named: HashMap<String, Vec<Arc<OwnedFd>>> = HashMap::new();
        for (key, fd) in listeners {
            named.entry(key).or_default().push(Arc::new(fd));
        }
        let mut old = std::mem::take(&mut self.listeners);
        self.listeners = named
            .into_iter()
            .map(|(key, new)| {
                let kept = old.remove(&key).filter(|known| same_sockets(known, &new));
                (key, kept.unwrap_or(new))
            })
            .collect();
    }

    fn listeners_of(
        &self,
        http: &Http,
        thread: usize,
    ) -> Result<Vec<Option<Arc<OwnedFd>>>, String> {
        let listener = |port: &Port| {
            if !port.is_listening {
                return Ok(None);
            }
            let address = port.listen.key();
            let fds = self.listeners.get(&address);
            let fds = fds.ok_or_else(|| format!("no socket received for {address}"))?;
            Ok(Some(Arc::clone(&fds[thread % fds.len()])))
        };
        http.ports.iter().map(listener).collect()
    }

    /// Sends samples over this channel from now on. If that fails, requests are served all the same.
    fn attach_samples(&self, channel: Option<SampleChannel>) {
        if let Err(error) = self.samples.attach(channel) {
            let reason = sys::os_error(&error);
            let text = format_args!("connections are not recorded ({reason})");
            self.log.write(Level::Alert, text);
        }
    }

    /// Builds a configuration, or takes the prepared one. A prepared one for another generation is dropped.
    fn build_or_take(&mut self, mut bundle: Bundle) -> Result<Built, String> {
        let prepared = self.prepared.take();
        if bundle.step != Step::Commit {
            drop(prepared);
            return self.build(bundle);
        }
        let is_it = |built: &Built| built.bundle.generation == bundle.generation;
        let mut built = prepared
            .filter(is_it)
            .ok_or("the configuration was not prepared")?;
        built.bundle.listeners = std::mem::take(&mut bundle.listeners);
        built.bundle.logs = std::mem::take(&mut bundle.logs);
        built.bundle.samples = bundle.samples.take();
        Ok(built)
    }

    fn build(&mut self, mut bundle: Bundle) -> Result<Built, String> {
        let texts = self.texts(&mut bundle)?;
        let (load, generation) = (Arc::clone(&self.load), bundle.generation);
        let (built, texts) =
            ConfigThread::build(bundle, move |bundle| load(bundle, texts), &self.ended)?;
        self.texts = Some((generation, texts));
        Ok(built)
    }

    /// Texts that the configuration of a bundle is built of, without its open files.
    fn texts(&self, bundle: &mut Bundle) -> Result<Memory, String> {
        let Step::Prepare {
            base: Some(base), ..
        } = bundle.step
        else {
            return Ok(bundle.take_texts(Memory::default()));
        };
        match &self.texts {
            Some((generation, texts)) if *generation == base => {
                Ok(bundle.take_texts(texts.clone()))
            }
            Some(_) | None => Err("the files are those of another generation".to_owned()),
        }
    }

    /// Builds a configuration, and keeps it until it is to be served. Returns the answer to the supervisor.
    pub(super) fn prepare(&mut self, bundle: Bundle) -> FromWorker {
        let generation = bundle.generation;
        match self.build_or_take(bundle) {
            Ok(built) => {
                self.prepared = Some(built);
                FromWorker::Prepared { generation }
            }
            // The supervisor reads the files itself then, and reports the reason.
            Err(_) => FromWorker::Unprepared { generation },
        }
    }
}

/// Returns whether both lists have the same sockets: a socket has an inode of its own.
fn same_sockets(known: &[Arc<OwnedFd>], new: &[Arc<OwnedFd>]) -> bool {
    let inode = |socket: &OwnedFd| rustix::fs::fstat(socket).map(|stat| stat.st_ino);
    known.len() == new.len()
        && known.iter().zip(new).all(|(known, new)| {
            let (known, new) = (inode(known), inode(new));
            known.is_ok() && known == new
        })
}
