//! Page views of an experiment by lot, with a known effect.
//!
//! Times are lognormal: users differ, and so do the page views of a user. A page view has the times of the first arm, multiplied by
//! the factor of its arm. Users enter evenly over the days of the experiment. Half of them have page views before its start, so
//! these explain a part of their times.

use store::{
    ArmFigures, ExperimentRows, ExperimentSettings, Histogram, VISIT_METRICS, Visit, VisitMetric,
};

const DAY_S: u64 = 86_400;
const WINDOW_S: u64 = DAY_S;
const PRE_PERIOD_S: u64 = 7 * DAY_S;
/// Users of one call of the consumer.
const USERS: u64 = 2_000;
/// Median time of `load` in the first arm, microseconds.
const LOAD_US: f64 = 1_500_000.0;
/// Standard deviations of the logarithms: of users, and of the page views of a user. The coefficient of variation of a view is 1.
const OF_USERS: f64 = 0.65;
const OF_VIEWS: f64 = 0.52;
/// Minutes between two rows of figures.
const MINUTES: u64 = 5;

/// An experiment that is made up.
#[derive(Clone, Debug)]
pub(crate) struct MadeUp {
    /// Name of the experiment.
    pub(crate) name: String,
    /// Arms with their weights and the factors of their times; the first factor is 1.
    pub(crate) arms: Vec<(String, u32, f64)>,
    /// Users in all arms together.
    pub(crate) users: u64,
    /// Start of the experiment, Unix seconds.
    pub(crate) start_s: u64,
    /// Days in which users enter.
    pub(crate) days: u64,
    /// The same seed makes the same rows.
    pub(crate) seed: u64,
}

impl MadeUp {
    /// Two arms of equal weight, `control` and `variant`. Times of the second one are longer by the share `effect`.
    pub(crate) fn new(users: u64, effect: f64, start_s: u64, seed: u64) -> Self {
        Self {
            name: "made-up".to_owned(),
            arms: vec![
                ("control".to_owned(), 50, 1.0),
                ("variant".to_owned(), 50, 1.0 + effect),
            ],
            users,
            start_s,
            days: 14,
            seed,
        }
    }

    /// Passes all rows to a consumer, a few thousand at a time.
    pub(crate) fn each(&self, consumer: &mut dyn FnMut(ExperimentRows)) {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut rows = ExperimentRows {
            settings: vec![(self.start_s, self.settings())],
            arms: self.figures(&mut random),
            ..ExperimentRows::default()
        };
        for user in 0..self.users {
            self.add_user(&mut random, user, &mut rows.visits);
            if user % USERS == USERS - 1 {
                consumer(std::mem::take(&mut rows));
            }
        }
        consumer(rows);
    }

    fn settings(&self) -> ExperimentSettings {
        let arms = self.arms.iter();
        ExperimentSettings {
            name: self.name.clone(),
            arms: arms
                .map(|(name, weight, _)| (name.clone(), *weight))
                .collect(),
            share: 10_000,
            start_s: Some(self.start_s),
            end_s: None,
            window_s: WINDOW_S,
            pre_period_s: PRE_PERIOD_S,
            metrics: vec![
                VisitMetric::Load,
                VisitMetric::FirstByte,
                VisitMetric::Files,
            ],
        }
    }

    /// Adds the page views of a user. Ids rise, so a table that is sorted by user is written from its begin to its end.
    fn add_user(&self, random: &mut fastrand::Rng, number: u64, visits: &mut Vec<Visit>) {
        let width = u64::MAX / self.users;
        let user = number * width + random.u64(0..width);
        let (arm, factor) = self.arm(random);
        let speed = (OF_USERS * normal(random)).exp();
        if random.bool() {
            let at_ms = (self.start_s - random.u64(1..=PRE_PERIOD_S)) * 1000 + random.u64(0..1000);
            visits.push(self.visit(random, user, "", at_ms, speed));
        }
        let period_ms = self.days * DAY_S * 1000;
        let mut at_ms = self.start_s * 1000 + random.u64(0..period_ms);
        for _ in 0..random.u8(1..5) {
            visits.push(self.visit(random, user, arm, at_ms, speed * factor));
            at_ms += random.u64(1000..WINDOW_S * 500);
        }
    }

    /// Draws an arm by the weights; its name and its factor.
    fn arm(&self, random: &mut fastrand::Rng) -> (&str, f64) {
        let sum = self.arms.iter().map(|(_, weight, _)| weight).sum();
        let mut lot = random.u32(0..sum);
        for (name, weight, factor) in &self.arms {
            match lot.checked_sub(*weight) {
                Some(rest) => lot = rest,
                None => return (name, *factor),
            }
        }
        unreachable!("a lot is below the sum of the weights")
    }

    fn visit(
        &self,
        random: &mut fastrand::Rng,
        user: u64,
        arm: &str,
        at_ms: u64,
        speed: f64,
    ) -> Visit {
        let load_us = LOAD_US * speed * (OF_VIEWS * normal(random)).exp();
        let mut values = [None; VISIT_METRICS];
        for (metric, share) in [
            (VisitMetric::FirstByte, 0.2),
            (VisitMetric::Response, 0.3),
            (VisitMetric::DomContentLoaded, 0.6),
            (VisitMetric::FirstContentfulPaint, 0.5),
            (VisitMetric::LargestContentfulPaint, 0.8),
            (VisitMetric::Files, 0.95),
            (VisitMetric::Load, 1.0),
        ] {
            values[metric as usize] = Some((share * load_us) as u32);
        }
        let is_failed = random.u32(0..500) == 0;
        Visit {
            at_ms,
            user,
            view: random.u64(..),
            server: "www.example.org".to_owned(),
            experiment: self.name.clone(),
            arm: arm.to_owned(),
            values: if is_failed {
                [None; VISIT_METRICS]
            } else {
                values
            },
            files: 100,
            files_failed: u32::from(random.u32(0..200) == 0),
            files_truncated: u32::from(random.u32(0..400) == 0),
            file_bytes: random.u64(400_000..600_000),
            is_failed,
        }
    }

    /// Figures of the server for the days of the experiment.
    fn figures(&self, random: &mut fastrand::Rng) -> Vec<ArmFigures> {
        let mut rows = Vec::new();
        for minute in (0..self.days * 24 * 60).step_by(MINUTES as usize) {
            for (arm, _, factor) in &self.arms {
                let connections = random.u64(5..50);
                let (mut first_byte, mut handshake) = (Histogram::default(), Histogram::default());
                for _ in 0..connections {
                    first_byte.add((9_000.0 * factor * (0.6 * normal(random)).exp()) as u64);
                    handshake.add((50_000.0 * (0.4 * normal(random)).exp()) as u64);
                }
                let open = random.u64(20..80);
                rows.push(ArmFigures {
                    at_s: self.start_s + minute * 60,
                    server: "www.example.org".to_owned(),
                    experiment: self.name.clone(),
                    arm: arm.clone(),
                    connections,
                    requests: connections * 20,
                    promised: connections * 500_000,
                    sent: connections * 499_000,
                    truncated: connections / 40,
                    aborted: connections / 30,
                    duration_ms: connections * 30_000,
                    cpu_us: connections * 900,
                    cpu_connections: connections,
                    open_sum: open * 60,
                    open_samples: 60,
                    open_max: open + random.u64(0..20),
                    memory_max: open * 9_000,
                    first_byte,
                    handshake,
                });
            }
        }
        rows
    }
}

/// Draws from a normal distribution with deviation 1, by the sum of twelve numbers.
fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}
