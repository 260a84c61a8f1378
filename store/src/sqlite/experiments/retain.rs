//! Deletion of old page views and figures of arms, in small steps.

use std::collections::BTreeMap;

use rusqlite::{Transaction, params};

use crate::error::Error;
use crate::sql::experiment as sql;
use crate::sqlite::table::{int, write};

/// Deletes a few of the oldest page views, those before a time. Returns their number.
pub(crate) fn delete_visits(
    db: &mut rusqlite::Connection,
    until_s: u64,
    limit: u32,
) -> Result<u64, Error> {
    let until_ms = int(until_s.saturating_mul(1000));
    let oldest: Option<i64> = db.query_row(sql::OLDEST_VISIT, [], |row| row.get(0))?;
    if oldest.is_none_or(|at_ms| at_ms >= until_ms) {
        // A deletion would wait for other writers.
        return Ok(0);
    }
    let transaction = write(db)?;
    let deleted = delete(&transaction, until_ms, limit)?;
    transaction.commit()?;
    Ok(deleted)
}

fn delete(transaction: &Transaction<'_>, until_ms: i64, limit: u32) -> Result<u64, Error> {
    // Number and last time by experiment and arm.
    let mut taken: BTreeMap<(i64, i64), (i64, i64)> = BTreeMap::new();
    let mut deleted = 0;
    let mut statement = transaction.prepare(sql::DELETE_VISITS)?;
    let mut rows = statement.query(params![until_ms, limit])?;
    while let Some(row) = rows.next()? {
        let at_ms: i64 = row.get(2)?;
        let sums = taken.entry((row.get(0)?, row.get(1)?)).or_default();
        *sums = (sums.0 + 1, sums.1.max(at_ms));
        deleted += 1;
    }
    for ((experiment, arm), (views, last_ms)) in taken {
        transaction.execute(sql::TAKE_VIEWS, params![experiment, arm, views, last_ms])?;
        transaction.execute(sql::DELETE_ARM, params![experiment, arm])?;
    }
    Ok(deleted)
}

/// Deletes figures of the oldest minutes before a time. Returns whether there were any.
pub(crate) fn delete_arms(
    db: &rusqlite::Connection,
    until_s: u64,
    limit: u32,
) -> Result<bool, Error> {
    let until_s = int(until_s);
    let oldest: Option<i64> = db.query_row(sql::OLDEST_ARM, [], |row| row.get(0))?;
    if oldest.is_none_or(|at_s| at_s >= until_s) {
        return Ok(false);
    }
    db.execute(sql::DELETE_ARMS, params![until_s, limit])?;
    Ok(true)
}
