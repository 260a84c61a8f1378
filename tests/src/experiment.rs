//! Reports of experiments, by the command.

use std::path::Path;

use serde_json::Value;

use crate::command::run;
use crate::wait::{DEADLINE, holds_within};

/// Returns the report of the experiment `name` in a store of SQLite, once it has the values of `users` users.
///
/// # Panics
/// If it never has.
#[track_caller]
#[must_use]
pub fn report(store: &Path, name: &str, users: usize) -> Value {
    let store = format!("sqlite:{}", store.display());
    let mut report = Value::Null;
    let is_whole = holds_within(DEADLINE, || {
        let words = ["experiment", "report", name, "--store", &store];
        let output = run(words.into_iter().chain(["--json", "-", "--at", LATER]));
        report = serde_json::from_str(&output.stdout).unwrap_or_default();
        let arms = report["metrics"][0]["values"].as_array();
        let measured = arms.into_iter().flatten();
        let measured = measured.filter_map(|arm| arm["users"].as_u64());
        measured.sum::<u64>() == users as u64
    });
    assert!(is_whole, "the report never had {users} users: {report}");
    report
}

/// Returns the comparison of the second arm in a statistic of the first metric.
///
/// # Panics
/// If the report has none.
#[must_use]
pub fn comparison<'a>(report: &'a Value, statistic: &str) -> &'a Value {
    let all = report["metrics"][0]["comparisons"].as_array();
    let mut all = all.into_iter().flatten();
    let found = all.find(|one| one["statistic"] == statistic);
    found.unwrap_or_else(|| panic!("no {statistic} in {report}"))
}

/// Returns whether the interval of a statistic holds a change, percent. An end that the data do not have is `null`.
#[must_use]
pub fn holds(report: &Value, statistic: &str, percent: f64) -> bool {
    let one = comparison(report, statistic);
    let low = one["low_percent"].as_f64().unwrap_or(f64::NEG_INFINITY);
    let high = one["high_percent"].as_f64().unwrap_or(f64::INFINITY);
    low <= percent && percent <= high
}

/// Time of reports. The command leaves out the last five seconds unless there is one.
const LATER: &str = "2037-01-01";
