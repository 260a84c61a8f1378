//! Open connections: one number for each minute, server and protocol.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use super::table::{find_name, int, state, uint};
use crate::error::Error;
use crate::period::Resolution;
use crate::query::{OpenConnections, Query, Step};
use crate::sql;

/// Returns the open connections of a period.
pub(super) fn open_connections(
    db: &Connection,
    query: &Query,
    step: Step,
) -> Result<Vec<OpenConnections>, Error> {
    if query.country.is_some() {
        let why = "open connections have no country";
        return Err(Error::Other(why.to_owned()));
    }
    let transaction = db.unchecked_transaction()?;
    // Another process may have made version 2 since the last query.
    if state(&transaction)?.version == 1 {
        return Ok(Vec::new());
    }
    let server = match query.server.as_deref() {
        None => Some(-1),
        Some("") => Some(0),
        Some(name) => find_name(&transaction, name)?,
    };
    let Some(server) = server else {
        return Ok(Vec::new());
    };
    let [from_s, to_s] = [query.from_s, query.to_s].map(|at_s| Resolution::Minute.ceil(at_s));
    let mut steps = Steps::default();
    let mut statement = transaction.prepare(sql::OPEN)?;
    let mut rows = statement.query(params![int(from_s), int(to_s), server])?;
    while let Some(row) = rows.next()? {
        let at_s = uint(row.get(0)?);
        steps.add(
            Resolution::of(step).floor(at_s),
            at_s,
            row.get(1)?,
            uint(row.get(2)?),
        );
    }
    let mut name = transaction.prepare(sql::NAME_OF)?;
    let mut found = Vec::new();
    for (start_s, step) in &mut steps.0 {
        step.end_minute();
        let before = found.len();
        for (protocol, sums) in &step.protocols {
            found.push(OpenConnections {
                start_s: *start_s,
                protocol: name.query_row([protocol], |row| row.get(0))?,
                mean: sums.sum as f64 / step.minutes as f64,
                max: sums.max,
            });
        }
        found[before..].sort_by(|one, other| one.protocol.cmp(&other.protocol));
    }
    let wanted = query.protocol.as_ref();
    found.retain(|one| wanted.is_none_or(|protocol| *protocol == one.protocol));
    Ok(found)
}

/// Sums by the begin of a step.
#[derive(Default)]
struct Steps(BTreeMap<u64, StepSums>);

#[derive(Default)]
struct StepSums {
    /// Minutes with a number of any protocol.
    minutes: u64,
    /// The minute that is being added up.
    minute_s: Option<u64>,
    protocols: BTreeMap<i64, Sums>,
}

/// Open connections of one protocol.
#[derive(Default)]
struct Sums {
    /// Of this minute, by all servers.
    minute: u64,
    /// Of the minutes before.
    sum: u64,
    max: u64,
}

impl Steps {
    /// Adds the number of a server. Minutes follow each other.
    fn add(&mut self, start_s: u64, minute_s: u64, protocol: i64, connections: u64) {
        let step = self.0.entry(start_s).or_default();
        if step.minute_s != Some(minute_s) {
            step.end_minute();
            step.minute_s = Some(minute_s);
        }
        let sums = step.protocols.entry(protocol).or_default();
        sums.minute = sums.minute.saturating_add(connections);
    }
}

impl StepSums {
    fn end_minute(&mut self) {
        if self.minute_s.take().is_none() {
            return;
        }
        self.minutes += 1;
        for sums in self.protocols.values_mut() {
            let minute = std::mem::take(&mut sums.minute);
            sums.sum = sums.sum.saturating_add(minute);
            sums.max = sums.max.max(minute);
        }
    }
}
