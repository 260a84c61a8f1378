//! The state in which rows of directives are applied ([`ConfigBuilder`]), and all that applies them.
//!
//! Blocks open a level; a settings row writes to the innermost level of its scope. When `http` closes, levels are
//! merged parents first and flattened into [`Http`](crate::http::Http). `load` puts the rows of the core and of all
//! modules into one table and reads a configuration by it.

mod arena_lists;
mod blocks;
mod core_rows;
mod directive_locations;
mod draft;
mod finish;
mod ignored;
mod layers;
mod listen_params;
mod load;
mod main;
pub mod module;
mod ports;
mod protocols;
mod settings;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::net::IpAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::{
    Builder, ConfError, Contexts, Directive, DirectiveDef, Loader, Pos, Source, Table, Word,
};

pub use crate::location::method_bit;
pub use core_rows::INHERITS;
pub use directive_locations::{DirectiveLocations, Level, LocatedDirective, Setting};
use draft::HttpDraft;
pub use draft::LocationDraft;
pub use ignored::IGNORED;
pub use load::{Cycle, LoadError, all_rows, check, load, load_with_locations};
use module::Module;
pub use ports::{ListenDraft, listen};
pub use server_base::config::{LoadOptions, full_path};
pub use server_base::log_paths::LogPaths;
pub use server_base::logging::{error_log, syslog};
pub use server_base::main_conf::MainConf;
pub use server_base::opened::{ErrorLogConf, LogTarget};

use crate::cache::declared::DeclaredCaches;
use crate::experiments::Experiment;
use crate::handler::DynamicCertificates;
use crate::http::Http;
use crate::key_log::KeyLogFile;
use crate::resource_timing::ResourceTiming;
use crate::settings_set::{Conf, Scope, SettingsContext, SettingsDef};
use crate::status_zones::StatusZone;
use crate::vars::VarRegistry;
use server_base::background_fetch::BackgroundFetch;
use server_base::config::{ConfigContext, VarId};
use server_base::errlog::MemoryBuffer;
use server_base::listen::Listen;
use server_base::periodic_task::PeriodicTask;
use server_base::regex::RegexCache;
use server_base::syslog::SyslogTarget;
use server_base::watch::Watch;
use server_base::zone::Zones;

/// The directives, settings and variables of the core and of all modules.
struct Parts {
    rows: Vec<&'static [DirectiveDef<ConfigBuilder>]>,
    defs: Vec<&'static SettingsDef>,
    vars: VarRegistry,
}

/// The state in which directives are applied.
pub struct ConfigBuilder {
    table: Table<Self>,
    loader: Loader,
    /// The options of the command line.
    pub options: LoadOptions,
    /// Main and events directives.
    pub main: MainConf,
    /// Variables.
    pub vars: VarRegistry,
    /// The modules, in order.
    pub modules: &'static [&'static Module],
    defs: Vec<&'static SettingsDef>,
    http: Option<HttpDraft>,
    finished: Option<(Option<Arc<Http>>, Vec<Listen>)>,
    /// False if the configuration is only checked and serves no requests.
    makes_http: bool,
    /// The shared zones that directives name.
    zones: Zones,
    regexes: RegexCache,
    /// Files that must be opened for appending before anything is served.
    pub log_paths: LogPaths,
    key_logs: Vec<Arc<KeyLogFile>>,
    secret_logs: Vec<PathBuf>,
    /// Tasks of the worker's main thread.
    pub periodic_tasks: Vec<Arc<dyn PeriodicTask>>,
    /// The caches of `*_cache_path`.
    pub caches: DeclaredCaches,
    /// Files that the supervisor takes up when they change.
    pub watches: Vec<Arc<dyn Watch>>,
    /// Requests of the worker to other hosts.
    pub background_fetches: Vec<Arc<dyn BackgroundFetch>>,
    /// The experiments, complete when modules are finished.
    pub experiments: Vec<Experiment>,
    /// Servers that send timing fields for scripts; complete once modules are finished.
    pub resource_timing: HashMap<usize, ResourceTiming>,
    /// `status_zone` of servers, by their indices.
    pub status_zones: HashMap<usize, Arc<StatusZone>>,
    syslogs: Vec<SyslogTarget>,
    memory_logs: Vec<MemoryBuffer>,
    seen_events: bool,
    /// A directive has request bodies read.
    reads_bodies: bool,
    /// The names of all directives that are written.
    named: HashSet<&'static str>,
    /// The position of the directive that is being applied.
    applying: Pos,
    written: Option<DirectiveLocations>,
}

impl Builder for ConfigBuilder {
    fn table(&self) -> &Table<Self> {
        &self.table
    }

    fn loader(&mut self) -> &mut Loader {
        &mut self.loader
    }

    fn reads_block(&self, name: &str, context: Contexts) -> bool {
        // A host may have ten thousand servers in it.
        context == Contexts::MAIN && name == "http"
    }

    fn applying(&mut self, directive: &Directive, row: &'static DirectiveDef<Self>) {
        self.applying = directive.pos;
        self.named.insert(row.name);
        if let Some(written) = &mut self.written {
            let level = self.http.as_ref().map(|http| http.location);
            written.add(directive, row, level);
        }
    }
}

impl SettingsContext for ConfigBuilder {
    fn settings<T: Conf>(&mut self) -> &mut T {
        self.conf_mut()
    }
}

impl ConfigContext for ConfigBuilder {
    fn conf_loader(&mut self) -> &mut Loader {
        &mut self.loader
    }

    fn full_path(&self, path: &[u8]) -> Vec<u8> {
        full_path(&self.options.prefix, path)
    }

    fn variable(&mut self, name: &[u8], d: &Directive, word: &Word) -> VarId {
        self.vars.reference(name, d, word)
    }

    fn capture_slot(&mut self, name: &[u8]) -> usize {
        self.vars.settable(name)
    }

    fn zone(
        &mut self,
        name: &[u8],
        size_bytes: u64,
        module: &'static str,
    ) -> Result<usize, String> {
        self.zones.refer(name, size_bytes, module)
    }

    fn regexes(&mut self) -> &mut RegexCache {
        &mut self.regexes
    }

    fn record_log(&mut self, target: &LogTarget) {
        match target {
            LogTarget::File(_) => {}
            LogTarget::Stderr => self.main.uses_stderr = true,
            LogTarget::Syslog(target) => {
                self.syslog(target.clone());
            }
            LogTarget::Memory(buffer) if self.memory_logs.contains(buffer) => {}
            LogTarget::Memory(buffer) => self.memory_logs.push(buffer.clone()),
        }
    }
}

impl ConfigBuilder {
    /// An empty configuration, made of the directives, settings and variables in `parts`.
    fn new(
        source: impl Source + 'static,
        options: &LoadOptions,
        modules: &'static [&'static Module],
        parts: Parts,
    ) -> Self {
        let Parts { rows, defs, vars } = parts;
        // The number of a definition is its index in each location's settings, so it depends on the modules of this build.
        SettingsDef::number(&defs);
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
            defs,
            http: None,
            finished: None,
            makes_http: true,
            zones: Zones::default(),
            regexes: RegexCache::default(),
            log_paths: LogPaths::default(),
            key_logs: Vec::new(),
            secret_logs: Vec::new(),
            periodic_tasks: Vec::new(),
            caches: DeclaredCaches::default(),
            watches: Vec::new(),
            background_fetches: Vec::new(),
            experiments: Vec::new(),
            resource_timing: HashMap::new(),
            status_zones: HashMap::new(),
            syslogs: Vec::new(),
            memory_logs: Vec::new(),
            seen_events: false,
            reads_bodies: false,
            named: HashSet::new(),
            applying: Directive::synthetic("").pos,
            written: None,
        }
    }

    /// The settings `T` that a directive writes to here.
    pub fn conf_mut<T: Conf>(&mut self) -> &mut T {
        let http = self
            .http
            .as_mut()
            .expect("contexts of HTTP directives lie inside http");
        match T::def().scope {
            Scope::Main => http.main.get_mut(),
            Scope::Server => match http.server {
                Some(server) => http.written.get_mut(&mut http.servers[server].written),
                None => http.server_base.get_mut(),
            },
            Scope::Location => match http.location {
                0 => http.location_base.get_mut(),
                location => http.written.get_mut(&mut http.locations[location].written),
            },
        }
    }

    /// The settings `T`, which exist once.
    pub fn main_conf<T: Conf>(&self) -> &T {
        self.http
            .as_ref()
            .expect("modules are finished inside http")
            .main
            .get()
    }

    /// All settings `T` at location scope, each once however many locations share it, outer ones first; for
    /// modules' `finish`.
    pub fn location_confs_mut<T: Conf>(&mut self) -> impl Iterator<Item = &mut T> {
        let http = self
            .http
            .as_mut()
            .expect("modules are finished inside http");
        http.location_layers.all_mut()
    }

    /// Calls `f` with all settings `L` that a location inside a server has, each once with those `S` of the
    /// first such server; for modules' `finish`.
    ///
    /// # Errors
    /// The first of `f`.
    pub fn each_location_and_server<L: Conf, S: Conf>(
        &mut self,
        mut f: impl FnMut(&mut L, &S) -> Result<(), ConfError>,
    ) -> Result<(), ConfError> {
        let http = self
            .http
            .as_mut()
            .expect("modules are finished inside http");
        let mut seen = vec![false; http.location_layers.count::<L>()];
        for location in &http.locations {
            let Some(server) = location.server else {
                continue;
            };
            let layers = &mut http.location_layers;
            let at = layers.place::<L>(location.layer);
            if !std::mem::replace(&mut seen[at.index()], true) {
                let server = http.server_layers.get(http.servers[server].layer);
                f(layers.at_mut(at), server)?;
            }
        }
        Ok(())
    }

    /// Number of servers; for modules' `finish`.
    pub fn servers(&self) -> usize {
        self.http.as_ref().map_or(0, |http| http.servers.len())
    }

    /// The settings `T` of a server, by its index; for modules' `finish`.
    pub fn server_conf<T: Conf>(&self, server: usize) -> &T {
        let http = self.http.as_ref();
        let http = http.expect("modules are finished inside http");
        http.server_layers.get(http.servers[server].layer)
    }

    /// The settings `T`, of locations, that a server itself has; for modules' `finish`.
    pub fn server_location_conf<T: Conf>(&self, server: usize) -> &T {
        let http = self.http.as_ref();
        let http = http.expect("modules are finished inside http");
        let location = http.servers[server].location;
        http.location_layers.get(http.locations[location].layer)
    }

    /// The settings `T` of a location, by its index; for modules' `finish`.
    pub fn location_conf<T: Conf>(&self, location: usize) -> &T {
        let http = self.http.as_ref();
        let http = http.expect("modules are finished inside http");
        http.location_layers.get(http.locations[location].layer)
    }

    /// The settings `T`, of locations, that `http` itself has; for modules' `finish`.
    pub fn http_base_conf<T: Conf>(&self) -> &T {
        let http = self.http.as_ref();
        let http = http.expect("modules are finished inside http");
        http.location_layers.get(http.locations[0].layer)
    }

    /// Sets how a server speaks TLS; for modules' `finish`.
    pub fn set_tls(&mut self, server: usize, config: Arc<tls::Config>) {
        let http = self.http.as_mut();
        let http = http.expect("modules are finished inside http");
        http.servers[server].tls = Some(config);
    }

    /// Sets the loader of a server's certificates for each handshake; called by `finish` of modules.
    pub fn set_dynamic_certificates(&mut self, server: usize, late: Arc<dyn DynamicCertificates>) {
        let http = self.http.as_mut();
        let http = http.expect("modules are finished inside http");
        http.servers[server].certificates = Some(late);
    }

    /// Resolves a path of the configuration against the prefix.
    pub fn full_path(&self, path: &[u8]) -> Vec<u8> {
        full_path(&self.options.prefix, path)
    }

    /// Looks up a host that the configuration names; `None` for no such host.
    pub fn look_up(&mut self, host: &str) -> Option<Vec<IpAddr>> {
        self.loader.source().addresses(host).ok()
    }

    /// Resolves a path and notes it as a log to open.
    pub fn log_path(&mut self, path: &[u8]) -> PathBuf {
        let path = PathBuf::from(OsString::from_vec(self.full_path(path)));
        self.log_paths.add(&path);
        path
    }

    /// Returns the file for secrets of TLS connections with a path, noted as a log to open.
    pub fn key_log(&mut self, path: &[u8]) -> Arc<KeyLogFile> {
        let path = self.log_path(path);
        let known = self.key_logs.iter().find(|log| log.is_at(&path)).cloned();
        known.unwrap_or_else(|| {
            self.secret_logs.push(path.clone());
            let log = Arc::new(KeyLogFile::new(path));
            self.key_logs.push(Arc::clone(&log));
            log
        })
    }

    /// The access log of a configuration that names none, noted as a log to open.
    pub fn default_access_log(&mut self) -> PathBuf {
        let path = self.options.access_log.clone();
        self.log_path(path.as_os_str().as_bytes())
    }

    /// Adds a syslog server and returns its index in [`Cycle::syslogs`].
    pub fn syslog(&mut self, target: SyslogTarget) -> usize {
        let known = self.syslogs.iter().position(|known| *known == target);
        known.unwrap_or_else(|| {
            self.syslogs.push(target);
            self.syslogs.len() - 1
        })
    }

    /// Requires the directories for request bodies to exist before requests are served.
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
