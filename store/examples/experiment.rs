//! Makes a store of SQLite with an experiment that is made up, and measures its answers.
//!
//! `cargo run -p firstbyte-store --example experiment -- FILE USERS EFFECT SEED` adds the experiment `made-up` of the last 16 days: USERS
//! users in two arms, the times of the second one longer by EFFECT percent. It prints the time of the insertion, the size of the
//! file, and the times of the answers. `visits` makes the rows.

#[path = "visits/mod.rs"]
mod visits;

use std::path::Path;
use std::time::{Instant, SystemTime};

use store::{ExperimentQuery, Sqlite, Step, Store, VisitMetric};
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
    for found in experiments {
        let query = ExperimentQuery {
            experiment: found.name.clone(),
            from_s: found.since_s,
            to_s: found.last_s.map_or(0, |last_s| last_s + 1),
            window_s: DAY_S,
            pre_period_s: 7 * DAY_S,
        };
        let begin = Instant::now();
        let mut arms = vec![(0u64, 0.0); found.arms.len()];
        let excluded = store.users(&query, VisitMetric::Load, &mut |user| {
            let (count, sum) = &mut arms[user.arm];
            *count += 1;
            *sum += user.value;
        })?;
        println!(
            "users of \"{}\" in {:.3} s; {excluded:?}",
            found.name,
            begin.elapsed().as_secs_f64()
        );
        for (name, (count, sum)) in found.arms.iter().zip(arms) {
            println!(
                "{name}: {count} users, mean {:.1} ms",
                sum / count as f64 / 1000.0
            );
        }
        let begin = Instant::now();
        let totals = store.arm_totals(&query)?;
        println!(
            "totals of {} arms in {:.3} s",
            totals.len(),
            begin.elapsed().as_secs_f64()
        );
        let begin = Instant::now();
        let steps = store.arm_steps(&query, Step::Hour)?;
        println!(
            "{} steps in {:.3} s",
            steps.len(),
            begin.elapsed().as_secs_f64()
        );
    }
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
    generate(Path::new(path), &experiment)?;
    read(Path::new(path))
}
