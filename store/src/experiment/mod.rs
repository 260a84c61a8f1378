//! A/B experiments: page views, figures of the server by arm, settings, and queries for them.
//!
//! A user enters an experiment with the first page view in an arm, and is observed for a window from then on. The value of a user
//! is the mean over the page views in the window. It is final once the window is over: [`Store::users`](crate::Store::users) has
//! such users alone, so later answers only append users to earlier ones.
//!
//! Source: docs/store.md.

mod metric;
mod settings;
mod types;
mod views;

pub use engines::beacon::{VISIT_METRICS, VisitMetric};
pub(crate) use metric::{METRIC_COLUMNS, column};
pub(crate) use settings::{
    StoredArm, arms_of, arms_text, metrics_of, metrics_text, place_of, summary,
};
pub(crate) use types::open_mean;
pub use types::{
    ArmFigures, ArmStep, ArmTotals, Excluded, ExperimentQuery, ExperimentRows, ExperimentSettings,
    ExperimentSummary, UserValue, Visit,
};
pub(crate) use views::{ArmSums, Files, Users, VIEWS_MAX, View};
