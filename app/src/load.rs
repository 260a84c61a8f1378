//! Loading the configuration: from the disk in the supervisor, from the bundle in the worker.
//!
//! The supervisor records what it read, patterns and addresses of hosts included, so that the worker
//! builds exactly the same configuration without naming a path to the file system or a host to anybody.
//! Data files go as descriptors.

use std::cell::RefCell;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use conf::{DataFile, Disk, Memory, Recorder};
use driver::bundle::Bundle;
use server_http::{Cycle, LoadError, LoadOptions, Written};
use sys::host;

/// A configuration from the disk.
pub(crate) struct Loaded {
    pub(crate) cycle: Cycle,
    /// All that was read and looked up, secrets included.
    pub(crate) record: Arc<Memory>,
}

/// Reads the configuration file and what it includes; objects that an earlier load had are not read again.
///
/// # Errors
/// The first error, as nginx would meet it.
pub(crate) fn from_disk(
    options: &LoadOptions,
    earlier: Option<Arc<Memory>>,
) -> Result<Loaded, Box<LoadError>> {
    recorded(options, earlier).0
}

/// The same, with what was read, which is there whatever came of it.
pub(crate) fn recorded(
    options: &LoadOptions,
    earlier: Option<Arc<Memory>>,
) -> (Result<Loaded, Box<LoadError>>, Rc<RefCell<Memory>>) {
    let source = Recorder::new(Disk::with_lookup(host::addresses)).with_earlier(earlier);
    let record = source.record();
    let cycle = server_http::load(source, options, server_modules::MODULES);
    let loaded = cycle.map(|cycle| Loaded {
        cycle,
        record: Arc::new(record.borrow().clone()),
    });
    (loaded, record)
}

/// Reads the configuration file and what it includes, for a tool: with the places of all directives.
///
/// # Errors
/// The first error, as nginx would meet it.
pub(crate) fn for_tool(options: &LoadOptions) -> Result<(Cycle, Written), Box<LoadError>> {
    let source = Disk::with_lookup(host::addresses);
    server_http::load_written(source, options, server_modules::MODULES)
}

/// A configuration that was built before a worker is forked.
pub(crate) struct Built {
    /// Its generation.
    pub(crate) generation: u64,
    /// The configuration.
    pub(crate) cycle: Cycle,
}

impl Built {
    /// What a worker takes of a configuration of this generation.
    pub(crate) fn new(generation: u64, cycle: &Cycle) -> Self {
        let cycle = cycle.for_worker();
        Self { generation, cycle }
    }
}

/// How a worker builds what the supervisor sends; `built` is what its process was forked with, which need not be built
/// twice.
pub(crate) fn in_worker(built: Option<Built>) -> driver::worker::Load {
    let built = Mutex::new(built);
    Arc::new(move |bundle| {
        let built = built.lock().ok().and_then(|mut built| built.take());
        match built {
            Some(built) if built.generation == bundle.generation => Ok(built.cycle),
            _ => from_bundle(bundle),
        }
    })
}

/// Builds the configuration that the supervisor sent.
///
/// # Errors
/// The first error with its place; the supervisor has found none in the same text.
pub(crate) fn from_bundle(bundle: &Bundle) -> Result<Cycle, String> {
    build(bundle, Memory::default())
}

/// Looks whether a worker could build it.
///
/// # Errors
/// As [`from_bundle`].
pub(crate) fn check_bundle(bundle: &Bundle) -> Result<(), String> {
    build(bundle, Memory::default().for_checks()).map(drop)
}

fn build(bundle: &Bundle, mut source: Memory) -> Result<Cycle, String> {
    for (path, text) in &bundle.files {
        source.add_read(Path::new(path), Arc::clone(text), None);
    }
    for (pattern, paths) in &bundle.globs {
        source.add_glob(pattern, paths.iter().map(PathBuf::from).collect());
    }
    for (path, fd) in &bundle.data {
        let copy = fd.as_fd().try_clone_to_owned();
        let copy = copy.map_err(|error| format!("dup() failed ({})", conf::os_error(&error)))?;
        source.add_opened(path, DataFile::from(File::from(copy)));
    }
    for (host, addresses) in &bundle.hosts {
        source.add_host(host.as_str(), addresses.clone());
    }
    let options = LoadOptions {
        conf_path: PathBuf::from(&bundle.conf_path),
        prefix: PathBuf::from(&bundle.prefix),
        globals: bundle.globals.clone(),
        error_log: bundle.error_log.as_ref().map(PathBuf::from),
        access_log: PathBuf::from(&bundle.access_log),
    };
    server_http::load(source, &options, server_modules::MODULES)
        .map_err(|refused| refused.error.to_string())
}
