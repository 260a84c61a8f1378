//! `bench`: loads servers and reports response times with intervals, and costs.

mod figures;
mod servers;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use lab::client::{Url, has_body};
use lab::host::Offloads;
use lab::load::{Connect, Measured, SampleFilter, Step, bench};
use lab::report::{Report, hdr, html, text};
use link::is_conclusive;
use link::via::{self, Far, Inside, Wanted};
use link::{LOCALHOST_PORTS, Link, Spec};

use super::carried::refused;
use super::condition::Condition;
use super::files::written;
use super::interruption::interruptions;
use super::output::{all, fail, json};
use super::status::{CONDITION, FAILED, INTERRUPTED};
use super::values::{Spoken, count, positive, protocols, whole};
use crate::stdout;
use crate::terminal::fitted;
use sys::os_error;

/// load servers, and report their speed and cost
///
/// Loads a server over HTTP/1.1, HTTP/2 or SPDY/3.1 and reports responses per second, response times and failures, each with
/// its confidence interval, and the conditions. Several URLs of one server are requested in turn. docs/lab.md explains the
/// figures.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// URLs of the server; with --table a server each, NAME=HTTPS-URL,HTTP-URL
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    /// Connections at a time
    #[arg(long, value_name = "N", default_value = "10", value_parser = count::<CONNECTIONS_MAX>)]
    connections: usize,
    /// Requests at a time on a connection of HTTP/2 or SPDY
    #[arg(long, value_name = "N", default_value = "1", value_parser = count::<STREAMS_MAX>)]
    streams: usize,
    /// Threads of the client
    #[arg(long, value_name = "N", default_value = "1", value_parser = count::<THREADS_MAX>)]
    threads: usize,
    /// Requests of a run
    #[arg(long, value_name = "N", value_parser = |text: &str| whole::<u64>(text, 1..=u64::MAX))]
    requests: Option<u64>,
    /// Time in which a run starts requests (10, without --requests)
    #[arg(long = "duration", value_name = "SECONDS", value_parser = positive)]
    duration_s: Option<f64>,
    /// Requests a second, timed from when each should be sent (a closed loop)
    #[arg(long, value_name = "N", value_parser = positive, conflicts_with = "table")]
    rate: Option<f64>,
    /// The protocol; auto lets TLS choose of h2 and h1
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = protocols(), conflicts_with = "table")]
    protocol: Spoken,
    /// Reuse connections (warm) or open one for each request (cold, or resumed with TLS session resumption)
    #[arg(long, value_name = "KIND", default_value = "warm", value_parser = kinds())]
    connect: Connect,
    /// The method of the requests (GET, with --body POST)
    #[arg(long, value_name = "NAME")]
    method: Option<String>,
    /// A field, "name: value", of each request; may be repeated
    #[arg(long = "header", value_name = "FIELD", value_parser = field)]
    fields: Vec<(String, String)>,
    /// The body of each POST, PUT and PATCH
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// Requests from a file: on each line a method and a path, or a path
    #[arg(long, value_name = "FILE", conflicts_with = "access_log")]
    mix: Option<PathBuf>,
    /// The GET and HEAD requests of an access log
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
    /// Time limit of a connection or a response
    #[arg(long = "timeout", value_name = "SECONDS", default_value = "30", value_parser = positive)]
    timeout_s: f64,
    /// Load each server for this time first, unmeasured
    #[arg(long = "warm-up", value_name = "SECONDS", value_parser = positive)]
    warm_up_s: Option<f64>,
    /// Runs of each server, in random turns (1, with --against and --table 10)
    #[arg(long, value_name = "N", value_parser = count::<BLOCKS_MAX>)]
    blocks: Option<usize>,
    /// Another server, loaded in turn and compared
    #[arg(long, value_name = "URL", value_parser = Url::parse, conflicts_with = "table")]
    against: Option<Url>,
    /// The seed of the order of turns (the time)
    #[arg(long, value_name = "N", value_parser = |text: &str| whole::<u64>(text, 0..=u64::MAX))]
    seed: Option<u64>,
    /// Process of a server, to report its CPU time and memory; repeat it for the next server
    #[arg(long = "pid", value_name = "PID", value_parser = |text: &str| whole::<u32>(text, 0..=u64::from(u32::MAX)))]
    pids: Vec<u32>,
    /// Trusted CA certificates, PEM (those of browsers)
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,
    /// Accept any certificate
    #[arg(long, short = 'k')]
    insecure: bool,
    /// zlib's level for request heads of SPDY
    #[arg(long, value_name = "N", default_value = "6", value_parser = |text: &str| whole::<u8>(text, 0..=9))]
    spdy_level: u8,
    /// Measure through an emulated link, such as 50ms,20mbit; see `firstbyte via -h`
    #[arg(long, value_name = "SPEC")]
    via: Option<Spec>,
    /// End with status 2 if this holds: "p95>50", "rate<1000", "errors>0", "status.5xx>0"; may be repeated
    #[arg(long = "fail-if", value_name = "CONDITION", value_parser = figures::condition)]
    conditions: Vec<Condition>,
    /// A row for each of HTTP/2, HTTP/1.1 over TLS and plain, of several servers
    #[arg(long)]
    table: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Write the report as a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write all times as a log of HdrHistogram
    #[arg(long, value_name = "FILE")]
    hdr: Option<PathBuf>,
}

fn kinds() -> impl TypedValueParser<Value = Connect> {
    PossibleValuesParser::new(["warm", "cold", "resumed"]).map(|name| match name.as_str() {
        "cold" => Connect::Cold,
        "resumed" => Connect::Resumed,
        _ => Connect::Warm,
    })
}

fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected \"name: value\"")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl Options {
    /// Returns the method of requests without one of their own.
    fn method(&self) -> &str {
        let usual = if self.body.is_some() { "POST" } else { "GET" };
        self.method.as_deref().unwrap_or(usual)
    }

    /// Checks that involve several options.
    ///
    /// # Errors
    /// Options that contradict each other.
    fn check(&self) -> Result<(), String> {
        if self.body.is_some() && !has_body(self.method()) && self.mix.is_none() {
            return Err(format!("{} has no body", self.method()));
        }
        if self.threads > self.connections {
            return Err("there are more threads than connections".to_owned());
        }
        Ok(())
    }
}

/// Runs the verb.
pub(super) fn run(options: &Options) -> ExitCode {
    if let Err(why) = options.check() {
        return fail(NAME, &why);
    }
    match &options.via {
        None => ExitCode::from(run_measurement(options, None)),
        Some(spec) => behind(options, spec),
    }
}

/// Measures through an emulated link; the far end is the network of this machine.
fn behind(options: &Options, spec: &Spec) -> ExitCode {
    let all = match servers::urls(options) {
        Ok(urls) => urls,
        Err(why) => return fail(NAME, &why),
    };
    if let Some(why) = all.iter().find_map(refused) {
        return fail(NAME, &why);
    }
    let wanted = Wanted {
        spec: spec.clone(),
        far: Far::Here,
        ports: all
            .iter()
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
            Ok(inside) => run_measurement(options, Some(&inside)),
            Err(error) => {
                let _ = fail(
                    NAME,
                    &format!("cannot create the link for --via: {}", os_error(&error)),
                );
                FAILED
            }
        }
    });
    match entered {
        Ok(status) => ExitCode::from(status),
        Err(error) => fail(
            NAME,
            &format!("cannot create the link for --via: {}", os_error(&error)),
        ),
    }
}

/// Measures and checks the conditions; returns the exit status.
fn run_measurement(options: &Options, link: Option<&Inside>) -> u8 {
    match measure(options, link) {
        Ok((report, measured)) => verdict(options, &report, &measured),
        Err(why) => {
            let _ = fail(NAME, &why);
            FAILED
        }
    }
}

fn measure(options: &Options, link: Option<&Inside>) -> Result<(Report, Measured), String> {
    let job = servers::job(options)?;
    let signals = interruptions().map_err(|error| os_error(&error))?;
    let mut bar = Bar::new();
    let filter = link.map(|inside| OnTime(&inside.link));
    let filter = filter.as_ref().map(|filter| filter as &dyn SampleFilter);
    let measured = bench(&job, filter, |step| {
        bar.show(step);
        !matches!(signals.receive(), Ok(Some(_)))
    })?;
    bar.clear();
    let mut report = Report::new(&job, &measured, filter);
    if let Some(inside) = link {
        report.conditions.link = conditions(inside);
        report.conditions.device = Some("of the link".to_owned());
        report.conditions.mtu_bytes = Some(inside.link.options().mtu.into());
        // This thread is in the network of the client, which has the device.
        report.conditions.offloads = Offloads::of(inside.link.client_device());
    }
    let captured = link.map_or(Ok(()), |inside| inside.link.captured());
    all([write_reports(options, &report, &measured), captured])?;
    Ok((report, measured))
}

/// Excludes samples during which the link was late.
struct OnTime<'a>(&'a Link);

impl SampleFilter for OnTime<'_> {
    fn excludes(&self, samples: &[(Instant, Instant)]) -> Vec<bool> {
        self.0.are_void(samples, LATE_THRESHOLD)
    }

    fn is_conclusive(&self, samples: u64, excluded: u64) -> bool {
        is_conclusive(samples, excluded)
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

/// Prints the report and writes the requested files.
fn write_reports(options: &Options, report: &Report, measured: &Measured) -> Result<(), String> {
    let text = if options.json {
        json(report)?
    } else if options.table {
        fitted(|| text::table(report))
    } else {
        fitted(|| text::render(report))
    };
    // The report is printed first: a file that fails must not lose it.
    let printed = stdout::write(&text);
    let times = written(&options.hdr, || hdr::log(report, measured));
    let page = written(&options.html, || Ok(html::render(report)));
    all([printed, times, page])
}

/// Returns the exit status: an interruption goes before conditions, and conditions before silent servers.
fn verdict(options: &Options, report: &Report, measured: &Measured) -> u8 {
    if report.interrupted {
        return INTERRUPTED;
    }
    let failures = figures::failures(&options.conditions, report, measured);
    if !failures.is_empty() {
        let _ = fail(NAME, &failures.join("\n"));
        return CONDITION;
    }
    if let Some(silent) = report.servers.iter().find(|server| server.done == 0) {
        let _ = fail(NAME, &format!("{} sent no response", silent.name));
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

/// The verb.
const NAME: &str = "bench";

/// A sample is excluded when the link delivered a packet later than this meanwhile.
const LATE_THRESHOLD: Duration = Duration::from_millis(2);
/// Minimum duration of a run that has a progress bar.
const BAR_AFTER_MS: u128 = 1000;
const WIDTH: usize = 30;

/// More than these are a mistake.
const CONNECTIONS_MAX: usize = 100_000;
/// See [`CONNECTIONS_MAX`].
const STREAMS_MAX: usize = 100_000;
/// See [`CONNECTIONS_MAX`].
const THREADS_MAX: usize = 256;
/// See [`CONNECTIONS_MAX`].
const BLOCKS_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use lab::load::Progress;

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

    fn parsed(line: &str) -> Result<Options, String> {
        crate::cli::values::parsed(line)
    }

    #[test]
    fn options_are_read() {
        let line =
            "http://h/ --connections 5 --rate=500 --connect cold -k --fail-if p99>5 --header A:b";
        let options = parsed(line).expect("it is accepted");
        assert_eq!((options.connections, options.rate), (5, Some(500.0)));
        assert!(options.insecure && options.connect == Connect::Cold);
        assert_eq!(options.fields, [("A".to_owned(), "b".to_owned())]);
        assert_eq!((options.method(), options.check()), ("GET", Ok(())));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, why) in [
            ("--json", "required arguments were not provided"),
            ("http://h --streams 0", "not a number from 1 to 100000"),
            ("http://h --rate=-1", "not a positive number"),
            (
                "http://h --fail-if p99",
                "invalid condition \"p99\", expected one such as \"p99>50\"",
            ),
            ("http://h --table --rate 5", "cannot be used with"),
            ("http://h --spdy-level 10", "10 is not in"),
            ("http://h --seed +5", "+5 is not in"),
            ("http://h --requests +5", "+5 is not in"),
            (
                "http://h --protocol h3",
                "[possible values: auto, h1, h2, spdy]",
            ),
            ("http://h --jsno", "a similar argument exists: '--json'"),
        ] {
            let told = parsed(line).map(|_| ()).expect_err("it is refused");
            assert!(told.contains(why), "{line}: {told}");
        }
        let many = parsed("http://h --threads 11").expect("each is a number");
        let why = "there are more threads than connections";
        assert_eq!(many.check(), Err(why.to_owned()));
    }
}
