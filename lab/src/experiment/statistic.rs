//! Statistics of a metric.

use serde::Serialize;

/// A statistic of the values of users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Mean.
    Mean,
    /// Median.
    P50,
    /// 80th percentile.
    P80,
    /// 95th percentile.
    P95,
}

impl Statistic {
    /// All statistics, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Mean, Self::P50, Self::P80, Self::P95];

    /// Name in JSON, CSV and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P80 => "p80",
            Self::P95 => "p95",
        }
    }

    /// Name in sentences.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "median",
            Self::P80 => "80th percentile",
            Self::P95 => "95th percentile",
        }
    }

    /// Share of values below the statistic; `None` for the mean.
    pub(super) fn quantile(self) -> Option<f64> {
        match self {
            Self::Mean => None,
            Self::P50 => Some(0.5),
            Self::P80 => Some(0.8),
            Self::P95 => Some(0.95),
        }
    }
}
