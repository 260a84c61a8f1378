//! `bench`: loads servers and says how fast they answered, how sure that is, and at what cost.
//!
//! What is measured, and how, is the crate `lab`; here are the command line, the bar while it runs, and the exit status.
//!
//! Source: of our own; docs/lab.md.

pub(crate) mod options;
mod servers;
mod threshold;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use driver::sys::signal::Signals;
use lab::bench::{Measured, Step, bench};
use lab::report::{Report, text};

use super::long;
use options::{Asked, LONGS, Options};

/// Runs the tool with the words after its name.
pub(super) fn run(words: &[OsString]) -> ExitCode {
    let options = match options::parse(words) {
        Ok(Asked::Help) => return super::print(&(HELP.to_owned() + &long::help(LONGS))),
        Ok(Asked::Bench(options)) => options,
        Err(why) => {
            let text = format!("{why}\nfirstbyte {NAME} -h says how it is used");
            return super::fail(NAME, &text);
        }
    };
    match measure(&options) {
        Ok(report) => verdict(&options, &report),
        Err(why) => super::fail(NAME, &why),
    }
}

fn measure(options: &Options) -> Result<Report, String> {
    let job = servers::job(options)?;
    // From now on the two are read, and end the bench when they come.
    let signals = Signals::new(&[SIGINT, SIGTERM]).map_err(|error| error.to_string())?;
    let mut bar = Bar::new();
    let (report, measured) = bench(&job, |step| {
        bar.show(step);
        !matches!(signals.receive(), Ok(Some(_)))
    })?;
    bar.clear();
    told(options, &report, &measured)?;
    Ok(report)
}

/// Prints the report, and writes the files that were asked for.
fn told(options: &Options, report: &Report, measured: &Measured) -> Result<(), String> {
    if let Some(path) = &options.hdr {
        write(path, &lab::hdr::log(report, measured)?)?;
    }
    if let Some(path) = &options.html {
        write(path, &lab::report::html::render(report))?;
    }
    let text = if options.json {
        serde_json::to_string_pretty(report).map_err(|error| error.to_string())? + "\n"
    } else if options.table {
        text::table(report)
    } else {
        text::render(report)
    };
    let _ = super::print(&text);
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// The exit status: 0 when all went well, 1 when nothing was answered, 2 when a threshold is exceeded, 130 when the bench
/// was ended before its end.
fn verdict(options: &Options, report: &Report) -> ExitCode {
    if report.interrupted {
        return ExitCode::from(INTERRUPTED);
    }
    let exceeded: Vec<String> = options
        .thresholds
        .iter()
        .flat_map(|threshold| threshold.exceeded(report))
        .collect();
    if !exceeded.is_empty() {
        let _ = super::fail(NAME, &exceeded.join("\n"));
        return ExitCode::from(EXCEEDED);
    }
    match report.servers.iter().any(|server| server.done == 0) {
        true => super::fail(NAME, "a server has answered nothing"),
        false => ExitCode::SUCCESS,
    }
}

/// A bar on standard error while somebody watches.
struct Bar {
    began: Instant,
    watched: bool,
    is_there: bool,
}

impl Bar {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            watched: io::stderr().is_terminal(),
            is_there: false,
        }
    }

    fn show(&mut self, step: Step<'_>) {
        if !self.watched || self.began.elapsed().as_millis() < BAR_AFTER_MS {
            return;
        }
        self.is_there = true;
        let _ = write!(io::stderr(), "\r{}\x1b[K", line(step));
    }

    fn clear(&self) {
        if self.is_there {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// `[#####     ] 50 % run 3 of 6: name, 1234 responses`.
fn line(step: Step<'_>) -> String {
    let (over, all) = step.runs;
    let share = ((over as f64 + step.share) / all.max(1) as f64).min(1.0);
    let bar = "#".repeat((share * WIDTH as f64) as usize);
    let (percent, run) = (share * 100.0, (over + 1).min(all.max(1)));
    let (name, ended) = (step.server, step.progress.ended);
    format!("[{bar:WIDTH$}] {percent:3.0} % run {run} of {all}: {name}, {ended} responses")
}

/// The tool's name.
const NAME: &str = "bench";

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;
/// The exit status when a threshold is exceeded.
const EXCEEDED: u8 = 2;
/// That of a program that SIGINT has ended.
const INTERRUPTED: u8 = 130;
/// What is over sooner needs no bar.
const BAR_AFTER_MS: u128 = 1000;
const WIDTH: usize = 30;

const HELP: &str = "\
Usage: firstbyte bench URL... [options]

Loads a server over HTTP/1.1, HTTP/2 or SPDY/3.1 and says how many responses a second came, how
long they took and what failed, each figure with its interval and the conditions. Several URLs of
one server are asked for in turn. docs/lab.md says what the figures mean.

";

#[cfg(test)]
mod tests {
    use super::*;
    use lab::Progress;

    #[test]
    fn the_bar_says_how_far_it_is() {
        let step = Step {
            runs: (1, 4),
            server: "one",
            progress: Progress {
                ended: 5,
                elapsed_ns: 0,
            },
            share: 0.5,
        };
        assert_eq!(
            line(step),
            "[###########                   ]  38 % run 2 of 4: one, 5 responses"
        );
    }
}
