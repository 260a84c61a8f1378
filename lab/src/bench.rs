//! A bench: one server, or several in random turns within blocks, and the report of it.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::cpu::Machine;
use crate::judge::Judge;
use crate::load::Plan;
use crate::outcome::Outcome;
use crate::report::{Conditions, Report, ServerReport, Settings, compare};
use crate::run::{Progress, run};

/// One of the servers, or one row of a table.
#[derive(Clone, Debug)]
pub struct Server {
    /// What it is called in reports.
    pub name: String,
    /// What it is asked for.
    pub url: String,
    /// How it is loaded.
    pub plan: Plan,
}

/// A bench that is asked for.
#[derive(Clone, Debug)]
pub struct Job {
    /// The servers; more than one take turns.
    pub servers: Vec<Server>,
    /// How many times each is loaded.
    pub blocks: usize,
    /// For how long each is loaded before, without being measured; nanoseconds.
    pub warm_up_ns: u64,
    /// Where the order of turns comes from.
    pub seed: u64,
    /// Certificates are not verified.
    pub insecure: bool,
}

/// Where a bench is.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Runs that are over, and all of them.
    pub runs: (usize, usize),
    /// What is loaded now.
    pub server: &'a str,
    /// How far the run is.
    pub progress: Progress,
    /// Of the run, from 0 to 1.
    pub share: f64,
}

/// What a bench has measured: the outcome of each run, by server.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// For each server, its runs in their order.
    pub runs: Vec<Vec<Outcome>>,
    /// It was ended before its end.
    pub interrupted: bool,
}

/// Does a job; its samples are judged where there is somebody who judges. `watch` is called ten times a second, and ends
/// it when it gives false; what was measured until then is told.
///
/// # Errors
/// A thread cannot be made, or a server does not answer at all.
pub fn bench(
    job: &Job,
    judge: Option<&dyn Judge>,
    mut watch: impl FnMut(Step<'_>) -> bool,
) -> Result<(Report, Measured), String> {
    let before = Machine::now();
    let began = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_secs());
    let mut measured = Measured {
        runs: vec![Vec::new(); job.servers.len()],
        interrupted: false,
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
        run(plan, judge, watched).map_err(|error| format!("cannot load {}: {error}", server.name))
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
        let mut random = Random::new(job.seed);
        for _ in 0..job.blocks {
            for at in random.order(job.servers.len()) {
                let server = &job.servers[at];
                let outcome = load(server, &server.plan, over)?;
                over += 1;
                let interrupted = outcome.interrupted;
                // A part of a run is worth telling alone, and nothing beside whole ones.
                if !interrupted || all == 1 {
                    measured.runs[at].push(outcome);
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
    let (busy, steal) = Machine::now().since(&before);
    let mut report = report(job, &measured, began, busy, steal);
    if let Some(judge) = judge {
        let warnings = report.servers.iter().filter_map(|one| one.warning(judge));
        report.warnings = warnings.collect();
    }
    Ok((report, measured))
}

fn report(job: &Job, measured: &Measured, began: u64, busy: f64, steal: f64) -> Report {
    let servers: Vec<ServerReport> = job
        .servers
        .iter()
        .zip(&measured.runs)
        .map(|(server, runs)| ServerReport::new(server, runs))
        .collect();
    let least = measured
        .runs
        .iter()
        .flatten()
        .filter_map(|run| run.min_rtt_us);
    let first = job.servers.first().map(|server| &server.plan);
    Report {
        format: crate::report::FORMAT.to_owned(),
        program: concat!("firstbyte ", env!("CARGO_PKG_VERSION")).to_owned(),
        began_unix_s: began,
        interrupted: measured.interrupted,
        warnings: Vec::new(),
        settings: first.map_or_else(Settings::default, |plan| Settings::new(plan, job)),
        conditions: Conditions::now(least.min(), busy, steal, first),
        comparison: match &servers[..] {
            [first, second] => compare::of_blocks(first, second),
            _ => Vec::new(),
        },
        servers,
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

/// A small generator (xorshift), so that a seed tells the order.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self((seed ^ 0x9e37_79b9_7f4a_7c15).max(1))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 16) % limit as u64) as usize
    }

    /// The numbers below `count` in an order by chance.
    fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for at in (1..count).rev() {
            order.swap(at, self.below(at + 1));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_by_chance_and_each_has_all() {
        let mut random = Random::new(1);
        let mut first = [0; 3];
        for _ in 0..3000 {
            let mut order = random.order(3);
            first[order[0]] += 1;
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2]);
        }
        assert!(
            first.iter().all(|times| (900..1100).contains(times)),
            "{first:?}"
        );
    }
}
