//! Networks and their operators.

use std::cmp::Reverse;

use store::{Dimension, Error, Grouping, Metric, NETWORK_ROWS_MAX};

use super::view::{Context, Head, QUANTILES, SUMS, View, name_of, quantiles, sums};
use crate::web::table::{Cell, Format, Table, grouped};

pub(super) fn view(context: &Context<'_>) -> Result<View, Error> {
    let query = context.query(Grouping::Protocol, Metric::default());
    let found = context.store.networks(&query, ROWS_MAX)?;
    let mut view = View::of(context.store.totals(&query)?.connections);
    let counted = grouped(found.connections);
    view.notes.push(format!(
        "Networks come from single rows, which are deleted before other figures: {counted} connections."
    ));
    if found.is_cut {
        let most = grouped(NETWORK_ROWS_MAX);
        view.notes.push(format!(
            "The period has more rows; the newest {most} count."
        ));
    }
    let head: [Head; 2] = [
        ("network", "Network", Format::Text),
        ("share_percent", "Share %", Format::Percent),
    ];
    let mut table = Table::new("networks", &[&head[..], &SUMS].concat());
    for group in &found.groups {
        let share = Cell::share(group.totals.connections, found.connections);
        table.push([vec![name_of(&group.network), share], sums(&group.totals)].concat());
    }
    view.section("Networks", None, table).note = format!(
        "At most {ROWS_MAX}, most connections first. Addresses are truncated before they are stored."
    );
    if context.params.country.is_some() {
        view.notes
            .push("Operators are not known by country.".to_owned());
    } else {
        operators(context, &mut view)?;
    }
    Ok(view)
}

fn operators(context: &Context<'_>, view: &mut View) -> Result<(), Error> {
    let grouping = Grouping::Dimension(Dimension::Operator);
    let answer = context
        .store
        .answer(&context.query(grouping, Metric::MinRtt))?;
    let mut groups: Vec<_> = answer.groups.iter().collect();
    groups.sort_by_key(|group| Reverse(group.totals.connections));
    let head: [Head; 3] = [
        ("operator", "Operator", Format::Text),
        ("connections", "Connections", Format::Count),
        ("requests", "Requests", Format::Count),
    ];
    let mut table = Table::new("operators", &[&head[..], &QUANTILES].concat());
    for group in groups.into_iter().take(ROWS_MAX) {
        let cells = vec![
            name_of(&group.key),
            Cell::Count(group.totals.connections),
            Cell::Count(group.totals.requests),
        ];
        table.push([cells, quantiles(&group.histogram)].concat());
    }
    view.section("Operators, with round-trip times", None, table)
        .note = format!(
        "At most {ROWS_MAX}, most connections first. Periods are whole hours, so ends may move to the next hour."
    );
    Ok(())
}

/// Rows of each table.
const ROWS_MAX: usize = 100;
