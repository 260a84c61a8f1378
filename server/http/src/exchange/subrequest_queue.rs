//! The queue in which bodies of subrequests wait to become part of their parent's body. `response_body` works on it.

use std::collections::VecDeque;

use engines::http::Chunk;

use super::subrequest::Subrequest;
use super::{BodyStage, Broken, Ctx, Exchange, Wait};

/// The queue of bodies and its sources.
#[derive(Default)]
pub(crate) struct SubrequestQueue {
    /// URIs of subrequests with bodies before and after the exchange's own.
    pub(crate) before: Option<Vec<u8>>,
    pub(crate) after: Option<Vec<u8>>,
    pub(crate) pieces: VecDeque<Piece>,
    /// Bytes in memory and subrequests in the queue.
    pub(crate) ahead_bytes: u64,
    pub(crate) ahead_requests: usize,
    /// The subrequest with a body that is held in memory, and the bytes so far.
    pub(crate) held: Option<Box<(Subrequest, Vec<u8>)>>,
    /// The last stage before the queue waits for the end of a subrequest in the queue.
    pub(crate) waited: bool,
    /// The exchange's own body has ended.
    pub(crate) own_ended: bool,
    /// The condition that the rest of it waits for.
    pub(crate) own_wait: Option<Wait>,
    /// The output so far has been flushed.
    pub(crate) flushed: bool,
    /// The exchange's own body breaks off after the pieces of the queue.
    pub(crate) broken: Option<Broken>,
}

pub(crate) enum Piece {
    Chunk(Chunk),
    Subrequest(Box<Subrequest>),
}

impl Exchange {
    /// Joins bodies of subrequests with this one: the last stage so far may ask for them by [`BodyStage::act`].
    pub fn join_subrequests(&mut self) {
        self.subrequests.queue.get_or_insert_default();
    }

    /// Puts the body of a subrequest before this one, and another after it.
    pub fn add_around(&mut self, before: Option<Vec<u8>>, after: Option<Vec<u8>>) {
        let queue = self.subrequests.queue.get_or_insert_default();
        queue.before = before;
        queue.after = after;
    }

    /// Adds a body stage for the whole response, bodies of subrequests included.
    pub fn push_outer_stage(&mut self, stage: Box<dyn BodyStage>) {
        self.subrequests.outer += 1;
        self.body.stages.push(stage);
    }

    /// The index of the first stage behind the queue.
    pub(crate) fn queue_position(&self) -> usize {
        self.body.stages.len() - self.subrequests.outer
    }

    /// Notifies subrequests that something may have arrived, whether they are first or not.
    pub(super) fn subrequests_arrived(&mut self, cx: &mut Ctx<'_>) {
        self.with_queued(|child| child.arrived(cx));
    }

    /// Runs `work` on each subrequest of the queue, with the state of the client's request.
    pub(super) fn with_queued(&mut self, mut work: impl FnMut(&mut Self)) {
        let Some(mut queue) = self.subrequests.queue.take() else {
            return;
        };
        let held = queue.held.iter_mut().map(|held| &mut held.0);
        let pieces = queue.pieces.iter_mut().filter_map(|piece| match piece {
            Piece::Subrequest(child) => Some(&mut **child),
            Piece::Chunk(_) => None,
        });
        for child in held.chain(pieces) {
            self.with_parent_state(&mut child.exchange, &mut work);
        }
        self.subrequests.queue = Some(queue);
    }

    /// Puts a piece back that was taken from the queue.
    pub(crate) fn put_back_queued(&mut self, chunk: Chunk) {
        if let Some(queue) = &mut self.subrequests.queue {
            queue.ahead_bytes += chunk.bytes().len() as u64;
            queue.pieces.push_front(Piece::Chunk(chunk));
        }
    }

    /// Whether the stages behind the queue are to be flushed, because the next piece takes its time.
    pub(crate) fn must_flush(&mut self) -> bool {
        let queue = self.subrequests.queue.as_mut();
        queue.is_some_and(|queue| !std::mem::replace(&mut queue.flushed, true))
    }
}
