//! Loading as a whole: from files to a [`Cycle`], by one table with the rows of the core and of all modules.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive, DirectiveDef, Source};
use server_base::config::LoadOptions;
use server_base::errlog::MemoryBuffer;
use server_base::listen::{Listen, ListenAddr, MAX_UNIX_PATH};
use server_base::log_paths::LogPaths;
use server_base::main_conf::MainConf;
use server_base::opened::LogTarget;
use server_base::syslog::SyslogTarget;
use server_base::watch::Watch;

use super::ignored::IGNORED;
use super::module::Module;
use super::{ConfigBuilder, DirectiveLocations, Parts, blocks, core_rows, main};
use crate::http::Http;
use crate::settings_set::SettingsDef;
use crate::vars::VarRegistry;
use crate::{builtin, conf_core};

/// A loaded configuration, for the supervisor and the worker.
pub struct Cycle {
    /// Directives of the main context and of `events`.
    pub main: MainConf,
    /// Sockets to open.
    pub listens: Vec<Listen>,
    /// Log files to open for appending.
    pub log_paths: Vec<PathBuf>,
    /// Those of them that only the owner may read.
    pub secret_logs: Vec<PathBuf>,
    /// Syslog servers that logs go to.
    pub syslogs: Vec<SyslogTarget>,
    /// Rings in memory that error logs go to.
    pub memory_logs: Vec<MemoryBuffer>,
    /// Files that are reloaded when they change.
    pub watches: Vec<Arc<dyn Watch>>,
    /// Every file read, for `-T` and the worker's bundle.
    pub files: conf::Files,
    /// Warnings and notices, rendered.
    pub warnings: Vec<String>,
    /// The HTTP server, unless the configuration was only checked.
    pub http: Option<Arc<Http>>,
}

impl Cycle {
    /// Copies the cycle for a worker that is forked from this process: without texts, warnings and watches, which the
    /// supervisor alone needs.
    #[must_use]
    pub fn for_worker(&self) -> Self {
        Self {
            watches: Vec::new(),
            warnings: Vec::new(),
            http: self.http.clone(),
            ..self.for_supervisor()
        }
    }

    /// Copies the cycle for the supervisor: without texts and without data of requests.
    #[must_use]
    pub fn for_supervisor(&self) -> Self {
        Self {
            main: self.main.clone(),
            listens: self.listens.clone(),
            log_paths: self.log_paths.clone(),
            secret_logs: self.secret_logs.clone(),
            syslogs: self.syslogs.clone(),
            memory_logs: self.memory_logs.clone(),
            watches: self.watches.clone(),
            files: conf::Files::default(),
            warnings: self.warnings.clone(),
            http: None,
        }
    }

    /// A number of all that the supervisor acts by, but watches, of which only the count is in it. Configurations that
    /// have the same open the same sockets and logs, and warn alike.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let files = (&self.log_paths, &self.secret_logs);
        let logs = (files, &self.syslogs, &self.memory_logs);
        let all = (&self.main, &self.listens, logs, &self.warnings);
        let mut hasher = DefaultHasher::new();
        // Whatever is added to one of them is in its text.
        format!("{all:?}").hash(&mut hasher);
        self.watches.len().hash(&mut hasher);
        hasher.finish()
    }
}

impl fmt::Debug for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cycle").finish_non_exhaustive()
    }
}

/// Why a configuration was refused, with the files read so far.
pub struct LoadError {
    /// The error.
    pub error: ConfError,
    /// The files read so far: they give the name and the line of the error's position.
    pub files: conf::Files,
    /// Warnings before the error, rendered.
    pub warnings: Vec<String>,
}

/// The directives of the core and of the modules, for the reference.
pub fn all_rows(
    modules: &'static [&'static Module],
) -> Vec<(&'static str, &'static [DirectiveDef<ConfigBuilder>])> {
    let mut rows: Vec<(&'static str, &'static [DirectiveDef<ConfigBuilder>])> = vec![
        ("core", main::ROWS),
        ("http core", blocks::ROWS),
        ("http core", core_rows::ROWS),
    ];
    rows.extend(conf_core::rows().iter().map(|r| ("http core", *r)));
    for module in modules {
        rows.extend(module.directives.iter().map(|r| (module.name, *r)));
    }
    rows.push(("without meaning here", IGNORED));
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
    let build = ConfigBuilder::new(source, options, modules, parts(modules));
    build.load().map(|(cycle, _)| cycle)
}

/// Reads and checks a configuration as [`load`] does, but builds nothing to serve requests: half of the work and
/// memory.
///
/// # Errors
/// See [`load`].
pub fn check(
    source: impl Source + 'static,
    options: &LoadOptions,
    modules: &'static [&'static Module],
) -> Result<Cycle, Box<LoadError>> {
    let mut build = ConfigBuilder::new(source, options, modules, parts(modules));
    build.makes_http = false;
    build.load().map(|(cycle, _)| cycle)
}

/// Loads a configuration and keeps the position of each directive.
///
/// # Errors
/// See [`load`].
pub fn load_with_locations(
    source: impl Source + 'static,
    options: &LoadOptions,
    modules: &'static [&'static Module],
) -> Result<(Cycle, DirectiveLocations), Box<LoadError>> {
    let mut build = ConfigBuilder::new(source, options, modules, parts(modules));
    build.written = Some(DirectiveLocations::new(
        core_rows::INHERITS,
        modules,
        all_rows(modules),
    ));
    let (cycle, written) = build.load()?;
    Ok((cycle, written.unwrap_or_default()))
}

/// The directives, settings and variables of the core and of the modules.
fn parts(modules: &'static [&'static Module]) -> Parts {
    let mut defs: Vec<&'static SettingsDef> = conf_core::settings_defs();
    let mut vars = VarRegistry::default();
    for module in modules {
        defs.extend(module.settings.iter().map(|u| u()));
        vars.add(module.variables);
        vars.add_defaults(module.defaults);
    }
    for list in builtin::VARIABLES {
        vars.add(list);
    }
    Parts {
        rows: all_rows(modules)
            .into_iter()
            .map(|(_, rows)| rows)
            .collect(),
        defs,
        vars,
    }
}

impl ConfigBuilder {
    fn load(mut self) -> Result<(Cycle, Option<DirectiveLocations>), Box<LoadError>> {
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
        let file = self.loader.load(&self.options.conf_path.clone())?;
        conf::walk_file(self, &file, Contexts::MAIN)?;
        self.finish_main()
    }

    fn finish_main(&mut self) -> Result<(), ConfError> {
        if !self.seen_events {
            return Err(ConfError::new("no \"events\" section in configuration"));
        }
        if self.finished.is_none() {
            blocks::http(self, &Directive::synthetic("http"))?;
        }
        if let Some(error) = self.main.thread_pools.undefined() {
            return Err(error);
        }
        let default = self.options.error_log.clone();
        self.main.finish(default.as_deref());
        self.check_dashboard_socket()?;
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

    /// Checks the path of the dashboard's socket, which follows from that of the pid file.
    fn check_dashboard_socket(&self) -> Result<(), ConfError> {
        let lab_store = self.main.lab_store.as_ref();
        let socket = lab_store.and_then(|lab_store| lab_store.dashboard.as_ref());
        let Some(path) = socket.and_then(|socket| socket.path()) else {
            return Ok(());
        };
        let bytes = path.as_os_str().len();
        let shown = path.display();
        if bytes > MAX_UNIX_PATH {
            let text = format!(
                "too long path \"{shown}\" of the \"lab_dashboard\" socket beside the pid file: {bytes} bytes, \
                 at most {MAX_UNIX_PATH}; set \"pid\" to a shorter path"
            );
            return Err(ConfError::new(text));
        }
        let listens = self.finished.iter().flat_map(|(_, listens)| listens);
        let is_same =
            |listen: &Listen| matches!(&listen.addr, ListenAddr::Unix(own) if own == path);
        if listens.into_iter().any(is_same) {
            let text =
                format!("\"listen\" conflicts with the \"lab_dashboard\" socket \"{shown}\"");
            return Err(ConfError::new(text));
        }
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
            Some((http, listens)) => (http, listens),
            None => (None, Vec::new()),
        };
        Cycle {
            main: self.main,
            listens,
            log_paths: self.log_paths.into_list(),
            secret_logs: self.secret_logs,
            syslogs: self.syslogs,
            memory_logs: self.memory_logs,
            watches: self.watches,
            files: self.loader.into_files(),
            warnings,
            http,
        }
    }
}
