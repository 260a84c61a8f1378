//! Experiments: the analysis of a store's visits, with a verdict in sentences.
//!
//! [`analysis()`] reads one experiment from a store and returns a [`Report`], from which the terminal's text ([`text`]), JSON and
//! the pages of `web` are made. It looks at the course of the experiment up to 50 times; its intervals hold at all looks together.
//! Absent: recording and assignment, which are parts of the server.
//!
//! Source: docs/experiment-report.md, docs/statistics.md.

mod analysis;
mod error;
mod metrics;
mod replay;
mod report;
mod server;
mod spread;
mod statistic;
mod text;
mod verdict;
mod wait;
mod warnings;
mod words;

#[cfg(test)]
pub(crate) mod tests;

pub use analysis::{Options, analysis};
pub use error::AnalysisError;
pub use report::{
    Arm, Change, Comparison, Cuped, FORMAT, Look, Metric, Outcome, Report, Server, ServerStep,
    ShareTest, State, Values, Verdict, Wait,
};
pub use spread::{Spread, spread};
pub use statistic::Statistic;
pub use text::text;
pub use words::label;

pub use crate::time::parse as parse_time;
