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
    /// Visits before this time (UTC, such as 2026-01-31T08:00) instead of now; not later than now
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
    let at_s = end(options.at, now_s());
    let wanted = experiment::Options {
        is_a_a: options.aa,
        effect: Some(options.effect),
        ..experiment::Options::default()
    };
    let found = analysis(store.as_ref(), &options.name, at_s, &wanted);
    found.map_err(|error| format!("{engine}: {error}"))
}

/// Returns the time of a report. A window in progress is not over at a time in the future: users in it may have more visits.
fn end(at_s: Option<u64>, now_s: u64) -> u64 {
    match at_s {
        None => now_s.saturating_sub(LAG_S),
        Some(at_s) => at_s.min(now_s),
    }
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
    parse_time(text).ok_or_else(|| "not a UTC time such as 2026-01-31T08:00".to_owned())
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(decimal);
    let number = number.filter(|percent| *percent > 0.0 && *percent <= EFFECT_MAX);
    number.ok_or_else(|| format!("not a percentage above 0% and up to {EFFECT_MAX}%"))
}

fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// The verb.
const NAME: &str = "experiment";
/// Standard output as a file.
const STDOUT: &str = "-";
/// Time until recorded visits are stored, seconds.
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
            ("a --store sqlite:b --at tomorrow", "not a UTC time"),
            ("a --store sqlite:b --effect 0%", "not a percentage"),
            ("a --store sqlite:b --effect 1", "not a percentage"),
            ("a --store sqlite:b --effect 1000.1%", "not a percentage"),
            ("a --store sqlite:b --password-file c", "--user"),
        ] {
            let error = parsed::<Options>(line).expect_err(line);
            assert!(error.contains(why), "{line}: {error}");
        }
        assert!(parsed::<Options>("a --store sqlite:b --effect 1000%").is_ok());
    }

    #[test]
    fn a_report_ends_now_at_the_latest() {
        for (at, wanted) in [
            (None, 95),
            (Some(0), 0),
            (Some(99), 99),
            (Some(100), 100),
            (Some(101), 100),
            (Some(u64::MAX), 100),
        ] {
            assert_eq!(end(at, 100), wanted, "{at:?}");
        }
        assert_eq!(end(None, 3), 0);
    }

    /// Makes a store with an experiment of 400 users, of which the arm `b` is 20 % slower.
    fn stored(name: &str) -> (PathBuf, PathBuf) {
        let dir =
            std::env::temp_dir().join(format!("firstbyte-report-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let path = dir.join("lab.db");
        let settings = store::ExperimentSettings {
            name: "fast".to_owned(),
            arms: vec![("a".to_owned(), 1), ("b".to_owned(), 1)],
            share: 10_000,
            metrics: vec![store::VisitMetric::Load],
            ..store::ExperimentSettings::default()
        };
        let visit = |n: u64| {
            let factor = if n.is_multiple_of(2) { 100 } else { 120 };
            let mut values = [None; store::VISIT_METRICS];
            values[store::VisitMetric::Load as usize] =
                Some((10_000 + n as u32 % 7 * 100) * factor);
            store::Visit {
                at_ms: (START_S + n) * 1000,
                user: n,
                view: n,
                experiment: "fast".to_owned(),
                arm: if n.is_multiple_of(2) { "a" } else { "b" }.to_owned(),
                values,
                ..store::Visit::default()
            }
        };
        let rows = store::ExperimentRows {
            settings: vec![(START_S, settings)],
            visits: (0..400).map(visit).collect(),
            ..store::ExperimentRows::default()
        };
        let mut store = store::Sqlite::open(&path).expect("a new store").store;
        store.commit_all(&[], &[], &rows).expect("it has room");
        (dir, path)
    }

    const START_S: u64 = 1_767_225_600;

    fn options(name: &str, path: &Path) -> Options {
        let line = format!("{name} --store sqlite:{} --at 2026-01-02", path.display());
        parsed(&line).expect("it is accepted")
    }

    #[test]
    fn a_store_is_reported_in_all_forms() {
        let (dir, path) = stored("forms");
        let mut options = options("fast", &path);
        (options.json, options.html) = (Some(dir.join("r.json")), Some(dir.join("r.html")));
        let found = report(&options).expect("it can be read");
        assert_eq!(found.users(), 400);
        let first = &found.verdict.sentences[0];
        assert!(
            first.starts_with("b: page load is 20.0 % slower than in a on average"),
            "{first}"
        );
        print(&options, &found).expect("the files are written");
        let read = |name: &str| std::fs::read_to_string(dir.join(name)).expect("a file");
        let json: serde_json::Value = serde_json::from_str(&read("r.json")).expect("it is JSON");
        assert_eq!(json["verdict"]["outcome"], "difference");
        assert!(read("r.html").contains("<h1>Experiment fast</h1>"));
        std::fs::remove_dir_all(&dir).expect("it is ours");
    }

    #[test]
    fn other_names_and_missing_stores_are_errors() {
        let (dir, path) = stored("errors");
        let why = report(&options("slow", &path)).expect_err("no such experiment");
        assert!(
            why.ends_with("the store has no such experiment, only fast"),
            "{why}"
        );
        let missing = report(&options("fast", &dir.join("none.db"))).expect_err("no such file");
        assert!(missing.contains("none.db"), "{missing}");
        let wrong: Options = parsed("fast --store other:x").expect("it is accepted");
        let why = report(&wrong).expect_err("no such engine");
        assert!(why.contains("a store is \"sqlite:path\""), "{why}");
        std::fs::remove_dir_all(&dir).expect("it is ours");
    }
}
