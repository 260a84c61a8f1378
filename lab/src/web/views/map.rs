//! The map: times by country, and the subdivisions of a country.

use std::cmp::Reverse;

use store::{Answer, Dimension, Error, Group, Grouping, Metric};

use super::view::{Context, Head, QUANTILES, Section, UNKNOWN, View, name_of, quantiles};
use crate::map::{self, MIN_SAMPLES, Quantile, RttMap, Subject, Times};
use crate::web::chart::{Chart, Range, Ranges};
use crate::web::params::{Params, metric};
use crate::web::table::{Cell, Format, Table};

pub(super) fn view(context: &Context<'_>) -> Result<View, Error> {
    let query = context.query(
        Grouping::Dimension(Dimension::Country),
        context.params.metric,
    );
    let answer = context.store.answer(&query)?;
    let mut view = View::of(answer.totals().connections);
    if context.params.country.is_some() {
        view.sections.push(subdivisions(context)?);
    }
    let mut section = section(context, &answer);
    section.is_open = true;
    view.sections.push(section);
    Ok(view)
}

/// Returns the map with the table of countries.
pub(super) fn section(context: &Context<'_>, answer: &Answer) -> Section {
    let params = context.params;
    let title = format!("{} by country", metric(params.metric).label);
    let options = map::Options {
        title: title.clone(),
        quantile: match params.percentile {
            80 => Quantile::P80,
            95 => Quantile::P95,
            _ => Quantile::Median,
        },
        subject: match params.metric {
            Metric::MinRtt => Subject::RoundTrip,
            Metric::Rtt => Subject::SmoothedRoundTrip,
            Metric::FirstByte => Subject::FirstByte,
            Metric::Handshake => Subject::Handshake,
        },
        ..map::Options::default()
    };
    let picture = map::part(&RttMap::of_store(answer), &options);
    Section {
        title,
        chart: Some(Chart::Picture(picture)),
        table: countries(params, answer),
        note: EXPLAINED.to_owned(),
        is_open: false,
        is_wide: true,
    }
}

/// Returns groups with most samples first.
fn sorted(answer: &Answer) -> Vec<&Group> {
    let mut groups: Vec<_> = answer.groups.iter().collect();
    groups.sort_by_key(|group| Reverse((group.histogram.count(), group.totals.requests)));
    groups
}

/// Figures of all countries.
fn countries(params: &Params, answer: &Answer) -> Table {
    let head: [Head; 4] = [
        ("country", "Code", Format::Text),
        ("name", "Country", Format::Text),
        ("connections", "Connections", Format::Count),
        ("requests", "Requests", Format::Count),
    ];
    let enough: [Head; 1] = [("enough", "Enough", Format::Text)];
    let mut table = Table::new("countries", &[&head[..], &QUANTILES, &enough].concat());
    for group in sorted(answer) {
        let name = country_name(&group.key);
        let code = if group.key.is_empty() {
            UNKNOWN
        } else {
            &group.key
        };
        let is_code = code == UNKNOWN
            || code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase());
        let name = match is_code {
            true => Cell::Link(
                name,
                format!("map{}", params.query(&[("country", Some(code))])),
            ),
            // The code of a damaged database cannot be a filter.
            false => Cell::Text(name),
        };
        let cells = vec![
            Cell::Text(code.to_owned()),
            name,
            Cell::Count(group.totals.connections),
            Cell::Count(group.totals.requests),
        ];
        let is_enough = group.histogram.count() >= MIN_SAMPLES;
        let enough = Cell::Text(if is_enough { "yes" } else { "no" }.to_owned());
        table.push([cells, quantiles(&group.histogram), vec![enough]].concat());
    }
    table
}

fn subdivisions(context: &Context<'_>) -> Result<Section, Error> {
    let grouping = Grouping::Dimension(Dimension::Subdivision);
    let answer = context
        .store
        .answer(&context.query(grouping, context.params.metric))?;
    let head: [Head; 3] = [
        ("subdivision", "Subdivision", Format::Text),
        ("connections", "Connections", Format::Count),
        ("requests", "Requests", Format::Count),
    ];
    let mut table = Table::new("subdivisions", &[&head[..], &QUANTILES].concat());
    let mut rows = Vec::new();
    for group in sorted(&answer) {
        let cells = vec![
            name_of(&group.key),
            Cell::Count(group.totals.connections),
            Cell::Count(group.totals.requests),
        ];
        table.push([cells, quantiles(&group.histogram)].concat());
        let is_enough = group.histogram.count() >= MIN_SAMPLES;
        if let Some(times) = Times::of(&group.histogram).filter(|_| is_enough) {
            rows.push(Range {
                name: group.key.clone(),
                ms: [times.median, times.p80, times.p95],
            });
        }
    }
    Ok(Section {
        title: format!("{} by subdivision, ms", metric(context.params.metric).label),
        chart: (!rows.is_empty()).then_some(Chart::Ranges(Ranges { rows })),
        table,
        note: SUBDIVISIONS.to_owned(),
        is_open: true,
        is_wide: true,
    })
}

/// Returns the name of a country, or its code.
pub(in crate::web) fn country_name(code: &str) -> String {
    let name = code.as_bytes().try_into().ok().and_then(geoip::name_of);
    match (name, code) {
        (Some(name), _) => name.to_owned(),
        (None, "") => UNKNOWN.to_owned(),
        (None, code) => code.to_owned(),
    }
}

const EXPLAINED: &str = "The 95 % interval of the median holds for independent samples. \
    Connections through proxies have no round-trip time.";
const SUBDIVISIONS: &str = "Only databases of cities have subdivisions. Periods are whole hours, so ends may move to the next hour.";
