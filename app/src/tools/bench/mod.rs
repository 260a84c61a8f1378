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
use std::time::{Duration, Instant};

use lab::Judge;
use lab::bench::{Measured, Step, bench};
use lab::report::{Offloads, Report, text};
use lab::url::Url;
use link::is_conclusive;
use link::via::{self, Far, Inside, Wanted};
use link::{LOCALHOST_PORTS, Link, Spec};
use sys::signal::Signals;

use super::long::{self, Asked};
use options::{LONGS, Options};
use threshold::Threshold;

/// Runs the tool with the words after its name.
pub(super) fn run(words: &[OsString]) -> ExitCode {
    let options = match options::parse(words) {
        Ok(Asked::Help) => return super::help(&(HELP.to_owned() + &long::help(LONGS))),
        Ok(Asked::Work(options)) => options,
        Err(why) => return super::misused(NAME, &why),
    };
    match &options.via {
        None => ExitCode::from(judged(&options, None)),
        Some(spec) => behind(&options, spec),
    }
}

/// Measures through an emulated link, whose other end is this machine's network.
fn behind(options: &Options, spec: &Spec) -> ExitCode {
    let urls = options.urls.iter().filter_map(|url| Url::parse(url).ok());
    let all = urls.chain(options.against.clone());
    let wanted = Wanted {
        spec: spec.clone(),
        far: Far::Here,
        ports: all
            .map(|url| url.port)
            .filter(|port| *port > LOCALHOST_PORTS.1)
            .collect(),
    };
    let entered = via::enter(&wanted, |inside| {
        let entered = inside.and_then(|inside| {
            inside.link.client().enter()?;
            Ok(inside)
        });
        match entered {
            Ok(inside) => judged(options, Some(&inside)),
            Err(error) => {
                let _ = super::fail(NAME, &format!("no link for --via: {error}"));
                FAILED
            }
        }
    });
    match entered {
        Ok(status) => ExitCode::from(status),
        Err(error) => super::fail(NAME, &format!("no link for --via: {error}")),
    }
}

/// Measures and judges; gives the exit status.
fn judged(options: &Options, link: Option<&Inside>) -> u8 {
    match measure(options, link) {
        Ok(report) => verdict(options, &report),
        Err(why) => {
            let _ = super::fail(NAME, &why);
            FAILED
        }
    }
}

fn measure(options: &Options, link: Option<&Inside>) -> Result<Report, String> {
    let job = servers::job(options)?;
    // From now on the two are read, and end the bench when they come.
    let signals = Signals::new(&[SIGINT, SIGTERM]).map_err(|error| error.to_string())?;
    let mut bar = Bar::new();
    let judge = link.map(|inside| OfLink(&inside.link));
    let judge = judge.as_ref().map(|judge| judge as &dyn Judge);
    let (mut report, measured) = bench(&job, judge, |step| {
        bar.show(step);
        !matches!(signals.receive(), Ok(Some(_)))
    })?;
    bar.clear();
    if let Some(inside) = link {
        report.conditions.link = conditions(inside);
        report.conditions.device = Some("of the link".to_owned());
        report.conditions.mtu_bytes = Some(inside.link.options().mtu.into());
        // This thread is in the client's network, where the device is.
        report.conditions.offloads = Offloads::of(inside.link.client_device());
    }
    told(options, &report, &measured)?;
    Ok(report)
}

/// The link, as one that knows when it was late.
struct OfLink<'a>(&'a Link);

impl Judge for OfLink<'_> {
    fn are_void(&self, samples: &[(Instant, Instant)]) -> Vec<bool> {
        self.0.are_void(samples, LATE)
    }

    fn is_conclusive(&self, samples: u64, void: u64) -> bool {
        is_conclusive(samples, void)
    }
}

/// The link, and how exact it was.
fn conditions(inside: &Inside) -> String {
    let (counters, late) = (inside.link.counters(), inside.link.lateness());
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    format!(
        "emulated, {}; {} packets, {} dropped; late by {:.2} ms (median), {:.2} (p99), {:.2} (worst){}",
        inside.spec,
        counters.packets(),
        counters.dropped(),
        ms(late.median),
        ms(late.p99),
        ms(late.worst),
        late.remarks()
    )
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
fn verdict(options: &Options, report: &Report) -> u8 {
    if report.interrupted {
        return INTERRUPTED;
    }
    let mut exceeded: Vec<String> = options
        .thresholds
        .iter()
        .flat_map(|threshold| threshold.exceeded(report))
        .collect();
    // Where the few samples that are left say all is well, it may not be.
    if options.thresholds.iter().any(Threshold::is_of_times) {
        exceeded.extend(report.warnings.iter().cloned());
    }
    if !exceeded.is_empty() {
        let _ = super::fail(NAME, &exceeded.join("\n"));
        return EXCEEDED;
    }
    if let Some(silent) = report.servers.iter().find(|server| server.done == 0) {
        let _ = super::fail(NAME, &format!("{} has answered nothing", silent.name));
        return FAILED;
    }
    0
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
/// A sample is void when the link delivered a packet later than this meanwhile.
const LATE: Duration = Duration::from_millis(2);
/// The exit status when nothing could be measured.
const FAILED: u8 = 1;
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
