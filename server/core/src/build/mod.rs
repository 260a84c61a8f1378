//! From directives to a [`Cycle`]: the state in which rows are applied, and loading as a whole.
//!
//! Rows of the core and of all modules stand in one table. Blocks open a level; a settings row writes to the
//! innermost level of its unit's scope. When `http` closes, levels are merged parents first and flattened into
//! [`Http`](crate::http::Http).

mod affinity;
mod blocks;
mod finish;
mod listen_params;
mod log_paths;
mod logging;
mod main;
mod meaningless;
mod ports;
mod protocols;
mod written;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::{Builder, ConfError, Contexts, Directive, Loader, Pos, Row, Source, Table};

pub use blocks::{LocationDraft, method_bit};
pub use log_paths::LogPaths;
pub use logging::{ErrorLogConf, LogTarget, error_log, syslog};
pub use main::MainConf;
pub use meaningless::MEANINGLESS;
pub use ports::{ListenDraft, listen};
pub use written::{Level, Line, Setting, Written};

use crate::certificates::LateCertificates;
use crate::confs::{Conf, ConfsDraft, Scope, Unit};
use crate::errand::Errand;
use crate::errlog::MemoryBuffer;
use crate::http::Http;
use crate::listen::Listen;
use crate::module::Module;
use crate::syslog::SyslogTarget;
use crate::upkeep::Upkeep;
use crate::vars::VarRegistry;
use crate::watch::Watch;

/// A loaded configuration: what the supervisor needs, and what the worker serves.
pub struct Cycle {
    /// Directives of the main context and of `events`.
    pub main: MainConf,
    /// Sockets to open.
    pub listens: Vec<Listen>,
    /// Log files to open for appending.
    pub log_paths: Vec<PathBuf>,
    /// Syslog servers that logs go to.
    pub syslogs: Vec<SyslogTarget>,
    /// Rings in memory that error logs go to.
    pub memory_logs: Vec<MemoryBuffer>,
    /// Files that are taken up when they change.
    pub watches: Vec<Arc<dyn Watch>>,
    /// Every file read, for `-T` and the worker's bundle.
    pub files: conf::Files,
    /// Warnings and notices, rendered.
    pub warnings: Vec<String>,
    /// The HTTP server, if there is an `http` block.
    pub http: Option<Arc<Http>>,
}

/// Where the configuration is and what the command line adds to it.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// The main file, absolute.
    pub conf_path: PathBuf,
    /// What relative paths of the configuration (but not of `include`) are relative to.
    pub prefix: PathBuf,
    /// `-g`.
    pub globals: Option<String>,
    /// Error log where the configuration names none: `-e`, else a default; "stderr" is standard error.
    pub error_log: Option<PathBuf>,
    /// Access log where the configuration says nothing.
    pub access_log: PathBuf,
}

/// Why a configuration was refused, with the files read so far.
pub struct LoadError {
    /// What is wrong.
    pub error: ConfError,
    /// Where: gives names and lines to the error's position.
    pub files: conf::Files,
    /// Warnings before the error, rendered.
    pub warnings: Vec<String>,
}

/// The state in which directives are applied.
pub struct Build {
    table: Table<Self>,
    loader: Loader,
    /// What the command line says.
    pub options: LoadOptions,
    /// Main and events directives.
    pub main: MainConf,
    /// Variables.
    pub vars: VarRegistry,
    /// The modules, in order.
    pub modules: &'static [&'static Module],
    units: Vec<&'static Unit>,
    http: Option<HttpDraft>,
    finished: Option<(Arc<Http>, Vec<Listen>)>,
    /// Files that must be opened for appending before anything is served.
    pub log_paths: LogPaths,
    /// What the worker is to do beside serving.
    pub upkeep: Vec<Arc<dyn Upkeep>>,
    /// Files that the supervisor takes up when they change.
    pub watches: Vec<Arc<dyn Watch>>,
    /// What the worker is to fetch from other hosts.
    pub errands: Vec<Arc<dyn Errand>>,
    syslogs: Vec<SyslogTarget>,
    memory_logs: Vec<MemoryBuffer>,
    seen_events: bool,
    /// A directive asks for the moments of exchanges.
    timed: bool,
    /// The largest share of responses that a directive asks to be sampled.
    sampled_share: u64,
    /// A directive has request bodies read.
    reads_bodies: bool,
    /// The names of all directives that are written.
    named: HashSet<&'static str>,
    /// Where the directive that is being applied was written.
    applying: Pos,
    written: Option<Written>,
}

/// The `http` block while it is read.
struct HttpDraft {
    main: ConfsDraft,
    server_base: ConfsDraft,
    servers: Vec<ServerDraft>,
    locations: Vec<LocationDraft>,
    server: Option<usize>,
    location: usize,
    /// The names of locations that are compared with the whole URI or with its beginning, by the level around them.
    siblings: HashSet<(usize, bool, Vec<u8>)>,
    listens: ports::Listens,
    protocols: protocols::Protocols,
}

struct ServerDraft {
    confs: ConfsDraft,
    location: usize,
    /// Where its block begins.
    at: Directive,
    tls: Option<Arc<tls::Config>>,
    certificates: Option<Arc<dyn LateCertificates>>,
}

impl Builder for Build {
    fn table(&self) -> &Table<Self> {
        &self.table
    }

    fn loader(&mut self) -> &mut Loader {
        &mut self.loader
    }

    fn applying(&mut self, directive: &Directive, row: &'static Row<Self>) {
        self.applying = directive.pos;
        self.named.insert(row.name);
        if let Some(written) = &mut self.written {
            let level = self.http.as_ref().map(|http| http.location);
            written.add(directive, row, level);
        }
    }
}

impl Build {
    fn new(
        source: impl Source + 'static,
        options: &LoadOptions,
        modules: &'static [&'static Module],
    ) -> Self {
        let mut rows: Vec<&'static [Row<Self>]> = vec![
            main::ROWS,
            blocks::ROWS,
            MEANINGLESS,
            crate::conf_core::ROWS,
        ];
        rows.extend_from_slice(crate::conf_core::SETTINGS);
        let mut units: Vec<&'static Unit> = crate::conf_core::units();
        let mut vars = VarRegistry::default();
        for module in modules {
            rows.extend_from_slice(module.directives);
            units.extend(module.units.iter().map(|u| u()));
            vars.add(module.variables);
            vars.add_defaults(module.defaults);
        }
        for list in crate::builtin::VARIABLES {
            vars.add(list);
        }
        // The number of a unit is its index in each location's settings, so it depends on the modules of this build.
        for (slot, unit) in units.iter().enumerate() {
            unit.set_slot(slot);
        }
        let conf_prefix = options
            .conf_path
            .parent()
            .map(Path::to_path_buf)
            .unwrap_or_default();
        Self {
            table: Table::from(&rows),
            loader: Loader::new(source, conf_prefix),
            options: options.clone(),
            main: MainConf::new(options),
            vars,
            modules,
            units,
            http: None,
            finished: None,
            log_paths: LogPaths::default(),
            upkeep: Vec::new(),
            watches: Vec::new(),
            errands: Vec::new(),
            syslogs: Vec::new(),
            memory_logs: Vec::new(),
            seen_events: false,
            timed: false,
            sampled_share: 0,
            reads_bodies: false,
            named: HashSet::new(),
            applying: Directive::synthetic("").pos,
            written: None,
        }
    }

    /// The settings that a directive of unit `T` writes to here.
    pub fn conf_mut<T: Conf>(&mut self) -> &mut T {
        let http = self
            .http
            .as_mut()
            .expect("contexts of HTTP directives lie inside http");
        match T::unit().scope {
            Scope::Main => http.main.get_mut(),
            Scope::Server => match http.server {
                Some(server) => http.servers[server].confs.get_mut(),
                None => http.server_base.get_mut(),
            },
            Scope::Location => http.locations[http.location].confs.get_mut(),
        }
    }

    /// The settings of unit `T`, which exist once.
    pub fn main_conf<T: Conf>(&self) -> &T {
        self.http
            .as_ref()
            .expect("modules are finished inside http")
            .main
            .get()
    }

    /// The settings of unit `T` of any location, by its index; for modules' `finish`.
    pub fn location_confs_mut<T: Conf>(&mut self) -> impl Iterator<Item = &mut T> {
        let http = self
            .http
            .as_mut()
            .expect("modules are finished inside http");
        http.locations.iter_mut().map(|l| l.confs.get_mut::<T>())
    }

    /// The settings of unit `L` of any location that is in a server, with those of unit `S` of the server.
    pub fn location_and_server_confs_mut<L: Conf, S: Conf>(
        &mut self,
    ) -> impl Iterator<Item = (&mut L, &S)> {
        let http = self
            .http
            .as_mut()
            .expect("modules are finished inside http");
        let servers = &http.servers;
        http.locations.iter_mut().filter_map(|location| {
            let server = &servers[location.server?];
            Some((location.confs.get_mut::<L>(), server.confs.get::<S>()))
        })
    }

    /// How many servers there are; for modules' `finish`.
    pub fn servers(&self) -> usize {
        self.http.as_ref().map_or(0, |http| http.servers.len())
    }

    /// The settings of unit `T` of a server, by its index; for modules' `finish`.
    pub fn server_conf<T: Conf>(&self, server: usize) -> &T {
        let http = self.http.as_ref();
        let http = http.expect("modules are finished inside http");
        http.servers[server].confs.get()
    }

    /// The settings of unit `T`, of locations, that a server itself has; for modules' `finish`.
    pub fn server_location_conf<T: Conf>(&self, server: usize) -> &T {
        let http = self.http.as_ref();
        let http = http.expect("modules are finished inside http");
        http.locations[http.servers[server].location].confs.get()
    }

    /// Sets how a server speaks TLS; for modules' `finish`.
    pub fn set_tls(&mut self, server: usize, config: Arc<tls::Config>) {
        let http = self.http.as_mut();
        let http = http.expect("modules are finished inside http");
        http.servers[server].tls = Some(config);
    }

    /// Sets what loads a server's certificates for each handshake; for modules' `finish`.
    pub fn set_late_certificates(&mut self, server: usize, late: Arc<dyn LateCertificates>) {
        let http = self.http.as_mut();
        let http = http.expect("modules are finished inside http");
        http.servers[server].certificates = Some(late);
    }

    /// Resolves a path of the configuration against the prefix.
    pub fn full_path(&self, path: &[u8]) -> Vec<u8> {
        full_path(&self.options.prefix, path)
    }

    /// Notes a syslog server; gives its place in [`Cycle::syslogs`].
    pub fn syslog(&mut self, target: SyslogTarget) -> usize {
        let known = self.syslogs.iter().position(|known| *known == target);
        known.unwrap_or_else(|| {
            self.syslogs.push(target);
            self.syslogs.len() - 1
        })
    }

    /// Asks for the moments of exchanges to be noted ([`crate::timing`]).
    pub fn time_requests(&mut self) {
        self.timed = true;
    }

    /// Asks for the driver to sample the responses that are drawn for it ([`crate::timing::Sampled`]), at most this share
    /// of them.
    pub fn sample_responses(&mut self, share: u64) {
        self.sampled_share = self.sampled_share.max(share);
    }

    /// Has the directories for request bodies ready before anything is served.
    pub fn read_bodies(&mut self) {
        self.reads_bodies = true;
    }

    /// Notes a warning about a directive.
    pub fn warn(&mut self, error: ConfError) {
        self.loader.warn(conf::Level::Warn, error);
    }

    /// Notes something worth knowing about a directive.
    pub fn notice(&mut self, error: ConfError) {
        self.loader.warn(conf::Level::Notice, error);
    }
}

/// Resolves `path` against `prefix` unless it is absolute.
pub fn full_path(prefix: &Path, path: &[u8]) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    if path.starts_with(b"/") {
        return path.to_vec();
    }
    let mut full = prefix.as_os_str().as_bytes().to_vec();
    if !full.ends_with(b"/") {
        full.push(b'/');
    }
    full.extend_from_slice(path);
    full
}

/// The directives of the core and of the modules, for the reference.
pub fn all_rows(modules: &'static [&'static Module]) -> Vec<(&'static str, &'static [Row<Build>])> {
    let mut rows: Vec<(&'static str, &'static [Row<Build>])> = vec![
        ("core", main::ROWS),
        ("http core", blocks::ROWS),
        ("http core", crate::conf_core::ROWS),
    ];
    rows.extend(crate::conf_core::SETTINGS.iter().map(|r| ("http core", *r)));
    for module in modules {
        rows.extend(module.directives.iter().map(|r| (module.name, *r)));
    }
    rows.push(("without meaning here", MEANINGLESS));
    rows
}

/// Loads a configuration.
///
/// # Errors
/// The first error in the order of the files, as nginx would meet it.
pub fn load(
    source: impl Source + 'static,
    options: &LoadOptions,
    modules: &'static [&'static Module],
) -> Result<Cycle, Box<LoadError>> {
    let build = Build::new(source, options, modules);
    build.load().map(|(cycle, _)| cycle)
}

/// Loads a configuration and keeps where everything in it was written.
///
/// # Errors
/// As [`load`].
pub fn load_written(
    source: impl Source + 'static,
    options: &LoadOptions,
    modules: &'static [&'static Module],
) -> Result<(Cycle, Written), Box<LoadError>> {
    let mut build = Build::new(source, options, modules);
    build.written = Some(Written::new(modules));
    let (cycle, written) = build.load()?;
    Ok((cycle, written.unwrap_or_default()))
}

impl Build {
    fn load(mut self) -> Result<(Cycle, Option<Written>), Box<LoadError>> {
        match self.read() {
            Ok(()) => {
                let written = self.written.take();
                Ok((self.into_cycle(), written))
            }
            Err(error) => {
                let warnings = self.rendered_warnings();
                Err(Box::new(LoadError {
                    error,
                    files: self.loader.files().clone(),
                    warnings,
                }))
            }
        }
    }

    fn read(&mut self) -> Result<(), ConfError> {
        if let Some(globals) = self.options.globals.clone() {
            let items = self.loader.command_line(globals.as_bytes());
            conf::walk(self, &items, Contexts::MAIN)?;
        }
        let items = self.loader.load(&self.options.conf_path.clone())?;
        conf::walk(self, &items, Contexts::MAIN)?;
        self.finish_main()
    }

    fn finish_main(&mut self) -> Result<(), ConfError> {
        if !self.seen_events {
            return Err(ConfError::new("no \"events\" section in configuration"));
        }
        if self.finished.is_none() {
            blocks::http(self, &Directive::synthetic("http"))?;
        }
        let default = self.options.error_log.clone();
        self.main.finish(default.as_deref());
        let mut paths = LogPaths::default();
        for log in &self.main.error_logs {
            if let LogTarget::File(path) = &log.target {
                paths.add(path);
            }
        }
        for path in std::mem::take(&mut self.log_paths).into_list() {
            paths.add(&path);
        }
        self.log_paths = paths;
        Ok(())
    }

    fn rendered_warnings(&self) -> Vec<String> {
        self.loader
            .warnings()
            .iter()
            .map(|(level, error)| {
                format!("[{}] {}", level.as_str(), error.render(self.loader.files()))
            })
            .collect()
    }

    fn into_cycle(self) -> Cycle {
        let warnings = self.rendered_warnings();
        let (http, listens) = match self.finished {
            Some((http, listens)) => (Some(http), listens),
            None => (None, Vec::new()),
        };
        Cycle {
            main: self.main,
            listens,
            log_paths: self.log_paths.into_list(),
            syslogs: self.syslogs,
            memory_logs: self.memory_logs,
            watches: self.watches,
            files: self.loader.files().clone(),
            warnings,
            http,
        }
    }
}
