//! firstbyte: a web server that reads nginx.conf, started and signalled as nginx is.
//!
//! This crate is the command line and the supervisor process. Bytes of the network never come here: the worker process
//! reads them. Output and exit codes are nginx's, so that scripts which call nginx go on working. Source: nginx
//! documentation, "Command-line parameters", "Controlling nginx".
#![forbid(unsafe_code)]

mod advice;
mod argv;
mod cli;
mod console;
mod explain;
mod flags;
mod help;
mod lint_report;
mod load;
#[cfg(test)]
mod manual_tests;
mod paths;
mod recorder;
mod signal_cmd;
mod stdout;
mod supervisor;
mod terminal;
mod test_conf;
mod version;

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use server_base::errlog::Level;
use sys::{heap, process};

use argv::Options;
use console::Console;
use paths::Paths;

/// The system's allocator, declared here so that a change takes one line. The hot path hardly allocates, and idle
/// connections hold no memory of it.
#[global_allocator]
static ALLOCATOR: std::alloc::System = std::alloc::System;

fn main() -> ExitCode {
    heap::set_thresholds();
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some(status) = cli::run(&arguments, keep_local_time) {
        return status;
    }
    let options = match argv::parse(&arguments) {
        Ok(options) => options,
        Err(error) => {
            console::say(format_args!("{error}"));
            if let Some(verb) = misspelt(&arguments) {
                console::say(format_args!("a similar verb exists: \"{verb}\""));
            }
            return ExitCode::FAILURE;
        }
    };
    if let Some(show) = options.show {
        if let Err(why) = help::print(show) {
            console::say(format_args!("{why}"));
            return ExitCode::FAILURE;
        }
        if !options.test {
            return ExitCode::SUCCESS;
        }
    }
    keep_local_time();
    let paths = Paths::new(&options);
    let level = if options.test {
        Level::Info
    } else {
        Level::Notice
    };
    let console = Console::open(paths.error_log.as_deref(), level);
    start(&options, &paths, console, &arguments)
}

/// The verb that the first word resembles, or the word behind `help`.
fn misspelt(arguments: &[std::ffi::OsString]) -> Option<String> {
    let word = match arguments {
        [_, help, word, ..] if help == argv::HELP => word,
        [_, word, ..] => word,
        _ => return None,
    };
    cli::similar(word.to_str()?)
}

/// Loads the configuration and runs the action of the command line.
fn start(
    options: &Options,
    paths: &Paths,
    console: Console,
    arguments: &[std::ffi::OsString],
) -> ExitCode {
    let load_options = paths.load_options(options);
    let (loaded, record) = load::recorded(&load_options);
    if options.test && !options.quiet {
        advice::print(&load_options, &record.borrow());
    }
    drop(record);
    match &loaded {
        Ok(loaded) => console.warnings(&loaded.cycle.warnings),
        Err(error) => console.refused(error),
    }
    if options.test {
        return test_conf::run(options, paths, &console, loaded.ok());
    }
    let Ok(loaded) = loaded else {
        return ExitCode::FAILURE;
    };
    if let Some(signal) = options.signal {
        return signal_cmd::run(signal, &loaded.cycle.main.pid, &console);
    }
    supervisor::run(load_options, loaded, console, arguments)
}

/// Brings the error log's clock to local time.
fn keep_local_time() {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_secs());
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    server_base::clock::set_utc_offset(process::local_offset_s(now));
}
