//! Coverage of intervals, and false alarms between equal arms.

use lab::stats::sequence::{
    Difference, RankRegion, Summary, Tuning, mean_ratio, mean_ratio_once, quantile_ratio_once,
};

use super::distribution::{Distribution, QUANTILES};
use super::{ALPHA, LOOKS, Runs};

/// Prints both tables.
pub(crate) fn print(runs: &Runs) {
    let regions = regions();
    for (title, delay) in [(COVERAGE, 0.05), (ALARMS, 0.0)] {
        println!("{title}\n");
        println!("| times | intervals | mean | p50 | p80 | p95 |\n|---|---|---|---|---|---|");
        for distribution in Distribution::ALL {
            let cell = 1 + distribution as u64 * 2 + u64::from(delay > 0.0);
            let held = runs.sum(cell, |random| run(distribution, delay, &regions, random));
            let (always, once) = held.split_at(STATISTICS);
            for (name, held) in [("sequence", always), ("fixed horizon", once)] {
                let share = |held: &u64| match delay > 0.0 {
                    true => runs.percent(*held),
                    false => runs.percent(runs.count - held),
                };
                let cells: Vec<String> = held.iter().map(share).collect();
                println!(
                    "| {} | {name} | {} |",
                    distribution.name(),
                    cells.join(" | ")
                );
            }
        }
        println!();
    }
}

/// Regions of ranks of each look, by quantile: they depend on numbers of users alone.
fn regions() -> Vec<[RankRegion; QUANTILES.len()]> {
    let tuning = Tuning::default();
    let sizes = (1..=LOOKS as u64).map(|look| look * STEP as u64);
    sizes
        .map(|n| QUANTILES.map(|p| RankRegion::new(n, n, p, ALPHA, &tuning)))
        .collect()
}

/// Returns 1 for each statistic if its intervals hold the truth at all looks: of sequences, then of fixed horizons.
fn run(
    distribution: Distribution,
    delay: f64,
    regions: &[[RankRegion; QUANTILES.len()]],
    random: &mut fastrand::Rng,
) -> [u64; 2 * STATISTICS] {
    // Each user of B waits longer by the same time.
    let delay_ms = delay * distribution.mean();
    let ratio = |value: f64| delay_ms / value;
    let truths: [f64; STATISTICS] = std::array::from_fn(|place| match place {
        0 => ratio(distribution.mean()),
        _ => ratio(distribution.quantile(place - 1)),
    });
    let tuning = Tuning::default();
    let mut held = [1; 2 * STATISTICS];
    let (mut a, mut b) = (Arm::default(), Arm::default());
    for regions in regions {
        a.grow(|| distribution.value(random));
        b.grow(|| distribution.value(random) + delay_ms);
        let rank = |values: &[f64], rank: u64| values[rank as usize - 1];
        let mut judge = |place: usize, found: Option<Difference>| {
            let truth = truths[place % STATISTICS];
            let found = found.expect("times are above 0");
            held[place] &= u64::from(found.interval.contains(truth));
        };
        judge(0, mean_ratio(&a.summary, &b.summary, ALPHA, &tuning));
        judge(STATISTICS, mean_ratio_once(&a.summary, &b.summary, ALPHA));
        for (place, region) in regions.iter().enumerate() {
            let found = region.difference(|n| rank(&a.sorted, n), |n| rank(&b.sorted, n));
            judge(1 + place, found);
            let once = quantile_ratio_once(&a.sorted, &b.sorted, QUANTILES[place], ALPHA);
            judge(STATISTICS + 1 + place, once);
        }
    }
    held
}

/// Users of an arm until now.
#[derive(Default)]
struct Arm {
    summary: Summary,
    sorted: Vec<f64>,
    /// Room for the next order.
    spare: Vec<f64>,
}

impl Arm {
    /// Adds the users until the next look.
    fn grow(&mut self, mut value: impl FnMut() -> f64) {
        let mut new: Vec<f64> = (0..STEP).map(|_| value()).collect();
        new.iter().for_each(|value| self.summary.push(*value));
        new.sort_unstable_by(f64::total_cmp);
        // Merging costs a hundredth of sorting all users anew.
        self.spare.clear();
        let mut rest = &self.sorted[..];
        for value in new {
            let before = rest.partition_point(|known| *known < value);
            self.spare.extend_from_slice(&rest[..before]);
            self.spare.push(value);
            rest = &rest[before..];
        }
        self.spare.extend_from_slice(rest);
        std::mem::swap(&mut self.sorted, &mut self.spare);
    }
}

/// Users of an arm between looks; 20,000 at the end.
const STEP: usize = 200;
/// The mean and the quantiles.
const STATISTICS: usize = 1 + QUANTILES.len();
const COVERAGE: &str = "### Coverage\n\nShare of runs with the true difference inside the interval at all 100 looks, at a level of 95 %; B is slower by 5 % of the mean; 200 to 20,000 users of each arm.";
const ALARMS: &str = "### False alarms\n\nShare of A/A runs with a difference at any of 100 looks.";
