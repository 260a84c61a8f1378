//! Stalls of responses by cause, and retransmissions.

use store::{Error, Grouping, Metric, Totals};

use super::bins::{self, Bin, Bins, Rate};
use super::view::{Context, Head, View, name_of};
use crate::time::length;
use crate::web::chart::Scale;
use crate::web::table::{Cell, Format, Table};

pub(super) fn view(context: &Context<'_>) -> Result<View, Error> {
    let bins = Bins::of(context.params);
    let read = bins.read(context, Metric::default())?;
    let totals = bins::sum(&read).totals;
    let mut view = View::of(totals.connections);
    view.notes.push(SAMPLED.to_owned());
    view.section("Stalls by cause", None, causes(&totals));
    let rates = CAUSES.map(|cause| (cause.label, cause.count));
    let chart = bins.lines(bins.rates(&read, &rates), "/s", Scale::Number);
    let section = view.section("Stalls per second", Some(chart), series(&bins, &read));
    section.note = format!("In steps of {}.", length(bins.step_s));
    let answer = context
        .store
        .answer(&context.query(Grouping::Protocol, Metric::default()))?;
    let head: [Head; 2] = [
        ("protocol", "Protocol", Format::Text),
        ("connections", "Connections", Format::Count),
    ];
    let mut table = Table::new("protocols", &[&head[..], &COUNTS].concat());
    for group in &answer.groups {
        let cells = vec![name_of(&group.key), Cell::Count(group.totals.connections)];
        table.push([cells, counts(&group.totals)].concat());
    }
    let rate: Rate = ("retransmits", |totals| totals.retransmits);
    let chart = bins.lines(bins.rates(&read, &[rate]), "/s", Scale::Number);
    view.section("Retransmitted segments per second", Some(chart), table);
    Ok(view)
}

fn causes(totals: &Totals) -> Table {
    let columns: [Head; 4] = [
        ("cause", "StallCause", Format::Text),
        ("meaning", "Meaning", Format::Text),
        ("stalls", "Stalls", Format::Count),
        ("per_1000_requests", "per 1000 requests", Format::Real),
    ];
    let mut table = Table::new("causes", &columns);
    for cause in CAUSES {
        let count = (cause.count)(totals);
        table.push(vec![
            Cell::Text(cause.name.to_owned()),
            Cell::Text(cause.meaning.to_owned()),
            Cell::Count(count),
            Cell::real(Some(count as f64 * 1000.0 / totals.requests as f64)),
        ]);
    }
    table
}

fn series(bins: &Bins, read: &[Bin]) -> Table {
    let head: [Head; 2] = [
        ("start", "Start", Format::Time),
        ("requests", "Requests", Format::Count),
    ];
    let mut table = Table::new("series", &[&head[..], &COUNTS].concat());
    for (start, bin) in bins.starts.iter().zip(read) {
        let cells = vec![Cell::Time(*start), Cell::Count(bin.totals.requests)];
        table.push([cells, counts(&bin.totals)].concat());
    }
    table
}

/// Cells of [`COUNTS`].
fn counts(totals: &Totals) -> Vec<Cell> {
    let stalls = CAUSES.map(|cause| (cause.count)(totals));
    let all = [totals.retransmits].into_iter().chain(stalls);
    all.map(Cell::Count).collect()
}

const COUNTS: [Head; 4] = [
    ("retransmits", "Retransmits", Format::Count),
    ("delayed_ack", "Delayed ACK", Format::Count),
    ("retransmit", "Retransmission", Format::Count),
    ("window", "Window", Format::Count),
];

/// A cause of stalls.
#[derive(Clone, Copy)]
struct StallCause {
    /// Name in CSV and JSON.
    name: &'static str,
    /// Name in legends.
    label: &'static str,
    meaning: &'static str,
    count: fn(&Totals) -> u64,
}

const CAUSES: [StallCause; 3] = [
    StallCause {
        name: "delayed_ack",
        label: "delayed ACK",
        meaning: "the client delayed its acknowledgement",
        count: |totals| totals.stalls.delayed_ack,
    },
    StallCause {
        name: "retransmit",
        label: "retransmission",
        meaning: "a packet was lost and sent again",
        count: |totals| totals.stalls.retransmit,
    },
    StallCause {
        name: "window",
        label: "window",
        meaning: "a window was full",
        count: |totals| totals.stalls.window,
    },
];

const SAMPLED: &str =
    "Stalls are counted for responses that first_byte_sampling has drawn; without it they are 0.";
