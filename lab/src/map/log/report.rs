//! Results of reading logs, and its progress.

use super::tally::Counts;
use super::{Input, Job};
use crate::map::RttMap;

/// Figures of logs.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Countries.
    pub map: RttMap,
    /// Numbers of lines and samples.
    pub counts: Counts,
    /// Names of the logs, in the order of the job.
    pub inputs: Vec<String>,
    /// Names of logs with the names of their detected formats.
    pub detected: Vec<(String, String)>,
    /// Sentences about logs that could not be read to their end.
    pub broken: Vec<String>,
    /// It was ended before the end of the logs.
    pub interrupted: bool,
}

impl Report {
    /// An empty report of a job.
    pub(super) fn of_job(job: &Job<'_>) -> Self {
        Self {
            inputs: job.inputs.iter().map(Input::name).collect(),
            ..Self::default()
        }
    }
}

/// Progress of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the logs that were read, before decompression.
    pub bytes: u64,
    /// Bytes of all logs; `None` if there is a pipe among them.
    pub total: Option<u64>,
    /// Lines that were read.
    pub lines: u64,
}

/// An event of reading.
#[derive(Debug)]
pub enum Event<'e> {
    /// Blocks were read, or a pipe had nothing for a while.
    Progress(Progress),
    /// Followed logs have had further lines; at most once in 5 seconds.
    Refresh(&'e Report),
}

/// Called with an event; false ends the reading.
pub(super) type Watch<'w> = &'w mut dyn FnMut(Event<'_>) -> bool;
