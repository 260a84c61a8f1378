//! Rows of experiments are stored: a page view once, figures of a minute added up, settings if they have changed.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{OptionalExtension, Row, Statement, params};

use super::read::settings_of;
use crate::clock::WRONG_S;
use crate::error::Error;
use crate::experiment::{
    ArmFigures, ExperimentRows, ExperimentSettings, Visit, arms_text, metrics_text,
};
use crate::histogram::Histogram;
use crate::packed::{Packed, add_to};
use crate::period::Resolution;
use crate::sql::experiment as sql;
use crate::sqlite::roll::damaged;
use crate::sqlite::table::{CLOSED_S_MAX, int, number_of, uint};

/// Numbers of names that the writer knows.
type Names = HashMap<String, i64>;

/// Stores rows of experiments within a transaction.
pub(crate) fn insert(
    db: &rusqlite::Connection,
    names: &mut Names,
    rows: &ExperimentRows,
) -> Result<(), Error> {
    for (since_s, settings) in &rows.settings {
        insert_settings(db, names, *since_s, settings)?;
    }
    insert_visits(db, names, &rows.visits)?;
    insert_arms(db, names, &rows.arms)
}

/// Stores settings unless the store has them. They are stored again if the stored time is that of a wrong clock.
fn insert_settings(
    db: &rusqlite::Connection,
    names: &mut Names,
    since_s: u64,
    settings: &ExperimentSettings,
) -> Result<(), Error> {
    let name = number_of(db, names, &settings.name)?;
    let stored = settings_of(db, name, &settings.name)?;
    let is_stored =
        |(last_s, last): &(u64, _)| last == settings && *last_s <= since_s.saturating_add(WRONG_S);
    match stored.last().is_some_and(is_stored) {
        true => Ok(()),
        false => put_settings(db, name, since_s, settings),
    }
}

/// Stores settings applied to an earlier file, unless the store has them or later ones: another process may have
/// stored them.
pub(crate) fn restore_settings(
    db: &rusqlite::Connection,
    names: &mut Names,
    since_s: u64,
    settings: &ExperimentSettings,
) -> Result<(), Error> {
    let name = number_of(db, names, &settings.name)?;
    let stored = settings_of(db, name, &settings.name)?;
    let is_needed = |(last_s, last): &(u64, _)| last != settings && *last_s <= since_s;
    match stored.last().is_none_or(is_needed) {
        true => put_settings(db, name, since_s, settings),
        false => Ok(()),
    }
}

fn put_settings(
    db: &rusqlite::Connection,
    name: i64,
    since_s: u64,
    settings: &ExperimentSettings,
) -> Result<(), Error> {
    db.execute(
        sql::INSERT_SETTINGS,
        params![
            name,
            int(since_s.min(CLOSED_S_MAX)),
            arms_text(&settings.arms),
            settings.share,
            settings.start_s.map(int),
            settings.end_s.map(int),
            int(settings.window_s),
            int(settings.pre_period_s),
            metrics_text(&settings.metrics),
        ],
    )?;
    Ok(())
}

/// Page views that a commit adds to an arm.
struct Added {
    views: i64,
    first_ms: i64,
    last_ms: i64,
}

fn insert_visits(
    db: &rusqlite::Connection,
    names: &mut Names,
    visits: &[Visit],
) -> Result<(), Error> {
    let mut insert = db.prepare(sql::INSERT_VISIT)?;
    let mut added: BTreeMap<(i64, i64), Added> = BTreeMap::new();
    for visit in visits {
        let experiment = number_of(db, names, &visit.experiment)?;
        let arm = number_of(db, names, &visit.arm)?;
        let server = number_of(db, names, &visit.server)?;
        let at_ms = int(visit.at_ms.min(CLOSED_S_MAX * 1000));
        if !put_visit(&mut insert, [experiment, arm, server, at_ms], visit)? {
            continue;
        }
        let sums = added.entry((experiment, arm)).or_insert(Added {
            views: 0,
            first_ms: at_ms,
            last_ms: at_ms,
        });
        sums.views += 1;
        sums.first_ms = sums.first_ms.min(at_ms);
        sums.last_ms = sums.last_ms.max(at_ms);
    }
    let mut add = db.prepare(sql::ADD_VIEWS)?;
    for ((experiment, arm), sums) in added {
        add.execute(params![
            experiment,
            arm,
            sums.views,
            sums.first_ms,
            sums.last_ms
        ])?;
    }
    Ok(())
}

/// Stores a page view; returns false if the user has one with its id. The place has the numbers of experiment, arm and server, and the
/// time.
fn put_visit(
    insert: &mut Statement<'_>,
    [experiment, arm, server, at_ms]: [i64; 4],
    visit: &Visit,
) -> Result<bool, Error> {
    let [
        dns,
        connect,
        tls,
        first_byte,
        response,
        content,
        load,
        rest @ ..,
    ] = visit.values;
    let [first_paint, largest_paint, interaction, shift, files] = rest;
    let rows = insert.execute(params![
        experiment,
        bits(visit.user),
        bits(visit.view),
        at_ms,
        arm,
        server,
        visit.is_failed,
        visit.files,
        visit.files_failed,
        visit.files_truncated,
        int(visit.file_bytes),
        dns,
        connect,
        tls,
        first_byte,
        response,
        content,
        load,
        first_paint,
        largest_paint,
        interaction,
        shift,
        files,
    ])?;
    Ok(rows > 0)
}

/// Ids have all 64 bits: large ones are negative in SQLite.
pub(super) fn bits(id: u64) -> i64 {
    id.cast_signed()
}

fn insert_arms(
    db: &rusqlite::Connection,
    names: &mut Names,
    figures: &[ArmFigures],
) -> Result<(), Error> {
    let mut find = db.prepare(sql::FIND_ARM)?;
    let mut put = db.prepare(sql::PUT_ARM)?;
    let (mut first_byte, mut handshake) = (Vec::new(), Vec::new());
    for row in figures {
        let at_s = int(Resolution::Minute.floor(row.at_s.min(CLOSED_S_MAX)));
        let place = [
            at_s,
            number_of(db, names, &row.experiment)?,
            number_of(db, names, &row.arm)?,
            number_of(db, names, &row.server)?,
        ];
        // Another process, or this one before its restart, may have stored a part of the minute.
        let found = find.query_row(place, |row| figures_of(row, 0)).optional()?;
        let sums = match found {
            Some(found) => {
                let mut sums = found?;
                sums.merge(row);
                sums
            }
            None => row.clone(),
        };
        Packed::of_histogram(&sums.first_byte).write(&mut first_byte);
        Packed::of_histogram(&sums.handshake).write(&mut handshake);
        put.execute(params![
            place[0],
            place[1],
            place[2],
            place[3],
            int(sums.connections),
            int(sums.requests),
            int(sums.promised),
            int(sums.sent),
            int(sums.truncated),
            int(sums.aborted),
            int(sums.duration_ms),
            int(sums.cpu_us),
            int(sums.cpu_connections),
            int(sums.open_sum),
            int(sums.open_samples),
            int(sums.open_max),
            int(sums.memory_max),
            first_byte,
            handshake,
        ])?;
    }
    Ok(())
}

/// Reads the figures of an arm from columns of `arm_minute`. Names and the time stay empty.
pub(super) fn figures_of(
    row: &Row<'_>,
    first: usize,
) -> rusqlite::Result<Result<ArmFigures, Error>> {
    let count = |column: usize| row.get::<_, i64>(first + column).map(uint);
    let mut histograms = [Histogram::default(), Histogram::default()];
    for (at, histogram) in histograms.iter_mut().enumerate() {
        let bytes = row.get_ref(first + 13 + at)?.as_blob()?;
        if add_to(histogram, bytes).is_none() {
            return Ok(Err(damaged()));
        }
    }
    let [first_byte, handshake] = histograms;
    Ok(Ok(ArmFigures {
        connections: count(0)?,
        requests: count(1)?,
        promised: count(2)?,
        sent: count(3)?,
        truncated: count(4)?,
        aborted: count(5)?,
        duration_ms: count(6)?,
        cpu_us: count(7)?,
        cpu_connections: count(8)?,
        open_sum: count(9)?,
        open_samples: count(10)?,
        open_max: count(11)?,
        memory_max: count(12)?,
        first_byte,
        handshake,
        ..ArmFigures::default()
    }))
}
