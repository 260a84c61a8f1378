//! Servers side by side.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use store::{Error, Group, Grouping, Metric};

use super::view::{Context, Head, UNKNOWN, View};
use crate::map::Times;
use crate::web::chart::{Chart, Range, Ranges};
use crate::web::params::metric;
use crate::web::table::{Cell, Format, Table};

pub(super) fn view(context: &Context<'_>) -> Result<View, Error> {
    let mut servers: BTreeMap<String, Vec<Group>> = BTreeMap::new();
    for shown in SHOWN {
        let answer = context
            .store
            .answer(&context.query(Grouping::Server, shown))?;
        for group in answer.groups {
            servers.entry(group.key.clone()).or_default().push(group);
        }
    }
    // A server that began between two queries is in the next answer.
    let mut groups: Vec<Vec<Group>> = servers.into_values().collect();
    groups.retain(|group| group.len() == SHOWN.len());
    groups.sort_by_key(|group| Reverse(group[0].totals.connections));
    let mut view = View::of(groups.iter().map(|group| group[0].totals.connections).sum());
    let chosen = match context.params.metric {
        Metric::MinRtt => 0,
        Metric::FirstByte => 1,
        Metric::Handshake => 2,
        Metric::Rtt => 3,
    };
    let range = |group: &Vec<Group>| {
        let times = Times::of(&group[chosen].histogram)?;
        Some(Range {
            name: name(&group[0].key).to_owned(),
            ms: [times.median, times.p80, times.p95],
        })
    };
    let rows = groups.iter().filter_map(range).collect();
    let chart = Chart::Ranges(Ranges { rows });
    let title = format!("{} by server, ms", metric(context.params.metric).label);
    let table = table(context, &groups);
    let section = view.section(&title, Some(chart), table);
    section.is_open = true;
    section.is_wide = true;
    section.note = "Most connections first.".to_owned();
    Ok(view)
}

fn name(key: &str) -> &str {
    if key.is_empty() { UNKNOWN } else { key }
}

fn table(context: &Context<'_>, groups: &[Vec<Group>]) -> Table {
    let mut table = Table::new("servers", &COLUMNS);
    for group in groups {
        let (key, totals) = (&group[0].key, &group[0].totals);
        let known = totals.statuses.iter().sum();
        // The other pages of this server begin with its overview.
        let link = format!("overview{}", context.params.query(&[("server", Some(key))]));
        let mut cells = vec![
            Cell::Link(name(key).to_owned(), link),
            Cell::Count(totals.connections),
            Cell::Count(totals.requests),
            Cell::share(totals.statuses[2], known),
            Cell::share(totals.statuses[3], known),
            Cell::Count(totals.bytes_sent),
            Cell::real(Some(totals.retransmits as f64 / totals.connections as f64)),
        ];
        for one in &group[..TABLED] {
            let times = Times::of(&one.histogram);
            cells.push(Cell::real(times.map(|times| times.median)));
            cells.push(Cell::real(times.map(|times| times.p95)));
        }
        table.push(cells);
    }
    table
}

/// Metrics that are read; the first [`TABLED`] are in the table.
const SHOWN: [Metric; 4] = [
    Metric::MinRtt,
    Metric::FirstByte,
    Metric::Handshake,
    Metric::Rtt,
];
const TABLED: usize = 3;

const COLUMNS: [Head; 13] = [
    ("server", "Server", Format::Text),
    ("connections", "Connections", Format::Count),
    ("requests", "Requests", Format::Count),
    ("share_4xx_percent", "4xx %", Format::Percent),
    ("share_5xx_percent", "5xx %", Format::Percent),
    ("bytes_sent", "Sent", Format::Bytes),
    (
        "retransmits_per_connection",
        "Retr. per conn.",
        Format::Real,
    ),
    ("min_rtt_median_ms", "RTT ms", Format::Ms),
    ("min_rtt_p95_ms", "p95", Format::Ms),
    ("first_byte_median_ms", "First byte ms", Format::Ms),
    ("first_byte_p95_ms", "p95", Format::Ms),
    ("handshake_median_ms", "Handshake ms", Format::Ms),
    ("handshake_p95_ms", "p95", Format::Ms),
];
