//! Runs seeds and reports which of them failed.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Reads a number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is not a number")),
        Err(_) => default,
    }
}

/// Runs the seeds; `run` returns the counts of one.
pub(crate) fn seeds<T>(
    binary: &str,
    test: &str,
    mut run: impl FnMut(u64) -> Result<T, String>,
    mut add: impl FnMut(&T),
) {
    let first = setting("SIM_SEED", 1);
    let mut failed = Vec::new();
    for seed in first..first + setting("SIM_SEEDS", 300) {
        let result = catch_unwind(AssertUnwindSafe(|| run(seed)));
        let fault = match result {
            Ok(Ok(tally)) => {
                add(&tally);
                continue;
            }
            Ok(Err(fault)) => fault,
            Err(_) => "a panic".to_owned(),
        };
        println!("seed {seed}: {fault}");
        println!(
            "  again: SIM_SEED={seed} SIM_SEEDS=1 cargo test -p firstbyte-driver --test {binary} -- --nocapture {test}"
        );
        failed.push(seed);
        if failed.len() == FAULTS_MAX {
            break;
        }
    }
    assert!(failed.is_empty(), "seeds that failed: {failed:?}");
}

/// Number of failures after which the other seeds are skipped.
const FAULTS_MAX: usize = 10;
