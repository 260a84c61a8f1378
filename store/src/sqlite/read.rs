//! Answers to queries: roll-ups, and rows not yet in any roll-up.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};

use super::retain::end;
use super::roll::{SUMS, Sample, counts, damaged, totals_of};
use super::table::{State, find_name, int, state, uint};
use crate::error::Error;
use crate::packed::add_to;
use crate::period::{Cover, Resolution, cover};
use crate::query::{Answer, Dimension, Group, Grouping, Metric, Query};
use crate::sql;

/// Numbers of the names that a query filters by; -1 is any.
pub(super) struct Filter {
    pub(super) protocol: i64,
    pub(super) server: i64,
    pub(super) country: i64,
}

impl Filter {
    /// Returns the filter, or `None` if the store has never met one of the names.
    pub(super) fn of(db: &Connection, query: &Query) -> Result<Option<Self>, Error> {
        let number = |name: &Option<String>| match name.as_deref() {
            None => Ok(Some(-1)),
            Some("") => Ok(Some(0)),
            Some(name) => find_name(db, name),
        };
        let all = (
            number(&query.protocol)?,
            number(&query.server)?,
            number(&query.country)?,
        );
        let (Some(protocol), Some(server), Some(country)) = all else {
            return Ok(None);
        };
        Ok(Some(Self {
            protocol,
            server,
            country,
        }))
    }

    /// Returns whether a row passes.
    pub(super) fn passes(&self, sample: &Sample) -> bool {
        let passes = |wanted: i64, found: i64| wanted < 0 || wanted == found;
        passes(self.protocol, sample.protocol)
            && passes(self.server, sample.server)
            && passes(self.country, sample.keys[Dimension::Country as usize])
    }
}

/// Answers a query. Histograms stay empty unless they are wanted.
pub(super) fn answer(db: &Connection, query: &Query, histograms: bool) -> Result<Answer, Error> {
    query.check()?;
    // One transaction: rows and roll-ups are of the same moment.
    let transaction = db.unchecked_transaction()?;
    let state = state(&transaction)?;
    let mut answer = Answer::default();
    let cover = cover_of(query, &state);
    (answer.from_s, answer.to_s) = (cover.from_s, cover.to_s);
    // Subdivisions have the code of their country in their name.
    let by_subdivision = query.grouping == Grouping::Dimension(Dimension::Subdivision);
    let prefix = query.country.as_ref().filter(|_| by_subdivision);
    let prefix = prefix.map(|country| format!("{country}-"));
    let of_names = match prefix {
        Some(_) => &Query {
            country: None,
            ..query.clone()
        },
        None => query,
    };
    let Some(filter) = Filter::of(&transaction, of_names)? else {
        return Ok(answer);
    };
    let mut reading = Reading {
        query,
        cover,
        filter,
        histograms,
        version: state.version,
        groups: HashMap::new(),
    };
    reading.add_rollups(&transaction)?;
    reading.add_rows(&transaction, state.rolled_id)?;
    answer.groups = named(&transaction, query.grouping, reading.groups)?;
    if let Some(prefix) = prefix {
        answer.groups.retain(|group| group.key.starts_with(&prefix));
    }
    Ok(answer)
}

/// Covers the period of a query by roll-ups with steps short enough for its groups.
pub(super) fn cover_of(query: &Query, state: &State) -> Cover {
    let coarsest = match query.grouping {
        Grouping::Time(step) => Resolution::of(step),
        _ => Resolution::Day,
    };
    let kept = state.kept.of(query.grouping.dimension());
    cover(query.from_s, query.to_s, &kept, coarsest)
}

/// Sorts groups, and replaces numbers by names.
fn named(
    db: &Connection,
    grouping: Grouping,
    groups: HashMap<i64, Group>,
) -> Result<Vec<Group>, Error> {
    let mut sorted: Vec<(i64, Group)> = groups.into_iter().collect();
    if let Grouping::Time(_) = grouping {
        sorted.sort_unstable_by_key(|(start_s, _)| *start_s);
        let keyed = sorted.into_iter().map(|(start_s, mut group)| {
            group.key = start_s.to_string();
            group
        });
        return Ok(keyed.collect());
    }
    let mut name = db.prepare(sql::NAME_OF)?;
    let mut named = Vec::with_capacity(sorted.len());
    for (number, mut group) in sorted {
        group.key = name.query_row([number], |row| row.get(0))?;
        named.push(group);
    }
    named.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(named)
}

/// An answer on its way: groups by the number of a name, or by the begin of a step.
struct Reading<'q> {
    query: &'q Query,
    cover: Cover,
    filter: Filter,
    histograms: bool,
    /// Version of the schema.
    version: i64,
    groups: HashMap<i64, Group>,
}

impl Reading<'_> {
    fn add_rollups(&mut self, db: &Connection) -> Result<(), Error> {
        let group = match self.query.grouping {
            Grouping::Dimension(_) => "key",
            Grouping::Protocol => "protocol",
            Grouping::Server => "server",
            Grouping::Time(_) => "start_s",
        };
        let column = match self.query.metric {
            _ if !self.histograms => "0",
            Metric::MinRtt => "min_rtt",
            Metric::Rtt => "rtt",
            Metric::FirstByte => "first_byte",
            Metric::Handshake => "handshake",
        };
        let mut statement = db.prepare(&sql::rollups(self.version, group, column))?;
        let by_country = self.query.grouping.dimension() == Dimension::Country;
        let key = if by_country { self.filter.country } else { -1 };
        for segment in &self.cover.segments {
            let mut rows = statement.query(params![
                segment.resolution as u8,
                self.query.grouping.dimension() as u8,
                int(segment.from_s),
                int(segment.to_s),
                self.filter.protocol,
                self.filter.server,
                key,
            ])?;
            while let Some(row) = rows.next()? {
                let number = step_of(self.query.grouping, row.get(0)?);
                let group = self.groups.entry(number).or_default();
                group.totals.merge(&totals_of(row, 1)?);
                if self.histograms {
                    add_histogram(row, group)?;
                }
            }
        }
        Ok(())
    }

    fn add_rows(&mut self, db: &Connection, rolled_id: i64) -> Result<(), Error> {
        let dimension = self.query.grouping.dimension();
        let mut statement = db.prepare(&sql::rows(self.version))?;
        let mut rows = statement.query(params![rolled_id, i64::MAX])?;
        while let Some(row) = rows.next()? {
            let sample = Sample::of(row)?;
            let key = sample.keys[dimension as usize];
            let is_within = (self.cover.from_s..self.cover.to_s).contains(&sample.closed_s);
            if !is_within || !counts(dimension, key) || !self.filter.passes(&sample) {
                continue;
            }
            let number = match self.query.grouping {
                Grouping::Dimension(_) => key,
                Grouping::Protocol => sample.protocol,
                Grouping::Server => sample.server,
                Grouping::Time(_) => int(self.cover.start_of(sample.closed_s)),
            };
            let number = step_of(self.query.grouping, number);
            let group = self.groups.entry(number).or_default();
            group.totals.merge(&sample.totals);
            let time = sample.times[self.query.metric as usize];
            if let Some(us) = time.filter(|_| self.histograms) {
                group.histogram.add(u64::from(us));
            }
        }
        Ok(())
    }
}

/// Moves a time to the begin of its step. Other numbers remain.
fn step_of(grouping: Grouping, number: i64) -> i64 {
    match grouping {
        Grouping::Time(step) => int(Resolution::of(step).floor(uint(number))),
        _ => number,
    }
}

fn add_histogram(row: &Row<'_>, group: &mut Group) -> Result<(), Error> {
    let bytes = row.get_ref(1 + SUMS)?.as_blob().map_err(|_| damaged())?;
    add_to(&mut group.histogram, bytes).ok_or_else(damaged)
}

/// Returns the begin of the first and the end of the last minute with a connection. If its minutes are deleted, it is an hour or a
/// day.
pub(super) fn extent(db: &Connection) -> Result<Option<(u64, u64)>, Error> {
    let transaction = db.unchecked_transaction()?;
    let state = state(&transaction)?;
    let mut period = rolled_extent(&transaction)?;
    let mut statement = transaction.prepare(&sql::rows(state.version))?;
    let mut rows = statement.query(params![state.rolled_id, i64::MAX])?;
    while let Some(row) = rows.next()? {
        let start_s = Resolution::Minute.floor(Sample::of(row)?.closed_s);
        let end_s = Resolution::Minute.after(start_s);
        let (from_s, to_s) = period.unwrap_or((start_s, end_s));
        period = Some((from_s.min(start_s), to_s.max(end_s)));
    }
    Ok(period)
}

/// Returns the period of the roll-ups; its ends are as short as stored ones.
fn rolled_extent(db: &Connection) -> Result<Option<(u64, u64)>, Error> {
    // Begin and end of the first and of the last roll-up.
    let mut ends: Option<[(u64, u64); 2]> = None;
    for resolution in Resolution::ALL.into_iter().rev() {
        let found = (
            end(db, sql::OLDEST, resolution, Dimension::Country)?,
            end(db, sql::LATEST, resolution, Dimension::Country)?,
        );
        let (Some(oldest), Some(latest)) = found else {
            continue;
        };
        let period = |start_s| (start_s, resolution.after(start_s));
        let (oldest, latest) = (period(oldest), period(latest));
        let [first, last] = ends.unwrap_or([oldest, latest]);
        // A shorter roll-up outside of a longer one is not of the same time.
        ends = Some([
            if oldest.0 < first.1 { oldest } else { first },
            if latest.1 > last.0 { latest } else { last },
        ]);
    }
    Ok(ends.map(|[first, last]| (first.0, last.1)))
}
