//! Figures of the server by arm: sums of the period, and steps of time.

use store::{ArmStep, ExperimentQuery, Histogram, Step, Store};

use super::error::AnalysisError;
use super::report::{Report, Server, ServerStep};
use crate::time::DAY_S;

/// Adds the figures of the server to a report.
///
/// # Errors
/// If the store cannot be read.
pub(super) fn add(
    store: &dyn Store,
    query: &ExperimentQuery,
    report: &mut Report,
) -> Result<(), AnalysisError> {
    let step = step(
        report.at_s.saturating_sub(report.since_s),
        report.arms.len(),
    );
    // A store rounds times up to minutes, and the first minute has figures, too.
    let whole = ExperimentQuery {
        from_s: query.from_s / MINUTE_S * MINUTE_S,
        ..query.clone()
    };
    let all = store.arm_steps(&whole, step)?;
    let mut sums: Vec<Option<Sum>> = vec![None; report.arms.len()];
    for one in &all {
        let Some(arm) = report.arms.get(one.arm) else {
            continue;
        };
        sums[one.arm].get_or_insert_default().add(one);
        report.steps.push(ServerStep {
            at_s: one.start_s,
            arm: arm.arm.clone(),
            connections: one.connections,
            open_mean: one.open_mean,
            open_max: one.open_max,
            cpu_us_per_connection: per(one.cpu_us, one.cpu_connections),
            truncated: one.truncated,
            aborted: one.aborted,
        });
    }
    for (arm, sum) in report.arms.iter_mut().zip(&sums) {
        arm.server = sum.as_ref().map(Sum::server);
    }
    Ok(())
}

/// Length of steps: few rows for long periods and many arms.
fn step(length_s: u64, arms: usize) -> Step {
    match length_s {
        _ if arms > ARMS_FEW => Step::Day,
        length if length <= MINUTES_S => Step::Minute,
        length if length <= HOURS_S => Step::Hour,
        _ => Step::Day,
    }
}

/// Sum of the steps of an arm.
#[derive(Clone, Debug, Default)]
struct Sum {
    server: Server,
    steps: u64,
    open: f64,
    cpu_us: u64,
    cpu_connections: u64,
    first_byte: Histogram,
    handshake: Histogram,
}

impl Sum {
    fn add(&mut self, step: &ArmStep) {
        let server = &mut self.server;
        let pairs = [
            (&mut server.connections, step.connections),
            (&mut server.requests, step.requests),
            (&mut server.bytes_promised, step.promised),
            (&mut server.bytes_sent, step.sent),
            (&mut server.truncated, step.truncated),
            (&mut server.aborted, step.aborted),
            (&mut self.cpu_us, step.cpu_us),
            (&mut self.cpu_connections, step.cpu_connections),
        ];
        for (own, more) in pairs {
            *own = own.saturating_add(more);
        }
        server.open_max = server.open_max.max(step.open_max);
        server.memory_max_bytes = server.memory_max_bytes.max(step.memory_max);
        self.steps += 1;
        self.open += step.open_mean;
        self.first_byte.merge(&step.first_byte);
        self.handshake.merge(&step.handshake);
    }

    fn server(&self) -> Server {
        let per_connection = per(self.cpu_us, self.cpu_connections);
        let (connections, requests) = (self.server.connections, self.server.requests);
        // Only some connections have a measured CPU time, but all requests are counted.
        let per_request = per_connection.map(|us| us * connections as f64 / requests as f64);
        Server {
            open_mean: self.open / self.steps.max(1) as f64,
            cpu_us_per_connection: per_connection,
            cpu_us_per_request: per_request.filter(|us| us.is_finite()),
            first_byte_ms: quantiles(&self.first_byte),
            handshake_ms: quantiles(&self.handshake),
            ..self.server.clone()
        }
    }
}

fn per(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

fn quantiles(histogram: &Histogram) -> Option<[f64; 3]> {
    let of = |share: f64| Some(histogram.quantile_us(share)? / 1000.0);
    Some([of(0.5)?, of(0.8)?, of(0.95)?])
}

/// Longest periods with steps of minutes and of hours.
const MINUTES_S: u64 = 6 * 3600;
const HOURS_S: u64 = 45 * DAY_S;
/// Seconds of a minute.
const MINUTE_S: u64 = 60;
/// Arms above which steps are days.
const ARMS_FEW: usize = 20;
