//! Reasons for no report.

use std::fmt;

/// Reason for no report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnalysisError {
    /// The store cannot be read.
    Store(String),
    /// The store has no such experiment, but these; or several, and none is named.
    Unknown(Vec<String>),
}

impl fmt::Display for AnalysisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(reason) => f.write_str(reason),
            Self::Unknown(known) if known.is_empty() => f.write_str("the store has no experiments"),
            Self::Unknown(known) => {
                let names = known.iter().take(NAMES_MAX).map(String::as_str);
                let names: Vec<&str> = names.collect();
                let more = if known.len() > NAMES_MAX { ", ..." } else { "" };
                write!(
                    f,
                    "the store has no such experiment, only {}{more}",
                    names.join(", ")
                )
            }
        }
    }
}

impl From<store::Error> for AnalysisError {
    fn from(error: store::Error) -> Self {
        Self::Store(error.to_string())
    }
}

/// Names of experiments in an error.
const NAMES_MAX: usize = 20;
