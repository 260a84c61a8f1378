//! The report of an experiment, format `firstbyte-experiment/1`.
//!
//! Members are added to the format, but none is removed or changes its meaning.
//!
//! Source: docs/experiment-report.md.

use serde::{Serialize, Serializer};
use store::VisitMetric;

use super::statistic::Statistic;
use crate::report::PROGRAM;
use crate::stats::sequence::sample_ratio;
use crate::time::iso;

/// A report of one experiment at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: &'static str,
    /// Program that made the report.
    pub program: &'static str,
    /// Name of the experiment.
    pub experiment: String,
    /// Time of the report, Unix seconds. Later visits do not count.
    #[serde(rename = "at", serialize_with = "time")]
    pub at_s: u64,
    /// Begin of the analysis, Unix seconds: the first record with the weights in force.
    #[serde(rename = "since", serialize_with = "time")]
    pub since_s: u64,
    /// Configured begin, Unix seconds.
    #[serde(rename = "start", serialize_with = "time_if")]
    pub start_s: Option<u64>,
    /// Configured end, Unix seconds.
    #[serde(rename = "end", serialize_with = "time_if")]
    pub end_s: Option<u64>,
    /// Last visit, Unix seconds.
    #[serde(rename = "last_visit", serialize_with = "time_if")]
    pub last_s: Option<u64>,
    /// Observed time of each user from the first view on, seconds; 0: the first view alone.
    pub window_s: u64,
    /// Time before the beginning that measures users without an arm, seconds.
    pub pre_period_s: u64,
    /// Share of users in the experiment, percent.
    pub share_percent: f64,
    /// State of the experiment.
    pub state: State,
    /// Whether all arms have the same effect, as the caller of the analysis declared.
    pub is_a_a: bool,
    /// Probability that any interval of the report misses its true value, at any look; at most.
    pub alpha: f64,
    /// Arms; the others are compared with the first.
    pub arms: Vec<Arm>,
    /// Users who enter in a day, all arms together: mean of the last days. `None`: less than an hour of data.
    pub users_per_day: Option<f64>,
    /// Users that figures of metrics do not count.
    #[serde(flatten)]
    pub uncounted: Uncounted,
    /// Test of the shares of arms.
    pub sample_ratio: ShareTest,
    /// Test of the shares of users with a value of the primary metric.
    pub measured_ratio: ShareTest,
    /// Metrics, the primary one first.
    pub metrics: Vec<Metric>,
    /// Figures of the server over time.
    pub steps: Vec<ServerStep>,
    /// Verdict in sentences.
    pub verdict: Verdict,
    /// Reasons for care.
    pub warnings: Vec<String>,
}

/// Users that figures of metrics do not count, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Uncounted {
    /// Users with visits in several arms; no figure counts them.
    #[serde(rename = "mixed_users")]
    pub mixed: u64,
    /// Users with an unfinished window; figures count them later.
    #[serde(rename = "unfinished_users")]
    pub unfinished: u64,
    /// Users without a value of the primary metric.
    #[serde(rename = "unmeasured_users")]
    pub unmeasured: u64,
}

/// State of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The configured begin is in the future.
    NotBegun,
    /// No user has been seen yet.
    Waiting,
    /// Users enter.
    Running,
    /// Visits have stopped before the end: a kill switch, or a removed experiment.
    Silent,
    /// The end has passed, and the last window is over.
    Ended,
}

impl State {
    /// Name for readers.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::NotBegun => "not begun",
            Self::Waiting => "waiting for users",
            Self::Running => "running",
            Self::Silent => "no recent visits",
            Self::Ended => "ended",
        }
    }
}

/// An arm with its sums.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Arm {
    /// Name.
    pub arm: String,
    /// Configured weight.
    pub weight: u32,
    /// Users, those with unfinished windows too.
    pub users: u64,
    /// Page views.
    pub views: u64,
    /// Page views that never loaded.
    pub failed_views: u64,
    /// Static files.
    pub files: u64,
    /// Static files that failed.
    pub files_failed: u64,
    /// Static files with fewer bytes than announced.
    pub files_truncated: u64,
    /// Bytes of static files.
    pub file_bytes: u64,
    /// Figures of the server; `None`: no connection of the arm has been recorded yet.
    pub server: Option<Server>,
}

/// Figures of the server for the connections of an arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Server {
    /// Closed connections.
    pub connections: u64,
    /// Mean number of open connections.
    pub open_mean: f64,
    /// Largest number of open connections.
    pub open_max: u64,
    /// Requests.
    pub requests: u64,
    /// Bytes that response heads announced.
    pub bytes_promised: u64,
    /// Bytes of bodies that were sent.
    pub bytes_sent: u64,
    /// Responses with fewer bytes than announced.
    pub truncated: u64,
    /// Responses that the client aborted.
    pub aborted: u64,
    /// CPU time of a connection, mean of the measured ones, microseconds.
    pub cpu_us_per_connection: Option<f64>,
    /// CPU time of a request, microseconds. It is estimated from the mean of the measured connections.
    pub cpu_us_per_request: Option<f64>,
    /// Largest memory of open connections, bytes.
    pub memory_max_bytes: u64,
    /// Time to the first byte: median, p80, p95, ms.
    pub first_byte_ms: Option<[f64; 3]>,
    /// TLS handshake: median, p80, p95, ms.
    pub handshake_ms: Option<[f64; 3]>,
}

/// Figures of the server for one arm in a step of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServerStep {
    /// Begin of the step, Unix seconds.
    #[serde(rename = "at", serialize_with = "time")]
    pub at_s: u64,
    /// Name of the arm.
    pub arm: String,
    /// Connections that were closed in the step.
    pub connections: u64,
    /// Mean of open connections.
    pub open_mean: f64,
    /// Largest number of open connections.
    pub open_max: u64,
    /// CPU time of a connection, mean of the measured ones, microseconds.
    pub cpu_us_per_connection: Option<f64>,
    /// Responses with fewer bytes than announced.
    pub truncated: u64,
    /// Responses that the client aborted.
    pub aborted: u64,
}

/// Test of the shares of arms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShareTest {
    /// Probability of such shares by chance, valid at every look; at most.
    pub p_value: f64,
    /// Whether the shares contradict the weights. There is no verdict then.
    pub is_mismatch: bool,
}

impl Default for ShareTest {
    /// A test without users.
    fn default() -> Self {
        Self {
            p_value: 1.0,
            is_mismatch: false,
        }
    }
}

impl ShareTest {
    /// Returns the test of users against the weights of their arms; without weights or with one arm that of no users.
    pub(super) fn of(users: &[u64], arms: &[Arm]) -> Self {
        let weights: Vec<u32> = arms.iter().map(|arm| arm.weight).collect();
        if users.len() < 2 || weights.iter().all(|weight| *weight == 0) {
            return Self::default();
        }
        let found = sample_ratio(users, &weights);
        Self {
            p_value: found.p_value,
            is_mismatch: found.is_mismatch,
        }
    }
}

/// Figures of one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// The metric.
    #[serde(serialize_with = "metric_name")]
    pub metric: VisitMetric,
    /// Unit of values: `ms`, or `1` for layout shift.
    pub unit: &'static str,
    /// Whether the verdict begins with this metric.
    pub is_primary: bool,
    /// Adjustment of means by the time before the experiment; `None`: too few users have been seen then.
    pub cuped: Option<Cuped>,
    /// Values of each arm.
    pub values: Vec<Values>,
    /// Comparisons with the first arm, by arm and statistic.
    pub comparisons: Vec<Comparison>,
}

/// Adjustment of means by values before the experiment (CUPED).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cuped {
    /// Change of a value for each unit of the value before.
    pub theta: f64,
    /// Share of the variance that the adjustment removes, 0 to 1.
    pub reduction: f64,
    /// Share of users with a value before, 0 to 1.
    pub share: f64,
}

/// Values of an arm: one for each user with a finished window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Values {
    /// Name of the arm.
    pub arm: String,
    /// Users with a value.
    pub users: u64,
    /// Mean, adjusted if [`Metric::cuped`] is present.
    pub mean: Option<f64>,
    /// Standard deviation of the values behind the mean.
    pub deviation: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 80th percentile.
    pub p80: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
}

/// An arm compared with the first one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the arm.
    pub arm: String,
    /// Compared statistic.
    pub statistic: Statistic,
    /// Level of the interval, 0 to 1.
    pub level: f64,
    /// Change with its interval; `None`: too few users.
    #[serde(flatten)]
    pub change: Option<Change>,
    /// Whether the interval leaves out 0.
    pub differs: bool,
    /// Course of the change over time; the intervals hold at all looks together.
    pub course: Vec<Look>,
}

/// Relative change, percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Estimate, percent.
    #[serde(rename = "change_percent")]
    pub estimate: f64,
    /// Lower end, percent; -100 if the data have none.
    #[serde(rename = "low_percent")]
    pub low: f64,
    /// Upper end, percent; infinity (`null` in JSON) if the data have none.
    #[serde(rename = "high_percent")]
    pub high: f64,
}

impl Change {
    /// Whether the interval leaves out 0.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// Whether the data limit the change at neither end; a value cannot fall by more than 100 %.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.low <= -100.0 && self.high.is_infinite()
    }
}

/// A change as it was at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Look {
    /// Time, Unix seconds.
    #[serde(rename = "at", serialize_with = "time")]
    pub at_s: u64,
    /// Users of the first arm and of this one.
    pub users: [u64; 2],
    /// The change.
    #[serde(flatten)]
    pub change: Option<Change>,
}

/// Verdict of a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// Outcome for programs.
    pub outcome: Outcome,
    /// Sentences for readers, the most important first.
    pub sentences: Vec<String>,
    /// Expected times until a change of the primary mean is found.
    pub waits: Vec<Wait>,
}

/// Expected time until a change of the mean is found with power 0.8.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Wait {
    /// Name of the arm.
    pub arm: String,
    /// Size of the change, percent.
    pub effect_percent: f64,
    /// Further users in each of both arms.
    pub more_users_per_arm: f64,
    /// Further days at the rate of users so far; `None`: the rate is unknown.
    pub more_days: Option<f64>,
}

/// Outcome of an experiment so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The experiment has not begun.
    NotBegun,
    /// No user has finished.
    #[default]
    NoUsers,
    /// Users are too few for an interval.
    TooFewUsers,
    /// The shares of arms contradict their weights.
    SampleRatio,
    /// No interval leaves out 0.
    NoDifference,
    /// An interval leaves out 0.
    Difference,
    /// Arms of the same effect have no difference.
    AaPassed,
    /// Arms of the same effect differ.
    AaFailed,
}

impl Report {
    /// Metric of the verdict.
    #[must_use]
    pub fn primary(&self) -> Option<&Metric> {
        self.metrics.first()
    }

    /// Users of all arms, those with unfinished windows too.
    #[must_use]
    pub fn users(&self) -> u64 {
        self.arms.iter().map(|arm| arm.users).sum()
    }

    /// Users with a value of the primary metric, and those that do not count.
    pub(super) fn counted_users(&self) -> u64 {
        let measured = self.primary().map(Metric::measured).unwrap_or_default();
        measured.iter().sum::<u64>()
            + self.uncounted.mixed
            + self.uncounted.unfinished
            + self.uncounted.unmeasured
    }

    /// The report as JSON, with a line end.
    ///
    /// # Errors
    /// A text of the encoder.
    pub fn json(&self) -> Result<String, String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        Ok(crate::report::escaped_json(&text).into_owned() + "\n")
    }
}

impl Metric {
    /// Users of each arm with a value.
    pub(super) fn measured(&self) -> Vec<u64> {
        self.values.iter().map(|values| values.users).collect()
    }

    /// Comparisons of all arms in the mean.
    pub(super) fn means(&self) -> impl Iterator<Item = &Comparison> {
        let all = self.comparisons.iter();
        all.filter(|one| one.statistic == Statistic::Mean)
    }

    /// Comparison of an arm in a statistic.
    #[must_use]
    pub fn comparison(&self, arm: &str, statistic: Statistic) -> Option<&Comparison> {
        let mut all = self.comparisons.iter();
        all.find(|one| one.arm == arm && one.statistic == statistic)
    }
}

impl Values {
    /// Value of a statistic.
    #[must_use]
    pub fn of(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::Mean => self.mean,
            Statistic::P50 => self.p50,
            Statistic::P80 => self.p80,
            Statistic::P95 => self.p95,
        }
    }
}

fn time<S: Serializer>(unix_s: &u64, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(&iso(*unix_s))
}

fn time_if<S: Serializer>(unix_s: &Option<u64>, out: S) -> Result<S::Ok, S::Error> {
    match unix_s {
        Some(unix_s) => time(unix_s, out),
        None => out.serialize_none(),
    }
}

fn metric_name<S: Serializer>(metric: &VisitMetric, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(metric.name())
}

/// Name of the format of JSON.
pub const FORMAT: &str = "firstbyte-experiment/1";
/// Name of this program in reports.
pub(super) const MADE_BY: &str = PROGRAM;
