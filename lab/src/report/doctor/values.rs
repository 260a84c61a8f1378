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

/// A member's name for people.
pub(super) fn title(name: &str) -> String {
    bounded(name, NAME_MOST).replace('_', " ")
}

/// Whether a value says something in a line: there is one, and it is no table.
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
            // Sentences have commas of their own.
            let between = if list.iter().all(Value::is_string) {
                "; "
            } else {
                ", "
            };
            match shown.is_empty() {
                true => "none".to_owned(),
                false => shown.join(between),
            }
        }
        Value::Object(members) => estimate(members).unwrap_or_else(|| {
            let members = members.iter().take(LIST_MOST);
            let shown = members
                .map(|(name, value)| format!("{} {}", title(name), plain_within(value, depth - 1)));
            shown.collect::<Vec<_>>().join(", ")
        }),
    }
}

/// A figure with its interval: `12.3 (11.9 to 12.7), n=20`.
fn estimate(members: &Map<String, Value>) -> Option<String> {
    let number = |name: &str| members.get(name).and_then(Value::as_f64);
    let value = number("value")?;
    let between = number("low").zip(number("high"));
    let between = between.map_or_else(String::new, |(low, high)| {
        format!(" ({low:.1} to {high:.1})")
    });
    let n = number("n").map_or_else(String::new, |n| format!(", n={n:.0}"));
    let late = number("late").zip(number("of"));
    let late = late.map_or_else(String::new, |(late, of)| {
        format!(", {late:.0} of {of:.0} late")
    });
    Some(format!("{value:.1}{between}{n}{late}"))
}

/// Rows and columns of a table, members of a list within a line, levels of lists within lists.
const ROWS_MOST: usize = 200;
const COLUMNS_MOST: usize = 20;
const LIST_MOST: usize = 50;
const DEPTH_MOST: usize = 3;
/// Characters of a name and of a text.
const NAME_MOST: usize = 60;
const TEXT_MOST: usize = 1_000;
