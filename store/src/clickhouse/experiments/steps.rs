//! Figures of servers by step and arm. ClickHouse adds them up.

use std::collections::BTreeMap;

use super::read::arms_of_experiment;
use crate::clickhouse::parse::unreadable;
use crate::clickhouse::reader::Reader;
use crate::clickhouse::text::literal;
use crate::error::Error;
use crate::experiment::{ArmStep, ExperimentQuery, open_mean, place_of};
use crate::histogram::Cell;
use crate::period::Resolution;
use crate::query::Step;

/// Steps by their begin and the place of the arm.
type Steps = BTreeMap<(u64, usize), ArmStep>;

/// Returns the figures of a period.
pub(crate) fn steps(
    reader: &mut Reader,
    query: &ExperimentQuery,
    step: Step,
) -> Result<Vec<ArmStep>, Error> {
    let Some(arms) = arms_of_experiment(reader, &query.experiment)? else {
        return Ok(Vec::new());
    };
    let [from_s, to_s] = [query.from_s, query.to_s].map(|at_s| Resolution::Minute.ceil(at_s));
    let chosen = format!(
        "at_s >= {from_s} AND at_s < {to_s} AND experiment = {}",
        literal(&query.experiment)
    );
    let reading = Reading {
        table: reader.table("arm_minute"),
        chosen,
        start: format!("intDiv(at_s, {0}) * {0} AS start_s", step.seconds()),
        arms,
    };
    let mut steps = Steps::new();
    reading.sums(reader, &mut steps)?;
    reading.open(reader, &mut steps)?;
    reading.cells(reader, "first_byte", &mut steps)?;
    reading.cells(reader, "handshake", &mut steps)?;
    Ok(steps.into_values().collect())
}

/// Parts of the queries.
struct Reading {
    table: String,
    chosen: String,
    /// The begin of a step.
    start: String,
    arms: Vec<String>,
}

impl Reading {
    fn sums(&self, reader: &mut Reader, steps: &mut Steps) -> Result<(), Error> {
        let Self {
            table,
            chosen,
            start,
            arms,
        } = self;
        let text = format!(
            "SELECT {start}, arm, sum(connections), sum(requests), sum(promised), sum(sent), sum(truncated), \
             sum(aborted), sum(duration_ms), sum(cpu_us), sum(cpu_connections) FROM {table} WHERE {chosen} \
             GROUP BY start_s, arm FORMAT TabSeparated"
        );
        reader.each(text, |fields| {
            let (start_s, name) = (fields.number()?, fields.text()?);
            let mut number = || fields.number();
            let step = ArmStep {
                start_s,
                connections: number()?,
                requests: number()?,
                promised: number()?,
                sent: number()?,
                truncated: number()?,
                aborted: number()?,
                duration_ms: number()?,
                cpu_us: number()?,
                cpu_connections: number()?,
                ..ArmStep::default()
            };
            if let Some(arm) = place_of(arms, &name) {
                steps.insert((start_s, arm), ArmStep { arm, ..step });
            }
            Ok(())
        })
    }

    fn open(&self, reader: &mut Reader, steps: &mut Steps) -> Result<(), Error> {
        let Self {
            table,
            chosen,
            start,
            arms,
        } = self;
        let text = format!(
            "SELECT {start}, uniqExact(at_s) FROM {table} WHERE {chosen} AND open_samples > 0 \
             GROUP BY start_s FORMAT TabSeparated"
        );
        let mut minutes: BTreeMap<u64, u64> = BTreeMap::new();
        reader.each(text, |fields| {
            minutes.insert(fields.number()?, fields.number()?);
            Ok(())
        })?;
        // A server may have stored a minute in several parts.
        let text = format!(
            "SELECT {start}, arm, sum(milli), max(open), max(memory) FROM \
             (SELECT at_s, arm, sum(server_milli) AS milli, sum(server_open) AS open, sum(server_memory) AS memory FROM \
             (SELECT at_s, arm, server, intDiv(sum(open_sum) * 1000, greatest(sum(open_samples), 1)) * (sum(open_samples) > 0) AS server_milli, \
             max(open_max) AS server_open, max(memory_max) AS server_memory FROM {table} WHERE {chosen} \
             GROUP BY at_s, arm, server) AS servers GROUP BY at_s, arm) AS minutes \
             GROUP BY start_s, arm FORMAT TabSeparated"
        );
        reader.each(text, |fields| {
            let (start_s, name) = (fields.number()?, fields.text()?);
            let (milli, open, memory) = (fields.number()?, fields.number()?, fields.number()?);
            let step = place_of(arms, &name).and_then(|arm| steps.get_mut(&(start_s, arm)));
            if let Some(step) = step {
                let minutes = minutes.get(&start_s).copied().unwrap_or_default();
                step.open_mean = open_mean(milli, minutes);
                (step.open_max, step.memory_max) = (open, memory);
            }
            Ok(())
        })
    }

    fn cells(
        &self,
        reader: &mut Reader,
        histogram: &'static str,
        steps: &mut Steps,
    ) -> Result<(), Error> {
        let Self {
            table,
            chosen,
            start,
            arms,
        } = self;
        let text = format!(
            "SELECT {start}, arm, bucket, sum(cell_count), sum(cell_sum) FROM {table} \
             ARRAY JOIN {histogram}_bucket AS bucket, {histogram}_count AS cell_count, \
             {histogram}_sum_us AS cell_sum WHERE {chosen} GROUP BY start_s, arm, bucket FORMAT TabSeparated"
        );
        reader.each(text, |fields| {
            let (start_s, name) = (fields.number()?, fields.text()?);
            let bucket = u16::try_from(fields.number()?).map_err(|_| unreadable("histogram"))?;
            let (count, sum_us) = (fields.number()?, fields.number()?);
            let step = place_of(arms, &name).and_then(|arm| steps.get_mut(&(start_s, arm)));
            if let Some(step) = step {
                let cells = match histogram {
                    "first_byte" => &mut step.first_byte,
                    _ => &mut step.handshake,
                };
                cells.add_cell(bucket, Cell { count, sum_us });
            }
            Ok(())
        })
    }
}
