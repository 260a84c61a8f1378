//! Visits before and after a change, for a terminal: ASCII alone, as wide as a report at most.

use crate::page::Runs;
use crate::page::comparison::{
    Match, ResourceComparison, ResourceFigures, VisitComparison, compare,
};
use crate::report::table::{push_rows, push_wrapped};
use crate::report::waterfall::figures::{self, ms};

use super::{lines, sureness};

/// The figures of both sides with their changes, then the resources that changed most.
#[must_use]
pub fn text(before: &Runs<'_>, after: &Runs<'_>, by: Match) -> String {
    let found = compare(before, after, by);
    let mut out = String::new();
    for (name, runs) in [("before", before), ("after", after)] {
        let side = figures::side(runs, URL_COLUMNS);
        push_wrapped("", "  ", &format!("{name}: {side}"), &mut out);
    }
    let lines = lines(&found);
    let mut rows = vec![cells(["", "before", "after", "change"])];
    rows.extend(
        lines
            .iter()
            .map(|line| cells([line.name, &line.before, &line.after, &line.change])),
    );
    out.push('\n');
    push_rows(&rows, "  ", &mut out);
    out.push('\n');
    for line in &lines {
        if let Some(verdict) = &line.verdict {
            push_wrapped("  ", "    ", &format!("{}: {verdict}", line.name), &mut out);
        }
    }
    push_wrapped("  ", "  ", sureness(&lines), &mut out);
    let own = before.shown().visit.resources.first();
    resources(&found, own.map_or("", |first| first.origin()), &mut out);
    out
}

fn cells(cells: [&str; 4]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// Resources in the order of how much their times changed, then those that only one side has.
fn resources(found: &VisitComparison, own: &str, out: &mut String) {
    let by = |one: &ResourceComparison| one.difference_ms().unwrap_or_default();
    let mut both: Vec<&ResourceComparison> = found
        .resources
        .iter()
        .filter(|one| one.difference_ms().is_some())
        .collect();
    both.sort_by(|a, b| by(b).abs().total_cmp(&by(a).abs()));
    let name = |one: &ResourceComparison| figures::name(&one.url, own, NAME_COLUMNS);
    let mut rows = vec![cells(["time of a resource", "before", "after", "change"])];
    for one in both.iter().take(RESOURCES_MOST) {
        let sign = if by(one) < 0.0 { "-" } else { "+" };
        let change = format!("{sign}{}", ms(by(one).abs()));
        rows.push(cells([
            &name(one),
            &total(one.before.as_ref()),
            &total(one.after.as_ref()),
            &change,
        ]));
    }
    if rows.len() > 1 {
        out.push('\n');
        push_rows(&rows, "  ", out);
        if both.len() > RESOURCES_MOST {
            push_wrapped(
                "  ",
                "",
                &format!("and {} more", both.len() - RESOURCES_MOST),
                out,
            );
        }
    }
    alone(found, name, out);
}

/// The whole time of a resource on a side.
fn total(side: Option<&ResourceFigures>) -> String {
    side.map_or_else(String::new, |side| ms(side.total_ms.value))
}

/// Resources that only one side has.
fn alone(
    found: &VisitComparison,
    name: impl Fn(&ResourceComparison) -> String + Copy,
    out: &mut String,
) {
    let all = found.resources.iter();
    let before: Vec<String> = all
        .clone()
        .filter(|one| one.after.is_none())
        .map(name)
        .collect();
    let after: Vec<String> = all.filter(|one| one.before.is_none()).map(name).collect();
    for (words, names) in [("only before", before), ("only after", after)] {
        let first = &names[..names.len().min(ALONE_MOST)];
        let more = match names.len() - first.len() {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        if !first.is_empty() {
            let line = format!("{words}: {}{more}", first.join(", "));
            push_wrapped("  ", "    ", &line, out);
        }
    }
}

/// Columns of a URL, and of a name in the table.
const URL_COLUMNS: usize = 60;
const NAME_COLUMNS: usize = 40;
/// Resources in the table, and in each list of those that one side has.
const RESOURCES_MOST: usize = 20;
const ALONE_MOST: usize = 20;
