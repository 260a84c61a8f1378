//! The supervisor: keeps root, the listeners, the logs and the pid file, and restarts its worker.
//!
//! It has one thread and waits in one place (`run`) for signals, messages of the worker and timers. It reads the
//! configuration from the disk and sends the worker a bundle, so the worker needs no names for its listeners, logs and
//! configuration files. One worker process serves; a second one runs only while it takes over or drains. With
//! `master_process off` the worker is a thread. Source: nginx documentation, "Controlling nginx".

mod account;
mod file_watcher;
mod inherit;
mod left_file;
mod limits;
mod listeners;
mod logs;
mod memory_logs;
mod notify;
pub(crate) mod open;
mod pending_generations;
mod pid_file;
mod process_init;
mod reload;
mod run;
mod spawn;
mod state;
mod store_process;
mod upgrade;
mod worker;
mod worker_messages;

pub(crate) use process_init::take_on_user;

use std::ffi::OsString;
use std::process::ExitCode;

use server_http::LoadOptions;
use sys::heap;
use sys::poll::{Interest, Poller};
use sys::process;
use sys::signal::{self, Signals};
use sys::title::Title;

use crate::console::{Console, Logged};
use crate::load::{Built, Loaded};
use crate::version;
use file_watcher::FileWatcher;
use inherit::Inheritance;
use listeners::OtherServer;
use notify::Notify;
use open::OpenConfig;
use pending_generations::PendingGenerations;
use state::{LoopExit, Phase, SIGNALS_TOKEN, Supervisor};
use store_process::StoreProcess;
use worker::Respawn;

/// Opens everything, daemonizes if configured, and serves until a signal stops it.
pub(crate) fn run(
    options: LoadOptions,
    loaded: Loaded,
    console: Console,
    arguments: &[OsString],
) -> ExitCode {
    let supervisor = match prepare(options, loaded, console, arguments) {
        Ok(supervisor) => supervisor,
        Err(Logged) => return ExitCode::FAILURE,
    };
    match supervisor.run() {
        LoopExit::Exit(code) => ExitCode::from(code),
        LoopExit::Worker(seed) => process::exit_now(process_init::run_worker(*seed)),
        LoopExit::Store(spawn) => process::exit_now(store_process::serve(*spawn)),
    }
}

fn prepare(
    options: LoadOptions,
    loaded: Loaded,
    console: Console,
    arguments: &[OsString],
) -> Result<Supervisor, Logged> {
    // Clients, and with them signals, may arrive from the first listener on. So signals are blocked before.
    let signals = reported("signalfd()", Signals::new(SIGNALS), &console)?;
    for signo in IGNORED {
        reported("signal()", signal::ignore(*signo), &console)?;
    }
    let inherited = Inheritance::take(&console);
    let built = Built::new(FIRST_GENERATION, &loaded);
    let current = open_first(loaded, &inherited, &console)?;
    let bound = current.listeners.clone();
    let given = inherited.listeners.clone();
    let started = (current, signals, built);
    let prepared = finish(options, started, inherited, arguments, &console);
    if prepared.is_err() {
        listeners::remove_unix_files(&bound, &given, OtherServer::None, &console);
    }
    prepared
}

/// Prepares the supervisor of a configuration that has been opened.
fn finish(
    options: LoadOptions,
    (current, signals, built): (OpenConfig, Signals, Built),
    inherited: Inheritance,
    arguments: &[OsString],
    console: &Console,
) -> Result<Supervisor, Logged> {
    let left = left_file::unclaimed(&inherited, &current.listeners);
    let predecessor = inherited.predecessor;
    // Inherited sockets that the configuration does not use are closed.
    drop(inherited);
    let running = Console::of_log(current.logs.error_log());
    running.notice(format_args!("{}", version::name()));
    let compiler = version::compiler();
    running.notice(format_args!("built by {compiler}"));
    // Its predecessor has left the terminal already.
    let daemonized = current.main.daemon || predecessor.is_some();
    let mut notify = Notify::from_environment(predecessor, console);
    // The manager must know of the child before this process, which it started, ends.
    let announce = |child| notify.main_process(child, &running);
    let mut starting = None;
    if daemonized && predecessor.is_none() {
        let daemon = process::daemonize(announce);
        let failed = |(call, error)| console.fatal(format_args!("{call}"), &error);
        starting = Some(daemon.map_err(failed)?);
    }
    let poller = reported("epoll_create()", Poller::new(), console)?;
    reported(
        "epoll_ctl()",
        poller.add(&signals, SIGNALS_TOKEN, Interest::Readable),
        console,
    )?;
    pid_file::write(&current.main.pid, console)?;
    current.logs.redirect_stderr(&running);
    if let Some(starting) = starting {
        // The command returns now; the pid file and the messages for a service manager exist.
        starting.succeeded();
    }
    let is_store_thread = !current.main.master_process;
    let mut title = Title::take();
    title.set(&format!("firstbyte: master process {}", joined(arguments)));
    Ok(Supervisor {
        options,
        arguments: arguments.to_vec(),
        console: running,
        title,
        daemonized,
        poller,
        signals,
        notify,
        phase: Phase::Serving,
        current,
        built: Some(built),
        pending_generations: PendingGenerations::new(),
        pending_reload: None,
        watcher: FileWatcher::default(),
        generations: FIRST_GENERATION,
        workers: Vec::new(),
        workers_started: 0,
        respawn: Respawn::new(),
        store: StoreProcess::new(is_store_thread),
        predecessor,
        successor: None,
        left,
    })
}

/// Opens everything for the first time, with the sockets that this process was started with.
fn open_first(
    loaded: Loaded,
    inherited: &Inheritance,
    console: &Console,
) -> Result<OpenConfig, Logged> {
    let given = &inherited.listeners;
    let other = match inherited.predecessor {
        Some(_) => OtherServer::Predecessor,
        None => OtherServer::None,
    };
    let mut first = OpenConfig::open(FIRST_GENERATION, loaded, None, given, other, console)?;
    let filled = listeners::fill_waiting(&mut first.listeners, console);
    let begun = filled.and_then(|()| listeners::beside::begin(&mut first.listeners, console));
    if let Err(reported) = begun.and_then(|()| first.give_dashboard(console)) {
        // New sockets are closed, so their files must be removed.
        listeners::remove_unix_files(&first.listeners, given, OtherServer::None, console);
        return Err(reported);
    }
    listeners::apply_options_to_given(&first.listeners, console);
    // The parsed texts are freed before the first fork, so that children do not copy their memory.
    heap::trim();
    Ok(first)
}

fn reported<T>(call: &str, result: std::io::Result<T>, console: &Console) -> Result<T, Logged> {
    result.map_err(|error| console.fatal(format_args!("{call}"), &error))
}

fn joined(arguments: &[OsString]) -> String {
    let words: Vec<_> = arguments
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    words.join(" ")
}

const FIRST_GENERATION: u64 = 1;

/// Signals that the supervisor handles.
const SIGNALS: &[i32] = &[
    signal::TERM,
    signal::INT,
    signal::QUIT,
    signal::HUP,
    signal::USR1,
    signal::USR2,
    signal::WINCH,
    signal::CHLD,
    signal::ALRM,
    signal::IO,
];

/// Signals that the supervisor and its workers ignore; a new binary is started with them ignored, too.
const IGNORED: &[i32] = &[signal::SYS, signal::PIPE];
