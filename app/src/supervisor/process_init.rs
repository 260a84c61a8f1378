//! Start of a forked process: it becomes a worker or the store process.
//!
//! It sets limits, user, directory and signals, in nginx's order and with nginx's messages. After that it has only the
//! rights of the worker's user. Source: nginx documentation, "Core functionality": `user`, `env`, `worker_priority`,
//! `worker_rlimit_*`, `working_directory`.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;

use server_base::errlog::{Level, Printable};
use server_http::{MainConf, stats};
use sys::{identity, process, schedule, signal};

use super::account::Account;
use super::limits;
use crate::console::{Console, Logged};
use crate::load::{self, Built};

/// State with which a forked process becomes a worker.
pub(super) struct WorkerSpawn {
    pub(super) control: OwnedFd,
    pub(super) supervisor: u32,
    pub(super) main: MainConf,
    pub(super) account: Option<Account>,
    pub(super) console: Console,
    /// The configuration that the supervisor has built already.
    pub(super) built: Option<Built>,
    /// Number of workers that were lost so far.
    pub(super) respawned: u64,
}

/// Turns this process, forked and without the supervisor's descriptors, into a worker and serves.
/// Returns its exit code.
pub(super) fn run_worker(seed: WorkerSpawn) -> i32 {
    let WorkerSpawn {
        control,
        supervisor,
        main,
        account,
        console,
        built,
        respawned,
    } = seed;
    if become_worker(&main, account.as_ref(), &console).is_err() {
        return FATAL_CODE;
    }
    // This comes last, because a change of user clears the setting.
    if !process::die_with_parent(supervisor).unwrap_or(true) {
        return 0;
    }
    drop(console);
    stats::set_respawned(respawned);
    driver::worker::run(control, load::in_worker(built))
}

/// Sets the limits, the user and the directory of a worker, in nginx's order.
fn become_worker(
    main: &MainConf,
    account: Option<&Account>,
    console: &Console,
) -> Result<(), Logged> {
    let alert = |what: String, result: std::io::Result<()>| {
        if let Err(error) = result {
            console.failed(Level::Alert, format_args!("{what}"), &error);
        }
    };
    alert(
        "setenv()".to_owned(),
        process::set_environment(&environment(main)),
    );
    if main.worker.priority != 0 {
        let priority = main.worker.priority;
        alert(
            format!("setpriority({priority})"),
            schedule::set_priority(priority),
        );
    }
    limits::take_on(main, console);
    if let Some(bytes) = main.worker.rlimit_core {
        let result = process::set_rlimit_core(bytes);
        alert(format!("setrlimit(RLIMIT_CORE, {bytes})"), result);
    }
    if let Some(account) = account {
        change_user(account, main.worker.binds_transparently, console)?;
    }
    alert(
        "prctl(PR_SET_NO_NEW_PRIVS)".to_owned(),
        identity::forbid_new_privileges(),
    );
    // A core may hold data of clients, so it is dumped only if its size is configured.
    if main.worker.rlimit_core.is_some() {
        alert(
            "prctl(PR_SET_DUMPABLE)".to_owned(),
            identity::set_dumpable(true),
        );
    }
    // A daemon has no umask. Files of WebDAV get the modes of its directives all the same.
    server_base::files::set_umask(process::restrict_umask());
    if let Some(directory) = &main.worker.working_directory {
        change_directory(directory, console)?;
    }
    for signo in IGNORED {
        alert("signal()".to_owned(), signal::ignore(*signo));
    }
    alert("sigprocmask()".to_owned(), signal::unblock_all());
    Ok(())
}

/// Sets user and priority of the store process. Signals stay blocked, since its sockets end it.
///
/// # Errors
/// The cause, which has been logged.
pub(super) fn become_store(account: Option<&Account>, console: &Console) -> Result<(), Logged> {
    if let Err(error) = schedule::set_priority(STORE_PRIORITY) {
        let text = format_args!("setpriority({STORE_PRIORITY})");
        console.failed(Level::Alert, text, &error);
    }
    // Each event stream of the dashboard uses a descriptor.
    limits::raise(console);
    if let Some(account) = account {
        change_user(account, false, console)?;
    }
    if let Err(error) = identity::forbid_new_privileges() {
        let text = format_args!("prctl(PR_SET_NO_NEW_PRIVS)");
        console.failed(Level::Alert, text, &error);
    }
    let _ = process::restrict_umask();
    Ok(())
}

/// Drops root's rights for those of the worker's user. Without root's rights, or with `master_process off`, nothing changes.
///
/// # Errors
/// The cause, which has been logged.
pub(crate) fn take_on_user(main: &MainConf, console: &Console) -> Result<(), Logged> {
    match Account::of(main, console)? {
        Some(account) if main.master_process => change_user(&account, false, console),
        _ => Ok(()),
    }
}

fn change_user(account: &Account, keep_net_raw: bool, console: &Console) -> Result<(), Logged> {
    match identity::become_user(account.uid, account.gid, &account.name, keep_net_raw) {
        Ok(()) => Ok(()),
        Err(failed) => {
            console.failed(Level::Emerg, format_args!("{}", failed.call), &failed.error);
            if failed.fatal { Err(Logged) } else { Ok(()) }
        }
    }
}

fn change_directory(directory: &Path, console: &Console) -> Result<(), Logged> {
    std::env::set_current_dir(directory).map_err(|error| {
        let shown = Printable::path(directory);
        console.failed(Level::Alert, format_args!("chdir(\"{shown}\")"), &error);
        Logged
    })
}

/// Environment as `env` directives leave it; TZ always stays.
pub(super) fn environment(main: &MainConf) -> Vec<(OsString, OsString)> {
    let time_zone = (!main.worker.env.iter().any(|(name, _)| name == "TZ")).then_some(("TZ", None));
    let named = main
        .worker
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_deref()));
    time_zone
        .into_iter()
        .chain(named)
        .filter_map(|(name, value)| {
            let value = value
                .map(OsString::from)
                .or_else(|| std::env::var_os(name))?;
            Some((OsString::from(name), value))
        })
        .collect()
}

/// Signals for the supervisor, which a worker ignores; all are blocked until they are ignored.
const IGNORED: &[i32] = &[
    signal::HUP,
    signal::USR2,
    signal::WINCH,
    signal::USR1,
    signal::ALRM,
    signal::IO,
];

/// Nice value of the store process, so that serving threads have priority.
const STORE_PRIORITY: i32 = 10;

/// Exit code of a worker if another one would fail as well.
pub(super) const FATAL_CODE: i32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use server_http::LoadOptions;

    #[test]
    fn environment_is_the_time_zone_and_what_env_names() {
        let mut main = MainConf::new(&LoadOptions {
            conf_path: "/x/nginx.conf".into(),
            prefix: "/x/".into(),
            globals: None,
            error_log: None,
            access_log: "/x/access.log".into(),
        });
        let set = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        main.worker.env = vec![
            set("TZ", "UTC"),
            set("A", "1"),
            ("NOT_SET_ANYWHERE".to_owned(), None),
        ];
        let expected = [("TZ", "UTC"), ("A", "1")].map(|(n, v)| (n.into(), v.into()));
        assert_eq!(environment(&main), expected);
    }
}
