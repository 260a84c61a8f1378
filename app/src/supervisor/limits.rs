//! Limit of the worker's open files.
//!
//! In nginx the limit is that of a process with the connections of one thread. Here all threads share one process, so
//! `worker_rlimit_nofile` counts per thread. Without it the worker raises its limit as far as the system allows.
//! Source: nginx documentation, `worker_rlimit_nofile`, `worker_connections`; getrlimit(2).

use server_base::errlog::Level;
use server_http::MainConf;
use sys::process;

use crate::console::Console;

/// The configured limit, for all threads together, as far as the system allows.
pub(super) fn written(main: &MainConf) -> Option<u64> {
    let each = main.worker.rlimit_nofile?;
    let all = each.saturating_mul(u64::from(main.worker_processes.max(1)));
    Some(all.min(process::most_open_files().max(each)))
}

/// Sets the limit of this process, which becomes a worker.
pub(super) fn take_on(main: &MainConf, console: &Console) {
    let Some(files) = written(main) else {
        return raise(console);
    };
    if let Err(error) = process::set_rlimit_nofile(files) {
        console.failed(
            Level::Alert,
            format_args!("setrlimit(RLIMIT_NOFILE, {files})"),
            &error,
        );
        raise(console);
    }
}

/// Raises the soft limit to the hard limit.
pub(super) fn raise(console: &Console) {
    if let Err(error) = process::raise_rlimit_nofile() {
        console.failed(
            Level::Alert,
            format_args!("setrlimit(RLIMIT_NOFILE)"),
            &error,
        );
    }
}

/// Sets the limit of a worker that gets more threads. Without CAP_SYS_RESOURCE its threads share the former limit.
pub(super) fn set_of(worker: u32, main: &MainConf, console: &Console) {
    let Some(files) = written(main) else { return };
    if let Err(error) = process::set_rlimit_nofile_of(worker, files) {
        console.failed(
            Level::Warn,
            format_args!("prlimit({worker}, RLIMIT_NOFILE, {files})"),
            &error,
        );
    }
}

/// Warns as nginx does if the number of connections may exceed the limit of open files.
pub(super) fn warn(main: &MainConf, console: &Console) {
    let limit = written(main).or_else(process::hard_rlimit_nofile);
    let connections = u64::from(main.events.connections) * u64::from(main.worker_processes.max(1));
    if let Some(limit) = limit
        && connections > limit
    {
        console.report(
            Level::Warn,
            format_args!(
                "{connections} worker_connections exceed open file resource limit: {limit}"
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use server_http::LoadOptions;

    #[test]
    fn limit_counts_for_each_thread_up_to_what_the_system_has() {
        let mut main = MainConf::new(&LoadOptions {
            conf_path: "/x/nginx.conf".into(),
            prefix: "/x/".into(),
            globals: None,
            error_log: None,
            access_log: "/x/access.log".into(),
        });
        main.worker_processes = 4;
        assert_eq!(written(&main), None);
        main.worker.rlimit_nofile = Some(100);
        assert_eq!(written(&main), Some(400));
        let most = process::most_open_files();
        main.worker.rlimit_nofile = Some(most / 2);
        assert_eq!(written(&main), Some(most));
        // A limit above that was configured, and its refusal is reported.
        main.worker.rlimit_nofile = Some(most + 1);
        assert_eq!(written(&main), Some(most + 1));
    }
}
