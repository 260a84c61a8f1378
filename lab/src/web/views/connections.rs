//! Open connections by protocol over time, and closed ones by protocol.

use std::collections::BTreeMap;

use store::{Error, Grouping, Metric, OpenConnections, Query};

use super::bins::Bins;
use super::view::{Context, Head, SUMS, View, name_of, sums};
use crate::web::chart::{Chart, SERIES_MAX, Scale, Series};
use crate::web::table::{Cell, Format, Table};

/// Open connections of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Open {
    /// Sum of means, and their number.
    sum: f64,
    count: u32,
    max: u64,
}

impl Open {
    fn mean(self) -> f64 {
        self.sum / f64::from(self.count)
    }
}

/// Open connections by protocol and begin of the step.
type ByProtocol = BTreeMap<String, BTreeMap<u64, Open>>;

pub(super) fn view(context: &Context<'_>) -> Result<View, Error> {
    let bins = Bins::of(context.params);
    let query = context.query(Grouping::Protocol, Metric::default());
    let answer = context.store.answer(&query)?;
    let mut view = View::of(answer.totals().connections);
    if query.country.is_some() {
        view.notes.push(WITHOUT_COUNTRY.to_owned());
    }
    let of_all = Query {
        country: None,
        ..query
    };
    let open = joined(&bins, &context.store.open_connections(&of_all, bins.base)?);
    let (chart, table) = drawn(&bins, &open);
    let section = view.section("Open connections by protocol", Some(chart), table);
    section.note =
        "Means of each step, of all servers together. A server stores one number a minute."
            .to_owned();
    section.is_wide = true;
    let head: Head = ("protocol", "Protocol", Format::Text);
    let mut table = Table::new("closed", &[&[head], &SUMS[..]].concat());
    for group in &answer.groups {
        table.push([vec![name_of(&group.key)], sums(&group.totals)].concat());
    }
    view.section("Closed connections by protocol", None, table);
    Ok(view)
}

/// Joins steps of the store to those of the page.
fn joined(bins: &Bins, all: &[OpenConnections]) -> ByProtocol {
    let mut found = ByProtocol::new();
    for one in all {
        let steps = found.entry(one.protocol.clone()).or_default();
        let open = steps.entry(bins.start_of(one.start_s)).or_default();
        open.sum += one.mean;
        open.count += 1;
        open.max = open.max.max(one.max);
    }
    found
}

fn drawn(bins: &Bins, open: &ByProtocol) -> (Chart, Table) {
    let line = |(protocol, steps): (&String, &BTreeMap<u64, Open>)| {
        let value = |start| steps.get(start).map(|open: &Open| open.mean());
        Series {
            name: protocol.clone(),
            values: bins.starts.iter().map(value).collect(),
        }
    };
    let series = open.iter().take(SERIES_MAX).map(line).collect();
    let columns: [Head; 4] = [
        ("start", "Start", Format::Time),
        ("protocol", "Protocol", Format::Text),
        ("mean", "Mean open", Format::Real),
        ("max", "Maximum open", Format::Count),
    ];
    let mut table = Table::new("open", &columns);
    for start in &bins.starts {
        for (protocol, steps) in open {
            let Some(found) = steps.get(start) else {
                continue;
            };
            let mean = Cell::real(Some(found.mean()));
            let cells = vec![Cell::Time(*start), name_of(protocol), mean];
            table.push([cells, vec![Cell::Count(found.max)]].concat());
        }
    }
    (bins.lines(series, "connections", Scale::Number), table)
}

const WITHOUT_COUNTRY: &str =
    "An open connection has no country: figures of open connections are those of all countries.";
