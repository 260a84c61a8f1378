//! The overview: sums, times, and lines of the period.

use store::{Dimension, Error, Grouping, Histogram, Metric, Totals};

use super::bins::{self, Bin, Bins};
use super::view::{Context, Head, QUANTILES, SUMS, Tile, View, quantiles, sums};
use super::{map, requests};
use crate::map::Times;
use crate::time::length;
use crate::web::chart::Scale;
use crate::web::params::metric;
use crate::web::table::{Cell, Format, Table, bytes, grouped, real};

pub(super) fn view(context: &Context<'_>) -> Result<View, Error> {
    let bins = Bins::of(context.params);
    let mut read = Vec::new();
    for metric in SHOWN {
        read.push(bins.read(context, metric)?);
    }
    // The steps of a period add up to its sums, so these need no query.
    let all: Vec<Bin> = read.iter().map(|bins| bins::sum(bins)).collect();
    let totals = all[0].totals;
    let mut view = View::of(totals.connections);
    view.tiles = tiles(&totals, &all);
    let rates = bins.rates(
        &read[0],
        &[
            ("requests", |t| t.requests),
            ("connections", |t| t.connections),
        ],
    );
    let chart = bins.lines(rates, "/s", Scale::Number);
    let section = view.section(
        "Requests and connections per second",
        Some(chart),
        series(&bins, &read),
    );
    let step = length(bins.step_s);
    section.note = format!("Counted at the close of the connection, in steps of {step}.");
    let (chart, table) = requests::classes(&bins, &read[0]);
    view.section("Responses per second by class", Some(chart), table);
    let medians = SHOWN.iter().zip(&read);
    let medians = medians.map(|(own, read)| bins::quantile(metric(*own).label, read, 0.5));
    let chart = bins.lines(medians.collect(), "ms", Scale::Number);
    let mut table = Table::new(
        "times",
        &[&[("metric", "Time", Format::Text)], &QUANTILES[..]].concat(),
    );
    for (own, bin) in SHOWN.iter().zip(&all) {
        let name = Cell::Text(metric(*own).name.to_owned());
        table.push([vec![name], quantiles(&bin.histogram)].concat());
    }
    view.section("Medians, ms", Some(chart), table);
    let rates = bins.rates(
        &read[0],
        &[
            ("sent", |t| t.bytes_sent),
            ("received", |t| t.bytes_received),
        ],
    );
    let chart = bins.lines(rates, "/s", Scale::Bytes);
    let mut table = Table::new("totals", &SUMS);
    table.push(sums(&totals));
    view.section("Bytes per second", Some(chart), table);
    let query = context.query(
        Grouping::Dimension(Dimension::Country),
        context.params.metric,
    );
    let answer = context.store.answer(&query)?;
    view.sections.push(map::section(context, &answer));
    Ok(view)
}

/// Figures of each step.
fn series(bins: &Bins, read: &[Vec<Bin>]) -> Table {
    let head: [Head; 1] = [("start", "Start", Format::Time)];
    let times: [Head; 3] = [
        ("min_rtt_median_ms", "RTT ms", Format::Ms),
        ("first_byte_median_ms", "First byte ms", Format::Ms),
        ("handshake_median_ms", "Handshake ms", Format::Ms),
    ];
    let mut table = Table::new("series", &[&head[..], &SUMS, &times].concat());
    for (n, start) in bins.starts.iter().enumerate() {
        let median = |bins: &Vec<Bin>| {
            let found = bins[n].histogram.quantile_us(0.5);
            Cell::real(found.map(|us| us / 1000.0))
        };
        let medians: Vec<Cell> = read.iter().map(median).collect();
        table.push([vec![Cell::Time(*start)], sums(&read[0][n].totals), medians].concat());
    }
    table
}

fn tiles(totals: &Totals, all: &[Bin]) -> Vec<Tile> {
    let share = |part: u64, whole: u64| match whole {
        0 => DASH.to_owned(),
        _ => format!("{} %", real(part as f64 * 100.0 / whole as f64)),
    };
    let [ok, redirects, client, server] = totals.statuses;
    // Requests without a status have no class.
    let known: u64 = totals.statuses.iter().sum();
    let per_connection = totals.requests as f64 / totals.connections.max(1) as f64;
    let proxies = share(totals.via_proxy, totals.connections);
    let others = format!(
        "3xx {}, 4xx {}",
        share(redirects, known),
        share(client, known)
    );
    let received = bytes(totals.bytes_received);
    let counts = [
        (
            "Connections",
            grouped(totals.connections),
            format!("{proxies} through proxies"),
        ),
        (
            "Requests",
            grouped(totals.requests),
            format!("{} per connection", real(per_connection)),
        ),
        (
            "Responses 5xx",
            share(server, known),
            format!("{} responses", grouped(server)),
        ),
        ("Responses 2xx", share(ok, known), others),
        (
            "Bytes sent",
            bytes(totals.bytes_sent),
            format!("{received} received"),
        ),
    ];
    let labels = [
        "Round trip, median",
        "First byte, median",
        "TLS handshake, median",
    ];
    let times = labels.into_iter().zip(all);
    let times = times.map(|(label, bin)| {
        let (value, detail) = times_text(&bin.histogram);
        (label, value, detail)
    });
    let tile = |(label, value, detail)| Tile {
        label,
        value,
        detail,
    };
    counts.into_iter().chain(times).map(tile).collect()
}

/// Returns the median, and the other quantiles.
fn times_text(histogram: &Histogram) -> (String, String) {
    Times::of(histogram).map_or_else(
        || (DASH.to_owned(), "no times".to_owned()),
        |times| {
            let others = format!("p80 {}, p95 {}", real(times.p80), real(times.p95));
            (format!("{} ms", real(times.median)), others)
        },
    )
}

/// Metrics of the overview.
const SHOWN: [Metric; 3] = [Metric::MinRtt, Metric::FirstByte, Metric::Handshake];
const DASH: &str = "\u{2013}";
