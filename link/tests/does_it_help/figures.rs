//! Figures of a cell: times of each arm with intervals, differences to the control, connections, CPU time, lateness.
//!
//! The number of visits is fixed beforehand, so intervals are those of one look, at 95 %: Student's t for means, exact ranks for
//! percentiles, and [`sequence`] for differences.

use std::fs;
use std::time::Duration;

use lab::stats::sequence::{self, Difference};
use lab::stats::{self, Estimate, Times};

use super::visitor::{Block, Visitor};
use super::{ARMS, Conditions};

/// Figures of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) round_trip: Duration,
    pub(crate) loss: &'static str,
    pub(crate) files: usize,
    pub(crate) seed: u64,
    pub(crate) arms: Vec<Arm>,
    /// Blocks that count, and those left out because a link was late.
    pub(crate) blocks: usize,
    pub(crate) void: usize,
    pub(crate) congestion_control: &'static str,
    /// The worst median and 99th percentile of the lateness of links.
    lateness: [Duration; 2],
}

/// Figures of an arm; times in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) mean: Estimate,
    pub(crate) median: Estimate,
    pub(crate) p80: Estimate,
    /// Differences of mean, median and 80th percentile from those of the control; `None` for the control.
    pub(crate) differences: Option<[Difference; 3]>,
    pub(crate) connections: Estimate,
    /// CPU time of the server for a visit, milliseconds.
    pub(crate) cpu_ms: f64,
}

impl Cell {
    pub(crate) fn of(conditions: &Conditions, visitors: &[Visitor], all: Vec<Block>) -> Self {
        let visits = (all.len() + visitors.len()) as f64;
        let (void, counted): (Vec<Block>, Vec<Block>) =
            all.into_iter().partition(|block| block.is_void);
        // A machine that is always busy has figures, too; the number of void blocks is printed.
        let used = if counted.len() < 2 { &void } else { &counted };
        let times = |arm: usize| -> Vec<f64> {
            let mut times: Vec<f64> = used.iter().map(|one| one.times_ms[arm]).collect();
            times.sort_by(f64::total_cmp);
            times
        };
        let control = times(0);
        let arms = (0..ARMS.len()).map(|arm| {
            let of_arm = times(arm);
            let connections: Vec<f64> =
                used.iter().map(|one| one.connections[arm] as f64).collect();
            let cpu_ns: u64 = visitors.iter().map(|visitor| visitor.cpu_ns(arm)).sum();
            Arm {
                mean: mean(&of_arm),
                median: percentile(&of_arm, 0.5),
                p80: percentile(&of_arm, 0.8),
                differences: (arm > 0).then(|| differences(&control, &of_arm)),
                connections: mean(&connections),
                cpu_ms: cpu_ns as f64 / 1e6 / visits,
            }
        });
        let lateness: Vec<_> = visitors.iter().map(|one| one.link.lateness()).collect();
        let worst =
            |of: fn(&link::Lateness) -> Duration| lateness.iter().map(of).max().unwrap_or_default();
        Self {
            round_trip: conditions.round_trip,
            loss: conditions.loss,
            files: conditions.files,
            seed: conditions.seed,
            arms: arms.collect(),
            blocks: used.len(),
            void: void.len(),
            congestion_control: visitors[0].congestion_control,
            lateness: [worst(|one| one.median), worst(|one| one.p99)],
        }
    }

    /// A line for the terminal.
    pub(crate) fn line(&self, took: Duration, before: (u64, u64)) -> String {
        let after = machine_busy();
        let busy = (after.0 - before.0) as f64 / (after.1 - before.1).max(1) as f64;
        let arms: Vec<String> = self.arms.iter().map(Arm::line).collect();
        format!(
            "{} files, {:?}, loss {}, seed {}: {} blocks, {} void; {}; lateness {:?} median, {:?} p99; \
             machine {:.0} % busy; {:.0} s",
            self.files,
            self.round_trip,
            self.loss,
            self.seed,
            self.blocks,
            self.void,
            arms.join(", "),
            self.lateness[0],
            self.lateness[1],
            busy * 100.0,
            took.as_secs_f64(),
        )
    }
}

impl Arm {
    fn line(&self) -> String {
        format!(
            "{:.1} ms ({:.1} to {:.1})",
            self.mean.value, self.mean.low, self.mean.high
        )
    }
}

fn mean(values: &[f64]) -> Estimate {
    stats::mean(values, LEVEL).expect("there are visits")
}

fn percentile(values_ms: &[f64], p: f64) -> Estimate {
    let mut times = Times::default();
    for ms in values_ms {
        times.valid.saturating_record((ms * 1e6) as u64);
    }
    let found = stats::percentile(&times.valid, p).expect("there are visits");
    Estimate {
        value: found.value / 1e6,
        low: found.low / 1e6,
        high: found.high / 1e6,
        n: found.n,
    }
}

/// Differences of mean, median and 80th percentile of sorted values from those of the control.
fn differences(control: &[f64], other: &[f64]) -> [Difference; 3] {
    let alpha = 1.0 - LEVEL;
    let summary = |values: &[f64]| values.iter().copied().collect();
    let mean = sequence::mean_ratio_once(&summary(control), &summary(other), alpha);
    let quantile = |p: f64| sequence::quantile_ratio_once(control, other, p, alpha);
    [mean, quantile(0.5), quantile(0.8)].map(|found| found.expect("there are visits"))
}

/// Ticks of the machine's CPUs since its start: busy, and all. Source: proc(5).
pub(crate) fn machine_busy() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks = line.split_whitespace().skip(1).take(8);
    let ticks: Vec<u64> = ticks.filter_map(|number| number.parse().ok()).collect();
    let all: u64 = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    (all - idle, all)
}

/// The level of intervals.
const LEVEL: f64 = 0.95;

#[test]
fn differences_are_relative_to_the_control() {
    let control: Vec<f64> = (0..100).map(|n| 100.0 + f64::from(n) / 100.0).collect();
    let other: Vec<f64> = control.iter().map(|ms| 0.9 * ms).collect();
    for found in differences(&control, &other) {
        let interval = found.interval;
        assert!((found.estimate + 0.1).abs() < 1e-9, "{found:?}");
        assert!(interval.low < -0.1 && interval.high > -0.1, "{found:?}");
        assert!(interval.high - interval.low < 0.01, "{found:?}");
    }
}
