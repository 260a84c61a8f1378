//! `experiment power`: how many users, and how many days, an experiment needs.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use lab::experiment::{Spread, spread};
use lab::map::log::{self, Field};
use lab::stats::sequence::{Method, Question, Summary, Tuning, USERS_MAX, days, users_per_arm};
use serde::Serialize;
use store::VisitMetric;

use crate::cli::map::formats::{Logs, inputs};
use crate::cli::output::{fail, json, status};
use crate::cli::stored::Stored;
use crate::cli::values::{decimal, positive, whole};
use crate::{recorder, stdout};

/// number of users and days that an effect needs
///
/// Prints how many users of each arm find a difference of means: by one look at the end, or by looks at any time. Users differ
/// as an access log has them, or by a coefficient of variation. docs/statistics.md explains the methods.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// The difference to be found, such as 0.6%
    #[arg(long, value_name = "PERCENT", value_parser = |text: &str| percent(text, 0.0, EFFECT_MAX))]
    effect: f64,
    /// Coefficient of variation of users: standard deviation over mean (1)
    #[arg(long, value_name = "X", value_parser = positive, conflicts_with_all = ["logs", "store"])]
    cv: Option<f64>,
    /// Access log with users, plain or compressed; - is standard input; may be repeated
    #[arg(long = "log", value_name = "FILE", conflicts_with = "store")]
    logs: Vec<PathBuf>,
    /// The format of the logs: its text, its name in the configuration, or json
    #[arg(long, value_name = "FORMAT", requires = "logs")]
    format: Option<String>,
    /// The configuration of the server: the access_log that writes a log names its format
    #[arg(short = 'c', value_name = "filename", requires = "logs")]
    conf: Option<PathBuf>,
    /// The variable that names a user in logs
    #[arg(long, value_name = "FIELD", default_value = "$remote_addr", value_parser = Field::of_name)]
    unit: Field,
    /// The variable with the time in logs
    #[arg(long, value_name = "FIELD", default_value = "$request_time")]
    value: String,
    /// Store with users of an experiment: sqlite:PATH or clickhouse:http[s]://HOST[:PORT]/DATABASE
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// This experiment of the store (the only one)
    #[arg(long, value_name = "NAME", requires = "store")]
    experiment: Option<String>,
    /// The metric in the store, such as load (the primary one)
    #[arg(long, value_name = "NAME", requires = "store", value_parser = metric)]
    metric: Option<VisitMetric>,
    /// User of ClickHouse
    #[arg(long, value_name = "NAME", requires = "store")]
    user: Option<String>,
    /// File with the password of this user
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Trusted certificates, PEM, instead of those of the system
    #[arg(long, value_name = "FILE", requires = "store")]
    cacert: Option<PathBuf>,
    /// Correlation of a user's value with that before the experiment, for CUPED (that of the store, or 0.5)
    #[arg(long, value_name = "R", value_parser = correlation)]
    correlation: Option<f64>,
    /// Arms of the experiment, with equal weights
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = |text: &str| whole::<u32>(text, 2..=1000))]
    arms: u32,
    /// Intervals that share the chance of a false alarm: metrics, statistics and compared arms
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = |text: &str| whole::<u32>(text, 1..=100_000))]
    intervals: u32,
    /// Users of the experiment per day, for the days to wait (those of the store)
    #[arg(long, value_name = "N", value_parser = positive)]
    users_per_day: Option<f64>,
    /// Level of all intervals together
    #[arg(long, value_name = "PERCENT", default_value = "95%", value_parser = |text: &str| percent(text, 0.5, 1.0))]
    level: f64,
    /// Chance to find the difference
    #[arg(long, value_name = "PERCENT", default_value = "80%", value_parser = |text: &str| percent(text, 0.0, 1.0))]
    power: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A percentage between two shares, ends excluded.
fn percent(text: &str, from: f64, to: f64) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(decimal);
    let share = number.map(|number| number / 100.0);
    share
        .filter(|share| *share > from && *share < to)
        .ok_or_else(|| {
            format!(
                "not a percentage above {}% and below {}%",
                from * 100.0,
                to * 100.0
            )
        })
}

fn correlation(text: &str) -> Result<f64, String> {
    let number = decimal(text).filter(|number| (0.0..1.0).contains(number));
    number.ok_or_else(|| "not a number from 0 to below 1".to_owned())
}

fn metric(text: &str) -> Result<VisitMetric, String> {
    VisitMetric::from_name(text).ok_or_else(|| "not a metric such as load".to_owned())
}

/// The answer, as `--json` prints it.
#[derive(Debug, PartialEq, Serialize)]
struct Answer {
    effect: f64,
    cv: f64,
    /// Number of users behind the coefficient of variation.
    users_measured: Option<u64>,
    level: f64,
    power: f64,
    arms: u32,
    intervals: u32,
    users_per_day: Option<f64>,
    methods: Vec<Row>,
}

/// One method.
#[derive(Debug, PartialEq, Serialize)]
struct Row {
    method: &'static str,
    correlation: Option<f64>,
    /// `None`: more than can be reached.
    users_per_arm: Option<u64>,
    users: Option<u64>,
    days: Option<f64>,
}

/// Runs the task.
pub(super) fn run(options: &Options) -> ExitCode {
    let answer = match answer(options) {
        Ok(answer) => answer,
        Err(why) => return fail(NAME, &why),
    };
    let text = match options.json {
        true => json(&answer),
        false => Ok(render(&answer)),
    };
    status(NAME, text.and_then(|text| stdout::write(&text)))
}

/// How users differ, and how many there are.
struct Source {
    cv: f64,
    users: Option<u64>,
    correlation: f64,
    users_per_day: Option<f64>,
}

impl Source {
    fn of(options: &Options) -> Result<Self, String> {
        let own = Self {
            cv: options.cv.unwrap_or(USUAL_CV),
            users: None,
            correlation: options.correlation.unwrap_or(USUAL_CORRELATION),
            users_per_day: options.users_per_day,
        };
        if let Some(url) = &options.store {
            let found = of_store(options, url)?;
            return Ok(Self {
                cv: measured(found.users, found.cv.unwrap_or_default())?,
                users: Some(found.users),
                correlation: options.correlation.or(found.correlation).unwrap_or(0.0),
                users_per_day: options.users_per_day.or(found.users_per_day),
            });
        }
        if options.logs.is_empty() {
            return Ok(own);
        }
        let values = of_logs(options)?;
        let cv = values.variance().sqrt() / values.mean();
        Ok(Self {
            cv: measured(values.n(), cv)?,
            users: Some(values.n()),
            ..own
        })
    }
}

/// A coefficient of variation of enough users.
fn measured(users: u64, cv: f64) -> Result<f64, String> {
    match users >= LEAST_USERS && cv.is_finite() && cv > 0.0 {
        true => Ok(cv),
        false => Err(format!(
            "{users} users with values: at least {LEAST_USERS} that differ are needed"
        )),
    }
}

fn answer(options: &Options) -> Result<Answer, String> {
    let source = Source::of(options)?;
    let row = |name, method: &Method, correlation: Option<f64>| {
        let question = Question {
            effect: options.effect,
            cv: source.cv,
            correlation: correlation.unwrap_or_default(),
            alpha: (1.0 - options.level) / f64::from(options.intervals),
            power: options.power,
        };
        let users = users_per_arm(&question, method);
        let wait = |(users, per_day)| days(users, options.arms, per_day).ceil();
        Row {
            method: name,
            correlation,
            users_per_arm: users,
            users: users.map(|users| users * u64::from(options.arms)),
            days: users.zip(source.users_per_day).map(wait),
        }
    };
    let always = Method::Sequence(Tuning::default());
    let mut methods = vec![
        row(FIXED, &Method::FixedHorizon, None),
        row(SEQUENCE, &always, None),
    ];
    if source.correlation > 0.0 {
        let before = Some(source.correlation);
        methods.push(row(FIXED, &Method::FixedHorizon, before));
        methods.push(row(SEQUENCE, &always, before));
    }
    Ok(Answer {
        effect: options.effect,
        cv: source.cv,
        users_measured: source.users,
        level: options.level,
        power: options.power,
        arms: options.arms,
        intervals: options.intervals,
        users_per_day: source.users_per_day,
        methods,
    })
}

/// The spread of the users of an experiment in a store.
fn of_store(options: &Options, url: &str) -> Result<Spread, String> {
    let stored = Stored {
        url,
        user: options.user.as_deref(),
        password_file: options.password_file.as_deref(),
        cacert: options.cacert.as_deref(),
    };
    let engine = stored.engine()?;
    let store = recorder::open_to_read(&engine)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now.map_or(0, |since| since.as_secs());
    let name = options.experiment.as_deref();
    let found = spread(store.as_ref(), name, options.metric, now_s);
    found.map_err(|error| match name {
        None => format!("{engine}: {error}; --experiment names one"),
        Some(_) => format!("{engine}: {error}"),
    })
}

/// The values of the users of logs.
fn of_logs(options: &Options) -> Result<Summary, String> {
    let field = options.unit.clone().with_value(&options.value);
    let field = field.map_err(|why| format!("--value: {why}"))?;
    let inputs = inputs(&Logs {
        verb: NAME,
        paths: &options.logs,
        conf: options.conf.as_deref(),
        format: options.format.as_deref(),
        client: &field,
    })?;
    let found = log::users(&inputs, &field)?;
    if found.skipped > 0 {
        let (skipped, lines) = (found.skipped, found.lines);
        let warning = format!("warning: {skipped} of {lines} lines have no user or no value");
        let _ = fail(NAME, &warning);
    }
    Ok(found.values)
}

/// The answer for people, in 60 columns.
fn render(answer: &Answer) -> String {
    let mut text = format!(
        "To find a difference of {} % with a chance of {} %, at a\nlevel of {} %, coefficient of variation {:.2}",
        figure(answer.effect * 100.0),
        figure(answer.power * 100.0),
        figure(answer.level * 100.0),
        answer.cv
    );
    if let Some(users) = answer.users_measured {
        text.push_str(&format!("\n(of {users} users)"));
    }
    let has_days = answer.methods.iter().any(|row| row.days.is_some());
    let days = if has_days { "   days" } else { "" };
    text.push_str(&format!(
        ":\n\n{:<28} {:>11} {:>10}{days}\n",
        "", "users/arm", "users"
    ));
    for row in &answer.methods {
        let name = match (row.method, row.correlation) {
            (FIXED, None) => "one look at the end".to_owned(),
            (FIXED, Some(r)) => format!("one look, CUPED {}", rounded(r)),
            (_, None) => "looks at any time".to_owned(),
            (_, Some(r)) => format!("looks at any time, CUPED {}", rounded(r)),
        };
        let number =
            |users: Option<u64>| users.map_or_else(|| "too many".to_owned(), |n| n.to_string());
        let (arm, all) = (number(row.users_per_arm), number(row.users));
        text.push_str(&format!("{name:<28} {arm:>11} {all:>10}"));
        if has_days {
            let days = row
                .days
                .map_or_else(String::new, |days| format!("{days:.0}"));
            text.push_str(&format!(" {days:>6}"));
        }
        text.push('\n');
    }
    text
}

/// A number of two digits without zeros at its end.
fn rounded(number: f64) -> String {
    figure((number * 100.0).round() / 100.0)
}

/// A number without zeros at its end.
fn figure(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The verb and its task, for messages.
const NAME: &str = "experiment power";
const FIXED: &str = "fixed_horizon";
const SEQUENCE: &str = "sequence";
/// The coefficient of variation without another one: that of exponential times.
const USUAL_CV: f64 = 1.0;
/// The correlation without another one, for an example.
const USUAL_CORRELATION: f64 = 0.5;
/// Effects above 1,000 % are a mistake.
const EFFECT_MAX: f64 = 10.0;
/// Users of logs from which on their spread is known well enough.
const LEAST_USERS: u64 = 30;
const _: () = assert!(USERS_MAX < u64::MAX / 1000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::values::parsed;

    fn asked(line: &str) -> Result<Answer, String> {
        answer(&parsed(line)?)
    }

    #[test]
    fn users_are_those_of_the_statistics() {
        let found =
            asked("--effect 0.6% --users-per-day 10000 --correlation 0.7").expect("it is accepted");
        let users: Vec<u64> = found
            .methods
            .iter()
            .filter_map(|row| row.users_per_arm)
            .collect();
        let [fixed, sequence, fixed_cuped, sequence_cuped] = users[..] else {
            panic!("{found:?}");
        };
        assert!((435_000..450_000).contains(&fixed), "{found:?}");
        assert!((700_000..=800_000).contains(&sequence), "{found:?}");
        assert!((220_000..230_000).contains(&fixed_cuped), "{found:?}");
        assert!((360_000..=450_000).contains(&sequence_cuped), "{found:?}");
        assert_eq!(found.methods[0].users, Some(2 * fixed));
        assert_eq!(
            found.methods[0].days,
            Some((2.0 * fixed as f64 / 10_000.0).ceil())
        );
        let text = render(&found);
        assert!(
            text.contains(&fixed.to_string()) && text.contains("0.6 %"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.len() <= 60), "{text}");
        let more =
            asked("--effect 0.6% --intervals 12 --arms 3 --correlation 0").expect("accepted");
        assert_eq!(more.methods.len(), 2);
        assert!(more.methods[0].users_per_arm > Some(fixed), "{more:?}");
    }

    #[test]
    fn large_numbers_stay_apart() {
        let line = "--effect 0.002% --users-per-day 10 --arms 1000 --correlation 0.55";
        let found = asked(line).expect("it is accepted");
        let text = render(&found);
        let mut lines = text.lines().rev();
        for row in found.methods.iter().rev() {
            let numbers =
                [row.users_per_arm, row.users].map(|n| n.expect("it is reached").to_string());
            let days = row
                .days
                .map(|days| format!("{days:.0}"))
                .expect("the rate is known");
            let line = lines.next().expect("a line of the method");
            let mut words = line.split_whitespace().rev();
            assert_eq!(words.next(), Some(&*days), "{text}");
            assert_eq!(words.next(), Some(&*numbers[1]), "{text}");
            assert_eq!(words.next(), Some(&*numbers[0]), "{text}");
            assert!(numbers[1].len() > 10 && days.len() > 6, "{text}");
        }
    }

    #[test]
    fn wrong_options_are_refused() {
        for (line, why) in [
            ("", "--effect"),
            ("--effect 0.6", "not a percentage above 0% and below 1000%"),
            ("--effect 0%", "not a percentage"),
            ("--effect -1%", "unexpected argument"),
            ("--effect 1000%", "not a percentage"),
            ("--effect 1% --cv 0", "not a positive number"),
            ("--effect 1% --cv 1 --log a", "cannot be used with"),
            ("--effect 1% --cv 1 --store sqlite:a", "cannot be used with"),
            (
                "--effect 1% --log b --store sqlite:a",
                "cannot be used with",
            ),
            ("--effect 1% --experiment a", "--store <URL>"),
            ("--effect 1% --store a:b", "a store is"),
            ("--effect 1% --store sqlite:a --metric x", "not a metric"),
            ("--effect 1% --store sqlite:/none/at/all", "/none/at/all"),
            ("--effect 1% --format combined", "--log <FILE>"),
            (
                "--effect 1% --correlation 1",
                "not a number from 0 to below 1",
            ),
            ("--effect 1% --arms 1", "1 is not in 2..=1000"),
            ("--effect 1% --arms 1001", "1001 is not in"),
            ("--effect 1% --intervals 0", "0 is not in"),
            ("--effect 1% --level 50%", "above 50% and below 100%"),
            ("--effect 1% --level 100%", "above 50% and below 100%"),
            ("--effect 1% --power 100%", "above 0% and below 100%"),
            ("--effect 1% --users-per-day 0", "not a positive number"),
            ("--effect 1% --unit a-b", "not a variable"),
        ] {
            let error = asked(line).expect_err(line);
            assert!(error.contains(why), "{line}: {error}");
        }
        for line in [
            "--effect 999% --arms 2",
            "--effect 0.6% --arms 1000 --correlation 0.999 --level 51%",
        ] {
            assert!(asked(line).is_ok(), "{line}");
        }
    }
}
