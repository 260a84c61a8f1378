//! Loading the configuration: from the disk in the supervisor, from the bundle in the worker.
//!
//! The supervisor records all input: texts, results of patterns, addresses of hosts. So the worker builds exactly the
//! same configuration without opening a path or resolving a host. Data files are sent as descriptors.

use std::cell::RefCell;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use conf::{ConfError, DataFile, Disk, Memory, Recorder};
use driver::bundle::{Bundle, Step};
use server_base::errlog;
use server_http::{Cycle, DirectiveLocations, LoadError, LoadOptions};
use sys::{host, process};

/// A configuration from the disk.
pub(crate) struct Loaded {
    pub(crate) cycle: Cycle,
    /// All that was read and looked up, secrets included.
    pub(crate) record: Arc<Memory>,
}

/// Files read by an earlier load.
#[derive(Clone)]
pub(crate) struct EarlierLoad {
    pub(crate) record: Arc<Memory>,
    /// Whether certificates, keys and similar objects are reused too, not only texts.
    pub(crate) has_objects: bool,
}

/// Reads the configuration file and its includes, for this process and its children. Returns the files read, even if
/// the load failed.
pub(crate) fn recorded(options: &LoadOptions) -> (Read, Rc<RefCell<Memory>>) {
    let source = Recorder::new(Disk::with_lookup(host::addresses));
    let record = source.record();
    let cycle = server_http::load(source, options, server_modules::MODULES);
    let loaded = cycle.map(|cycle| Loaded {
        cycle,
        record: Arc::new(record.borrow().packed(None)),
    });
    (loaded, record)
}

/// Reads all files of an earlier load again, without parsing them; `None` if one of its inputs is no longer available.
pub(crate) fn repeated(earlier: &EarlierLoad) -> Option<Arc<Memory>> {
    let source = Recorder::new(Disk::with_lookup(host::addresses));
    let known = Some(Arc::clone(&earlier.record));
    let now = source.with_earlier(known, earlier.has_objects).repeat()?;
    Some(Arc::new(now))
}

/// A configuration, or the first error, as nginx would meet it.
pub(crate) type Read = Result<Loaded, Box<LoadError>>;

/// Reads the configuration again and checks it; a worker builds it to serve. Files that are certainly unchanged are not
/// read.
///
/// The work runs on its own thread, which has its own arena of the allocator. In an arena in which a configuration was
/// built and freed, each allocation searches the freed pieces, which doubles the time of a load.
pub(crate) fn again(options: &LoadOptions, earlier: &EarlierLoad) -> Read {
    let (thread, shown) = (std::thread::Builder::new(), process::thread_id());
    let known = Arc::clone(&earlier.record);
    let work = || {
        errlog::set_thread(shown);
        let (known, objects) = (Arc::clone(&earlier.record), earlier.has_objects);
        let source = Recorder::new(Disk::with_lookup(host::addresses));
        let source = source.with_earlier(Some(known), objects);
        let record = source.record();
        let cycle = server_http::check(source, options, server_modules::MODULES)?;
        Ok((cycle, record.take()))
    };
    let thread = thread.name("config".to_owned()).stack_size(STACK_BYTES);
    let read = std::thread::scope(|scope| match thread.spawn_scoped(scope, work) {
        Ok(thread) => thread
            .join()
            .unwrap_or_else(|_| Err(failed("reading it panicked"))),
        Err(error) => {
            let reason = sys::os_error(&error);
            Err(failed(&format!("a thread could not start ({reason})")))
        }
    });
    read.map(|(cycle, record)| Loaded {
        cycle,
        record: Arc::new(record.packed(Some(&known))),
    })
}

fn failed(why: &str) -> Box<LoadError> {
    Box::new(LoadError {
        error: ConfError::new(format!("the configuration cannot be read: {why}")),
        files: conf::Files::default(),
        warnings: Vec::new(),
    })
}

/// Reads the configuration file and its includes, for a tool: with the places of all directives.
///
/// # Errors
/// The first error, as nginx would report it.
pub(crate) fn for_tool(
    options: &LoadOptions,
) -> Result<(Cycle, DirectiveLocations), Box<LoadError>> {
    let source = Disk::with_lookup(host::addresses);
    server_http::load_with_locations(source, options, server_modules::MODULES)
}

/// A configuration that was built before a worker is forked.
pub(crate) struct Built {
    /// Its generation.
    pub(crate) generation: u64,
    /// The configuration.
    pub(crate) cycle: Cycle,
    /// The files of the configuration. The worker shares this memory of the supervisor until one of both writes to it.
    pub(crate) texts: Memory,
}

impl Built {
    /// Copies the part of a configuration that a worker of this generation needs.
    pub(crate) fn new(generation: u64, loaded: &Loaded) -> Self {
        Self {
            generation,
            cycle: loaded.cycle.for_worker(),
            texts: loaded.record.files_and_globs(),
        }
    }
}

/// Builder of configurations in a worker; `built` is the one its process was forked with, which need not be built
/// twice.
pub(crate) fn in_worker(built: Option<Built>) -> driver::worker::Load {
    let built = Mutex::new(built);
    Arc::new(move |bundle, texts| {
        let built = built.lock().ok().and_then(|mut built| built.take());
        match built {
            Some(built) if built.generation == bundle.generation => Ok((built.cycle, built.texts)),
            _ => from_bundle(bundle, texts.clone()).map(|cycle| (cycle, texts)),
        }
    })
}

/// Builds the configuration of a bundle with its files in `texts`.
///
/// # Errors
/// The first error with its place. If the supervisor has checked the text, there is none. Otherwise input may be
/// missing in the bundle, or the supervisor's part of the configuration may differ.
fn from_bundle(bundle: &Bundle, texts: Memory) -> Result<Cycle, String> {
    let Step::Prepare { fingerprint, .. } = bundle.step else {
        return build(bundle, texts);
    };
    let missed = Arc::new(AtomicBool::new(false));
    let cycle = build(bundle, texts.recording_misses(Arc::clone(&missed)))?;
    match missed.load(Ordering::Relaxed) || cycle.fingerprint() != fingerprint {
        true => Err("the supervisor has to read the configuration".to_owned()),
        false => Ok(cycle),
    }
}

/// Looks whether a worker could build it.
///
/// # Errors
/// The first error with its place.
pub(crate) fn check_bundle(mut bundle: Bundle) -> Result<(), String> {
    let texts = bundle.take_texts(Memory::default());
    build(&bundle, texts.for_checks()).map(drop)
}

fn build(bundle: &Bundle, mut source: Memory) -> Result<Cycle, String> {
    for (path, fd) in &bundle.data {
        let copy = fd.as_fd().try_clone_to_owned();
        let copy = copy.map_err(|error| format!("dup() failed ({})", sys::os_error(&error)))?;
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

/// As large as that of the main thread usually is, on which the first configuration is read.
const STACK_BYTES: usize = 8 << 20;
