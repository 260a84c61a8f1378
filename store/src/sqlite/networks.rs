//! Networks with most connections, counted from rows.
//!
//! Rows have no index of their times. They are stored nearly in the order of their closes, so two bisections find the rows of a
//! period. Of too many, the newest are counted.

use std::collections::HashMap;
use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, params};

use super::read::{Filter, cover_of};
use super::roll::totals_of;
use super::table::{int, state, uint};
use crate::error::Error;
use crate::query::{Grouping, NetworkGroup, Networks, Query, Totals};
use crate::sql;

/// Deviation from the order of closes that does not matter, seconds: ten minutes.
const DISORDER_S: u64 = 600;

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
    let filter = Filter::of(&transaction, query)?;
    let rows = rows_of(&transaction, period.from_s..period.to_s, rows_max)?;
    let (Some(filter), Some(rows)) = (filter, rows) else {
        return Ok(found);
    };
    found.is_cut = rows.is_cut;
    let mut groups: HashMap<Box<str>, Totals> = HashMap::new();
    let mut statement = transaction.prepare(&sql::network_rows(state.version))?;
    let mut rows = statement.query(params![
        rows.first,
        rows.last,
        int(period.from_s),
        int(period.to_s),
        filter.protocol,
        filter.server,
        filter.country,
    ])?;
    while let Some(row) = rows.next()? {
        let totals = totals_of(row, 1)?;
        found.connections += 1;
        let name = row.get_ref(0)?.as_str_or_null();
        let name = name.map_err(|error| Error::Damaged(error.to_string()))?;
        // Most rows have a known network: a name is copied once.
        match groups.get_mut(name.unwrap_or_default()) {
            Some(sums) => sums.merge(&totals),
            None => {
                groups.insert(name.unwrap_or_default().into(), totals);
            }
        }
    }
    found.groups = most(groups, limit);
    Ok(found)
}

/// Ids of the rows that may be of a period.
struct Ids {
    first: i64,
    last: i64,
    /// There are earlier ones.
    is_cut: bool,
}

/// Returns the newest ids of a period, at most `rows_max`; `None` for a store without rows.
fn rows_of(db: &Connection, period: Range<u64>, rows_max: u64) -> Result<Option<Ids>, Error> {
    let (first, last) = (id(db, sql::FIRST_ID)?, id(db, sql::LAST_ID)?);
    let (Some(mut first), Some(mut last)) = (first, last) else {
        return Ok(None);
    };
    // Ids of deleted rows are not used again, so there are no more rows than that.
    let count = |first: i64, last: i64| uint(last.saturating_sub(first).saturating_add(1));
    if count(first, last) > rows_max {
        let begin = first_from(db, first, last, period.start.saturating_sub(DISORDER_S))?;
        last = first_from(db, first, last, period.end.saturating_add(DISORDER_S))? - 1;
        first = begin;
    }
    let is_cut = count(first, last) > rows_max;
    if is_cut {
        first = last.saturating_add(1).saturating_sub(int(rows_max));
    }
    Ok(Some(Ids {
        first,
        last,
        is_cut,
    }))
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

/// Returns an id at or below the first row from a time on, above the row before, if rows are in the order of their
/// closes.
fn first_from(db: &Connection, first: i64, last: i64, from_s: u64) -> Result<i64, Error> {
    let mut row_from = db.prepare(sql::ROW_FROM)?;
    // Rows below `low` are earlier, rows from `high` on are not.
    let (mut low, mut high) = (first, last.saturating_add(1));
    while low < high {
        let middle = low + (high - low) / 2;
        let found = row_from.query_row([middle], |row| Ok((row.get(0)?, row.get(1)?)));
        let found: Option<(i64, i64)> = found.optional()?;
        match found {
            Some((id, closed_s)) if uint(closed_s) < from_s => low = id.saturating_add(1),
            _ => high = middle,
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use firstbyte_tests::TempDir;

    use super::*;
    use crate::network::{Network, Prefixes};
    use crate::sqlite::Sqlite;

    const NOON: u64 = 1_796_040_000;

    fn row(closed_s: u64, network: u8) -> crate::Connection {
        let client = [192, 0, network, 1].into();
        crate::Connection {
            closed_s,
            network: Some(Network::of(client, Prefixes::default())),
            ..crate::Connection::default()
        }
    }

    /// Counted connections, and whether there are more.
    fn found(store: &Sqlite, from_s: u64, to_s: u64, rows_max: u64) -> (u64, bool) {
        let query = Query {
            from_s,
            to_s,
            ..Query::default()
        };
        let found = networks(&store.db, &query, usize::MAX, rows_max).expect("networks");
        let sum = found.groups.iter().map(|group| group.totals.connections);
        assert_eq!(sum.sum::<u64>(), found.connections);
        (found.connections, found.is_cut)
    }

    #[test]
    fn newest_rows_of_a_period_are_counted() {
        let dir = TempDir::new();
        let mut store = Sqlite::open(&dir.path().join("a.db"))
            .expect("it opens")
            .store;
        // One a minute, for a thousand minutes.
        let rows: Vec<_> = (0..1000).map(|n| row(NOON + n * 60, n as u8)).collect();
        store.insert(&rows).expect("they are stored");
        let end_s = NOON + 60_000;
        for (rows_max, expected) in [
            (1001, (1000, false)),
            (1000, (1000, false)),
            (999, (999, true)),
            (1, (1, true)),
        ] {
            assert_eq!(found(&store, 0, u64::MAX, rows_max), expected);
        }
        // A period in the middle: some rows at its ends are read and not counted.
        let slack = DISORDER_S / 60;
        let middle = (NOON + 30_000, NOON + 36_000);
        let enough = 100 + 2 * slack;
        assert_eq!(found(&store, middle.0, middle.1, enough), (100, false));
        let (count, is_cut) = found(&store, middle.0, middle.1, 50);
        assert_eq!((count, is_cut), (50 - slack, true));
        // Rows near the end count as rows of the period.
        assert_eq!(found(&store, middle.0, middle.1, 100 + slack), (100, true));
        // Before and after all rows.
        assert_eq!(found(&store, 0, NOON, 50), (0, false));
        assert_eq!(found(&store, end_s, u64::MAX, 50), (0, false));
        let last = found(&store, end_s - 60, end_s, 50);
        assert_eq!(last, (1, false));
    }

    /// Rows of several servers, and of a late commit, are not in the order of their closes.
    #[test]
    fn small_disorder_loses_no_row() {
        let seed = std::process::id().into();
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let dir = TempDir::new();
        let mut store = Sqlite::open(&dir.path().join("a.db"))
            .expect("it opens")
            .store;
        let rows: Vec<_> = (0..5000)
            .map(|n| row(NOON + n * 7 + random.u64(0..DISORDER_S), n as u8))
            .collect();
        store.insert(&rows).expect("they are stored");
        for _ in 0..100 {
            let from_s = NOON + random.u64(0..500) * 60;
            let to_s = from_s + random.u64(0..100) * 60;
            let period = from_s..to_s;
            let count = rows.iter().filter(|row| period.contains(&row.closed_s));
            let expected = (count.count() as u64, false);
            assert_eq!(found(&store, from_s, to_s, 4999), expected, "{period:?}");
        }
    }
}
