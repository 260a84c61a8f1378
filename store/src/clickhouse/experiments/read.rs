//! Answers about users. ClickHouse returns page views by user, and the values are computed here, as for SQLite.
//!
//! Users are read in slices of their ids, which are spread evenly: a response has about [`SLICE_ROWS`] page views,
//! and at most [`USER_ROWS_MAX`] of one user. A page view stored twice counts once, the earliest.

use std::collections::BTreeMap;

use crate::clickhouse::parse::Fields;
use crate::clickhouse::reader::Reader;
use crate::clickhouse::text::literal;
use crate::clock::{WRONG_S, wall_s};
use crate::error::Error;
use crate::experiment::{
    ArmSums, ArmTotals, Excluded, ExperimentQuery, ExperimentSettings, ExperimentSummary, Files,
    StoredArm, UserValue, Users, VIEWS_MAX, View, VisitMetric, arms_of, column, metrics_of,
    summary,
};

/// Page views of a response.
const SLICE_ROWS: u64 = 100_000;
/// Rows of one user in a response at most, the earliest ones. A page view may have two rows.
const USER_ROWS_MAX: usize = 2 * VIEWS_MAX;
/// Slices at most.
const SLICES_MAX: u64 = 1 << 16;

/// Returns all experiments by name.
pub(crate) fn summaries(reader: &mut Reader) -> Result<Vec<ExperimentSummary>, Error> {
    summaries_of(reader, None)
}

/// Returns an experiment.
pub(crate) fn experiment(
    reader: &mut Reader,
    name: &str,
) -> Result<Option<ExperimentSummary>, Error> {
    Ok(summaries_of(reader, Some(name))?.pop())
}

/// Returns all experiments or one. Repeated page views count: ClickHouse would need all ids to find them.
fn summaries_of(reader: &mut Reader, name: Option<&str>) -> Result<Vec<ExperimentSummary>, Error> {
    if !reader.has_experiments() {
        return Ok(Vec::new());
    }
    let chosen = |column: &str| {
        let is_named = |name: &str| format!("{column} = {}", literal(name));
        name.map_or_else(|| "1".to_owned(), is_named)
    };
    let mut settings = settings(reader, &chosen("name"))?;
    let text = format!(
        "SELECT experiment, arm, count(), min(at_ms), max(at_ms) FROM {} WHERE {} \
         GROUP BY experiment, arm FORMAT TabSeparated",
        reader.table("visit"),
        chosen("experiment")
    );
    let mut arms: BTreeMap<String, Vec<StoredArm>> = BTreeMap::new();
    reader.each(text, |fields| {
        let of_experiment = arms.entry(fields.text()?).or_default();
        of_experiment.push(StoredArm {
            name: fields.text()?,
            views: fields.number()?,
            first_ms: fields.number()?,
            last_ms: fields.number()?,
        });
        Ok(())
    })?;
    for name in settings.keys() {
        arms.entry(name.clone()).or_default();
    }
    let now_s = wall_s();
    let found = arms.into_iter().map(|(name, arms)| {
        let settings = settings.remove(&name).unwrap_or_default();
        summary(name, settings, arms, now_s)
    });
    Ok(found.collect())
}

/// Returns the values of users.
pub(crate) fn users(
    reader: &mut Reader,
    query: &ExperimentQuery,
    metric: VisitMetric,
    each: &mut dyn FnMut(UserValue),
) -> Result<Excluded, Error> {
    let Some(arms) = arms_of_experiment(reader, &query.experiment)? else {
        return Ok(Excluded::default());
    };
    let mut users = Users::new(query);
    each_view(
        reader,
        query,
        column(metric),
        &arms,
        |user, view, fields| {
            let part = fields.known()?;
            users.add(user, view.with(part));
            Ok(())
        },
    )?;
    Ok(users.finish(each))
}

/// Returns the totals of all arms.
pub(crate) fn totals(
    reader: &mut Reader,
    query: &ExperimentQuery,
) -> Result<Vec<ArmTotals>, Error> {
    let Some(arms) = arms_of_experiment(reader, &query.experiment)? else {
        return Ok(Vec::new());
    };
    let mut sums = ArmSums::new(query, arms.len());
    let columns = "is_failed, files, files_failed, files_truncated, file_bytes";
    each_view(reader, query, columns, &arms, |user, view, fields| {
        let part = Files {
            is_failed: fields.number()? != 0,
            files: fields.number()?,
            files_failed: fields.number()?,
            files_truncated: fields.number()?,
            file_bytes: fields.number()?,
        };
        sums.add(user, view.with(part));
        Ok(())
    })?;
    Ok(sums.finish())
}

/// Reads the page views of an experiment before the end of a period, grouped by user.
fn each_view(
    reader: &mut Reader,
    query: &ExperimentQuery,
    columns: &str,
    arms: &[String],
    mut read: impl FnMut(u64, View<()>, &mut Fields<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let chosen = format!(
        "experiment = {} AND at_ms < {}",
        literal(&query.experiment),
        query.to_s.saturating_mul(1000)
    );
    let table = reader.table("visit");
    let mut count = 0;
    let text = format!("SELECT count() FROM {table} WHERE {chosen} FORMAT TabSeparated");
    reader.each(text, |fields| {
        count = fields.number()?;
        Ok(())
    })?;
    let places: BTreeMap<&str, usize> = arms.iter().map(String::as_str).zip(0..).collect();
    for (first, last) in slices(count) {
        let text = format!(
            "SELECT user_id, view_id, at_ms, arm, {columns} FROM {table} \
             WHERE {chosen} AND user_id >= {first} AND user_id <= {last} \
             ORDER BY user_id, at_ms, view_id LIMIT {USER_ROWS_MAX} BY user_id FORMAT TabSeparated"
        );
        reader.each(text, |fields| {
            let (user, view, at_ms) = (fields.number()?, fields.number()?, fields.number()?);
            let name = fields.text()?;
            let view = View {
                view,
                at_ms,
                arm: places.get(name.as_str()).copied(),
                part: (),
            };
            read(user, view, fields)
        })?;
    }
    Ok(())
}

/// Divides the ids of users, so that each slice has about [`SLICE_ROWS`] of so many page views.
fn slices(rows: u64) -> impl Iterator<Item = (u64, u64)> {
    let count = rows.div_ceil(SLICE_ROWS).clamp(1, SLICES_MAX);
    let width = u64::MAX / count;
    (0..count).map(move |slice| {
        let last = match slice + 1 {
            next if next == count => u64::MAX,
            next => next * width - 1,
        };
        (slice * width, last)
    })
}

/// Returns the arms of an experiment, `None` if there is no such experiment.
pub(super) fn arms_of_experiment(
    reader: &mut Reader,
    name: &str,
) -> Result<Option<Vec<String>>, Error> {
    Ok(experiment(reader, name)?.map(|found| found.arms))
}

/// Settings with their times by the name of the experiment, in the order of time.
type Settings = BTreeMap<String, Vec<(u64, ExperimentSettings)>>;

/// Reads settings. Rows from the future are from a server with a wrong clock.
fn settings(reader: &mut Reader, chosen: &str) -> Result<Settings, Error> {
    let text = format!(
        "SELECT since_s, name, arms, share, start_s, end_s, window_s, pre_period_s, metrics \
         FROM {} WHERE {chosen} AND since_s <= toUnixTimestamp(now()) + {WRONG_S} FORMAT TabSeparated",
        reader.table("experiment")
    );
    let mut found = Settings::new();
    reader.each(text, |fields| {
        let (since_s, name) = (fields.number()?, fields.text()?);
        let settings = ExperimentSettings {
            name: name.clone(),
            arms: arms_of(&fields.text()?),
            share: fields.narrow()?,
            start_s: fields.optional()?,
            end_s: fields.optional()?,
            window_s: fields.number()?,
            pre_period_s: fields.number()?,
            metrics: metrics_of(&fields.text()?),
        };
        found.entry(name).or_default().push((since_s, settings));
        Ok(())
    })?;
    // Of one second, the order is unknown.
    found.values_mut().for_each(|rows| rows.sort());
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_all_ids_once() {
        for rows in [0, 1, SLICE_ROWS, SLICE_ROWS + 1, 16 * SLICE_ROWS, u64::MAX] {
            let mut next = Some(0);
            let mut count = 0;
            for (first, last) in slices(rows) {
                assert_eq!(Some(first), next, "{rows}");
                assert!(last >= first);
                next = last.checked_add(1);
                count += 1;
            }
            assert_eq!(next, None, "{rows}");
            assert_eq!(count, rows.div_ceil(SLICE_ROWS).clamp(1, SLICES_MAX));
        }
    }
}
