//! Why something could not be measured.

use std::fmt;
use std::ops::RangeInclusive;

use crate::fetch;

/// Why a measurement, or a whole examination, came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The user interrupted the examination.
    Interrupted,
    /// As many requests were sent as may be.
    BudgetSpent,
    /// A request or a connection failed, in words.
    Fetch(String),
    /// Anything else, in words.
    Other(String),
}

impl Failure {
    /// The failure of a check for lack of a body of these sizes, bytes.
    pub(super) fn no_body(bytes: RangeInclusive<u64>) -> Self {
        let (least, most) = (bytes.start(), bytes.end());
        let sizes = match *most {
            u64::MAX => format!("{least} bytes or more"),
            most => format!("{least} to {most} bytes"),
        };
        Self::Other(format!(
            "no body of {sizes} is known: add --url or --docroot"
        ))
    }

    /// The failure of a check by time for lack of a longer round trip.
    pub(super) fn short_round_trip(round_trip_ms: f64) -> Self {
        Self::Other(format!(
            "a round trip of {round_trip_ms:.1} ms is too short to count round trips by time"
        ))
    }

    /// A failure in words.
    #[must_use]
    pub fn other(why: impl Into<String>) -> Self {
        Self::Other(why.into())
    }
}

impl From<fetch::Failure> for Failure {
    fn from(failure: fetch::Failure) -> Self {
        Self::Fetch(failure.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => out.write_str("interrupted"),
            Self::BudgetSpent => out.write_str("the limit of --max-requests is reached"),
            Self::Fetch(why) | Self::Other(why) => out.write_str(why),
        }
    }
}
