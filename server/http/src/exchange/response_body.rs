//! The response body while it waits to be pulled.

use std::collections::VecDeque;

use engines::http::Chunk;

use super::part::part;
use super::{BodySource, BodyStage, OnArrival};

part! {
    /// Chunks at hand, who makes the rest, and the stages on their way.
    pub struct ResponseBody() {
        /// The chunks that wait to be pulled.
        pub chunks: VecDeque<Chunk> => clear,
        /// Who makes what comes behind them, if anything does.
        pub source: Option<Box<dyn BodySource>>,
        /// Who is told of what arrives while the response is on its way; set where a server is asked.
        pub on_arrival: Option<OnArrival>,
        /// The source has given something that stages may still hold.
        pub(super) unflushed: bool,
        /// Bytes of the response that wait for a client that takes none now; 0 while it takes them.
        pub unsent_bytes: u64,
        /// Body stages, first the one nearest to the source.
        pub stages: Vec<Box<dyn BodyStage>> => clear,
        /// What each of them has put out.
        pub(super) stage_queues: Vec<StageQueue> => clear,
    }
}

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
