//! Networks with most connections, counted from rows.
//!
//! Rows have no index of their times. They are stored nearly in the order of their closes, so a bisection finds the last rows of a
//! period, and they are read backwards until its begin, or until so many are read as are allowed.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::read::{Filter, cover_of};
use super::roll::Sample;
use super::table::{int, state, uint};
use crate::error::Error;
use crate::query::{Grouping, NetworkGroup, Networks, Query, Totals};
use crate::sql;

/// Deviation from the order of closes that does not matter, seconds: ten minutes.
const DISORDER_S: u64 = 600;
/// Column of the network, after those of a sample.
const NETWORK_COLUMN: usize = 24;

/// Counts networks from at most `rows_max` rows. A store with fewer rows is read whole, in any order of its closes.
pub(super) fn networks(
    db: &Connection,
    query: &Query,
    limit: usize,
    rows_max: u64,
) -> Result<Networks, Error> {
    let transaction = db.unchecked_transaction()?;
    let state = state(&transaction)?;
    let by_country = Query {
        grouping: Grouping::default(),
        ..query.clone()
    };
    let period = cover_of(&by_country, &state);
    let mut found = Networks::default();
    let Some(filter) = Filter::of(&transaction, query)? else {
        return Ok(found);
    };
    let ids = (
        id(&transaction, sql::FIRST_ID)?,
        id(&transaction, sql::LAST_ID)?,
    );
    let (Some(first), Some(last)) = ids else {
        return Ok(found);
    };
    // Ids of deleted rows are not used again, so there are no more rows than that.
    let is_small = uint(last - first) < rows_max;
    let last = match is_small {
        true => last,
        false => last_before(
            &transaction,
            first,
            last,
            period.to_s.saturating_add(DISORDER_S),
        )?,
    };
    let mut groups: HashMap<Box<str>, Totals> = HashMap::new();
    let mut statement = transaction.prepare(&sql::network_rows(state.version))?;
    let mut rows = statement.query(params![last, int(rows_max.saturating_add(1))])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let sample = Sample::of(row)?;
        let is_earlier = sample.closed_s.saturating_add(DISORDER_S) < period.from_s;
        if is_earlier && !is_small {
            break;
        }
        count += 1;
        if count > rows_max {
            found.is_cut = true;
            break;
        }
        if !(period.from_s..period.to_s).contains(&sample.closed_s) || !filter.passes(&sample) {
            continue;
        }
        found.connections += 1;
        let name = row.get_ref(NETWORK_COLUMN)?.as_str_or_null();
        let name = name.map_err(|error| Error::Damaged(error.to_string()))?;
        let name = name.unwrap_or_default();
        match groups.get_mut(name) {
            Some(totals) => totals.merge(&sample.totals),
            None => {
                groups.insert(name.into(), sample.totals);
            }
        }
    }
    found.groups = most(groups, limit);
    Ok(found)
}

/// Returns the groups with most connections.
fn most(groups: HashMap<Box<str>, Totals>, limit: usize) -> Vec<NetworkGroup> {
    let mut sorted: Vec<(Box<str>, Totals)> = groups.into_iter().collect();
    sorted.sort_unstable_by(|(name, one), (other_name, other)| {
        let by_count = other.connections.cmp(&one.connections);
        by_count.then_with(|| name.cmp(other_name))
    });
    sorted.truncate(limit);
    let named = sorted.into_iter().map(|(name, totals)| NetworkGroup {
        network: name.into(),
        totals,
    });
    named.collect()
}

fn id(db: &Connection, text: &str) -> Result<Option<i64>, Error> {
    Ok(db.query_row(text, [], |row| row.get(0))?)
}

/// Returns an id at or above the last row before a time, if rows are in the order of their closes.
fn last_before(db: &Connection, first: i64, last: i64, to_s: u64) -> Result<i64, Error> {
    let mut row_from = db.prepare(sql::ROW_FROM)?;
    // Rows below `low` are earlier, and those from `high` are not.
    let (mut low, mut high) = (first, last.saturating_add(1));
    while low < high {
        let middle = low + (high - low) / 2;
        let found = row_from.query_row([middle], |row| Ok((row.get(0)?, row.get(1)?)));
        let found: Option<(i64, i64)> = found.optional()?;
        match found {
            Some((id, closed_s)) if uint(closed_s) < to_s => low = id.saturating_add(1),
            _ => high = middle,
        }
    }
    Ok(low - 1)
}
