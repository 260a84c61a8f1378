//! Deletion of old page views and figures of arms, in small steps.

use std::collections::BTreeMap;

use rusqlite::{Transaction, params};

use crate::error::Error;
use crate::sql::experiment as sql;
use crate::sqlite::table::{int, write};

/// Deletes a few of the oldest page views before a time. Returns their number.
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
    let deleted = delete(&transaction, sql::DELETE_VISITS, until_ms, limit)?;
    transaction.commit()?;
    Ok(deleted)
}

/// Deletes a few page views after a time, made by a wrong clock. Returns their number.
pub(crate) fn delete_later_visits(
    db: &mut rusqlite::Connection,
    after_s: u64,
    limit: u32,
) -> Result<u64, Error> {
    let after_ms = int(after_s.saturating_mul(1000));
    let latest: Option<i64> = db.query_row(sql::LATEST_VISIT, [], |row| row.get(0))?;
    if latest.is_none_or(|at_ms| at_ms <= after_ms) {
        return Ok(0);
    }
    let transaction = write(db)?;
    let deleted = delete(&transaction, sql::DELETE_LATER_VISITS, after_ms, limit)?;
    transaction.commit()?;
    Ok(deleted)
}

/// Deletes figures of arms after a time, made by a wrong clock.
pub(crate) fn delete_later_arms(db: &rusqlite::Connection, after_s: u64) -> Result<(), Error> {
    let after_s = int(after_s);
    let latest: Option<i64> = db.query_row(sql::LATEST_ARM, [], |row| row.get(0))?;
    if latest.is_some_and(|at_s| at_s > after_s) {
        db.execute(sql::DELETE_LATER_ARMS, [after_s])?;
    }
    Ok(())
}

/// Deletes a few page views on one side of a time, and takes them off the sums of their arms.
fn delete(
    transaction: &Transaction<'_>,
    text: &str,
    time_ms: i64,
    limit: u32,
) -> Result<u64, Error> {
    // Numbers by experiment and arm.
    let mut taken: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    let mut deleted = 0;
    let mut statement = transaction.prepare(text)?;
    let mut rows = statement.query(params![time_ms, limit])?;
    while let Some(row) = rows.next()? {
        *taken.entry((row.get(0)?, row.get(1)?)).or_default() += 1;
        deleted += 1;
    }
    for ((experiment, arm), views) in taken {
        transaction.execute(sql::TAKE_VIEWS, params![experiment, arm, views])?;
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
