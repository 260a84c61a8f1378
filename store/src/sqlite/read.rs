//! Answers to queries: roll-ups, and rows that no roll-up contains yet.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};

use super::roll::{Sample, counts, damaged, totals_of};
use super::table::{find_name, int, state};
use crate::error::Error;
use crate::packed::add_to;
use crate::period::{Cover, cover};
use crate::query::{Group, MapAnswer, Metric, Query};
use crate::sql;

/// Filters of a query; -1 is any.
struct Filter {
    protocol: i64,
    server: i64,
}

type Groups = HashMap<i64, Group>;

/// Answers a query. Histograms stay empty unless they are wanted.
pub(super) fn answer(db: &Connection, query: &Query, histograms: bool) -> Result<MapAnswer, Error> {
    // One transaction: rows and roll-ups are of the same moment.
    let transaction = db.unchecked_transaction()?;
    let state = state(&transaction)?;
    let cover = cover(query.from_s, query.to_s, &state.kept.of(query.dimension));
    let mut answer = MapAnswer {
        from_s: cover.from_s,
        to_s: cover.to_s,
        groups: Vec::new(),
    };
    let Some(filter) = filter_of(&transaction, query)? else {
        return Ok(answer);
    };
    let mut groups = Groups::new();
    add_rollups(
        &transaction,
        query,
        &cover,
        &filter,
        histograms,
        &mut groups,
    )?;
    add_rows(
        &transaction,
        query,
        &cover,
        state.rolled_id,
        &filter,
        histograms,
        &mut groups,
    )?;
    let mut name = transaction.prepare(sql::NAME_OF)?;
    for (key, mut group) in groups {
        group.key = name.query_row([key], |row| row.get(0))?;
        answer.groups.push(group);
    }
    answer.groups.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(answer)
}

/// Returns the filters, or `None` if the store has never met one of the names.
fn filter_of(db: &Connection, query: &Query) -> Result<Option<Filter>, Error> {
    let number = |name: &Option<String>| match name.as_deref() {
        None => Ok(Some(-1)),
        Some("") => Ok(Some(0)),
        Some(name) => find_name(db, name),
    };
    let (protocol, server) = (number(&query.protocol)?, number(&query.server)?);
    Ok(protocol
        .zip(server)
        .map(|(protocol, server)| Filter { protocol, server }))
}

fn add_rollups(
    db: &Connection,
    query: &Query,
    cover: &Cover,
    filter: &Filter,
    histograms: bool,
    groups: &mut Groups,
) -> Result<(), Error> {
    let column = match query.metric {
        _ if !histograms => "0",
        Metric::MinRtt => "min_rtt",
        Metric::Rtt => "rtt",
        Metric::FirstByte => "first_byte",
        Metric::Handshake => "handshake",
    };
    let mut statement = db.prepare(&sql::ROLLUPS.replace("COLUMN", column))?;
    for segment in &cover.segments {
        let mut rows = statement.query(params![
            segment.resolution as u8,
            query.dimension as u8,
            int(segment.from_s),
            int(segment.to_s),
            filter.protocol,
            filter.server,
        ])?;
        while let Some(row) = rows.next()? {
            let group = groups.entry(row.get(0)?).or_default();
            group.totals.merge(&totals_of(row, 1)?);
            if histograms {
                add_histogram(row, group)?;
            }
        }
    }
    Ok(())
}

fn add_histogram(row: &Row<'_>, group: &mut Group) -> Result<(), Error> {
    let bytes = row.get_ref(10)?.as_blob().map_err(|_| damaged())?;
    add_to(&mut group.histogram, bytes).ok_or_else(damaged)
}

fn add_rows(
    db: &Connection,
    query: &Query,
    cover: &Cover,
    rolled_id: i64,
    filter: &Filter,
    histograms: bool,
    groups: &mut Groups,
) -> Result<(), Error> {
    let passes = |wanted: i64, found: i64| wanted < 0 || wanted == found;
    let mut statement = db.prepare(sql::ROWS)?;
    let mut rows = statement.query(params![rolled_id, i64::MAX])?;
    while let Some(row) = rows.next()? {
        let sample = Sample::of(row)?;
        let key = sample.keys[query.dimension as usize];
        if (cover.from_s..cover.to_s).contains(&sample.closed_s)
            && counts(query.dimension, key)
            && passes(filter.protocol, sample.protocol)
            && passes(filter.server, sample.server)
        {
            let group = groups.entry(key).or_default();
            group.totals.merge(&sample.totals);
            if let Some(us) = sample.times[query.metric as usize].filter(|_| histograms) {
                group.histogram.add(u64::from(us));
            }
        }
    }
    Ok(())
}
