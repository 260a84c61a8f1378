//! What is told of a bench, as JSON, text and a page.
//!
//! The structs are the format `firstbyte-bench/1`: members are added to it, but none is taken away or given another
//! meaning; a reader passes over those that it does not know.
//!
//! Source: docs/lab.md.

pub mod compare;
mod conditions;
pub mod html;
mod route;
mod table;
pub mod text;
mod voided;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bench::{Job, Server};
use crate::load::Plan;
use crate::outcome::{Kind, Outcome, Times};
use crate::stats::{self, Estimate};

pub use compare::ComparisonReport;
pub use conditions::{Conditions, Offloads};
pub use voided::Voided;

/// All that is told of a bench.
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
    /// What speaks against trusting it.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// What was asked for.
    pub settings: Settings,
    /// Under which conditions it was measured.
    pub conditions: Conditions,
    /// The servers, or the rows of a table.
    pub servers: Vec<ServerReport>,
    /// Of two servers: the second compared with the first.
    pub comparison: Vec<ComparisonReport>,
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
    /// Runs of each server.
    pub blocks: usize,
    /// Warming up.
    pub warm_up_s: f64,
    /// Where the order of turns comes from.
    pub seed: u64,
    /// Certificates were not verified.
    pub insecure: bool,
}

impl Settings {
    pub(crate) fn new(plan: &Plan, job: &Job) -> Self {
        Self {
            connections: plan.connections,
            streams: plan.streams,
            threads: plan.threads,
            requests: plan.total,
            duration_s: plan.duration_ns.map(|ns| ns as f64 / 1e9),
            rate: plan.rate,
            connect: plan.connect.name().to_owned(),
            mix: plan.requests.len(),
            blocks: job.blocks,
            warm_up_s: job.warm_up_ns as f64 / 1e9,
            seed: job.seed,
            insecure: job.insecure,
        }
    }
}

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The figure.
    pub value: f64,
    /// Lower end of its interval, where there is one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// How many measurements it stands on.
    pub n: usize,
}

impl From<Estimate> for Figure {
    fn from(estimate: Estimate) -> Self {
        let end = |value: f64| value.is_finite().then_some(value);
        Self {
            value: estimate.value,
            low: end(estimate.low),
            high: end(estimate.high),
            n: estimate.n,
        }
    }
}

impl Figure {
    /// The same in another unit.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        Self {
            value: self.value * by,
            low: self.low.map(|low| low * by),
            high: self.high.map(|high| high * by),
            n: self.n,
        }
    }
}

/// Times of one kind, milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TimesReport {
    /// How many.
    pub n: u64,
    /// Their mean.
    pub mean_ms: f64,
    /// The shortest and the longest.
    pub min_ms: f64,
    /// See above.
    pub max_ms: f64,
    /// By share, such as `p90`: the time below which so many lie, with its interval.
    pub percentiles: BTreeMap<String, Figure>,
}

impl TimesReport {
    fn new(times: &Times) -> Option<Self> {
        let histogram = &times.valid;
        if histogram.is_empty() {
            return None;
        }
        let percentiles = PERCENTILES.iter().filter_map(|(name, p)| {
            let estimate = stats::percentile(histogram, *p)?;
            Some(((*name).to_owned(), Figure::from(estimate).scaled(1e-6)))
        });
        Some(Self {
            n: histogram.len(),
            mean_ms: histogram.mean() / 1e6,
            min_ms: histogram.min() as f64 / 1e6,
            max_ms: histogram.max() as f64 / 1e6,
            percentiles: percentiles.collect(),
        })
    }

    /// A percentile, such as `p90`.
    #[must_use]
    pub fn percentile(&self, name: &str) -> Option<f64> {
        self.percentiles.get(name).map(|figure| figure.value)
    }
}

/// The figures of one run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Block {
    /// Responses a second.
    pub rate: f64,
    /// Mean time of a response, milliseconds.
    pub mean_ms: f64,
    /// 99 of 100 responses took no longer, milliseconds.
    pub p99_ms: f64,
    /// CPU time of the server for a response, microseconds.
    pub server_cpu_us: Option<f64>,
    /// CPU time of the client for a response, microseconds.
    pub client_cpu_us: Option<f64>,
    /// Responses.
    pub done: u64,
    /// Failures.
    pub failed: u64,
}

/// What was measured of one server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerReport {
    /// What it is called.
    pub name: String,
    /// What it was asked for.
    pub url: String,
    /// Connections by what was spoken on them.
    pub protocols: BTreeMap<String, u64>,
    /// Its runs.
    pub blocks: Vec<Block>,
    /// Responses a second; of one run, its interval comes from pieces of it.
    pub rate: Option<Figure>,
    /// CPU time of the server for a response, microseconds.
    pub server_cpu_us: Option<Figure>,
    /// CPU time of the client for a response, microseconds.
    pub client_cpu_us: Option<Figure>,
    /// The server's resident memory at the end, bytes.
    pub server_memory_bytes: Option<u64>,
    /// How long requests were under way, seconds.
    pub elapsed_s: f64,
    /// Whole responses.
    pub done: u64,
    /// By class, such as `2xx`.
    pub statuses: BTreeMap<String, u64>,
    /// Failures by kind.
    pub errors: BTreeMap<String, u64>,
    /// `service`, `response`, `first_byte`, `connect`, `handshake`.
    pub times: BTreeMap<String, TimesReport>,
    /// By the same kinds: how many samples `times` does not have. Empty where nobody has judged them.
    #[serde(default)]
    pub voided: BTreeMap<String, Voided>,
    /// Handshakes that resumed a session.
    pub resumed: u64,
    /// The share of bytes of response heads that compression saved.
    pub head_saved: f64,
    /// Bytes of response heads on the wire.
    pub head_wire_bytes: u64,
    /// The same as text.
    pub head_text_bytes: u64,
    /// Bytes of bodies.
    pub body_bytes: u64,
    /// Bytes received, TLS included.
    pub received_bytes: u64,
    /// Bytes sent, TLS included.
    pub sent_bytes: u64,
    /// Rates of pieces of all runs, for a drawing.
    pub rates: Vec<f64>,
}

impl ServerReport {
    pub(crate) fn new(server: &Server, runs: &[Outcome]) -> Self {
        let mut all = Outcome::default();
        runs.iter().for_each(|run| all.append(run));
        let blocks: Vec<Block> = runs.iter().map(Block::new).collect();
        let pieces = all.rates(PIECES);
        let rate = match &blocks[..] {
            // Of one run the pieces tell how steady it was; the figure is the run's.
            [one] => stats::mean(&pieces, LEVEL)
                .map(|estimate| {
                    let off = one.rate - estimate.value;
                    Figure::from(Estimate {
                        value: one.rate,
                        low: estimate.low + off,
                        high: estimate.high + off,
                        n: estimate.n,
                    })
                })
                .or_else(|| of_blocks(&blocks, |block| Some(block.rate))),
            _ => of_blocks(&blocks, |block| Some(block.rate)),
        };
        let times = Kind::ALL.map(|kind| (kind.name().to_owned(), all.times(kind)));
        Self {
            name: server.name.clone(),
            url: server.url.clone(),
            protocols: all
                .protocols
                .iter()
                .map(|(name, times)| ((*name).to_owned(), *times))
                .collect(),
            rate,
            server_cpu_us: of_blocks(&blocks, |block| block.server_cpu_us),
            client_cpu_us: of_blocks(&blocks, |block| block.client_cpu_us),
            blocks,
            server_memory_bytes: all.server_memory_bytes,
            elapsed_s: all.elapsed_ns as f64 / 1e9,
            done: all.done,
            statuses: statuses(&all),
            errors: all.errors.clone(),
            voided: voided::of(&all),
            times: times
                .into_iter()
                .filter_map(|(name, times)| Some((name, TimesReport::new(times)?)))
                .collect(),
            resumed: all.resumed,
            head_saved: all.head_saved(),
            head_wire_bytes: all.head_wire_bytes,
            head_text_bytes: all.head_text_bytes,
            body_bytes: all.body_bytes,
            received_bytes: all.received_bytes,
            sent_bytes: all.sent_bytes,
            rates: pieces,
        }
    }

    /// What was spoken, most of all.
    #[must_use]
    pub fn protocol(&self) -> &str {
        let most = self.protocols.iter().max_by_key(|(_, times)| **times);
        most.map_or("nothing", |(name, _)| name)
    }

    /// Failed requests and connections.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The times that count from when a request should have been sent, where that is known, else from when it was.
    #[must_use]
    pub fn main_times(&self) -> Option<&TimesReport> {
        // Those that were taken in vain count: the others are no answer to the same question.
        let was_taken = |name| self.times.contains_key(name) || self.voided.contains_key(name);
        let name = if was_taken("response") {
            "response"
        } else {
            "service"
        };
        self.times.get(name)
    }
}

impl Block {
    fn new(run: &Outcome) -> Self {
        let times = match run.response.taken() {
            0 => &run.service.valid,
            _ => &run.response.valid,
        };
        Self {
            rate: run.rate(),
            mean_ms: times.mean() / 1e6,
            p99_ms: times.value_at_quantile(0.99) as f64 / 1e6,
            server_cpu_us: run.server_cpu_us(),
            client_cpu_us: run.own_cpu_us(),
            done: run.done,
            failed: run.failed(),
        }
    }
}

fn statuses(all: &Outcome) -> BTreeMap<String, u64> {
    let seen = all
        .statuses
        .iter()
        .enumerate()
        .filter(|(_, times)| **times > 0);
    seen.map(|(class, times)| (format!("{class}xx"), *times))
        .collect()
}

fn of_blocks(blocks: &[Block], figure: impl Fn(&Block) -> Option<f64>) -> Option<Figure> {
    let values: Vec<f64> = blocks.iter().filter_map(figure).collect();
    stats::mean(&values, LEVEL).map(Figure::from)
}

/// The level of intervals of single figures.
pub const LEVEL: f64 = 0.95;
/// Percentiles that are told.
pub const PERCENTILES: [(&str, f64); 6] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];
/// Pieces of a run.
const PIECES: usize = 20;

/// The name of the format.
pub const FORMAT: &str = "firstbyte-bench/1";
