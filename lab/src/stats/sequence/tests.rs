//! Small simulations of experiments: ten looks at 2,000 users of each arm. The large ones are those of docs/statistics.md.

use super::{
    Difference, RankRegion, Summary, Tuning, mean_ratio, mean_ratio_once, quantile_ratio_once,
};

/// Values of users by a uniform number below 1, with the mean and the quantiles of [`QUANTILES`].
struct Times {
    name: &'static str,
    value: fn(f64) -> f64,
    mean: f64,
}

const QUANTILES: [f64; 3] = [0.5, 0.8, 0.95];
const LOOKS: usize = 10;
const STEP: usize = 200;
const RUNS: usize = 200;
/// Each user of B waits longer by this part of the mean.
const DELAY: f64 = 0.05;

const TIMES: [Times; 3] = [
    // Logarithms are logistic, with a tail as heavy as that of a lognormal time with a deviation of about 0.7.
    Times {
        name: "skewed",
        value: |p| (p / (1.0 - p)).powf(0.3),
        // pi b / sin(pi b)
        mean: 1.164_967,
    },
    Times {
        name: "Pareto, index 2.5",
        value: |p| (1.0 - p).powf(-0.4),
        mean: 5.0 / 3.0,
    },
    Times {
        name: "bimodal",
        value: |p| match p < 0.6 {
            true => 0.5 + p,
            false => 5.0 + p,
        },
        // 0.6 * 0.8 + 0.4 * 5.8
        mean: 2.8,
    },
];

/// Users of an arm until now.
#[derive(Default)]
struct Arm {
    summary: Summary,
    sorted: Vec<f64>,
}

impl Arm {
    fn grow(&mut self, mut value: impl FnMut() -> f64) {
        for _ in 0..STEP {
            let value = value();
            self.summary.push(value);
            self.sorted.push(value);
        }
        self.sorted.sort_by(f64::total_cmp);
    }
}

fn regions() -> Vec<[RankRegion; 3]> {
    let sizes = (1..=LOOKS).map(|look| (look * STEP) as u64);
    let region = |n: u64, p: f64| RankRegion::new(n, n, p, 0.05, &Tuning::default());
    sizes.map(|n| QUANTILES.map(|p| region(n, p))).collect()
}

/// Whether intervals hold the truth at all looks: mean and quantiles of sequences, then of fixed horizons.
fn held(
    times: &Times,
    delay: f64,
    regions: &[[RankRegion; 3]],
    random: &mut fastrand::Rng,
) -> [bool; 8] {
    let delay = delay * times.mean;
    let truths = [
        times.mean,
        (times.value)(0.5),
        (times.value)(0.8),
        (times.value)(0.95),
    ];
    let mut held = [true; 8];
    let (mut a, mut b) = (Arm::default(), Arm::default());
    for regions in regions {
        a.grow(|| (times.value)(random.f64()));
        b.grow(|| (times.value)(random.f64()) + delay);
        let mut judge = |place: usize, found: Option<Difference>| {
            let found = found.expect("times are above 0");
            held[place] &= found.interval.contains(delay / truths[place % 4]);
        };
        judge(
            0,
            mean_ratio(&a.summary, &b.summary, 0.05, &Tuning::default()),
        );
        judge(4, mean_ratio_once(&a.summary, &b.summary, 0.05));
        for (place, region) in regions.iter().enumerate() {
            let value = |arm: &Arm, rank: u64| arm.sorted[rank as usize - 1];
            judge(
                1 + place,
                region.difference(|rank| value(&a, rank), |rank| value(&b, rank)),
            );
            let once = quantile_ratio_once(&a.sorted, &b.sorted, QUANTILES[place], 0.05);
            judge(5 + place, once);
        }
    }
    held
}

#[test]
fn sequences_hold_at_all_looks_and_fixed_horizons_do_not() {
    const SEED: u64 = 31;
    let mut random = fastrand::Rng::with_seed(SEED);
    let regions = regions();
    for times in &TIMES {
        for delay in [0.0, DELAY] {
            let mut counts = [0; 8];
            for _ in 0..RUNS {
                let held = held(times, delay, &regions, &mut random);
                counts
                    .iter_mut()
                    .zip(held)
                    .for_each(|(count, held)| *count += usize::from(held));
            }
            let (always, once) = counts.split_at(4);
            let context = format!(
                "seed {SEED}, {}, delay {delay}: {counts:?} of {RUNS}",
                times.name
            );
            assert!(
                always.iter().all(|count| *count >= RUNS * 95 / 100),
                "{context}"
            );
            assert!(
                once.iter().all(|count| *count < RUNS * 93 / 100),
                "{context}"
            );
        }
    }
}
