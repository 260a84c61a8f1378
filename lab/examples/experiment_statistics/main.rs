//! Prints the tables of docs/statistics.md, in Markdown: `experiment_statistics [RUNS [SEED]]`.
//!
//! Users of two arms are drawn from distributions of known means and quantiles, and each method looks at them 100 times. Runs
//! have seeds of their own, so the tables depend neither on the machine nor on its number of processors.

mod coverage;
mod distribution;
mod power;
mod split;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use fastrand::Rng;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: u64| match words.get(at).map(|word| word.parse()) {
        None => usual,
        Some(Ok(number)) if number > 0 => number,
        Some(_) => {
            eprintln!("experiment_statistics [RUNS [SEED]]");
            std::process::exit(1);
        }
    };
    let runs = Runs {
        count: number(0, RUNS),
        seed: number(1, SEED),
    };
    let began = Instant::now();
    println!("Seed {}, {} runs of each cell.\n", runs.seed, runs.count);
    coverage::print(&runs);
    power::print(&runs);
    split::print(&runs);
    eprintln!("{} s", began.elapsed().as_secs());
}

/// Repetitions of a simulation.
struct Runs {
    count: u64,
    seed: u64,
}

impl Runs {
    /// Sums the results of all runs of a cell; each run has a generator of its own.
    fn sum<const N: usize>(
        &self,
        cell: u64,
        run: impl Fn(&mut Rng) -> [u64; N] + Sync,
    ) -> [u64; N] {
        let next = AtomicU64::new(0);
        let work = || {
            let mut sums = [0; N];
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.count {
                    return sums;
                }
                // An odd factor spreads the seeds.
                let seed =
                    (self.seed << 40 | cell << 24 | number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let found = run(&mut Rng::with_seed(seed));
                sums.iter_mut()
                    .zip(found)
                    .for_each(|(sum, one)| *sum += one);
            }
        };
        std::thread::scope(|scope| {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let started: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let mut sums = [0; N];
            for thread in started {
                let found = thread.join().expect("a run does not panic");
                sums.iter_mut()
                    .zip(found)
                    .for_each(|(sum, one)| *sum += one);
            }
            sums
        })
    }

    /// A number of runs as a share of all.
    fn percent(&self, count: u64) -> String {
        format!("{:.1} %", count as f64 * 100.0 / self.count as f64)
    }
}

/// Runs of each cell: a share of 95 % has a standard error of 0.5 %.
const RUNS: u64 = 2000;
const SEED: u64 = 48;
/// Looks at each run.
const LOOKS: usize = 100;
/// Level of the intervals.
const ALPHA: f64 = 0.05;
