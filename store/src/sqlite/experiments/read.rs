//! Answers about users: page views in the order of the table, which groups them by user.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};

use crate::clock::wall_s;
use crate::error::Error;
use crate::experiment::{
    ArmSums, ArmTotals, Excluded, ExperimentQuery, ExperimentSettings, ExperimentSummary, Files,
    StoredArm, UserValue, Users, View, VisitMetric, arms_of, metrics_of, place_of, summary,
};
use crate::sql::{self, experiment as texts};
use crate::sqlite::table::{find_name, int, state, uint};

/// First version of the schema with experiments.
const SINCE_VERSION: i64 = 3;

/// Returns whether the store has the tables of experiments. Another process may have made them since the last query.
pub(super) fn has_tables(db: &Connection) -> Result<bool, Error> {
    Ok(state(db)?.version >= SINCE_VERSION)
}

/// Returns all experiments by name.
pub(crate) fn summaries(db: &Connection) -> Result<Vec<ExperimentSummary>, Error> {
    let transaction = db.unchecked_transaction()?;
    if !has_tables(&transaction)? {
        return Ok(Vec::new());
    }
    let numbers = transaction
        .prepare(texts::NUMBERS)?
        .query_map([], |row| row.get(0))?
        .collect::<Result<Vec<i64>, _>>()?;
    let mut found = Vec::with_capacity(numbers.len());
    for number in numbers {
        let name = name_of(&transaction, number)?;
        found.push(summary_of(&transaction, number, name)?.0);
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Returns an experiment.
pub(crate) fn experiment(db: &Connection, name: &str) -> Result<Option<ExperimentSummary>, Error> {
    let transaction = db.unchecked_transaction()?;
    if !has_tables(&transaction)? {
        return Ok(None);
    }
    let Some(number) = find_name(&transaction, name)? else {
        return Ok(None);
    };
    let (found, arms) = summary_of(&transaction, number, name.to_owned())?;
    // The name may be that of a server.
    Ok(Some(found).filter(|found| found.settings.is_some() || !arms.is_empty()))
}

/// Returns the values of users.
pub(crate) fn users(
    db: &Connection,
    query: &ExperimentQuery,
    metric: VisitMetric,
    each: &mut dyn FnMut(UserValue),
) -> Result<Excluded, Error> {
    let transaction = db.unchecked_transaction()?;
    let Some(experiment) = Experiment::of(&transaction, query)? else {
        return Ok(Excluded::default());
    };
    let mut users = Users::new(query);
    let mut statement = transaction.prepare(&texts::values(metric))?;
    let mut rows = statement.query(params![experiment.number, experiment.to_ms])?;
    while let Some(row) = rows.next()? {
        let part = row.get::<_, Option<u32>>(4)?;
        let (user, view) = experiment.view(row, part)?;
        users.add(user, view);
    }
    Ok(users.finish(each))
}

/// Returns the totals of all arms.
pub(crate) fn totals(db: &Connection, query: &ExperimentQuery) -> Result<Vec<ArmTotals>, Error> {
    let transaction = db.unchecked_transaction()?;
    let Some(experiment) = Experiment::of(&transaction, query)? else {
        return Ok(Vec::new());
    };
    let mut sums = ArmSums::new(query, experiment.arms.len());
    let mut statement = transaction.prepare(texts::FILES)?;
    let mut rows = statement.query(params![experiment.number, experiment.to_ms])?;
    while let Some(row) = rows.next()? {
        let count = |column| row.get::<_, i64>(column).map(uint);
        let part = Files {
            is_failed: row.get(4)?,
            files: count(5)?,
            files_failed: count(6)?,
            files_truncated: count(7)?,
            file_bytes: count(8)?,
        };
        let (user, view) = experiment.view(row, part)?;
        sums.add(user, view);
    }
    Ok(sums.finish())
}

/// Returns the time of the newest page view up to a second, Unix seconds.
pub(crate) fn newest_s(db: &Connection, limit_s: u64) -> Result<Option<u64>, Error> {
    let end_ms = int(limit_s.saturating_add(1).saturating_mul(1000));
    let newest: Option<i64> = db.query_row(texts::NEWEST_VISIT, [end_ms], |row| row.get(0))?;
    Ok(newest.map(|at_ms| uint(at_ms) / 1000))
}

/// Returns all settings of an experiment with their times, in the order of storage.
pub(super) fn settings_of(
    db: &Connection,
    number: i64,
    name: &str,
) -> Result<Vec<(u64, ExperimentSettings)>, Error> {
    let time = |row: &Row<'_>, column| {
        let found = row.get::<_, Option<i64>>(column);
        found.map(|time| time.map(uint))
    };
    let read = |row: &Row<'_>| {
        let since_s: i64 = row.get(0)?;
        let settings = ExperimentSettings {
            name: name.to_owned(),
            arms: arms_of(row.get_ref(1)?.as_str()?),
            share: row.get(2)?,
            start_s: time(row, 3)?,
            end_s: time(row, 4)?,
            window_s: uint(row.get(5)?),
            pre_period_s: uint(row.get(6)?),
            metrics: metrics_of(row.get_ref(7)?.as_str()?),
        };
        Ok((uint(since_s), settings))
    };
    let mut statement = db.prepare(texts::SETTINGS)?;
    let rows = statement.query_map([number], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the summary of an experiment, and the numbers of its arms.
fn summary_of(
    db: &Connection,
    number: i64,
    name: String,
) -> Result<(ExperimentSummary, HashMap<i64, Option<usize>>), Error> {
    let settings = settings_of(db, number, &name)?;
    let read = |row: &Row<'_>| {
        let stored = StoredArm {
            name: String::new(),
            views: uint(row.get(1)?),
            first_ms: uint(row.get(2)?),
            last_ms: uint(row.get(3)?),
        };
        Ok((row.get(0)?, stored))
    };
    let mut numbered = db
        .prepare(texts::ARMS)?
        .query_map([number], read)?
        .collect::<Result<Vec<(i64, StoredArm)>, _>>()?;
    for (number, arm) in &mut numbered {
        arm.name = name_of(db, *number)?;
    }
    let arms = numbered.iter().map(|(_, arm)| arm.clone()).collect();
    let found = summary(name, settings, arms, wall_s());
    let places = numbered.into_iter();
    let places = places.map(|(number, arm)| (number, place_of(&found.arms, &arm.name)));
    let places = places.collect();
    Ok((found, places))
}

/// Returns a name by its number.
pub(super) fn name_of(db: &Connection, number: i64) -> Result<String, Error> {
    Ok(db.query_row(sql::NAME_OF, [number], |row| row.get(0))?)
}

/// The experiment of a query.
pub(super) struct Experiment {
    pub(super) number: i64,
    /// End of the period.
    to_ms: i64,
    /// Arms of the summary.
    pub(super) arms: Vec<String>,
    /// Places of the arms with page views, by their number; `None` for page views before the start.
    places: HashMap<i64, Option<usize>>,
}

impl Experiment {
    /// Returns `None` if the store has no such experiment.
    pub(super) fn of(db: &Connection, query: &ExperimentQuery) -> Result<Option<Self>, Error> {
        if !has_tables(db)? {
            return Ok(None);
        }
        let Some(number) = find_name(db, &query.experiment)? else {
            return Ok(None);
        };
        let (summary, places) = summary_of(db, number, query.experiment.clone())?;
        Ok(Some(Self {
            number,
            to_ms: int(query.to_s.saturating_mul(1000)),
            arms: summary.arms,
            places,
        }))
    }

    /// Reads a page view, with the part that an answer needs.
    fn view<T>(&self, row: &Row<'_>, part: T) -> Result<(u64, View<T>), Error> {
        let id = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
        let arm: i64 = row.get(3)?;
        let view = View {
            view: id(1)?,
            at_ms: uint(row.get(2)?),
            // The table of arms has all of them.
            arm: self.places.get(&arm).copied().flatten(),
            part,
        };
        Ok((id(0)?, view))
    }
}
