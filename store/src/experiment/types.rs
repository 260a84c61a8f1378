//! Rows of experiments, queries about them, and answers.

use crate::histogram::Histogram;
use engines::beacon::{VISIT_METRICS, VisitMetric};

/// A page view of a user in an experiment. Names are cut to [`TEXT_BYTES_MAX`](crate::TEXT_BYTES_MAX) bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visit {
    /// When the server received the beacon, Unix milliseconds.
    pub at_ms: u64,
    /// The user: a keyed hash or a random id, never an address.
    pub user: u64,
    /// Id of the page view. A user has one page view with an id: the first stored one, in ClickHouse the earliest
    /// one.
    pub view: u64,
    /// Name of the recording server.
    pub server: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Arm of the user; empty before the start of the experiment.
    pub arm: String,
    /// Values by the place in [`VisitMetric::ALL`], microseconds or thousandths; `None` if not measured.
    pub values: [Option<u32>; VISIT_METRICS],
    /// Static files requested from the experiment's host.
    pub files: u32,
    /// Static files that failed.
    pub files_failed: u32,
    /// Static files with fewer bytes than promised.
    pub files_truncated: u32,
    /// Bytes of the bodies of static files.
    pub file_bytes: u64,
    /// The page never loaded.
    pub is_failed: bool,
}

/// Figures of a server for one arm of an experiment in one minute, or a part of them: a store adds up figures of one minute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArmFigures {
    /// Time, Unix seconds. A store keeps the minute.
    pub at_s: u64,
    /// Name of the recording server.
    pub server: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the arm.
    pub arm: String,
    /// Closed connections.
    pub connections: u64,
    /// Their requests.
    pub requests: u64,
    /// Bytes of response bodies that their heads promised.
    pub promised: u64,
    /// Bytes of response bodies that were sent.
    pub sent: u64,
    /// Responses with fewer bytes than promised.
    pub truncated: u64,
    /// Responses that the client aborted.
    pub aborted: u64,
    /// Time from accept to close, milliseconds.
    pub duration_ms: u64,
    /// Processor time of the connections with a measured one, microseconds.
    pub cpu_us: u64,
    /// Connections with a measured processor time.
    pub cpu_connections: u64,
    /// Sum of the samples of open connections.
    pub open_sum: u64,
    /// Number of these samples.
    pub open_samples: u64,
    /// Largest sample of open connections.
    pub open_max: u64,
    /// Largest sample of their memory, bytes.
    pub memory_max: u64,
    /// Times to the first byte of the first response.
    pub first_byte: Histogram,
    /// Times of TLS handshakes.
    pub handshake: Histogram,
}

impl ArmFigures {
    /// Adds other figures of the same minute, server and arm.
    pub fn merge(&mut self, more: &Self) {
        let sums = [
            (&mut self.connections, more.connections),
            (&mut self.requests, more.requests),
            (&mut self.promised, more.promised),
            (&mut self.sent, more.sent),
            (&mut self.truncated, more.truncated),
            (&mut self.aborted, more.aborted),
            (&mut self.duration_ms, more.duration_ms),
            (&mut self.cpu_us, more.cpu_us),
            (&mut self.cpu_connections, more.cpu_connections),
            (&mut self.open_sum, more.open_sum),
            (&mut self.open_samples, more.open_samples),
        ];
        for (own, more) in sums {
            *own = own.saturating_add(more);
        }
        self.open_max = self.open_max.max(more.open_max);
        self.memory_max = self.memory_max.max(more.memory_max);
        self.first_byte.merge(&more.first_byte);
        self.handshake.merge(&more.handshake);
    }
}

/// Settings of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExperimentSettings {
    /// Name.
    pub name: String,
    /// Arms with their weights.
    pub arms: Vec<(String, u32)>,
    /// Share of users, hundredths of a percent.
    pub share: u32,
    /// Start, Unix seconds.
    pub start_s: Option<u64>,
    /// End, Unix seconds.
    pub end_s: Option<u64>,
    /// Time for which a user is observed, seconds; 0 for the first page view alone.
    pub window_s: u64,
    /// Time before the start with page views for covariates, seconds; 0 for none.
    pub pre_period_s: u64,
    /// Metrics, the primary one first.
    pub metrics: Vec<VisitMetric>,
}

/// Rows of experiments, stored together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExperimentRows {
    /// Page views.
    pub visits: Vec<Visit>,
    /// Figures of arms.
    pub arms: Vec<ArmFigures>,
    /// Settings with the time since which they apply, Unix seconds.
    pub settings: Vec<(u64, ExperimentSettings)>,
}

/// An experiment with page views or settings in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExperimentSummary {
    /// Name.
    pub name: String,
    /// Settings that were stored last; `None` if there are page views alone.
    pub settings: Option<ExperimentSettings>,
    /// Time since which arms and weights are those of the settings, Unix seconds; 0 without settings.
    pub since_s: u64,
    /// Arms: those of the settings in their order, then others with page views or in earlier settings by name.
    pub arms: Vec<String>,
    /// Time of the first page view in an arm, Unix seconds.
    pub first_s: Option<u64>,
    /// Time of the last page view in an arm, Unix seconds.
    pub last_s: Option<u64>,
    /// Page views in an arm. In ClickHouse, repeated page views count again, with their times.
    pub views: u64,
}

/// Query about one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExperimentQuery {
    /// Name of the experiment.
    pub experiment: String,
    /// Begin of the period, Unix seconds: the start of the experiment.
    pub from_s: u64,
    /// End of the period, Unix seconds; earlier page views count.
    pub to_s: u64,
    /// Time for which a user is observed, seconds; 0 for the first page view alone.
    pub window_s: u64,
    /// Time before the period with page views without an arm, seconds.
    pub pre_period_s: u64,
}

/// Value of a metric of one user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserValue {
    /// Arm, by its place in [`ExperimentSummary::arms`].
    pub arm: usize,
    /// Time of the first page view in the period, Unix seconds.
    pub entered_s: u64,
    /// Mean over the page views of the window, microseconds or thousandths.
    pub value: f64,
    /// Mean over the page views of the pre-period; `None` without one.
    pub before: Option<f64>,
}

/// Users without a value in an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excluded {
    /// Users with page views in two arms within the window.
    pub mixed: u64,
    /// Other users: their window is not over at the end of the period.
    pub unfinished: u64,
    /// Other users without a measured value in the window.
    pub unmeasured: u64,
}

/// Sums over the page views of one arm in a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArmTotals {
    /// Arm, by its place in [`ExperimentSummary::arms`].
    pub arm: usize,
    /// Users that entered with a page view in this arm, even if their window is not over. Each user counts in one arm.
    pub users: u64,
    /// Page views.
    pub views: u64,
    /// Page views that never loaded.
    pub failed_views: u64,
    /// Static files.
    pub files: u64,
    /// Static files that failed.
    pub files_failed: u64,
    /// Static files with fewer bytes than promised.
    pub files_truncated: u64,
    /// Bytes of static files.
    pub file_bytes: u64,
}

/// Figures of all servers for one arm during a step of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArmStep {
    /// Begin of the step, Unix seconds.
    pub start_s: u64,
    /// Arm, by its place in [`ExperimentSummary::arms`].
    pub arm: usize,
    /// Closed connections.
    pub connections: u64,
    /// Open connections: mean over the minutes of the step with a sample of any arm.
    pub open_mean: f64,
    /// Open connections: the largest number of a minute.
    pub open_max: u64,
    /// Requests.
    pub requests: u64,
    /// Bytes of response bodies that their heads promised.
    pub promised: u64,
    /// Bytes of response bodies that were sent.
    pub sent: u64,
    /// Responses with fewer bytes than promised.
    pub truncated: u64,
    /// Responses that the client aborted.
    pub aborted: u64,
    /// Time from accept to close, milliseconds.
    pub duration_ms: u64,
    /// Processor time of the connections with a measured one, microseconds.
    pub cpu_us: u64,
    /// Connections with a measured processor time.
    pub cpu_connections: u64,
    /// Memory of open connections, bytes: the largest of a minute.
    pub memory_max: u64,
    /// Times to the first byte of the first response.
    pub first_byte: Histogram,
    /// Times of TLS handshakes.
    pub handshake: Histogram,
}

/// Mean of open connections from the means of minutes in thousandths, added up, and from the number of minutes. Integers have the same
/// sum in any order.
pub(crate) fn open_mean(milli: u64, minutes: u64) -> f64 {
    milli as f64 / 1000.0 / minutes.max(1) as f64
}
