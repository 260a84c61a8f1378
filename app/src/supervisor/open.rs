//! One generation: a configuration with everything that was opened for it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::{Memory, Stamp};
use driver::bundle::{Bundle, Step};
use server_base::errlog::Level;
use server_base::listen::Listen;
use server_base::watch::Watch;
use server_http::{Cycle, LoadOptions, MainConf};

use super::account::{self, Account};
use super::listeners::{self, Listener, OtherServer};
use super::logs::Logs;
use super::{limits, pid_file};
use crate::console::{Console, Logged};
use crate::load::{EarlierLoad, Loaded};
use crate::recorder::check_files;

/// Contents of a file, and its state when they were read.
pub(crate) type FileContents = (PathBuf, Stamp, Vec<u8>);

/// A configuration, and its sockets and logs.
#[derive(Clone, Debug)]
pub(crate) struct OpenConfig {
    pub(crate) number: u64,
    pub(crate) main: MainConf,
    pub(crate) account: Option<Account>,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) logs: Logs,
    /// Watched files; a change of one reloads it.
    pub(crate) watches: Vec<Arc<dyn Watch>>,
    /// Only the bytes of files are others than in the one before.
    renewed: bool,
    /// Settings that this was opened by.
    plan: Arc<Cycle>,
    /// The worker that has built it already.
    pub(crate) prepared_by: Option<u64>,
    /// All that was read and looked up.
    record: Arc<Memory>,
}

impl OpenConfig {
    /// Opens everything in `loaded` except new addresses; adopts the sockets of `given`.
    ///
    /// # Errors
    /// Something cannot be opened, which has been reported; the serving generation is unchanged.
    pub(crate) fn open(
        number: u64,
        loaded: Loaded,
        old_logs: Option<&Logs>,
        given: &[Listener],
        other_server: OtherServer,
        console: &Console,
    ) -> Result<Self, Logged> {
        let Loaded { cycle, record } = loaded;
        limits::warn(&cycle.main, console);
        let account = Account::of(&cycle.main, console)?;
        account::create_directories(&cycle.main.temp_paths, account.as_ref(), console)?;
        check_lab_store(&cycle.main, console)?;
        let logs = Logs::open(&cycle, old_logs, console)?;
        let threads = cycle.main.worker_processes;
        let listens = listens(&cycle);
        let listeners = listeners::prepare(&listens, threads, given, other_server, console);
        let plan = Arc::new(cycle.for_supervisor());
        Ok(Self {
            number,
            main: cycle.main,
            account,
            listeners,
            logs,
            watches: cycle.watches,
            renewed: false,
            plan,
            prepared_by: None,
            record,
        })
    }

    /// Returns the supervisor's part of this configuration again, with files that were read again.
    pub(crate) fn again(&self, record: Arc<Memory>) -> Loaded {
        let cycle = self.plan.for_supervisor();
        Loaded { cycle, record }
    }

    /// Files that the next load need not read again.
    pub(crate) fn read(&self) -> EarlierLoad {
        EarlierLoad {
            record: Arc::clone(&self.record),
            has_objects: self.main.reload.keeps_ssl_objects,
        }
    }

    /// The bytes and the state of a file that was read.
    pub(crate) fn file(&self, path: &Path) -> Option<(&[u8], Option<Stamp>)> {
        let (bytes, stamp) = self.record.file_with_stamp(path)?;
        Some((bytes, stamp))
    }

    /// Notes that a file is in another state and has the same bytes.
    pub(crate) fn restamp(&mut self, path: &Path, stamp: Stamp) {
        Arc::make_mut(&mut self.record).add_stamp(path, stamp);
    }

    /// The configuration with new contents of watched files.
    pub(crate) fn renewed(&self, number: u64, changes: &[FileContents]) -> Self {
        let mut record = Memory::clone(&self.record);
        for (path, stamp, bytes) in changes {
            record.add_read(path, Arc::new(bytes.clone()), Some(*stamp));
        }
        Self {
            number,
            renewed: true,
            prepared_by: None,
            record: Arc::new(record),
            ..self.clone()
        }
    }

    /// Bundle with which a worker serves this generation, with copies of the descriptors.
    ///
    /// # Errors
    /// The descriptor limit is reached.
    pub(crate) fn bundle(&self, worker: Option<u64>, options: &LoadOptions) -> io::Result<Bundle> {
        let is_prepared = worker.is_some() && self.prepared_by == worker;
        let mut bundle = match is_prepared {
            true => new_bundle(self.number, Step::Commit, options),
            false => {
                let mut bundle = new_bundle(self.number, Step::Serve, options);
                fill(&mut bundle, &self.record)?;
                bundle
            }
        };
        bundle.renewed = self.renewed;
        let for_workers = |listener: &&Listener| !listener.is_dashboard();
        for listener in self.listeners.iter().filter(for_workers) {
            for socket in listener.sockets() {
                let socket = socket.try_clone()?;
                bundle.listeners.push((listener.key(), socket));
            }
        }
        bundle.logs = self.logs.duplicates()?;
        Ok(bundle)
    }

    /// Returns a bundle for a worker of this generation to prepare the next one from new files, while the supervisor's
    /// part is the same.
    ///
    /// # Errors
    /// Those of [`OpenConfig::bundle`].
    pub(crate) fn preparation(
        &self,
        number: u64,
        record: &Memory,
        options: &LoadOptions,
    ) -> io::Result<Bundle> {
        let fingerprint = self.plan.fingerprint();
        let news = record.difference(&self.record);
        let base = news.is_some().then_some(self.number);
        let mut bundle = new_bundle(number, Step::Prepare { fingerprint, base }, options);
        fill(&mut bundle, news.as_ref().unwrap_or(record))?;
        Ok(bundle)
    }

    /// Makes the worker's user the owner of the dashboard's socket, once it is bound.
    ///
    /// # Errors
    /// It cannot be given, which has been reported.
    pub(crate) fn give_dashboard(&self, console: &Console) -> Result<(), Logged> {
        listeners::dashboard::give(&self.listeners, &self.main, self.account.as_ref(), console)
    }

    /// The warnings about it.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.plan.warnings
    }
}

/// A bundle without anything in it.
fn new_bundle(number: u64, step: Step, options: &LoadOptions) -> Bundle {
    Bundle {
        generation: number,
        step,
        renewed: false,
        conf_path: path_text(&options.conf_path),
        prefix: path_text(&options.prefix),
        globals: options.globals.clone(),
        error_log: options.error_log.as_deref().map(path_text),
        access_log: path_text(&options.access_log),
        files: Vec::new(),
        globs: Vec::new(),
        data: Vec::new(),
        hosts: Vec::new(),
        listeners: Vec::new(),
        logs: Vec::new(),
        samples: None,
    }
}

/// Adds the input of a configuration.
fn fill(bundle: &mut Bundle, record: &Memory) -> io::Result<()> {
    let files = record.files();
    let files = files.map(|(path, text)| (path_text(path), Arc::clone(text)));
    bundle.files = files.collect();
    let globs = record.globs().map(|(pattern, paths)| {
        let paths = paths.iter().map(|path| path_text(path));
        (pattern.to_owned(), paths.collect())
    });
    bundle.globs = globs.collect();
    for (path, file) in record.opened() {
        if let Some(file) = file.file() {
            bundle
                .data
                .push((path_text(path), file.try_clone()?.into()));
        }
    }
    let hosts = record.hosts();
    let hosts = hosts.map(|(host, addresses)| (host.to_owned(), addresses.to_vec()));
    bundle.hosts = hosts.collect();
    Ok(())
}

fn path_text(path: &Path) -> String {
    // The check of a valid text is much faster than a lossy conversion.
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => path.to_string_lossy().into_owned(),
    }
}

/// Opens and closes everything in `cycle`, for `-t`.
///
/// # Errors
/// Something cannot be opened, which has been reported.
pub(crate) fn test(cycle: &Cycle, console: &Console) -> Result<(), Logged> {
    limits::warn(&cycle.main, console);
    let account = Account::of(&cycle.main, console)?;
    pid_file::test(&cycle.main.pid, console)?;
    account::create_directories(&cycle.main.temp_paths, account.as_ref(), console)?;
    check_lab_store(&cycle.main, console)?;
    Logs::open(cycle, None, console)?;
    listeners::test(&listens(cycle), console)
}

/// Checks that the files of `lab_store` can be read.
fn check_lab_store(main: &MainConf, console: &Console) -> Result<(), Logged> {
    let checked = main.lab_store.as_ref().map_or(Ok(()), check_files);
    checked.map_err(|why| {
        console.report(Level::Emerg, format_args!("{why}"));
        Logged
    })
}

/// Returns all sockets of a configuration, that of the dashboard among them.
fn listens(cycle: &Cycle) -> Vec<Listen> {
    let dashboard = listeners::dashboard::listen_of(&cycle.main);
    cycle.listens.iter().cloned().chain(dashboard).collect()
}
