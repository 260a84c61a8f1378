//! Evidence and conditions as tables: JSON as people read it.

use std::collections::BTreeSet;

use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::report::escape::bounded;

/// Names and values, a row each.
pub(super) fn table(values: &Map<String, Value>) -> Markup {
    html! {
        table .values {
            thead { tr { th scope="col" { "name" } th scope="col" { "value" } } }
            tbody {
                @for (name, value) in values.iter().take(ROWS_MOST) {
                    tr { th scope="row" { (title(name)) } td { (cell(value)) } }
                }
                @if values.len() > ROWS_MOST { tr { th scope="row" { "and " (values.len() - ROWS_MOST) " more" } td {} } }
            }
        }
    }
}

/// A value: a list of objects as a table of its own, all else as text.
fn cell(value: &Value) -> Markup {
    let objects = value
        .as_array()
        .map(|list| list.iter().filter_map(Value::as_object).collect::<Vec<_>>());
    match objects.filter(|objects| !objects.is_empty()) {
        Some(objects) => list(&objects),
        None => html! { (plain(value)) },
    }
}

/// Objects, a row each, a column for each name that any of them has.
fn list(objects: &[&Map<String, Value>]) -> Markup {
    let shown = &objects[..objects.len().min(ROWS_MOST)];
    let names: BTreeSet<&String> = shown.iter().flat_map(|one| one.keys()).collect();
    let names: Vec<&String> = names.into_iter().take(COLUMNS_MOST).collect();
    html! {
        table {
            thead { tr { @for name in &names { th scope="col" { (title(name)) } } } }
            tbody {
                @for one in shown {
                    tr { @for name in &names { td { @if let Some(value) = one.get(*name) { (plain(value)) } @else { "-" } } } }
                }
            }
        }
        @if objects.len() > shown.len() { p .key { "and " (objects.len() - shown.len()) " more" } }
    }
}

/// A member's name for people: from [`WORDS`], else with spaces for underscores.
pub(super) fn title(name: &str) -> String {
    let known = WORDS.iter().find(|(known, _)| *known == name);
    match known {
        Some((_, words)) => (*words).to_owned(),
        None => bounded(name, NAME_MOST).replace('_', " "),
    }
}

/// Names in JSON that are no English once their underscores are spaces.
const WORDS: &[(&str, &str)] = &[
    ("alpn", "ALPN"),
    ("bytes_over_window_about", "bytes over the window, about"),
    (
        "bytes_that_do_not_gzip",
        "sizes that do not stall, with gzip",
    ),
    (
        "bytes_that_do_not_identity",
        "sizes that do not stall, without gzip",
    ),
    ("bytes_that_stall_gzip", "sizes that stall, with gzip"),
    (
        "bytes_that_stall_identity",
        "sizes that stall, without gzip",
    ),
    (
        "bytes_that_wait_the_whole_hold",
        "sizes that wait for the whole hold",
    ),
    ("computed_ms", "time without the network, ms"),
    ("edge_gzip", "edge, with gzip"),
    ("edge_identity", "edge, without gzip"),
    ("first_bytes", "bytes that leave at once"),
    ("flight_bytes_about", "bytes of the flight, about"),
    ("full_segments", "segments, if all were full"),
    ("first_that_does_not", "smallest size beyond that does not"),
    ("first_that_does_not_sent", "its bytes as sent"),
    ("gso", "GSO"),
    ("gro", "GRO"),
    ("hello_retry_request", "HelloRetryRequest"),
    ("is_pause_seen", "pause after the first window seen"),
    ("last_that_stalls", "largest size that stalls"),
    ("last_that_stalls_sent", "its bytes as sent"),
    ("later_ms", "later by, ms"),
    ("lost_ms", "lost, ms"),
    ("older_versions", "handshakes with an older version"),
    ("other", "other response"),
    ("other_ms", "time of the other response, ms"),
    ("pauses_that_ended_otherwise", "other pauses of the server"),
    ("needs", "round trips needed"),
    ("ratio", "ratio of the times"),
    ("requests_that_stall", "places on the connection that stall"),
    ("retries", "handshakes with a HelloRetryRequest"),
    ("round_trip_ms", "round trip, ms"),
    ("share_of_the_other", "share of the other response's time"),
    ("small_ms", "time of the small response, ms"),
    ("syn_sent_again", "connections with a repeated SYN"),
    ("took_ms", "time, ms"),
    ("took_tried_ms", "time with the value that was tried, ms"),
    ("tried", "value that was tried"),
    ("tso", "TSO"),
];

/// Whether a value can be shown in a line: it is not empty, and no list of lists or objects.
pub(super) fn is_telling(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.iter().any(|one| one.is_object() || one.is_array()),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    }
}

/// A value as text.
pub(super) fn plain(value: &Value) -> String {
    plain_within(value, DEPTH_MOST)
}

fn plain_within(value: &Value, depth: usize) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) => bounded(text, TEXT_MOST).into_owned(),
        Value::Number(number) => match number.as_f64() {
            Some(value) if number.is_f64() => format!("{value:.2}"),
            _ => number.to_string(),
        },
        _ if depth == 0 => "...".to_owned(),
        Value::Array(list) => {
            let mut shown: Vec<String> = list
                .iter()
                .take(LIST_MOST)
                .map(|one| plain_within(one, depth - 1))
                .collect();
            if list.len() > LIST_MOST {
                shown.push(format!("and {} more", list.len() - LIST_MOST));
            }
            // Sentences have commas of their own, and members of objects have semicolons between.
            let between = match list.iter().any(Value::is_object) {
                true => " | ",
                false if list.iter().all(Value::is_string) => "; ",
                false => ", ",
            };
            match shown.is_empty() {
                true => "none".to_owned(),
                false => shown.join(between),
            }
        }
        Value::Object(members) => estimate(members).unwrap_or_else(|| {
            let is_there = |value: &Value| !value.is_null() && value != "";
            let members = members.iter().filter(|(_, value)| is_there(value));
            let shown = members.take(LIST_MOST).map(|(name, value)| {
                format!("{}: {}", title(name), plain_within(value, depth - 1))
            });
            // Figures with an interval have commas of their own.
            shown.collect::<Vec<_>>().join("; ")
        }),
    }
}

/// A figure with its interval: `12.3 (11.9 to 12.7), n=20`; without one `12.3, n=4 is too small for an interval`. Figures
/// below 10, such as ratios and round trips, have two decimals.
fn estimate(members: &Map<String, Value>) -> Option<String> {
    let number = |name: &str| members.get(name).and_then(Value::as_f64);
    let value = number("value")?;
    let decimals = if value.abs() < 10.0 { 2 } else { 1 };
    let has_ends = members.contains_key("low") && members.contains_key("high");
    let between = match (number("low"), number("high")) {
        (Some(low), Some(high)) => format!(" ({low:.decimals$} to {high:.decimals$})"),
        (Some(low), None) => format!(" ({low:.decimals$} or more)"),
        (None, Some(high)) => format!(" ({high:.decimals$} or less)"),
        (None, None) => String::new(),
    };
    let few = match has_ends && between.is_empty() {
        true => " is too small for an interval",
        false => "",
    };
    let n = number("n").map_or_else(String::new, |n| format!(", n={n:.0}{few}"));
    let late = number("late").zip(number("of"));
    let late = late.map_or_else(String::new, |(late, of)| {
        format!(", {late:.0} of {of:.0} late")
    });
    Some(format!("{value:.decimals$}{between}{n}{late}"))
}

/// Rows and columns of a table, members of a list within a line, levels of lists within lists.
const ROWS_MOST: usize = 200;
const COLUMNS_MOST: usize = 20;
const LIST_MOST: usize = 50;
const DEPTH_MOST: usize = 3;
/// Characters of a name and of a text.
const NAME_MOST: usize = 60;
const TEXT_MOST: usize = 1_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_english() {
        let stalls = "bytes_that_do_not_identity";
        assert_eq!(title(stalls), "sizes that do not stall, without gzip");
        assert_eq!(title("data_segments"), "data segments");
        let mut names: Vec<&str> = WORDS.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), WORDS.len(), "each name once");
    }

    #[test]
    fn figures_without_an_interval_have_too_few_samples() {
        let figure = |low: Value, high: Value| {
            plain(&json!({"value": 5.0, "low": low, "high": high, "n": 4}))
        };
        assert_eq!(figure(json!(4.0), json!(6.5)), "5.00 (4.00 to 6.50), n=4");
        assert_eq!(figure(json!(4.0), Value::Null), "5.00 (4.00 or more), n=4");
        assert_eq!(figure(Value::Null, json!(6.5)), "5.00 (6.50 or less), n=4");
        let none = "5.00, n=4 is too small for an interval";
        assert_eq!(figure(Value::Null, Value::Null), none);
        assert_eq!(plain(&json!({"value": 5.0, "n": 4})), "5.00, n=4");
    }

    #[test]
    fn members_are_apart_from_figures_with_commas() {
        let shown = plain(&json!({
            "computed_ms": Value::Null,
            "needs": 1,
            "round_trips": {"value": 2.0, "low": 1.9, "high": 2.1, "n": 9},
        }));
        let expected = "round trips needed: 1; round trips: 2.00 (1.90 to 2.10), n=9";
        assert_eq!(shown, expected);
        let hops = json!([{"from": "a", "to": "b"}, {"from": "b", "to": ""}]);
        assert_eq!(plain(&hops), "from: a; to: b | from: b");
    }
}
