//! A bench: one server, or several in random turns within blocks.

use std::time::{SystemTime, UNIX_EPOCH};

use sys::os_error;

use super::cpu::Machine;
use super::filter::SampleFilter;
use super::plan::Plan;
use super::result::LoadResult;
use super::run::{Progress, run};

/// One of the servers, or one row of a table.
#[derive(Clone, Debug)]
pub struct Server {
    /// Name in reports.
    pub name: String,
    /// URL that is requested, the first of several.
    pub url: String,
    /// How it is loaded.
    pub plan: Plan,
}

/// Settings of a bench.
#[derive(Clone, Debug)]
pub struct Job {
    /// The servers; several are loaded in turn.
    pub servers: Vec<Server>,
    /// Number of runs of each server.
    pub blocks: usize,
    /// For how long each is loaded before, without being measured; nanoseconds.
    pub warm_up_ns: u64,
    /// Seed of the order of turns.
    pub seed: u64,
    /// Certificates are not verified.
    pub insecure: bool,
}

/// Progress of a bench.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Runs that are over, and all of them.
    pub runs: (usize, usize),
    /// Name of the server that is loaded now.
    pub server: &'a str,
    /// How far the run is.
    pub progress: Progress,
    /// Of the run, from 0 to 1.
    pub share: f64,
}

/// Results of a bench, by server and run.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// For each server, its runs in their order.
    pub runs: Vec<Vec<LoadResult>>,
    /// It was ended before its end.
    pub interrupted: bool,
    /// When it began, seconds since 1970.
    pub began_unix_s: u64,
    /// The share of its time in which the processors of this machine were busy.
    pub busy: f64,
    /// The share of its time that other machines on the same hardware took.
    pub steal: f64,
}

/// Runs a job. Samples excluded by `filter` are counted separately. `watch` is called ten times a second; if it returns false,
/// the job ends and the results so far are returned.
///
/// # Errors
/// A thread cannot be started, or a server never answers.
pub fn bench(
    job: &Job,
    filter: Option<&dyn SampleFilter>,
    mut watch: impl FnMut(Step<'_>) -> bool,
) -> Result<Measured, String> {
    let before = Machine::now();
    let began = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut measured = Measured {
        runs: vec![Vec::new(); job.servers.len()],
        began_unix_s: began.map_or(0, |now| now.as_secs()),
        ..Measured::default()
    };
    let all = job.blocks * job.servers.len();
    let mut over = 0;
    let mut load = |server: &Server, plan: &Plan, over: usize| {
        let watched = |progress: Progress| {
            watch(Step {
                runs: (over, all),
                server: &server.name,
                progress,
                share: share(plan, progress),
            })
        };
        run(plan, filter, watched)
            .map_err(|error| format!("cannot load {}: {}", server.name, os_error(&error)))
    };
    'all: {
        if job.warm_up_ns > 0 {
            for server in &job.servers {
                let plan = Plan {
                    total: None,
                    duration_ns: Some(job.warm_up_ns),
                    ..server.plan.clone()
                };
                if load(server, &plan, 0)?.interrupted {
                    measured.interrupted = true;
                    break 'all;
                }
            }
        }
        let mut random = fastrand::Rng::with_seed(job.seed);
        for _ in 0..job.blocks {
            let mut order: Vec<usize> = (0..job.servers.len()).collect();
            random.shuffle(&mut order);
            for at in order {
                let server = &job.servers[at];
                let result = load(server, &server.plan, over)?;
                over += 1;
                let interrupted = result.interrupted;
                // An interrupted run is reported if it is the only one. Beside whole runs it would distort them.
                if !interrupted || all == 1 {
                    measured.runs[at].push(result);
                }
                if interrupted {
                    measured.interrupted = true;
                    break 'all;
                }
                // More runs would say no more.
                if measured.runs[at].iter().all(|run| run.done == 0) {
                    break 'all;
                }
            }
        }
    }
    (measured.busy, measured.steal) = Machine::now().since(&before);
    Ok(measured)
}

/// Adds (A), (B) and so on to names that are equal.
pub fn tell_apart(names: &mut [&mut String]) {
    let all: Vec<String> = names.iter().map(|name| (*name).clone()).collect();
    for (at, name) in names.iter_mut().enumerate() {
        let same = |others: &[String]| others.iter().filter(|other| **other == all[at]).count();
        if same(&all) > 1 {
            let letter = char::from_u32('A' as u32 + same(&all[..at]) as u32).unwrap_or_default();
            name.push_str(&format!(" ({letter})"));
        }
    }
}

/// How far a run is.
fn share(plan: &Plan, progress: Progress) -> f64 {
    let by_time = plan
        .duration_ns
        .map_or(0.0, |all| progress.elapsed_ns as f64 / all.max(1) as f64);
    let by_count = plan
        .total
        .map_or(0.0, |all| progress.ended as f64 / all.max(1) as f64);
    by_time.max(by_count).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_are_told_apart_and_others_stay() {
        let mut names = ["x", "y", "x", "z", "x"].map(str::to_owned);
        tell_apart(&mut names.each_mut());
        assert_eq!(names, ["x (A)", "y", "x (B)", "z", "x (C)"]);
    }
}
