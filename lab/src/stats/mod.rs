//! Statistics: times as histograms, means and percentiles with intervals, comparisons of two series.
//!
//! Source: docs/lab.md.

mod binomial;
mod comparison;
mod estimate;
mod student;
mod times;

pub use comparison::{Comparison, VERDICT_LEVEL, apart, apart_among, paired, paired_among};
pub use estimate::{Estimate, deviation, mean, median_ranks, percentile, percentile_of_runs};
pub use times::{Metric, Times};
