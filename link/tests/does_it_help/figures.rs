//! Figures of a cell: times of each arm with intervals, differences to the control, connections, CPU time, lateness.
//!
//! Intervals are those of a fixed number of visits at 95 %: Student's t for means, exact ranks for percentiles, and the delta
//! method for the ratio of two means.

use std::fs;
use std::time::Duration;

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
    /// The mean over that of the control, less 1; `None` for the control.
    pub(crate) difference: Option<Estimate>,
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
        let times = |arm: usize| -> Vec<f64> { used.iter().map(|one| one.times_ms[arm]).collect() };
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
                difference: (arm > 0).then(|| difference(&control, &of_arm)),
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

/// The ratio of two means less 1, with its interval by the delta method on logarithms.
fn difference(control: &[f64], other: &[f64]) -> Estimate {
    let (a, b) = (mean(control), mean(other));
    let part = |values: &[f64], mean: f64| {
        stats::deviation(values).powi(2) / (values.len() as f64 * mean.powi(2))
    };
    let half = Z * (part(control, a.value) + part(other, b.value)).sqrt();
    let log = (b.value / a.value).ln();
    Estimate {
        value: log.exp_m1(),
        low: (log - half).exp_m1(),
        high: (log + half).exp_m1(),
        n: control.len(),
    }
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

/// The level of intervals, and the end of the normal distribution at it.
const LEVEL: f64 = 0.95;
const Z: f64 = 1.959_964;

#[test]
fn differences_are_relative_to_the_control() {
    let control = [99.0, 101.0, 100.0, 100.0];
    let found = difference(&control, &control.map(|ms| 0.9 * ms));
    assert!((found.value + 0.1).abs() < 1e-9, "{found:?}");
    // The deviation of each mean is 0.8165 / 2 %: 1.96 times the root of both squares is 1.13 %.
    assert!(
        (found.low - (0.9 * (-0.011_316_f64).exp() - 1.0)).abs() < 1e-5,
        "{found:?}"
    );
    assert!(found.low < -0.1 && found.high > -0.1, "{found:?}");
}
