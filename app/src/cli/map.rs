//! `map`: a map of round-trip times by country, from access logs or from the store of a server.
//!
//! Logs are read and maps drawn by the crate `lab`, addresses are looked up by `geoip`; here are the command line, the formats
//! of a configuration, progress, files and the exit status.
//!
//! Source: of our own; docs/map.md.

mod access_logs;
pub(super) mod formats;
mod progress;
mod recorded;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use geoip::{Places, PlacesError};
use lab::map::log::{Event, Field, Job, Report, names, read, warnings};
use lab::map::{self, MIN_SAMPLES, RttMap};

use super::files::{write, written};
use super::interruption::interruptions;
use super::output::{all, fail};
use super::status::INTERRUPTED;
use super::stored::Stored;
use super::values::{count, whole};
use crate::stdout;
use crate::terminal::fitted;
use formats::STDOUT;
use progress::Bar;
use recorded::{Mapped, Recorded};
use sys::os_error;

/// draw a world map of round-trip times from access logs or a store
///
/// Reads access logs of nginx or firstbyte, compressed or not, or the store that rtt_map fills, and reports the round-trip times
/// of the clients by country. Logs without these times give the number of requests. docs/map.md explains the figures and the formats.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("Formats by name: {}", names()))]
pub(super) struct Options {
    /// Access logs, plain or compressed with gzip or zstd; - is standard input
    #[arg(value_name = "LOG", required_unless_present = "store")]
    logs: Vec<PathBuf>,
    /// Read a store, sqlite:PATH or clickhouse:http[s]://HOST[:PORT]/DATABASE, instead of logs
    #[arg(long, value_name = "URL", conflicts_with_all = OF_LOGS)]
    store: Option<String>,
    /// User of ClickHouse
    #[arg(long, value_name = "NAME", conflicts_with = "logs")]
    user: Option<String>,
    /// File with the password of this user
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Trusted certificates, PEM, instead of those of the system
    #[arg(long, value_name = "FILE", conflicts_with = "logs")]
    cacert: Option<PathBuf>,
    /// Connections of this many days until now
    #[arg(long, value_name = "N", default_value_t = DAYS, conflicts_with = "logs", value_parser = |text: &str| whole::<u64>(text, 1..=DAYS_MAX))]
    days: u64,
    /// Only connections of this protocol, such as HTTP/2.0
    #[arg(long, value_name = "NAME", conflicts_with = "logs")]
    protocol: Option<String>,
    /// Only connections of this server
    #[arg(long, value_name = "NAME", conflicts_with = "logs")]
    server: Option<String>,
    /// The format of the logs: its text, its name in the configuration, or one of the names below (detected)
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// The configuration of the server: the access_log that writes a log names its format
    #[arg(short = 'c', value_name = "filename")]
    conf: Option<PathBuf>,
    /// The variable with the client's address; of a list, the last public address counts
    #[arg(long, value_name = "FIELD", default_value = "$remote_addr", value_parser = Field::of_name)]
    client: Field,
    /// Wait for more lines, also of rotated logs, and report every 5 seconds, until a signal
    #[arg(long)]
    follow: bool,
    /// Threads that parse (one for each processor)
    #[arg(long, value_name = "N", value_parser = count::<THREADS_MAX>)]
    threads: Option<usize>,
    /// A database of countries: MMDB, or a list of Tor (those of Debian's tor-geoipdb); may be repeated
    #[arg(long = "geoip", value_name = "FILE")]
    databases: Vec<String>,
    /// Least number of samples to color a country
    #[arg(long, value_name = "N", default_value_t = MIN_SAMPLES, value_parser = |text: &str| whole::<u64>(text, 1..=u64::MAX))]
    min_samples: u64,
    /// Print JSON, or write it to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = STDOUT)]
    json: Option<PathBuf>,
    /// Write the map and its table as a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the map as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the figures as a table
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

impl Options {
    /// Threads that parse.
    fn threads(&self) -> usize {
        let available = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(|| available().min(THREADS_MAX))
    }

    /// Whether an output is a file.
    fn writes_files(&self) -> bool {
        let json = self
            .json
            .as_deref()
            .filter(|file| *file != Path::new(STDOUT));
        let files = [&self.html, &self.svg, &self.csv];
        json.is_some() || files.iter().any(|file| file.is_some())
    }

    /// Options of the outputs.
    fn of_map(&self, warnings: Vec<String>, period: Option<(i64, i64)>) -> map::Options {
        map::Options {
            source: self.source(),
            min_samples: self.min_samples,
            warnings,
            period,
            ..map::Options::default()
        }
    }

    /// Returns the names of the logs, or of the store.
    fn source(&self) -> String {
        if let Some(store) = &self.store {
            return store.clone();
        }
        let name = |path: &PathBuf| match path == Path::new(STDOUT) {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        self.logs.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}

/// Runs the verb.
pub(super) fn run(options: &Options) -> ExitCode {
    if let Some(url) = &options.store {
        return super::output::status(NAME, draw_recorded(options, url));
    }
    let report = match measure(options) {
        Ok(report) => report,
        Err(why) => return fail(NAME, &why),
    };
    for (log, format) in &report.detected {
        let _ = fail(NAME, &format!("{log}: the format \"{format}\" is assumed"));
    }
    let warnings = warnings(&report);
    for warning in &warnings {
        let _ = fail(NAME, &format!("warning: {warning}"));
    }
    if let Err(why) = write_outputs(options, &report) {
        return fail(NAME, &why);
    }
    if report.interrupted {
        return ExitCode::from(INTERRUPTED);
    }
    if report.counts.usable() > 0 {
        return ExitCode::SUCCESS;
    }
    let failed = fail(NAME, &format!("no line can be used: {}", options.source()));
    // A followed log may still be empty.
    match options.follow {
        true => ExitCode::SUCCESS,
        false => failed,
    }
}

/// Draws the map of a store.
fn draw_recorded(options: &Options, url: &str) -> Result<(), String> {
    let recorded = Recorded {
        store: Stored {
            url,
            user: options.user.as_deref(),
            password_file: options.password_file.as_deref(),
            cacert: options.cacert.as_deref(),
        },
        days: options.days,
        protocol: options.protocol.as_deref(),
        server: options.server.as_deref(),
    };
    let Mapped { map, period } = recorded.read()?;
    draw(options, &map, &options.of_map(Vec::new(), Some(period)))
}

/// Reads the logs.
fn measure(options: &Options) -> Result<Report, String> {
    let inputs = formats::inputs(&formats::Logs {
        verb: NAME,
        paths: &options.logs,
        conf: options.conf.as_deref(),
        format: options.format.as_deref(),
        client: &options.client,
    })?;
    let places = places(&options.databases)?;
    let signals = interruptions().map_err(|error| os_error(&error))?;
    let mut bar = Bar::new(options.follow);
    let mut failure = None;
    let job = Job {
        inputs,
        client: options.client.clone(),
        threads: options.threads(),
        follows: options.follow,
        countries: &|ip| places.country(ip),
    };
    let mut goes_on = |event: Event<'_>| {
        match event {
            Event::Progress(progress) => bar.show(progress),
            Event::Refresh(report) => failure = write_outputs(options, report).err(),
        }
        let is_read = options.writes_files() || !stdout::is_closed();
        failure.is_none() && is_read && !matches!(signals.receive(), Ok(Some(_)))
    };
    let report = read(&job, &mut goes_on);
    bar.clear();
    failure.map_or(report, Err)
}

/// Opens the databases of countries.
fn places(files: &[String]) -> Result<Places, String> {
    let opened = Places::open(files, |file| std::fs::read(file));
    opened.map_err(|error| match error {
        PlacesError::NotInstalled => format!(
            "no country database: install {package} (apt-get install {package}) or set a file with --geoip",
            package = geoip::DEBIAN_PACKAGE
        ),
        error => error.to_string(),
    })
}

/// Shows the map of a report.
fn write_outputs(options: &Options, report: &Report) -> Result<(), String> {
    draw(
        options,
        &report.map,
        &options.of_map(warnings(report), None),
    )
}

/// Prints a map and writes the requested files.
fn draw(options: &Options, figures: &RttMap, of_map: &map::Options) -> Result<(), String> {
    let is_printed = options.json.as_deref() == Some(Path::new(STDOUT));
    let text = match is_printed {
        true => map::json(figures, of_map),
        false => fitted(|| map::text(figures, of_map)),
    };
    let is_screen = options.follow && stdout::is_terminal();
    let printed = stdout::write(&match is_screen {
        true => CLEARED.to_owned() + &text,
        false => text,
    });
    let json = match &options.json {
        Some(file) if !is_printed => write(file, &map::json(figures, of_map)),
        _ => Ok(()),
    };
    let page = written(&options.html, || Ok(map::html(figures, of_map)));
    let picture = written(&options.svg, || Ok(map::svg(figures, of_map)));
    let table = written(&options.csv, || Ok(map::csv(figures, of_map)));
    all([printed, json, page, picture, table])
}

/// The verb.
const NAME: &str = "map";
/// Options that are about logs.
const OF_LOGS: [&str; 7] = [
    "logs",
    "format",
    "conf",
    "client",
    "follow",
    "threads",
    "databases",
];
/// Days of a store's map by default, and at most.
const DAYS: u64 = 30;
const DAYS_MAX: u64 = 3660;
/// More are a mistake.
const THREADS_MAX: usize = 256;
/// Clears a terminal.
const CLEARED: &str = "\x1b[H\x1b[2J";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::values::parsed;

    #[test]
    fn options_are_read() {
        let line = "a.log - --client ${http_x_real_ip} --threads 256 --json --min-samples 1";
        let options: Options = parsed(line).expect("it is accepted");
        assert_eq!(options.logs.len(), 2);
        assert_eq!(options.client.variable(), "$http_x_real_ip");
        assert_eq!((options.threads(), options.min_samples), (256, 1));
        assert_eq!(options.json.as_deref(), Some(Path::new("-")));
        assert_eq!(options.source(), "a.log, standard input");
        let options: Options = parsed("--json=f a.log --geoip x --geoip y").expect("accepted");
        assert_eq!(options.json.as_deref(), Some(Path::new("f")));
        assert_eq!((options.databases.len(), options.logs.len()), (2, 1));
        assert!((1..=THREADS_MAX).contains(&options.threads()));
    }

    #[test]
    fn wrong_options_are_refused() {
        for (line, why) in [
            ("", "LOG"),
            ("a --threads 0", "not a number from 1 to 256"),
            ("a --threads 257", "not a number from 1 to 256"),
            ("a --min-samples 0", "0 is not in"),
            ("a --store sqlite:b", "cannot be used with"),
            ("--store sqlite:b --follow", "cannot be used with"),
            ("--store sqlite:b --days 0", "0 is not in"),
            ("--store sqlite:b --days 3661", "3661 is not in"),
            ("a --days 3", "cannot be used with"),
            ("a --server b", "cannot be used with"),
            ("a --client a-b", "not a variable"),
            ("a --jsno", "a similar argument exists: '--json'"),
        ] {
            let error = parsed::<Options>(line).expect_err(line);
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn stores_have_a_period() {
        let options: Options = parsed("--store sqlite:b").expect("it is accepted");
        assert_eq!(
            (options.days, options.source()),
            (30, "sqlite:b".to_owned())
        );
        for days in [1, 3660] {
            let line = format!("--store sqlite:b --days {days} --protocol HTTP/2.0 --server a");
            let options: Options = parsed(&line).expect("it is accepted");
            assert_eq!(options.days, days);
        }
    }

    #[test]
    fn wrong_databases_are_named() {
        let refused = |file: &str| places(&[file.to_owned()]).map(drop);
        let why = refused("/none/at/all").expect_err("it does not exist");
        assert!(why.contains("/none/at/all"), "{why}");
        let why = refused("/dev/null").expect_err("it is empty");
        assert_eq!(why, "\"/dev/null\": the file is empty");
    }
}
