//! The chunks that a body stage has put out and that wait for the next one.

use std::collections::VecDeque;

use engines::http::Chunk;

/// What a stage has put out, and how far it is.
#[derive(Default)]
pub(super) struct StageQueue {
    pub(super) out: VecDeque<Chunk>,
    pub(super) state: QueueState,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum QueueState {
    /// The stage takes more.
    #[default]
    Open,
    /// It has been told of the end, and may still have something to put out.
    Ending,
    /// Nothing comes any more.
    Ended,
}
