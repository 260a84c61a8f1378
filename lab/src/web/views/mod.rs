//! Views: figures of a period as charts and tables.

mod bins;
mod compare;
mod connections;
mod map;
mod networks;
mod overview;
mod requests;
mod servers;
mod stalls;
mod times;

use store::{Error, Grouping, Histogram, Metric, Query, Store, Totals};

use super::chart::Chart;
use super::params::Params;
use super::table::{Cell, Table, Unit};
use crate::map::Times;

pub(super) use map::country_name;

/// A page of the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Overview,
    Map,
    Times,
    Requests,
    Connections,
    Stalls,
    Networks,
    Servers,
    Compare,
}

/// Data of a view.
pub(super) struct Context<'a> {
    pub(super) params: &'a Params,
    pub(super) store: &'a dyn Store,
}

/// Figures of a page.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Sentences about the figures.
    pub(super) notes: Vec<String>,
    /// Figures above the sections.
    pub(super) tiles: Vec<Tile>,
    pub(super) sections: Vec<Section>,
    /// Number of connections in the period.
    pub(super) connections: u64,
}

/// A figure with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) label: &'static str,
    pub(super) value: String,
    /// Further figures, small.
    pub(super) detail: String,
}

/// A chart with its table.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) chart: Option<Chart>,
    pub(super) table: Table,
    /// Sentences below the chart.
    pub(super) note: String,
    /// The table is open; else it is closed at first.
    pub(super) is_open: bool,
    /// As wide as the page.
    pub(super) is_wide: bool,
}

impl Page {
    /// All pages, in the order of the navigation.
    pub(super) const ALL: [Self; 9] = [
        Self::Overview,
        Self::Map,
        Self::Times,
        Self::Requests,
        Self::Connections,
        Self::Stalls,
        Self::Networks,
        Self::Servers,
        Self::Compare,
    ];

    /// Path below the site, without a slash.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Map => "map",
            Self::Times => "times",
            Self::Requests => "requests",
            Self::Connections => "connections",
            Self::Stalls => "stalls",
            Self::Networks => "networks",
            Self::Servers => "servers",
            Self::Compare => "compare",
        }
    }

    /// Name for readers.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Map => "Map",
            Self::Times => "Times",
            Self::Requests => "Requests",
            Self::Connections => "Connections",
            Self::Stalls => "Stalls",
            Self::Networks => "Networks",
            Self::Servers => "Servers",
            Self::Compare => "Compare",
        }
    }

    /// Whether the page has the choice of a metric.
    pub(super) fn has_metric(self) -> bool {
        matches!(
            self,
            Self::Overview | Self::Map | Self::Servers | Self::Compare
        )
    }

    /// Whether the page has the choice of a percentile.
    pub(super) fn has_percentile(self) -> bool {
        matches!(self, Self::Overview | Self::Map)
    }

    /// Makes the view.
    pub(super) fn view(self, context: &Context<'_>) -> Result<View, Error> {
        match self {
            Self::Overview => overview::view(context),
            Self::Map => map::view(context),
            Self::Times => times::view(context),
            Self::Requests => requests::view(context),
            Self::Connections => connections::view(context),
            Self::Stalls => stalls::view(context),
            Self::Networks => networks::view(context),
            Self::Servers => servers::view(context),
            Self::Compare => compare::view(context),
        }
    }
}

impl Context<'_> {
    /// Returns a query with the period and the filters.
    pub(super) fn query(&self, grouping: Grouping, metric: Metric) -> Query {
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
    fn of(connections: u64) -> Self {
        Self {
            connections,
            ..Self::default()
        }
    }

    /// All tables, in the order of the page.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.sections.iter().map(|section| &section.table)
    }

    /// Adds a section. Without a chart its table is open, and it is as wide as the page.
    fn section(&mut self, title: &str, chart: Option<Chart>, table: Table) -> &mut Section {
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
type Head = (&'static str, &'static str, Unit);

/// Columns of the quantiles of a histogram.
const QUANTILES: [Head; 6] = [
    ("samples", "Samples", Unit::Count),
    ("median_ms", "Median ms", Unit::Ms),
    ("median_low_ms", "95 % from", Unit::Ms),
    ("median_high_ms", "to", Unit::Ms),
    ("p80_ms", "p80 ms", Unit::Ms),
    ("p95_ms", "p95 ms", Unit::Ms),
];

/// Cells of [`QUANTILES`].
fn quantiles(histogram: &Histogram) -> Vec<Cell> {
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
const SUMS: [Head; 11] = [
    ("connections", "Connections", Unit::Count),
    ("requests", "Requests", Unit::Count),
    ("status_2xx", "2xx", Unit::Count),
    ("status_3xx", "3xx", Unit::Count),
    ("status_4xx", "4xx", Unit::Count),
    ("status_5xx", "5xx", Unit::Count),
    ("bytes_sent", "Sent", Unit::Bytes),
    ("bytes_received", "Received", Unit::Bytes),
    ("retransmits", "Retransmits", Unit::Count),
    ("via_proxy", "Via proxy", Unit::Count),
    ("mean_duration_ms", "Mean duration ms", Unit::Ms),
];

/// Cells of [`SUMS`].
fn sums(totals: &Totals) -> Vec<Cell> {
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
fn name_of(key: &str) -> Cell {
    let name = if key.is_empty() { UNKNOWN } else { key };
    Cell::Text(name.to_owned())
}

/// Name of groups without a value.
pub(super) const UNKNOWN: &str = "unknown";
