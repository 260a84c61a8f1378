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

/// Directives of the main context and of `events`, with nginx's defaults where nothing was said.
#[derive(Clone, Debug)]
pub struct MainConf {
    /// Go to the background.
    pub daemon: bool,
    /// Serve from a worker process of its own.
    pub master_process: bool,
    /// Where the user is named, for messages: ` in FILE:LINE`.
    pub user_at: String,
    /// User and group of the worker.
    pub user: Option<(String, Option<String>)>,
    /// The pid file.
    pub pid: PathBuf,
    /// Number of worker threads.
    pub worker_processes: u32,
    /// Connections of one worker thread.
    pub worker_connections: u32,
    /// RLIMIT_NOFILE of the worker.
    pub worker_rlimit_nofile: Option<u64>,
    /// RLIMIT_CORE of the worker in bytes.
    pub worker_rlimit_core: Option<u64>,
    /// Nice value of the worker.
    pub worker_priority: i32,
    /// CPUs of each thread; empty for no affinity.
    pub cpu_affinity: Vec<Vec<usize>>,
    /// Time limit for connections of an old configuration or a stopping worker, milliseconds.
    pub shutdown_timeout_ms: Option<u64>,
    /// `worker_memory_limit`, bytes.
    pub memory_limit_bytes: Option<u64>,
    /// Environment of the worker: `NAME` to keep, `NAME=value` to set.
    pub env: Vec<(String, Option<String>)>,
    /// Working directory of the worker.
    pub working_directory: Option<PathBuf>,
    /// Error logs of the main context.
    pub error_logs: Vec<ErrorLogConf>,
    /// Clients with connections logged at level debug.
    pub debug_connections: Vec<Network>,
    /// An error log somewhere goes to standard error.
    pub uses_stderr: bool,
    /// Connections to servers come from addresses that are not local: the worker needs the right to that.
    pub binds_transparently: bool,
    /// Keep connections over a reload.
    pub reload_keep: bool,
    /// Certificates and the like outlive a reload while their files have not been replaced.
    pub ssl_object_cache_inheritable: bool,
    /// Directories to make for temporary files.
    pub temp_paths: BTreeSet<PathBuf>,
    /// Accept as many connections as possible in one turn.
    pub multi_accept: bool,
    /// Gather events before they are taken, where many requests are in progress with servers.
    pub event_coalescing: bool,
    /// Settings of the store process, if connections or page views are recorded, or a location has the dashboard.
    pub lab_store: Option<LabStoreConf>,
    /// Settings of the experiments with a beacon, until `lab_store` has them.
    pub experiments: Vec<ExperimentSettings>,
    /// The pools of `thread_pool` and the directives that name them.
    pub thread_pools: ThreadPools,
    set: Vec<String>,
}

impl MainConf {
    /// nginx's defaults.
    pub fn new(options: &LoadOptions) -> Self {
        Self {
            daemon: true,
            master_process: true,
            user: None,
            user_at: String::new(),
            pid: options.prefix.join(DEFAULT_PID),
            worker_processes: 1,
            worker_connections: 512,
            worker_rlimit_nofile: None,
            worker_rlimit_core: None,
            worker_priority: 0,
            cpu_affinity: Vec::new(),
            shutdown_timeout_ms: None,
            memory_limit_bytes: None,
            env: Vec::new(),
            working_directory: None,
            error_logs: Vec::new(),
            debug_connections: Vec::new(),
            uses_stderr: false,
            binds_transparently: false,
            reload_keep: true,
            ssl_object_cache_inheritable: true,
            temp_paths: BTreeSet::new(),
            multi_accept: false,
            event_coalescing: true,
            lab_store: None,
            experiments: Vec::new(),
            thread_pools: ThreadPools::default(),
            set: Vec::new(),
        }
    }

    /// Fills in the defaults that depend on other settings.
    pub fn finish(&mut self, error_log: Option<&Path>) {
        // As in nginx there is a file where what libraries print can go.
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

    /// Notes that a directive is written.
    ///
    /// # Errors
    /// It was written before.
    pub fn once(&mut self, d: &Directive) -> Result<(), ConfError> {
        conf::once(d, self.set.iter().any(|name| name == d.name()))?;
        self.set.push(d.name().to_owned());
        Ok(())
    }
}

/// The pid file where none is named, relative to the prefix.
const DEFAULT_PID: &str = "/run/nginx.pid";
