//! The chunks that a body stage has put out and that wait for the next one.

use std::collections::VecDeque;

use engines::http::Chunk;

/// The output of a stage, and its progress.
#[derive(Default)]
pub(crate) struct StageQueue {
    pub(crate) out: VecDeque<Chunk>,
    pub(crate) state: QueueState,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum QueueState {
    /// The stage takes more.
    #[default]
    Open,
    /// Its `end` has been called; it may still have output.
    Ending,
    /// Nothing comes any more.
    Ended,
}
