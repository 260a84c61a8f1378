//! Why something could not be measured.

use std::fmt;

use crate::fetch;

/// Why a measurement, or a whole examination, came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Somebody has asked for the end.
    Interrupted,
    /// As many requests were sent as may be.
    BudgetSpent,
    /// A request or a connection failed, in words.
    Fetch(String),
    /// Anything else, in words.
    Other(String),
}

impl Failure {
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
            Self::BudgetSpent => {
                out.write_str("as many requests were sent as --max-requests allows")
            }
            Self::Fetch(why) | Self::Other(why) => out.write_str(why),
        }
    }
}
