//! Figures of one server.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::load::{LoadResult, Server};
use crate::stats::{self, Estimate, Metric, Times};

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The figure.
    pub value: f64,
    /// Lower end of its interval, if it has one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Number of measurements.
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
    /// Converts it to another unit.
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

/// Times of one metric, milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TimesReport {
    /// Number of samples.
    pub n: u64,
    /// Their mean.
    pub mean_ms: f64,
    /// The shortest and the longest.
    pub min_ms: f64,
    /// See above.
    pub max_ms: f64,
    /// Percentiles by name, such as `p90`, with their intervals.
    pub percentiles: BTreeMap<String, Figure>,
}

impl TimesReport {
    /// `times` are those of all runs together.
    fn new(times: &Times, runs: &[&Histogram<u64>]) -> Option<Self> {
        let histogram = &times.valid;
        if histogram.is_empty() {
            return None;
        }
        let percentiles = PERCENTILES.iter().filter_map(|(name, p)| {
            let estimate = stats::percentile_of_runs(histogram, runs, *p)?;
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

/// Figures of one server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerReport {
    /// Its name.
    pub name: String,
    /// URL that was requested, the first of several.
    pub url: String,
    /// Connections by protocol.
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
    /// Time with requests in progress, seconds.
    pub elapsed_s: f64,
    /// The part of that time that the rate counts, seconds.
    #[serde(default)]
    pub steady_s: f64,
    /// Requests sent per second, if the job has a rate.
    #[serde(default)]
    pub sent_rate: Option<f64>,
    /// The share of its time that the client's busiest thread used a CPU, 0 to 1.
    #[serde(default)]
    pub busiest_thread: f64,
    /// Whole responses.
    pub done: u64,
    /// By class, such as `2xx`.
    pub statuses: BTreeMap<String, u64>,
    /// By status, such as `404`.
    #[serde(default)]
    pub status_codes: BTreeMap<String, u64>,
    /// Failures by kind.
    pub errors: BTreeMap<String, u64>,
    /// `service`, `response`, `first_byte`, `connect`, `handshake`.
    pub times: BTreeMap<String, TimesReport>,
    /// By the same names: how many samples `times` does not have. Empty without a filter.
    #[serde(default, rename = "voided")]
    pub excluded: BTreeMap<String, Excluded>,
    /// Handshakes that resumed a session.
    pub resumed: u64,
    /// Bytes of all responses.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Rates of pieces of all runs, for a drawing.
    pub rates: Vec<f64>,
}

/// Bytes of all responses of a server.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Traffic {
    /// Share of bytes of response heads that compression saved, 0 to 1.
    pub head_saved: f64,
    /// Bytes of response heads on the wire.
    pub head_wire_bytes: u64,
    /// Bytes of response heads as text.
    pub head_text_bytes: u64,
    /// Bytes of bodies.
    pub body_bytes: u64,
    /// Bytes received, TLS included.
    pub received_bytes: u64,
    /// Bytes sent, TLS included.
    pub sent_bytes: u64,
}

impl Traffic {
    fn of(all: &LoadResult) -> Self {
        Self {
            head_saved: all.head_saved(),
            head_wire_bytes: all.head_wire_bytes,
            head_text_bytes: all.head_text_bytes,
            body_bytes: all.body_bytes,
            received_bytes: all.received_bytes,
            sent_bytes: all.sent_bytes,
        }
    }
}

impl ServerReport {
    pub(super) fn new(server: &Server, runs: &[LoadResult]) -> Self {
        let mut all = LoadResult::default();
        runs.iter().for_each(|run| all.append(run));
        let blocks: Vec<Block> = runs.iter().map(Block::new).collect();
        let pieces = all.rates(PIECES[0]);
        let rate = match &blocks[..] {
            [one] => rate_of_pieces(one.rate, &all),
            _ => None,
        };
        let rate = rate.or_else(|| of_blocks(&blocks, |block| Some(block.rate)));
        let times = Metric::ALL.iter().filter_map(|metric| {
            let of_runs: Vec<_> = runs.iter().map(|run| &run.times(*metric).valid).collect();
            let times = TimesReport::new(all.times(*metric), &of_runs)?;
            Some((metric.name().to_owned(), times))
        });
        let is_open = server.plan.rate.is_some() && all.steady_ns > 0;
        Self {
            name: server.name.clone(),
            url: server.url.clone(),
            protocols: all
                .protocols
                .iter()
                .filter(|(_, times)| **times > 0)
                .map(|(name, times)| ((*name).to_owned(), *times))
                .collect(),
            rate,
            server_cpu_us: of_blocks(&blocks, |block| block.server_cpu_us),
            client_cpu_us: of_blocks(&blocks, |block| block.client_cpu_us),
            blocks,
            server_memory_bytes: all.server_memory_bytes,
            elapsed_s: all.elapsed_ns as f64 / 1e9,
            steady_s: all.steady_ns as f64 / 1e9,
            sent_rate: is_open.then(|| all.sent as f64 * 1e9 / all.steady_ns as f64),
            busiest_thread: all.busiest_thread,
            done: all.done,
            statuses: counts_by_name(&all, |status| format!("{}xx", (status / 100).min(9))),
            status_codes: counts_by_name(&all, |status| status.to_string()),
            errors: all.errors.clone(),
            excluded: excluded(&all),
            times: times.collect(),
            resumed: all.resumed,
            traffic: Traffic::of(&all),
            rates: pieces,
        }
    }

    /// The protocol of most connections.
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

    /// Times from the scheduled time of a request if there is one, else from its sending.
    #[must_use]
    pub fn main_times(&self) -> Option<&TimesReport> {
        // An excluded kind counts as present: the other kind would answer another question.
        let was_taken = |name| self.times.contains_key(name) || self.excluded.contains_key(name);
        let name = if was_taken("response") {
            "response"
        } else {
            "service"
        };
        self.times.get(name)
    }
}

impl Block {
    fn new(run: &LoadResult) -> Self {
        let metric = match run.times(Metric::Response).taken() {
            0 => Metric::Service,
            _ => Metric::Response,
        };
        let times = &run.times(metric).valid;
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

/// Responses by a name of their status.
fn counts_by_name(all: &LoadResult, name: impl Fn(u16) -> String) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (status, times) in all.statuses.iter() {
        *found.entry(name(status)).or_default() += times;
    }
    found
}

/// The rate of a single run with an interval from pieces of it.
///
/// Adjacent pieces are correlated if the server is slow for a while. Longer pieces depend less on each other, so the widest
/// interval of several lengths counts.
fn rate_of_pieces(rate: f64, run: &LoadResult) -> Option<Figure> {
    let estimates = PIECES.iter().filter_map(|count| {
        let pieces = run.rates(*count);
        stats::mean(&pieces, LEVEL).filter(|_| pieces.len() > 1)
    });
    let half = |estimate: &Estimate| estimate.high - estimate.value;
    let widest = estimates.max_by(|a, b| half(a).total_cmp(&half(b)))?;
    Some(Figure::from(Estimate {
        value: rate,
        low: (rate - half(&widest)).max(0.0),
        high: rate + half(&widest),
        n: widest.n,
    }))
}

fn of_blocks(blocks: &[Block], figure: impl Fn(&Block) -> Option<f64>) -> Option<Figure> {
    let values: Vec<f64> = blocks.iter().filter_map(figure).collect();
    stats::mean(&values, LEVEL).map(Figure::from)
}

/// Samples of a metric that were excluded, because the link was late meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excluded {
    /// Those that are left out.
    #[serde(rename = "void")]
    pub excluded: u64,
    /// All that were taken.
    pub of: u64,
}

/// By metric; nothing without a filter.
fn excluded(result: &LoadResult) -> BTreeMap<String, Excluded> {
    let metrics = Metric::ALL.iter().filter(|_| result.is_filtered());
    let taken = metrics.filter_map(|metric| {
        let times = result.times(*metric);
        let (excluded, of) = (times.excluded, times.taken());
        (of > 0).then(|| (metric.name().to_owned(), Excluded { excluded, of }))
    });
    taken.collect()
}

/// The level of intervals of single figures.
const LEVEL: f64 = 0.95;
/// Percentiles of a report.
const PERCENTILES: [(&str, f64); 6] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];
/// Pieces of a run, by their length.
const PIECES: [usize; 3] = [20, 10, 5];
