//! Figures of servers by step and arm.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, params};

use super::insert::figures_of;
use super::read::{Experiment, name_of};
use crate::error::Error;
use crate::experiment::{ArmFigures, ArmStep, ExperimentQuery, open_mean, place_of};
use crate::period::Resolution;
use crate::query::Step;
use crate::sql::experiment as sql;
use crate::sqlite::table::{int, uint};

/// Returns the figures of a period.
pub(crate) fn steps(
    db: &Connection,
    query: &ExperimentQuery,
    step: Step,
) -> Result<Vec<ArmStep>, Error> {
    let transaction = db.unchecked_transaction()?;
    let Some(experiment) = Experiment::of(&transaction, query)? else {
        return Ok(Vec::new());
    };
    let [from_s, to_s] = [query.from_s, query.to_s].map(|at_s| Resolution::Minute.ceil(at_s));
    let mut places: HashMap<i64, Option<usize>> = HashMap::new();
    let mut steps = Steps::default();
    let mut statement = transaction.prepare(sql::STEPS)?;
    let mut rows = statement.query(params![int(from_s), int(to_s), experiment.number])?;
    while let Some(row) = rows.next()? {
        let (at_s, arm) = (uint(row.get(0)?), row.get(1)?);
        let place = match places.get(&arm) {
            Some(place) => *place,
            None => {
                let place = place_of(&experiment.arms, &name_of(&transaction, arm)?);
                places.insert(arm, place);
                place
            }
        };
        let start_s = Resolution::of(step).floor(at_s);
        steps.add(start_s, at_s, place, &figures_of(row, 2)??);
    }
    Ok(steps.finish())
}

/// Sums by the begin of a step.
#[derive(Default)]
struct Steps(BTreeMap<u64, StepSums>);

#[derive(Default)]
struct StepSums {
    /// Minutes with a sample of open connections of any arm.
    minutes: u64,
    /// The last one of them.
    sampled_s: Option<u64>,
    arms: BTreeMap<usize, Sums>,
}

/// Figures of one arm.
#[derive(Default)]
struct Sums {
    figures: ArmFigures,
    /// Means of the minutes, added up in thousandths.
    open_milli: u64,
    /// Largest numbers of this minute, added up over servers.
    minute_s: u64,
    minute_open: u64,
    minute_memory: u64,
    /// Largest of the minutes.
    open_max: u64,
    memory_max: u64,
}

impl Steps {
    /// Adds the figures of a server. Minutes follow each other. Without an arm they are a sample alone.
    fn add(&mut self, start_s: u64, minute_s: u64, arm: Option<usize>, figures: &ArmFigures) {
        let step = self.0.entry(start_s).or_default();
        if figures.open_samples > 0 && step.sampled_s.replace(minute_s) != Some(minute_s) {
            step.minutes += 1;
        }
        let Some(arm) = arm else {
            return;
        };
        let sums = step.arms.entry(arm).or_default();
        sums.figures.merge(figures);
        let milli = figures.open_sum.saturating_mul(1000);
        let mean = milli.checked_div(figures.open_samples).unwrap_or_default();
        sums.open_milli = sums.open_milli.saturating_add(mean);
        if std::mem::replace(&mut sums.minute_s, minute_s) != minute_s {
            (sums.minute_open, sums.minute_memory) = (0, 0);
        }
        sums.minute_open = sums.minute_open.saturating_add(figures.open_max);
        sums.minute_memory = sums.minute_memory.saturating_add(figures.memory_max);
        sums.open_max = sums.open_max.max(sums.minute_open);
        sums.memory_max = sums.memory_max.max(sums.minute_memory);
    }

    fn finish(self) -> Vec<ArmStep> {
        let mut found = Vec::new();
        for (start_s, step) in self.0 {
            for (arm, sums) in step.arms {
                found.push(arm_step(start_s, arm, step.minutes, sums));
            }
        }
        found
    }
}

fn arm_step(start_s: u64, arm: usize, minutes: u64, sums: Sums) -> ArmStep {
    let figures = sums.figures;
    ArmStep {
        start_s,
        arm,
        connections: figures.connections,
        open_mean: open_mean(sums.open_milli, minutes),
        open_max: sums.open_max,
        requests: figures.requests,
        promised: figures.promised,
        sent: figures.sent,
        truncated: figures.truncated,
        aborted: figures.aborted,
        duration_ms: figures.duration_ms,
        cpu_us: figures.cpu_us,
        cpu_connections: figures.cpu_connections,
        memory_max: sums.memory_max,
        first_byte: figures.first_byte,
        handshake: figures.handshake,
    }
}
