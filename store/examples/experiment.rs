//! Makes a store of SQLite with an experiment that is made up, and measures its answers.
//!
//! `cargo run -p firstbyte-store --example experiment -- FILE USERS EFFECT SEED` stores the experiment `made-up` of the last 16 days:
//! USERS users in two arms, the times of the second one longer by EFFECT percent. It prints the time of the insertion, the size of
//! the file, and the times of the answers. An existing file is only read. `visits` makes the rows.

#[path = "visits/mod.rs"]
mod visits;

use std::path::Path;
use std::time::{Instant, SystemTime};

use store::{ExperimentQuery, ExperimentSummary, Sqlite, Step, Store, VisitMetric};
use visits::MadeUp;

const DAY_S: u64 = 86_400;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn generate(path: &Path, experiment: &MadeUp) -> Outcome<()> {
    let mut store = Sqlite::open(path)?.store;
    let begin = Instant::now();
    let (mut views, mut failed) = (0, None);
    experiment.each(&mut |rows| {
        views += rows.visits.len();
        failed = failed.take().or(store.commit_all(&[], &[], &rows).err());
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    let size = store.size_bytes()?;
    println!(
        "{views} page views in {:.1} s; the file has {size} bytes",
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

fn read(path: &Path) -> Outcome<()> {
    let store = Sqlite::open_to_read(path)?;
    let begin = Instant::now();
    let experiments = store.experiments()?;
    println!(
        "{} experiments in {:.3} s",
        experiments.len(),
        begin.elapsed().as_secs_f64()
    );
    experiments
        .iter()
        .try_for_each(|found| answers(&store, found))
}

/// Prints the times of the answers about an experiment, and the means of its arms.
fn answers(store: &Sqlite, found: &ExperimentSummary) -> Outcome<()> {
    let query = ExperimentQuery {
        experiment: found.name.clone(),
        from_s: found.since_s,
        to_s: found.last_s.map_or(0, |last_s| last_s + 1),
        window_s: DAY_S,
        pre_period_s: 7 * DAY_S,
    };
    for _ in 0..3 {
        let begin = Instant::now();
        let mut arms = vec![(0u64, 0.0); found.arms.len()];
        let excluded = store.users(&query, VisitMetric::Load, &mut |user| {
            let (count, sum) = &mut arms[user.arm];
            *count += 1;
            *sum += user.value;
        })?;
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "users of \"{}\" in {seconds:.3} s; {excluded:?}",
            found.name
        );
        // A mean shows whether the effect is there.
        for (name, (count, sum)) in found.arms.iter().zip(arms) {
            let mean = sum / count as f64 / 1000.0;
            println!("{name}: {count} users, mean {mean:.1} ms");
        }
    }
    let begin = Instant::now();
    let totals = store.arm_totals(&query)?.len();
    let seconds = begin.elapsed().as_secs_f64();
    println!("totals of {totals} arms in {seconds:.3} s");
    let begin = Instant::now();
    let steps = store.arm_steps(&query, Step::Hour)?.len();
    let seconds = begin.elapsed().as_secs_f64();
    println!("{steps} steps in {seconds:.3} s");
    Ok(())
}

fn main() -> Outcome<()> {
    let usage = "usage: experiment FILE USERS EFFECT SEED";
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, users, effect, seed] = &words[..] else {
        return Err(usage.into());
    };
    let effect: f64 = effect.trim_end_matches('%').parse()?;
    let now_s = SystemTime::UNIX_EPOCH.elapsed()?.as_secs();
    let start_s = now_s / DAY_S * DAY_S - 16 * DAY_S;
    let experiment = MadeUp::new(users.parse()?, effect / 100.0, start_s, seed.parse()?);
    let path = Path::new(path);
    if !path.exists() {
        generate(path, &experiment)?;
    }
    read(path)
}
