//! The test of the sample ratio.

use lab::stats::sequence::sample_ratio;

use super::{LOOKS, Runs};

/// Prints the table.
pub(crate) fn print(runs: &Runs) {
    println!(
        "### Sample ratio\n\nShare of runs with a mismatch at any of 100 looks; two arms of equal weight.\n"
    );
    println!(
        "| users in all | real split | mismatch found | chi-squared test at each look |\n|---|---|---|---|"
    );
    for (users, share) in [(50_000, 0.5), (50_000, 0.51), (100_000, 0.51)] {
        let cell = 200 + (share * 100.0) as u64 + users / 1000;
        let [always, once] = runs.sum(cell, |random| run(users, share, random));
        println!(
            "| {},000 | {:.0}/{:.0} | {} | {} |",
            users / 1000,
            share * 100.0,
            100.0 - share * 100.0,
            runs.percent(always),
            runs.percent(once)
        );
    }
}

/// Mismatches of the sequential test, and of one for a single look.
fn run(users: u64, share: f64, random: &mut fastrand::Rng) -> [u64; 2] {
    let mut counts = [0_u64; 2];
    let mut found = [0; 2];
    for _ in 0..LOOKS {
        for _ in 0..users / LOOKS as u64 {
            counts[usize::from(random.f64() >= share)] += 1;
        }
        found[0] |= u64::from(sample_ratio(&counts, &[1, 1]).is_mismatch);
        let difference = counts[0] as f64 - counts[1] as f64;
        let square = difference * difference / (counts[0] + counts[1]) as f64;
        found[1] |= u64::from(square > CHI_SQUARED);
    }
    found
}

/// Chi squared with one degree of freedom at 0.01.
const CHI_SQUARED: f64 = 6.635;
