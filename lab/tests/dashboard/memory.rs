//! A store in memory with one experiment, for tests of analyses and pages.
#![allow(dead_code, reason = "each user takes its own part")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use store::{
    Answer, ArmStep, ArmTotals, Error, Excluded, ExperimentQuery, ExperimentSettings,
    ExperimentSummary, Histogram, Networks, OpenConnections, Query, Step, Store, Totals, UserValue,
    VisitMetric,
};

/// A user of the experiment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) arm: usize,
    pub(crate) entered_s: u64,
    /// Value of the metric `load`, microseconds; other metrics have a multiple.
    pub(crate) value: f64,
    pub(crate) before: Option<f64>,
    /// The user has left before there was a value.
    pub(crate) is_unmeasured: bool,
}

/// The store. Users are in the order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) summary: ExperimentSummary,
    pub(crate) users: Vec<Member>,
    pub(crate) mixed: u64,
    /// Failed page views of each arm, of a hundred.
    pub(crate) failed_percent: Vec<u64>,
    pub(crate) has_steps: bool,
    /// Users that the first totals do not have yet.
    pub(crate) late: Arc<AtomicUsize>,
}

/// Begin of all experiments: 2026-01-01.
pub(crate) const START_S: u64 = 1_767_225_600;

impl Memory {
    /// Returns an experiment with arms of equal weights, a window of an hour, and users every 10 seconds. The values of arm `n` are
    /// `1 + effects[n]` times as large; their coefficient of variation is 0.3.
    pub(crate) fn generated(seed: u64, count: u64, effects: &[f64]) -> Self {
        let names = [
            "control", "fast", "third", "fourth", "fifth", "sixth", "seventh",
        ];
        let arms: Vec<String> = (0..effects.len())
            .map(|n| {
                names
                    .get(n)
                    .map_or_else(|| format!("arm-{n}"), |name| (*name).to_owned())
            })
            .collect();
        let settings = ExperimentSettings {
            name: "spdy".to_owned(),
            arms: arms.iter().map(|name| (name.clone(), 50)).collect(),
            share: 10_000,
            start_s: Some(START_S),
            end_s: Some(START_S + 60 * 86_400),
            window_s: 3600,
            pre_period_s: 0,
            metrics: vec![VisitMetric::Load, VisitMetric::FirstByte],
        };
        let mut random = fastrand::Rng::with_seed(seed);
        let user = |n: u64| {
            let arm = random.usize(..effects.len());
            // The sum of three numbers is near to a bell.
            let spread = random.f64() + random.f64() + random.f64() - 1.5;
            Member {
                arm,
                entered_s: START_S + 10 * n,
                value: 1e6 * (1.0 + 0.6 * spread) * (1.0 + effects[arm]),
                before: None,
                is_unmeasured: false,
            }
        };
        let users: Vec<Member> = (0..count).map(user).collect();
        Self {
            summary: ExperimentSummary {
                name: "spdy".to_owned(),
                settings: Some(settings),
                since_s: START_S,
                arms,
                first_s: users.first().map(|user| user.entered_s),
                last_s: users.last().map(|user| user.entered_s),
                views: 2 * count,
            },
            users,
            mixed: 0,
            failed_percent: vec![0; effects.len()],
            has_steps: true,
            late: Arc::default(),
        }
    }

    /// Time at which all windows are over, Unix seconds.
    pub(crate) fn end_s(&self) -> u64 {
        self.summary.last_s.unwrap_or(START_S) + 3600 + 1
    }

    pub(crate) fn settings(&mut self) -> &mut ExperimentSettings {
        self.summary.settings.get_or_insert_default()
    }

    /// Sets a value before the experiment for all users, which explains most of their own.
    pub(crate) fn with_before(mut self) -> Self {
        self.settings().pre_period_s = 7 * 86_400;
        for (n, user) in self.users.iter_mut().enumerate() {
            user.before = Some(user.value * (1.0 + 0.02 * (n % 5) as f64));
        }
        self
    }
}

impl Store for Memory {
    fn answer(&self, _: &Query) -> Result<Answer, Error> {
        Ok(Answer::default())
    }

    fn totals(&self, _: &Query) -> Result<Totals, Error> {
        Ok(Totals::default())
    }

    fn networks(&self, _: &Query, _: usize) -> Result<Networks, Error> {
        Ok(Networks::default())
    }

    fn open_connections(&self, _: &Query, _: Step) -> Result<Vec<OpenConnections>, Error> {
        Ok(Vec::new())
    }

    fn extent(&self) -> Result<Option<(u64, u64)>, Error> {
        Ok(None)
    }

    fn experiments(&self) -> Result<Vec<ExperimentSummary>, Error> {
        Ok(vec![self.summary.clone()])
    }

    fn users(
        &self,
        query: &ExperimentQuery,
        metric: VisitMetric,
        each: &mut dyn FnMut(UserValue),
    ) -> Result<Excluded, Error> {
        let factor = match metric {
            VisitMetric::Load => 1.0,
            _ => 0.25,
        };
        let (mut unfinished, mut unmeasured) = (0, 0);
        for user in self
            .users
            .iter()
            .filter(|user| user.entered_s >= query.from_s && user.entered_s < query.to_s)
        {
            if user.entered_s + query.window_s >= query.to_s {
                unfinished += 1;
                continue;
            }
            if user.is_unmeasured {
                unmeasured += 1;
                continue;
            }
            each(UserValue {
                arm: user.arm,
                entered_s: user.entered_s,
                value: user.value * factor,
                before: user.before.map(|before| before * factor),
            });
        }
        Ok(Excluded {
            mixed: self.mixed,
            unfinished,
            unmeasured,
        })
    }

    fn arm_totals(&self, query: &ExperimentQuery) -> Result<Vec<ArmTotals>, Error> {
        let entered =
            |user: &&Member| user.entered_s >= query.from_s && user.entered_s < query.to_s;
        let seen = self.users.len() - self.late.swap(0, Ordering::SeqCst);
        let one = |arm: usize| {
            let users = self.users[..seen]
                .iter()
                .filter(entered)
                .filter(|user| user.arm == arm)
                .count() as u64;
            let failed = self.failed_percent.get(arm).copied().unwrap_or(0);
            ArmTotals {
                arm,
                users,
                views: 2 * users,
                failed_views: 2 * users * failed / 100,
                files: 200 * users,
                files_failed: users / 10,
                files_truncated: users / 20,
                file_bytes: 2_000_000 * users,
            }
        };
        Ok((0..self.summary.arms.len()).map(one).collect())
    }

    fn arm_steps(&self, query: &ExperimentQuery, step: Step) -> Result<Vec<ArmStep>, Error> {
        if !self.has_steps {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        let starts = (query.from_s..query.to_s)
            .step_by(step.seconds() as usize)
            .take(24);
        for start_s in starts {
            for arm in 0..self.summary.arms.len() {
                let mut first_byte = Histogram::default();
                (0..10).for_each(|n| first_byte.add(50_000 + 1000 * n));
                let per_user = if arm == 0 { 6 } else { 1 };
                all.push(ArmStep {
                    start_s,
                    arm,
                    connections: 10 * per_user,
                    open_mean: 3.0 * per_user as f64,
                    open_max: 5 * per_user,
                    requests: 1000,
                    promised: 10_000_000,
                    sent: 9_900_000,
                    truncated: 2,
                    aborted: 3,
                    duration_ms: 10_000,
                    cpu_us: 2_000 * per_user,
                    cpu_connections: 10 * per_user,
                    memory_max: 1 << 20,
                    handshake: first_byte.clone(),
                    first_byte,
                });
            }
        }
        Ok(all)
    }
}
