//! The figures by country as CSV.
//!
//! Spreadsheets execute a cell that begins with `=`, `+`, `-` or `@`. Such a cell gets an apostrophe in front. All texts are
//! quoted.
//!
//! Source: RFC 4180; OWASP, "CSV Injection".

use super::options::Options;
use super::rows::{Row, Rows};
use crate::map::RttMap;
use crate::report::visible;

/// Returns a header line and a line per country, the last one of unknown countries with the code `unknown`.
///
/// Times are milliseconds with three decimals, empty without samples. Lines end with CR and LF.
#[must_use]
pub fn csv(map: &RttMap, options: &Options) -> String {
    let rows = Rows::of(map, options);
    let mut out = format!("{HEADER}\r\n");
    for row in rows.all() {
        out.push_str(&line(row).join(","));
        out.push_str("\r\n");
    }
    out
}

fn line(row: &Row) -> [String; 10] {
    let ms = |value: Option<f64>| value.map_or_else(String::new, |ms| format!("{ms:.3}"));
    let times = row.times.as_ref();
    let interval = times.and_then(|times| times.interval);
    [
        cell(row.code.as_deref().unwrap_or(UNKNOWN)),
        cell(&row.name),
        row.samples.to_string(),
        ms(times.map(|times| times.median)),
        ms(interval.map(|(low, _)| low)),
        ms(interval.map(|(_, high)| high)),
        ms(times.map(|times| times.p80)),
        ms(times.map(|times| times.p95)),
        row.requests.to_string(),
        row.enough.to_string(),
    ]
}

/// Returns a quoted cell that no program takes for a formula. Control characters are written out.
pub(crate) fn cell(text: &str) -> String {
    let is_formula = |c: char| "=+-@\t\r\n\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}".contains(c);
    let apostrophe = match text.trim_start_matches(' ').starts_with(is_formula) {
        true => "'",
        false => "",
    };
    format!("\"{apostrophe}{}\"", visible(text).replace('"', "\"\""))
}

const HEADER: &str =
    "country,name,samples,median_ms,median_low_ms,median_high_ms,p80_ms,p95_ms,requests,enough";
/// Code of clients of unknown countries; it is no code of a database.
const UNKNOWN: &str = "unknown";
