//! Histograms of times with their quantiles, and the quantiles by protocol.

use store::{Error, Grouping, Histogram, Metric};

use super::view::{Context, Head, QUANTILES, View, name_of, quantiles};
use crate::web::chart::{Bars, Chart};
use crate::web::params::metric;
use crate::web::table::{Cell, Format, Table};

pub(super) fn view(context: &Context<'_>) -> Result<View, Error> {
    let mut view = View::default();
    let head: [Head; 2] = [
        ("metric", "Time", Format::Text),
        ("protocol", "Protocol", Format::Text),
    ];
    let mut table = Table::new("quantiles", &[&head[..], &QUANTILES].concat());
    let mut histograms = Vec::new();
    for (shown, id, _) in SHOWN {
        let answer = context
            .store
            .answer(&context.query(Grouping::Protocol, shown))?;
        view.connections = answer.totals().connections;
        let mut all = Histogram::default();
        answer
            .groups
            .iter()
            .for_each(|group| all.merge(&group.histogram));
        let name = || Cell::Text(id.to_owned());
        let cells = vec![name(), Cell::Text("all".to_owned())];
        table.push([cells, quantiles(&all)].concat());
        for group in &answer.groups {
            let cells = vec![name(), name_of(&group.key)];
            table.push([cells, quantiles(&group.histogram)].concat());
        }
        histograms.push(all);
    }
    let note = "Quantiles are interpolated within buckets of 3 to 6 %.";
    let section = view.section("Quantiles", None, table);
    section.note = note.to_owned();
    // Beside the first histogram: the page is a square of four.
    section.is_wide = false;
    for ((shown, id, note), histogram) in SHOWN.into_iter().zip(histograms) {
        let bars = Bars { histogram };
        let columns: [Head; 3] = [
            ("low_ms", "From ms", Format::Ms),
            ("high_ms", "below ms", Format::Ms),
            ("count", "Connections", Format::Count),
        ];
        let mut table = Table::new(id, &columns);
        for bar in bars.bars() {
            let (low, high) = (Cell::Real(bar.low_ms), Cell::Real(bar.high_ms));
            table.push(vec![low, high, Cell::Count(bar.count)]);
        }
        let section = view.section(metric(shown).label, Some(Chart::Bars(bars)), table);
        section.note = note.to_owned();
    }
    Ok(view)
}

/// Metrics with the names of their tables and their definitions.
const SHOWN: [(Metric, &str, &str); 3] = [
    (
        Metric::FirstByte,
        "first_byte",
        "Time to the first byte of the first response of a connection.",
    ),
    (
        Metric::Handshake,
        "handshake",
        "Time of the TLS handshake; connections with TLS alone.",
    ),
    (
        Metric::MinRtt,
        "min_rtt",
        "Least round-trip time that the kernel has measured; without connections through proxies.",
    ),
];
