//! Deletion of old rows and roll-ups, in small steps.
//!
//! Rows are deleted in the order of their storage: a row is deleted with the next row that is old enough. So a
//! temporarily wrong clock neither keeps rows forever nor deletes new ones.

use rusqlite::{Transaction, params};

use super::experiments;
use super::table::{State, int, state, uint, write};
use crate::clock::WRONG_S;
use crate::error::Error;
use crate::period::{Kept, Resolution, dimensions_of};
use crate::query::Dimension;
use crate::retention::{HOURS_KEPT_S, MAX_BYTES_LEAST, MINUTES_KEPT_S, Retention};
use crate::sql;

/// Rows that one step deletes.
const STEP_ROWS: u32 = 5_000;
/// Pages that one step returns to the file system.
const STEP_PAGES: u64 = 1_000;
/// Share of free pages above which the file shrinks; fewer are reused for the next rows.
const FREE_SHARE: u64 = 4;

/// Work done by a step.
#[derive(Default)]
pub(super) struct Deleted {
    pub(super) rows: u64,
    pub(super) rollups: u64,
    /// Whether another step may find work.
    pub(super) more: bool,
}

/// Work that counts neither rows nor roll-ups, with more to come.
const MORE: Deleted = Deleted {
    rows: 0,
    rollups: 0,
    more: true,
};

/// Pages of the file.
struct Pages {
    size: u64,
    used: u64,
    most: u64,
}

/// Deletes a few rows or the roll-ups of one minute, hour or day. If none is too old, the file shrinks by a few pages.
pub(super) fn step(
    db: &mut rusqlite::Connection,
    now_s: u64,
    retention: &Retention,
) -> Result<Deleted, Error> {
    let deleted = expire(db, now_s, retention)?;
    if deleted.more {
        return Ok(deleted);
    }
    let pages = pages(db, retention)?;
    if pages.used > pages.most {
        let deleted = free(db)?;
        if deleted.more {
            return Ok(deleted);
        }
    }
    let unused = pages.size - pages.used;
    let shrinks = pages.size > pages.most || unused > pages.size / FREE_SHARE;
    if shrinks && unused > 0 {
        vacuum(db, STEP_PAGES)?;
        // The last pages of the file may be in use by the pointer map.
        let more = self::pages(db, retention)?.size < pages.size;
        return Ok(Deleted {
            more,
            ..Deleted::default()
        });
    }
    Ok(Deleted::default())
}

/// Moves back begins that a wrong clock put into the future, so that connections of the present get roll-ups. Open connections and
/// figures of arms of that future are deleted.
pub(super) fn correct(
    db: &mut rusqlite::Connection,
    now_s: u64,
    retention: &Retention,
) -> Result<(), Error> {
    if now_s == 0 {
        return Ok(());
    }
    let wrong_s = int(now_s.saturating_add(WRONG_S));
    let latest: Option<i64> = db.query_row(sql::LATEST_OPEN, [], |row| row.get(0))?;
    if latest.is_some_and(|at_s| at_s > wrong_s) {
        db.execute(sql::DELETE_LATER_OPEN, [wrong_s])?;
    }
    experiments::delete_later_arms(db, now_s.saturating_add(WRONG_S))?;
    if state(db)?.kept.minutes_from_s <= now_s + WRONG_S {
        return Ok(());
    }
    let transaction = write(db)?;
    put_kept(&transaction, now_s, retention)?;
    Ok(transaction.commit()?)
}

/// Deletes a few numbers of open connections before a time. Returns whether there were any.
fn delete_open(db: &mut rusqlite::Connection, until_s: i64) -> Result<bool, Error> {
    let oldest: Option<i64> = db.query_row(sql::OLDEST_OPEN, [], |row| row.get(0))?;
    if oldest.is_none_or(|at_s| at_s >= until_s) {
        // A deletion would wait for other writers.
        return Ok(false);
    }
    db.execute(sql::DELETE_OPEN, params![until_s, STEP_ROWS])?;
    Ok(true)
}

/// Deletes rows beyond the retention time.
fn expire(
    db: &mut rusqlite::Connection,
    now_s: u64,
    retention: &Retention,
) -> Result<Deleted, Error> {
    let before = state(db)?;
    let kept = kept(&before.kept, now_s, retention);
    for resolution in Resolution::ALL {
        for &dimension in dimensions_of(resolution) {
            let oldest = oldest(db, resolution, dimension)?;
            if oldest.is_some_and(|start_s| start_s < kept.begin_s(resolution)) {
                let transaction = write(db)?;
                put_kept(&transaction, now_s, retention)?;
                let rollups = delete_rollups(&transaction, resolution, dimension, oldest)?;
                transaction.commit()?;
                return Ok(Deleted {
                    rollups,
                    more: true,
                    ..Deleted::default()
                });
            }
        }
    }
    if kept != before.kept {
        // Even if nothing is deleted: later rows of that time have no roll-up.
        let transaction = write(db)?;
        put_kept(&transaction, now_s, retention)?;
        transaction.commit()?;
    }
    let until_s = int(now_s.saturating_sub(retention.rows_s));
    if delete_open(db, until_s)? {
        return Ok(MORE);
    }
    // Page views and figures of arms are of use as long as the whole experiment.
    let rollups_until_s = now_s.saturating_sub(retention.rollups_s);
    if experiments::delete_arms(db, rollups_until_s, STEP_ROWS)? {
        return Ok(MORE);
    }
    let mut visits = experiments::delete_visits(db, rollups_until_s, STEP_ROWS)?;
    if visits == 0 && now_s > 0 {
        // They would be the newest rows for the next look at a clock.
        let wrong_s = now_s.saturating_add(WRONG_S);
        visits = experiments::delete_later_visits(db, wrong_s, STEP_ROWS)?;
    }
    if visits > 0 {
        return Ok(deleted_rows(visits));
    }
    let last: Option<i64> = db.query_row(
        sql::LAST_OLD,
        params![before.rolled_id, STEP_ROWS, until_s],
        |row| row.get(0),
    )?;
    match last {
        Some(last) => delete_rows(db, last),
        None => Ok(Deleted::default()),
    }
}

/// Returns the begins of the roll-ups that are young enough. None moves back, but for those that a wrong clock put into the
/// future.
fn kept(before: &Kept, now_s: u64, retention: &Retention) -> Kept {
    let from_s = |age_s: u64, whole: Resolution, before_s: u64| {
        let begin_s = whole.floor(now_s.saturating_sub(age_s.min(retention.rollups_s)));
        // The limit of the size moves a begin to the next day at most.
        let is_wrong = now_s > 0 && before_s > now_s + WRONG_S;
        if is_wrong {
            begin_s
        } else {
            begin_s.max(before_s)
        }
    };
    let days_from_s = from_s(retention.rollups_s, Resolution::Day, before.days_from_s);
    let hours_from_s = from_s(HOURS_KEPT_S, Resolution::Day, before.hours_from_s);
    let minutes_from_s = from_s(MINUTES_KEPT_S, Resolution::Hour, before.minutes_from_s);
    Kept {
        days_from_s,
        hours_from_s,
        minutes_from_s,
    }
}

fn put_kept(transaction: &Transaction<'_>, now_s: u64, retention: &Retention) -> Result<(), Error> {
    // Another process may have moved them meanwhile.
    let kept = kept(&state(transaction)?.kept, now_s, retention);
    store_kept(transaction, &kept)
}

fn store_kept(transaction: &Transaction<'_>, kept: &Kept) -> Result<(), Error> {
    transaction.execute(
        sql::KEPT,
        params![
            int(kept.minutes_from_s),
            int(kept.hours_from_s),
            int(kept.days_from_s)
        ],
    )?;
    Ok(())
}

fn oldest(
    db: &rusqlite::Connection,
    resolution: Resolution,
    dimension: Dimension,
) -> Result<Option<u64>, Error> {
    end(db, sql::OLDEST, resolution, dimension)
}

/// Returns the begin of the oldest or the latest roll-up.
pub(super) fn end(
    db: &rusqlite::Connection,
    text: &str,
    resolution: Resolution,
    dimension: Dimension,
) -> Result<Option<u64>, Error> {
    let place = params![resolution as u8, dimension as u8];
    let start: Option<i64> = db.query_row(text, place, |row| row.get(0))?;
    Ok(start.map(uint))
}

fn delete_rollups(
    transaction: &Transaction<'_>,
    resolution: Resolution,
    dimension: Dimension,
    start_s: Option<u64>,
) -> Result<u64, Error> {
    let place = params![resolution as u8, dimension as u8, start_s.map(int)];
    Ok(transaction.execute(sql::DELETE_ROLLUPS, place)? as u64)
}

fn delete_rows(db: &mut rusqlite::Connection, last: i64) -> Result<Deleted, Error> {
    let transaction = write(db)?;
    let rows = transaction.execute(sql::DELETE_ROWS, [last])? as u64;
    transaction.commit()?;
    Ok(deleted_rows(rows))
}

/// Work of a step that has deleted rows.
fn deleted_rows(rows: u64) -> Deleted {
    Deleted {
        rows,
        more: true,
        ..Deleted::default()
    }
}

/// Deletes the oldest rows. Without rows, it declares the oldest roll-ups too old, and the next steps delete them. Figures of arms
/// and page views are the last ones.
fn free(db: &mut rusqlite::Connection) -> Result<Deleted, Error> {
    let State {
        rolled_id,
        mut kept,
        ..
    } = state(db)?;
    let oldest_rows = params![rolled_id, STEP_ROWS];
    let last: Option<i64> = db.query_row(sql::LAST_OF_OLDEST, oldest_rows, |row| row.get(0))?;
    if let Some(last) = last {
        return delete_rows(db, last);
    }
    if delete_open(db, i64::MAX)? {
        return Ok(MORE);
    }
    let first = |resolution| -> Result<Option<u64>, Error> {
        let mut first = None;
        for &dimension in dimensions_of(resolution) {
            let start_s = oldest(db, resolution, dimension)?;
            first = [first, start_s].into_iter().flatten().min();
        }
        Ok(first)
    };
    // A resolution ends at the begin of a coarser one.
    if let Some(start_s) = first(Resolution::Minute)? {
        kept.minutes_from_s = Resolution::Hour.after(start_s);
    } else if let Some(start_s) = first(Resolution::Hour)? {
        kept.hours_from_s = Resolution::Day.after(start_s);
    } else if let Some(start_s) = first(Resolution::Day)? {
        kept.days_from_s = Resolution::Day.after(start_s);
    } else if experiments::delete_arms(db, u64::MAX, STEP_ROWS)? {
        return Ok(MORE);
    } else {
        let visits = experiments::delete_visits(db, u64::MAX, STEP_ROWS)?;
        return Ok(Deleted {
            more: visits > 0,
            ..deleted_rows(visits)
        });
    }
    let transaction = write(db)?;
    store_kept(&transaction, &kept)?;
    transaction.commit()?;
    Ok(Deleted {
        more: true,
        ..Deleted::default()
    })
}

fn vacuum(db: &rusqlite::Connection, pages: u64) -> Result<(), Error> {
    let mut statement = db.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut rows = statement.query([])?;
    // Each row is a page.
    while rows.next()?.is_some() {}
    Ok(())
}

fn pages(db: &rusqlite::Connection, retention: &Retention) -> Result<Pages, Error> {
    let pragma = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let size = uint(pragma("page_count")?);
    Ok(Pages {
        size,
        used: size.saturating_sub(uint(pragma("freelist_count")?)),
        most: retention.max_bytes.max(MAX_BYTES_LEAST) / uint(pragma("page_size")?).max(1),
    })
}
