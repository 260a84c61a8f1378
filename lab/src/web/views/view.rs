//! Parts of all views: figures, sections, and the columns that several tables have.

use store::{Grouping, Histogram, Metric, Query, Store, Totals};

use super::lead::Lead;
use crate::map::Times;
use crate::web::chart::Chart;
use crate::web::params::Params;
use crate::web::table::{Cell, Format, Table};

/// Data of a view.
pub(in crate::web) struct Context<'a> {
    pub(in crate::web) params: &'a Params,
    pub(in crate::web) store: &'a dyn Store,
}

/// Figures of a page.
#[derive(Clone, Debug, Default)]
pub(in crate::web) struct View {
    /// Sentences in front of all else.
    pub(in crate::web) lead: Option<Lead>,
    /// Sentences about the figures.
    pub(in crate::web) notes: Vec<String>,
    /// Figures above the sections.
    pub(in crate::web) tiles: Vec<Tile>,
    pub(in crate::web) sections: Vec<Section>,
    /// Number of connections in the period.
    pub(in crate::web) connections: u64,
}

/// A figure with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::web) struct Tile {
    pub(in crate::web) label: &'static str,
    pub(in crate::web) value: String,
    /// Further figures, small.
    pub(in crate::web) detail: String,
}

/// A chart with its table.
#[derive(Clone, Debug)]
pub(in crate::web) struct Section {
    pub(in crate::web) title: String,
    pub(in crate::web) chart: Option<Chart>,
    pub(in crate::web) table: Table,
    /// Sentences below the chart.
    pub(in crate::web) note: String,
    /// The table is open; else it is closed at first.
    pub(in crate::web) is_open: bool,
    /// As wide as the page.
    pub(in crate::web) is_wide: bool,
}

impl Context<'_> {
    /// Returns a query with the period and the filters.
    pub(in crate::web) fn query(&self, grouping: Grouping, metric: Metric) -> Query {
        let (from_s, to_s) = self.params.period();
        Query {
            from_s,
            to_s,
            grouping,
            metric,
            protocol: self.params.protocol.clone(),
            server: self.params.server.clone(),
            country: self.params.country.clone(),
        }
    }
}

impl View {
    /// Returns a view of a number of connections, without sections.
    pub(super) fn of(connections: u64) -> Self {
        Self {
            connections,
            ..Self::default()
        }
    }

    /// All tables, in the order of the page.
    pub(in crate::web) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.sections.iter().map(|section| &section.table)
    }

    /// Adds a section. Without a chart its table is open, and it is as wide as the page.
    pub(super) fn section(
        &mut self,
        title: &str,
        chart: Option<Chart>,
        table: Table,
    ) -> &mut Section {
        let is_table = chart.is_none();
        self.sections.push(Section {
            title: title.to_owned(),
            is_open: is_table,
            is_wide: is_table,
            chart,
            table,
            note: String::new(),
        });
        self.sections.last_mut().expect("it has just been added")
    }
}

/// A column: name in CSV and JSON, head for readers, unit.
pub(super) type Head = (&'static str, &'static str, Format);

/// Columns of the quantiles of a histogram.
pub(super) const QUANTILES: [Head; 6] = [
    ("samples", "Samples", Format::Count),
    ("median_ms", "Median ms", Format::Ms),
    ("median_low_ms", "95 % from", Format::Ms),
    ("median_high_ms", "to", Format::Ms),
    ("p80_ms", "p80 ms", Format::Ms),
    ("p95_ms", "p95 ms", Format::Ms),
];

/// Cells of [`QUANTILES`].
pub(super) fn quantiles(histogram: &Histogram) -> Vec<Cell> {
    let times = Times::of(histogram);
    let interval = times.and_then(|times| times.interval);
    vec![
        Cell::Count(histogram.count()),
        Cell::real(times.map(|times| times.median)),
        Cell::real(interval.map(|(low, _)| low)),
        Cell::real(interval.map(|(_, high)| high)),
        Cell::real(times.map(|times| times.p80)),
        Cell::real(times.map(|times| times.p95)),
    ]
}

/// Columns of sums over connections.
pub(super) const SUMS: [Head; 11] = [
    ("connections", "Connections", Format::Count),
    ("requests", "Requests", Format::Count),
    ("status_2xx", "2xx", Format::Count),
    ("status_3xx", "3xx", Format::Count),
    ("status_4xx", "4xx", Format::Count),
    ("status_5xx", "5xx", Format::Count),
    ("bytes_sent", "Sent", Format::Bytes),
    ("bytes_received", "Received", Format::Bytes),
    ("retransmits", "Retransmits", Format::Count),
    ("via_proxy", "Via proxy", Format::Count),
    ("mean_duration_ms", "Mean duration ms", Format::Ms),
];

/// Cells of [`SUMS`].
pub(super) fn sums(totals: &Totals) -> Vec<Cell> {
    let [ok, redirects, client, server] = totals.statuses;
    let counts = [
        totals.connections,
        totals.requests,
        ok,
        redirects,
        client,
        server,
        totals.bytes_sent,
        totals.bytes_received,
        totals.retransmits,
        totals.via_proxy,
    ];
    let mean = Cell::real(Some(totals.duration_ms as f64 / totals.connections as f64));
    counts.into_iter().map(Cell::Count).chain([mean]).collect()
}

/// Name of a group for readers; unknown values have an empty key.
pub(super) fn name_of(key: &str) -> Cell {
    let name = if key.is_empty() { UNKNOWN } else { key };
    Cell::Text(name.to_owned())
}

/// Name of groups without a value.
pub(in crate::web) const UNKNOWN: &str = "unknown";
