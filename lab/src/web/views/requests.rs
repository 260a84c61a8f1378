//! Requests and statuses over time.

use store::{Error, Grouping, Metric};

use super::bins::{self, Bin, Bins, Rate};
use super::view::{Context, Head, SUMS, View, name_of, sums};
use crate::time::length;
use crate::web::chart::{Chart, Scale, Series};
use crate::web::table::{Cell, Format, Table};

pub(super) fn view(context: &Context<'_>) -> Result<View, Error> {
    let bins = Bins::of(context.params);
    let read = bins.read(context, Metric::default())?;
    let totals = bins::sum(&read).totals;
    let mut view = View::of(totals.connections);
    let (chart, _) = classes(&bins, &read);
    let start: Head = ("start", "Start", Format::Time);
    let mut table = Table::new("series", &[&[start], &SUMS[..]].concat());
    for (start, bin) in bins.starts.iter().zip(&read) {
        table.push([vec![Cell::Time(*start)], sums(&bin.totals)].concat());
    }
    let section = view.section("Responses per second by class", Some(chart), table);
    let step = length(bins.step_s);
    section.note = format!("Counted at the close of the connection, in steps of {step}.");
    let (chart, table) = errors(&bins, &read);
    view.section("Share of errors, %", Some(chart), table);
    let answer = context
        .store
        .answer(&context.query(Grouping::Protocol, Metric::default()))?;
    let protocol: Head = ("protocol", "Protocol", Format::Text);
    let mut table = Table::new("protocols", &[&[protocol], &SUMS[..]].concat());
    for group in &answer.groups {
        table.push([vec![name_of(&group.key)], sums(&group.totals)].concat());
    }
    view.section("Protocols", None, table);
    Ok(view)
}

/// Responses per second by class, and the sums by class.
pub(super) fn classes(bins: &Bins, read: &[Bin]) -> (Chart, Table) {
    let chart = bins.lines(bins.rates(read, &CLASSES), "/s", Scale::Number);
    (chart, statuses(&bins::sum(read).totals.statuses))
}

/// Shares of 4xx and 5xx over time, %, and the sums by class.
fn errors(bins: &Bins, read: &[Bin]) -> (Chart, Table) {
    let share = |class: usize| {
        let of = |bin: &Bin| {
            let known: u64 = bin.totals.statuses.iter().sum();
            (known > 0).then(|| bin.totals.statuses[class] as f64 * 100.0 / known as f64)
        };
        Series {
            name: CLASSES[class].0.to_owned(),
            values: read.iter().map(of).collect(),
        }
    };
    let chart = bins.lines(vec![share(2), share(3)], "%", Scale::Number);
    (chart, statuses(&bins::sum(read).totals.statuses))
}

fn statuses(statuses: &[u64; 4]) -> Table {
    let columns: [Head; 3] = [
        ("class", "Class", Format::Text),
        ("responses", "Responses", Format::Count),
        ("share_percent", "Share %", Format::Percent),
    ];
    let mut table = Table::new("statuses", &columns);
    let known = statuses.iter().sum();
    for ((class, _), count) in CLASSES.into_iter().zip(statuses) {
        let name = Cell::Text(class.to_owned());
        table.push(vec![name, Cell::Count(*count), Cell::share(*count, known)]);
    }
    table
}

/// Classes of statuses.
const CLASSES: [Rate; 4] = [
    ("2xx", |totals| totals.statuses[0]),
    ("3xx", |totals| totals.statuses[1]),
    ("4xx", |totals| totals.statuses[2]),
    ("5xx", |totals| totals.statuses[3]),
];
