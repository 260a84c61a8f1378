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
        // Before and after all rows.
        assert_eq!(found(&store, 0, NOON, 50), (0, false));
        assert_eq!(found(&store, end_s, u64::MAX, 50), (0, false));
        let last = found(&store, end_s - 60, end_s, 50);
        assert_eq!(last, (1, false));
    }

    /// Rows of several servers, and of a commit that was late, are not in the order of their closes.
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
