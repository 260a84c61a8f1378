//! The figures by country for a terminal.

use super::options::Options;
use super::rows::Rows;
use crate::map::RttMap;
use crate::report::{push_rows, push_wrapped};

/// Returns heading, warnings and a table, most samples first; no line is wider than the report.
#[must_use]
pub fn text(map: &RttMap, options: &Options) -> String {
    let rows = Rows::of(map, options);
    let mut out = String::new();
    push_wrapped("", "", &rows.title(), &mut out);
    for fact in rows.facts() {
        push_wrapped("  ", "  ", &fact, &mut out);
    }
    for warning in rows.warnings() {
        push_wrapped("  Warning: ", "    ", &warning, &mut out);
    }
    out.push('\n');
    push_rows(&table(&rows), "", &mut out);
    out.push('\n');
    for note in [rows.least()].into_iter().chain(rows.notes()) {
        push_wrapped("", "", &note, &mut out);
    }
    out
}

/// Returns the table with its heads.
pub(super) fn table(rows: &Rows<'_>) -> Vec<Vec<String>> {
    let heads = [
        "country",
        "samples",
        "median ms",
        "95 %",
        "p80 ms",
        "p95 ms",
        "requests",
    ];
    let mut table = vec![heads.map(str::to_owned).to_vec()];
    for row in rows.all() {
        let [median, interval, p80, p95] = row.texts();
        let (samples, requests) = (row.samples.to_string(), row.requests.to_string());
        table.push(vec![
            row.name.clone(),
            samples,
            median,
            interval,
            p80,
            p95,
            requests,
        ]);
    }
    table
}
