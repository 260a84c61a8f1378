//! `experiment report`: the verdict of an experiment, with its figures.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use lab::experiment::{self, Report, analysis, parse_time};
use lab::web::experiment_page;

use crate::cli::files::{write, written};
use crate::cli::output::{all, status};
use crate::cli::stored::Stored;
use crate::cli::values::decimal;
use crate::terminal::fitted;
use crate::{recorder, stdout};

/// verdict and figures of an experiment
///
/// Reads the visits of an experiment from the store of its servers, and prints the verdict: what changed, by how much, how sure that
/// is, and how long to wait. All intervals hold together at every look, so the report may be read daily. docs/experiment-report.md
/// explains the figures.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Name of the experiment
    #[arg(value_name = "NAME")]
    name: String,
    /// The store: sqlite:PATH or clickhouse:http[s]://HOST[:PORT]/DATABASE
    #[arg(long, value_name = "URL")]
    store: String,
    /// User of ClickHouse
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// File with the password of this user
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Trusted certificates, PEM, instead of those of the system
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Visits before this time (UTC, such as 2026-01-31T08:00) instead of now
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<u64>,
    /// All arms have the same effect: test the experiment itself (A/A)
    #[arg(long)]
    aa: bool,
    /// Change for which the time to wait is computed
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    effect: f64,
    /// Write the report as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report as a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs the task.
pub(super) fn run(options: &Options) -> ExitCode {
    let reported = report(options).and_then(|report| print(options, &report));
    status(NAME, reported)
}

fn report(options: &Options) -> Result<Report, String> {
    let stored = Stored {
        url: &options.store,
        user: options.user.as_deref(),
        password_file: options.password_file.as_deref(),
        cacert: options.cacert.as_deref(),
    };
    let engine = stored.engine()?;
    let store = recorder::open_to_read(&engine)?;
    let at_s = options.at.unwrap_or_else(|| now_s().saturating_sub(LAG_S));
    let wanted = experiment::Options {
        is_a_a: options.aa,
        effect: Some(options.effect),
        ..experiment::Options::default()
    };
    let found = analysis(store.as_ref(), &options.name, at_s, &wanted);
    found.map_err(|error| format!("{engine}: {error}"))
}

fn print(options: &Options, report: &Report) -> Result<(), String> {
    let is_printed = options.json.as_deref() == Some(Path::new(STDOUT));
    let text = match is_printed {
        true => report.json()?,
        false => fitted(|| experiment::text(report)),
    };
    let json = match &options.json {
        Some(file) if !is_printed => report.json().and_then(|text| write(file, &text)),
        _ => Ok(()),
    };
    let page = written(&options.html, || Ok(experiment_page(report)));
    all([stdout::write(&text), json, page])
}

fn time(text: &str) -> Result<u64, String> {
    parse_time(text).ok_or_else(|| "it is no time of UTC such as 2026-01-31T08:00".to_owned())
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(decimal);
    let number = number.filter(|percent| *percent > 0.0 && *percent <= EFFECT_MAX);
    number.ok_or_else(|| format!("it is no percentage above 0% and up to {EFFECT_MAX}%"))
}

fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// The verb.
const NAME: &str = "experiment";
/// Standard output as a file.
const STDOUT: &str = "-";
/// Time that recorded visits take to be stored, seconds.
const LAG_S: u64 = 5;
/// Largest change, percent.
const EFFECT_MAX: f64 = 1000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::values::parsed;

    #[test]
    fn options_are_read() {
        let options: Options = parsed("a --store sqlite:b").expect("it is accepted");
        assert_eq!((options.effect, options.at, options.aa), (1.0, None, false));
        let line = "a --store sqlite:b --at 2026-01-01 --aa --effect 0.5% --json - --html x";
        let options: Options = parsed(line).expect("it is accepted");
        assert_eq!((options.effect, options.at), (0.5, Some(1_767_225_600)));
    }

    #[test]
    fn wrong_options_are_refused() {
        for (line, why) in [
            ("--store sqlite:b", "NAME"),
            ("a", "--store"),
            ("a --store sqlite:b --at tomorrow", "no time of UTC"),
            ("a --store sqlite:b --effect 0%", "no percentage"),
            ("a --store sqlite:b --effect 1", "no percentage"),
            ("a --store sqlite:b --effect 1000.1%", "no percentage"),
            ("a --store sqlite:b --password-file c", "--user"),
        ] {
            let error = parsed::<Options>(line).expect_err(line);
            assert!(error.contains(why), "{line}: {error}");
        }
        assert!(parsed::<Options>("a --store sqlite:b --effect 1000%").is_ok());
    }
}
