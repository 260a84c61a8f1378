//! The queue in which bodies of subrequests become part of their parent's body, in order.
//!
//! It comes after the body stages of one exchange's own body and before those of the client's response, such as
//! compression, as the postpone filter of nginx. Its input is a queue of pieces, and one kind of piece is "the body
//! of a subrequest". Everything is pulled: a subrequest's body is pulled when it is first in the queue.
//!
//! A subrequest that has to wait makes its parent wait. Before that, all earlier bytes are sent: the stages behind
//! the queue are flushed. Meanwhile the parent's own body is worked on, so that its later subrequests wait at the
//! same time, up to [`AHEAD_BYTES`] and [`AHEAD_REQUESTS`].
//!
//! Source: nginx development guide, "Subrequests"; nginx documentation, `subrequest_output_buffer_size`.

use std::collections::VecDeque;

use engines::http::Chunk;
use server_base::errlog::{Level, Printable};

use super::Stepped;
use super::subrequest::resume;
use crate::exchange::subrequest_queue::{Piece, SubrequestQueue};
use crate::exchange::{
    BodyStage, Broken, Ctx, Exchange, Pulled, StageStatus, State, Subrequest, Wait,
};
use crate::{phases, reply};

/// The output of the queue.
pub(super) enum QueueRead {
    Chunk(Chunk),
    End,
    /// Nothing before `progress.pull_wait` ends.
    Pending,
}

/// The next part of the exchange's own body.
enum Own {
    Chunk(Chunk),
    Subrequest(Box<Subrequest>),
    Pending,
    End,
}

impl SubrequestQueue {
    /// The next piece.
    fn next(&mut self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<QueueRead, Broken> {
        self.wake(x, cx);
        loop {
            match self.pieces.pop_front() {
                Some(Piece::Chunk(chunk)) => {
                    self.ahead_bytes -= chunk.bytes().len() as u64;
                    self.flushed = matches!(chunk, Chunk::Flush);
                    return Ok(QueueRead::Chunk(chunk));
                }
                Some(Piece::Subrequest(mut child)) => match pull_child(&mut child, x, cx)? {
                    QueueRead::End => {
                        self.ahead_requests -= 1;
                        self.waited &= !child.waited;
                    }
                    QueueRead::Chunk(chunk) => {
                        self.flushed = matches!(chunk, Chunk::Flush);
                        self.pieces.push_front(Piece::Subrequest(child));
                        return Ok(QueueRead::Chunk(chunk));
                    }
                    QueueRead::Pending => {
                        self.pieces.push_front(Piece::Subrequest(child));
                        while self.has_room_ahead() && self.advance(x, cx)? {}
                        return Ok(self.wait(x));
                    }
                },
                None if self.advance(x, cx)? => {}
                None if self.broken.is_some() => {
                    return self.broken.take().map_or(Ok(QueueRead::End), Err);
                }
                None if self.held.is_some() || self.own_wait.is_some() => return Ok(self.wait(x)),
                None => return Ok(QueueRead::End),
            }
        }
    }

    /// Resumes subrequests after their waits, whether they are first or not.
    fn wake(&mut self, x: &mut Exchange, cx: &mut Ctx<'_>) {
        if self.ahead_requests == 0 {
            return;
        }
        let now_ms = cx.clock.mono_ms;
        for piece in &mut self.pieces {
            if let Piece::Subrequest(child) = piece
                && child.exchange.is_due(now_ms)
            {
                x.with_parent_state(&mut child.exchange, |child| resume(child, cx));
            }
        }
    }

    /// Waits for the first subrequest that something may happen to: each wakes the exchange, or has a time.
    fn wait(&self, x: &mut Exchange) -> QueueRead {
        let queued = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Subrequest(child) => Some(&child.exchange),
            Piece::Chunk(_) => None,
        });
        let held = self.held.iter().map(|held| &held.0.exchange);
        let due = queued.chain(held).filter_map(|child| child.due_ms());
        let due = due.chain(self.own_wait.map(|wait| wait.until_ms));
        x.progress.pull_wait = Some(Wait::woken_or_until(due.min().unwrap_or(u64::MAX)));
        QueueRead::Pending
    }

    fn has_room_ahead(&self) -> bool {
        self.ahead_bytes < AHEAD_BYTES && self.ahead_requests < AHEAD_REQUESTS
    }

    /// Adds the next piece to the queue; false if there is none now.
    fn advance(&mut self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<bool, Broken> {
        if let Some(uri) = self.before.take() {
            let child = Subrequest::open(x, cx, &uri, b"").map_err(|_| Broken(""))?;
            self.join(Box::new(child), x, cx);
            return Ok(true);
        }
        if let Some(held) = self.held.take() {
            return self.hold(held, x, cx);
        }
        if self.waited {
            return Ok(false);
        }
        self.own_wait = None;
        if !self.own_ended {
            match x.own_piece(cx) {
                Ok(Own::Chunk(chunk)) => {
                    self.push(chunk);
                    return Ok(true);
                }
                Ok(Own::Subrequest(child)) => {
                    self.join(child, x, cx);
                    return Ok(true);
                }
                Ok(Own::Pending) => {
                    self.own_wait = x.progress.pull_wait;
                    return Ok(false);
                }
                Ok(Own::End) => self.own_ended = true,
                // Pieces in the queue still leave, and nothing follows them.
                Err(broken) => {
                    (self.own_ended, self.after) = (true, None);
                    self.broken = Some(broken);
                }
            }
        }
        let Some(uri) = self.after.take() else {
            return Ok(false);
        };
        let child = Subrequest::open(x, cx, &uri, b"").map_err(|_| Broken(""))?;
        self.join(Box::new(child), x, cx);
        Ok(true)
    }

    fn push(&mut self, chunk: Chunk) {
        self.ahead_bytes += chunk.bytes().len() as u64;
        self.pieces.push_back(Piece::Chunk(chunk));
    }

    /// Begins a subrequest, behind the earlier output of its stage.
    fn join(&mut self, mut child: Box<Subrequest>, x: &mut Exchange, cx: &mut Ctx<'_>) {
        let last = x.queue_position().checked_sub(1);
        if let Some(queue) = last.and_then(|last| x.body.stage_queues.get_mut(last)) {
            for chunk in std::mem::take(&mut queue.out) {
                self.push(chunk);
            }
        }
        x.with_parent_state(&mut child.exchange, |child| resume(child, cx));
        if child.on_complete.is_some() {
            self.held = Some(Box::new((*child, Vec::new())));
            return;
        }
        self.waited |= child.waited;
        self.ahead_requests += 1;
        self.pieces.push_back(Piece::Subrequest(child));
    }

    /// Goes on with the body that is held in memory; false while its subrequest waits.
    fn hold(
        &mut self,
        mut held: Box<(Subrequest, Vec<u8>)>,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
    ) -> Result<bool, Broken> {
        loop {
            let (child, body) = &mut *held;
            let chunk = match pull_child(child, x, cx)? {
                QueueRead::Pending => {
                    self.held = Some(held);
                    return Ok(false);
                }
                QueueRead::End => {
                    let status = child.exchange.reply.status;
                    if let Some(on_complete) = child.on_complete.take() {
                        on_complete(x, status, std::mem::take(body));
                    }
                    return Ok(true);
                }
                QueueRead::Chunk(chunk) => chunk,
            };
            let inner = &child.exchange;
            let most = inner.route.core_loc().subrequest_output_buffer_size.0;
            if body.len() as u64 + chunk.len() > most {
                let uri = Printable(&inner.target.uri);
                let text = format_args!("too big subrequest response while processing \"{uri}\"");
                x.log(Level::Error, text);
                return Err(Broken(""));
            }
            match &chunk {
                Chunk::File(range) => {
                    let read = cx.files.read(range);
                    body.extend(read.map_err(|error| x.unreadable(&error))?);
                }
                memory => body.extend_from_slice(memory.bytes()),
            }
        }
    }
}

/// The next piece of a subrequest's body.
fn pull_child(
    child: &mut Subrequest,
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
) -> Result<QueueRead, Broken> {
    let (stub, begun) = (&mut child.stub, &mut child.begun);
    x.with_parent_state(&mut child.exchange, |x| {
        loop {
            resume(x, cx);
            match x.progress.state {
                State::Running | State::Waiting(_) => return Ok(QueueRead::Pending),
                State::Aborted => return Err(Broken("")),
                State::Responding => {}
            }
            if !*begun
                && x.route.err_status != 0
                && let Some(stub) = stub.take()
            {
                answer_with(x, cx, stub);
                continue;
            }
            x.progress.pull_wait = None;
            match x.pull_marked(cx) {
                Pulled::Chunk(chunk) => {
                    *begun |= !chunk.is_empty();
                    x.response.bytes_sent += chunk.len();
                    return Ok(QueueRead::Chunk(chunk));
                }
                Pulled::Pending | Pulled::BudgetSpent => return Ok(QueueRead::Pending),
                Pulled::Broken => return Err(Broken("")),
                Pulled::End => match stub.take().filter(|_| !*begun) {
                    Some(stub) => answer_with(x, cx, stub),
                    None => {
                        phases::log_subrequest(x, cx);
                        return Ok(QueueRead::End);
                    }
                },
            }
        }
    })
}

/// Replaces the answer of a subrequest by a body of this media type.
fn answer_with(x: &mut Exchange, cx: &mut Ctx<'_>, (body, content_type): (Vec<u8>, Vec<u8>)) {
    x.clear_reply();
    x.route.err_status = 0;
    x.reply.status = 200;
    x.reply.content_type.set(&content_type);
    x.reply.content_length = Some(body.len() as u64);
    reply::send(x, cx, (!body.is_empty()).then_some(Chunk::Owned(body)));
}

impl Exchange {
    /// The next piece that comes out of the queue.
    pub(super) fn next_queued(&mut self, cx: &mut Ctx<'_>) -> Result<QueueRead, Broken> {
        let Some(mut queue) = self.subrequests.queue.take() else {
            return Ok(QueueRead::End);
        };
        self.progress.pull_wait = None;
        let next = queue.next(self, cx);
        self.subrequests.queue = Some(queue);
        next
    }

    /// The next piece of the exchange's own body, through the stages before the queue.
    fn own_piece(&mut self, cx: &mut Ctx<'_>) -> Result<Own, Broken> {
        let Some(last) = self.queue_position().checked_sub(1) else {
            return Ok(match self.next_own(cx) {
                Pulled::Chunk(chunk) => Own::Chunk(chunk),
                Pulled::Pending | Pulled::BudgetSpent => Own::Pending,
                Pulled::End => Own::End,
                Pulled::Broken => return Err(Broken("")),
            });
        };
        self.body
            .stage_queues
            .resize_with(self.body.stages.len(), Default::default);
        loop {
            if let Some(chunk) = self.body.stage_queues[last].out.pop_front() {
                return Ok(Own::Chunk(chunk));
            }
            match self.act(last, cx)? {
                StageStatus::Idle => {}
                StageStatus::Again => continue,
                StageStatus::Join(child) => return Ok(Own::Subrequest(child)),
            }
            let stages = (0..=last).rev();
            match stages
                .map(|i| self.step(i, cx))
                .find(|done| *done != Ok(Stepped::Idle))
            {
                Some(Ok(Stepped::Pending | Stepped::BudgetSpent)) => return Ok(Own::Pending),
                Some(done) => done.map(|_| ())?,
                None => return Ok(Own::End),
            }
        }
    }

    /// Runs [`BodyStage::act`] of a stage.
    fn act(&mut self, i: usize, cx: &mut Ctx<'_>) -> Result<StageStatus, Broken> {
        let mut stage = std::mem::replace(&mut self.body.stages[i], Box::new(Placeholder));
        let mut out = std::mem::take(&mut self.body.stage_queues[i].out);
        let act = stage.act(self, cx, &mut out);
        self.body.stage_queues[i].out = out;
        self.body.stages[i] = stage;
        act
    }
}

/// Takes the place of a stage that is at work.
struct Placeholder;

impl BodyStage for Placeholder {
    fn chunk(&mut self, _: Chunk, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        Ok(())
    }

    fn end(&mut self, _: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        Ok(())
    }
}

/// Bytes in memory that are made ahead of a subrequest that waits.
const AHEAD_BYTES: u64 = 64 << 10;
/// Subrequests that are begun ahead of one that waits, itself included.
const AHEAD_REQUESTS: usize = 32;

#[cfg(test)]
#[path = "queue_end_tests.rs"]
mod end_tests;
#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
