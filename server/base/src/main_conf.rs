//! Settings of the main context and of `events`, as the supervisor and the worker read them.
//!
//! Source: nginx documentation, "Core functionality".

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use conf::{ConfError, Directive};

use crate::affinity::auto_affinity;
use crate::config::LoadOptions;
use crate::experiment::ExperimentSettings;
use crate::lab_store::LabStoreConf;
use crate::networks::Network;
use crate::opened::{ErrorLogConf, LogTarget};
use crate::thread_pool::ThreadPools;

/// Directives of the main context and of `events`, with nginx's defaults.
#[derive(Clone, Debug)]
pub struct MainConf {
    /// Go to the background.
    pub daemon: bool,
    /// Serve from a worker process of its own.
    pub master_process: bool,
    /// The place of the directive `user`, for messages: ` in FILE:LINE`.
    pub user_at: String,
    /// The worker process.
    pub worker: WorkerProcess,
    /// `events`.
    pub events: Events,
    /// State that is kept over a reload.
    pub reload: Reload,
    /// The pid file.
    pub pid: PathBuf,
    /// Number of worker threads.
    pub worker_processes: u32,
    /// CPUs of each thread; empty for no affinity.
    pub cpu_affinity: Vec<Vec<usize>>,
    /// Time limit for connections of an old configuration or a stopping worker, milliseconds.
    pub shutdown_timeout_ms: Option<u64>,
    /// `worker_memory_limit`, bytes.
    pub memory_limit_bytes: Option<u64>,
    /// Error logs of the main context.
    pub error_logs: Vec<ErrorLogConf>,
    /// An error log writes to standard error.
    pub uses_stderr: bool,
    /// Directories to make for temporary files.
    pub temp_paths: BTreeSet<PathBuf>,
    /// Settings of the store process, if connections or page views are recorded, or a location has the dashboard.
    pub lab_store: Option<LabStoreConf>,
    /// Settings of the experiments with a beacon, until `lab_store` has them.
    pub experiments: Vec<ExperimentSettings>,
    /// The pools of `thread_pool` and of directives that use them.
    pub thread_pools: ThreadPools,
    set: Vec<String>,
}

/// Settings of the worker process that cannot change while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerProcess {
    /// User and group.
    pub user: Option<(String, Option<String>)>,
    /// Environment: `NAME` to keep, `NAME=value` to set.
    pub env: Vec<(String, Option<String>)>,
    /// RLIMIT_NOFILE for each thread.
    pub rlimit_nofile: Option<u64>,
    /// RLIMIT_CORE in bytes.
    pub rlimit_core: Option<u64>,
    /// Nice value.
    pub priority: i32,
    /// Working directory.
    pub working_directory: Option<PathBuf>,
    /// Connections to servers come from addresses that are not local. The right to that is kept or given up when the process
    /// takes on its user.
    pub binds_transparently: bool,
}

/// Settings of connections and events of worker threads.
#[derive(Clone, Debug)]
pub struct Events {
    /// Connections of one worker thread.
    pub connections: u32,
    /// Accept as many connections as possible in one turn.
    pub multi_accept: bool,
    /// `event_coalescing`: gather events for up to 50 us if many requests are in progress with servers.
    pub coalescing: bool,
    /// Clients with connections logged at level debug.
    pub debug_connections: Vec<Network>,
}

/// State that is kept over a reload.
#[derive(Clone, Copy, Debug)]
pub struct Reload {
    /// Keep connections over a reload.
    pub keeps_connections: bool,
    /// Certificates and the like outlive a reload while their files have not been replaced.
    pub keeps_ssl_objects: bool,
}

impl MainConf {
    /// nginx's defaults.
    pub fn new(options: &LoadOptions) -> Self {
        Self {
            daemon: true,
            master_process: true,
            worker: WorkerProcess::default(),
            events: Events {
                connections: 512,
                multi_accept: false,
                coalescing: true,
                debug_connections: Vec::new(),
            },
            reload: Reload {
                keeps_connections: true,
                keeps_ssl_objects: true,
            },
            user_at: String::new(),
            pid: options.prefix.join(DEFAULT_PID),
            worker_processes: 1,
            cpu_affinity: Vec::new(),
            shutdown_timeout_ms: None,
            memory_limit_bytes: None,
            error_logs: Vec::new(),
            uses_stderr: false,
            temp_paths: BTreeSet::new(),
            lab_store: None,
            experiments: Vec::new(),
            thread_pools: ThreadPools::default(),
            set: Vec::new(),
        }
    }

    /// Fills in the defaults that depend on other settings.
    pub fn finish(&mut self, error_log: Option<&Path>) {
        // As in nginx, output of libraries is written to a log file.
        let is_file =
            |log: &ErrorLogConf| matches!(log.target, LogTarget::File(_) | LogTarget::Stderr);
        if !self.error_logs.iter().any(is_file)
            && let Some(path) = error_log
        {
            let target = match path.to_str() {
                Some("stderr") => {
                    self.uses_stderr = true;
                    LogTarget::Stderr
                }
                _ => LogTarget::File(path.to_path_buf()),
            };
            self.error_logs.push(ErrorLogConf::plain(target));
        }
        if let [only] = self.cpu_affinity.as_slice()
            && only.is_empty()
        {
            self.cpu_affinity = auto_affinity(self.worker_processes);
        }
        if let Some(socket) = self
            .lab_store
            .as_ref()
            .and_then(|lab| lab.dashboard.as_ref())
        {
            socket.place_beside(&self.pid);
        }
    }

    /// Records that a directive is set.
    ///
    /// # Errors It was set before.
    pub fn once(&mut self, d: &Directive) -> Result<(), ConfError> {
        conf::once(d, self.set.iter().any(|name| name == d.name()))?;
        self.set.push(d.name().to_owned());
        Ok(())
    }
}

/// The default pid file, relative to the prefix.
const DEFAULT_PID: &str = "/run/nginx.pid";
