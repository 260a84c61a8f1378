//! A report: the job, the conditions of the measurement, and the figures of each server.

use serde::{Deserialize, Serialize};

use super::comparison::{self, ComparisonReport};
use super::conditions::Conditions;
use super::server::ServerReport;
use super::warnings;
use crate::load::{Job, Measured, Plan, SampleFilter};

/// A report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: String,
    /// Which program measured.
    pub program: String,
    /// When it began, seconds since 1970.
    pub began_unix_s: u64,
    /// It was ended before its end.
    pub interrupted: bool,
    /// Reasons not to trust it, or to trust it with care.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Those of the warnings that void times.
    #[serde(skip)]
    pub void: Vec<String>,
    /// Parameters of the bench.
    pub settings: Settings,
    /// Under which conditions it was measured.
    pub conditions: Conditions,
    /// The servers, or the rows of a table.
    pub servers: Vec<ServerReport>,
    /// Of two servers: the second compared with the first.
    pub comparison: Vec<ComparisonReport>,
}

impl Report {
    /// Returns the report of a job, with a warning if `filter` has excluded too many samples.
    #[must_use]
    pub fn new(job: &Job, measured: &Measured, filter: Option<&dyn SampleFilter>) -> Self {
        let servers: Vec<ServerReport> = job
            .servers
            .iter()
            .zip(&measured.runs)
            .map(|(server, runs)| ServerReport::new(server, runs))
            .collect();
        let round_trips = measured.runs.iter().flatten();
        let least = round_trips.filter_map(|run| run.min_rtt_us).min();
        let first = job.servers.first().map(|server| &server.plan);
        let warning = |one: &ServerReport| one.warning(filter?);
        let void: Vec<String> = servers.iter().filter_map(warning).collect();
        let others = warnings::of(job, measured, &servers);
        Self {
            format: FORMAT.to_owned(),
            program: PROGRAM.to_owned(),
            began_unix_s: measured.began_unix_s,
            interrupted: measured.interrupted,
            warnings: void.iter().cloned().chain(others).collect(),
            void,
            settings: first.map_or_else(Settings::default, |plan| Settings::new(plan, job)),
            conditions: Conditions::now(least, measured.busy, measured.steal, first),
            comparison: match &servers[..] {
                [first, second] => comparison::of_turns(first, second),
                _ => Vec::new(),
            },
            servers,
        }
    }
}

/// How the servers were loaded.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Settings {
    /// Connections at a time.
    pub connections: usize,
    /// Requests at a time on a connection that carries several.
    pub streams: usize,
    /// Threads of the client.
    pub threads: usize,
    /// Requests of a run.
    pub requests: Option<u64>,
    /// Length of a run.
    pub duration_s: Option<f64>,
    /// Requests a second; a closed loop without.
    pub rate: Option<f64>,
    /// `warm`, `cold` or `resumed`.
    pub connect: String,
    /// Different requests.
    pub mix: usize,
    /// Lines of the access log that were passed over.
    #[serde(default)]
    pub passed_over: Option<usize>,
    /// Runs of each server.
    pub blocks: usize,
    /// Warming up.
    pub warm_up_s: f64,
    /// Seed of the order of turns.
    pub seed: u64,
    /// Certificates were not verified.
    pub insecure: bool,
}

impl Settings {
    fn new(plan: &Plan, job: &Job) -> Self {
        Self {
            connections: plan.connections,
            streams: plan.streams,
            threads: plan.threads,
            requests: plan.total,
            duration_s: plan.duration_ns.map(|ns| ns as f64 / 1e9),
            rate: plan.rate,
            connect: plan.connect.name().to_owned(),
            mix: plan.requests.len(),
            passed_over: plan.passed_over,
            blocks: job.blocks,
            warm_up_s: job.warm_up_ns as f64 / 1e9,
            seed: job.seed,
            insecure: job.insecure,
        }
    }
}

/// This program and its version, as reports name it.
pub const PROGRAM: &str = concat!("firstbyte ", env!("CARGO_PKG_VERSION"));
/// The name of the format.
pub const FORMAT: &str = "firstbyte-bench/1";
