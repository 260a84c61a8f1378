//! Statistics: times as histograms, means and percentiles with intervals, comparisons of two series, experiments.
//!
//! Source: docs/lab.md; docs/statistics.md for [`sequence`].

mod binomial;
mod comparison;
mod estimate;
pub mod sequence;
mod student;
mod times;

pub use comparison::{Comparison, VERDICT_LEVEL, apart, apart_among, paired, paired_among};
pub use estimate::{Estimate, deviation, mean, median_ranks, percentile, percentile_of_runs};
pub use times::{Metric, Times};
