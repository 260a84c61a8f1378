//! The response body on its way out: chunks are pulled through the stages of modules.
//!
//! A stage emits withheld bytes in pieces: it is not called before its last output has left. So a small body that grows in
//! a stage takes no more memory than a large one.
//!
//! Bodies of subrequests join it in a queue (`queue`), and a rate may hold it back (`rate`).

mod queue;
mod rate;
mod subrequest;

use std::io;

use engines::http::{Chunk, FileRange};
use server_base::errlog::Level;

use crate::exchange::stage_queue::{QueueState, StageQueue};
use crate::exchange::{BodyRead, Broken, BrokenSource, Ctx, Exchange, Pulled, Wait};
use queue::QueueRead;

/// The result of one step of a stage.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stepped {
    /// Something.
    Done,
    /// Nothing, for want of something to do.
    Idle,
    /// Nothing: the next piece waits (`progress.pull_wait`).
    Pending,
    /// Nothing in this pass, in which enough has been done.
    BudgetSpent,
}

impl Exchange {
    /// Returns the next piece of the body. Called only while the exchange is
    /// [`State::Responding`](crate::exchange::State::Responding). A caller that writes the piece in the same turn needs no
    /// marks.
    #[inline]
    pub fn pull(&mut self, cx: &mut Ctx<'_>) -> Pulled {
        loop {
            match self.pull_marked(cx) {
                Pulled::Chunk(Chunk::Flush) => {}
                pulled => return pulled,
            }
        }
    }

    /// Returns the next piece of the body, see [`Exchange::pull`], or a mark that all before it is to leave at once
    /// ([`Chunk::Flush`]).
    #[inline]
    pub fn pull_marked(&mut self, cx: &mut Ctx<'_>) -> Pulled {
        if self.body.stages.is_empty() && !self.subrequests.has_queue() {
            return self.next_own(cx);
        }
        self.pull_made(cx)
    }

    /// Returns the next piece or mark, see [`Exchange::pull_marked`], if stages or subrequests make the body.
    #[inline(never)]
    fn pull_made(&mut self, cx: &mut Ctx<'_>) -> Pulled {
        let has_queue = self.subrequests.has_queue();
        if has_queue && self.subrequests.outer == 0 {
            return match self.next_queued(cx) {
                Ok(QueueRead::Chunk(chunk)) => Pulled::Chunk(chunk),
                Ok(QueueRead::End) => Pulled::End,
                Ok(QueueRead::Pending) => Pulled::Pending,
                Err(broken) => self.broken(broken),
            };
        }
        self.progress.pull_wait = None;
        let first = if has_queue { self.queue_position() } else { 0 };
        self.body
            .stage_queues
            .resize_with(self.body.stages.len(), StageQueue::default);
        loop {
            let last = self
                .body
                .stage_queues
                .last_mut()
                .expect("a lane for each stage");
            if let Some(chunk) = last.out.pop_front() {
                return Pulled::Chunk(chunk);
            }
            // The stage nearest to the wire goes first, so that fewer bytes are under way.
            let stages = (first..self.body.stages.len()).rev();
            let stepped = stages
                .map(|i| self.step(i, cx))
                .find(|done| *done != Ok(Stepped::Idle));
            let done = match stepped {
                Some(Ok(Stepped::Pending)) if self.must_flush() => {
                    self.body.stages[first].flush(&mut self.body.stage_queues[first].out)
                }
                Some(Ok(Stepped::Pending)) => return Pulled::Pending,
                Some(Ok(Stepped::BudgetSpent)) => return Pulled::BudgetSpent,
                Some(done) => done.map(|_| ()),
                None => return Pulled::End,
            };
            if let Err(broken) = done {
                return self.broken(broken);
            }
        }
    }

    /// The next piece of the exchange's own body: the chunks at hand, then those of the source.
    #[inline]
    pub(super) fn next_own(&mut self, cx: &mut Ctx<'_>) -> Pulled {
        match self.body.chunks.pop_front() {
            Some(chunk) => Pulled::Chunk(chunk),
            None if self.body.source.is_none() => Pulled::End,
            None => self.next_of_source(cx),
        }
    }

    #[inline(never)]
    fn next_of_source(&mut self, cx: &mut Ctx<'_>) -> Pulled {
        let Some(source) = &mut self.body.source else {
            return Pulled::End;
        };
        self.progress.pull_wait = None;
        match source.next(cx) {
            BodyRead::Chunk(chunk) => {
                let held = !self.body.stages.is_empty() || self.is_subrequest();
                self.body.unflushed = held && !matches!(chunk, Chunk::Flush);
                Pulled::Chunk(chunk)
            }
            // Stages are flushed once. Behind the mark the source is read again.
            BodyRead::Pending(_) if self.body.unflushed => {
                self.body.unflushed = false;
                Pulled::Chunk(Chunk::Flush)
            }
            BodyRead::Broken => {
                self.body.source = Some(Box::new(BrokenSource));
                match std::mem::take(&mut self.body.unflushed) {
                    true => Pulled::Chunk(Chunk::Flush),
                    false => Pulled::Broken,
                }
            }
            BodyRead::Pending(wait) => {
                self.progress.pull_wait = Some(wait);
                Pulled::Pending
            }
            BodyRead::End => {
                self.body.source = None;
                Pulled::End
            }
        }
    }

    fn broken(&self, broken: Broken) -> Pulled {
        if !broken.0.is_empty() {
            self.log(Level::Error, format_args!("{}", broken.0));
        }
        Pulled::Broken
    }

    /// Takes back a pulled chunk that could not leave yet.
    pub(super) fn put_back(&mut self, chunk: Chunk) {
        if self.subrequests.has_queue() && self.subrequests.outer == 0 {
            return self.put_back_queued(chunk);
        }
        let queue = match self.body.stage_queues.last_mut() {
            Some(lane) if !self.body.stages.is_empty() => &mut lane.out,
            _ => &mut self.body.chunks,
        };
        queue.push_front(chunk);
    }

    /// Runs one step of a stage.
    pub(super) fn step(&mut self, i: usize, cx: &mut Ctx<'_>) -> Result<Stepped, Broken> {
        if self.body.stages[i].resume(&mut self.body.stage_queues[i].out)? {
            return Ok(Stepped::Done);
        }
        match self.body.stage_queues[i].state {
            QueueState::Open => {}
            QueueState::Ending => {
                self.body.stage_queues[i].state = QueueState::Ended;
                return Ok(Stepped::Done);
            }
            QueueState::Ended => return Ok(Stepped::Idle),
        }
        // The source is not read before there is memory for its output.
        if let Some(bytes) = self.body.stages[i].missing_bytes() {
            self.progress.pull_wait = Some(self.wait_for_memory(cx, bytes));
            return Ok(Stepped::Pending);
        }
        // Subrequests join between stages of the own body and stages of the response to the client.
        let joined = self.subrequests.has_queue() && i == self.queue_position();
        // Only new input counts against the budget: bytes in stages go on.
        if (joined || i == 0) && cx.budget.get() == 0 {
            self.progress.pull_wait = Some(Wait::until(cx.clock.mono_ms));
            return Ok(Stepped::BudgetSpent);
        }
        let input = if joined {
            match self.next_queued(cx)? {
                QueueRead::Pending => return Ok(Stepped::Pending),
                QueueRead::End => None,
                QueueRead::Chunk(chunk) => {
                    let (read, rest) = self.in_memory(chunk, cx)?;
                    if let Some(rest) = rest {
                        self.put_back_queued(rest);
                    }
                    Some(read)
                }
            }
        } else if let Some(before) = i
            .checked_sub(1)
            .map(|before| &mut self.body.stage_queues[before])
        {
            match before.out.pop_front() {
                None if before.state != QueueState::Ended => return Ok(Stepped::Idle),
                input => input,
            }
        } else {
            match self.next_own(cx) {
                Pulled::Chunk(chunk) => {
                    let (read, rest) = self.in_memory(chunk, cx)?;
                    if let Some(rest) = rest {
                        self.body.chunks.push_front(rest);
                    }
                    Some(read)
                }
                Pulled::End => None,
                Pulled::Pending | Pulled::BudgetSpent => return Ok(Stepped::Pending),
                Pulled::Broken => return Err(Broken("")),
            }
        };
        let (stage, lane) = (&mut self.body.stages[i], &mut self.body.stage_queues[i]);
        match input {
            Some(Chunk::Flush) => stage.flush(&mut lane.out)?,
            Some(chunk) => stage.chunk(chunk, &mut lane.out)?,
            None => {
                lane.state = QueueState::Ending;
                stage.end(&mut lane.out)?;
            }
        }
        Ok(Stepped::Done)
    }

    /// A chunk as stages take it, and the rest of it: of a file at most [`READ_BYTES`] are read.
    fn in_memory(&self, chunk: Chunk, cx: &mut Ctx<'_>) -> Result<(Chunk, Option<Chunk>), Broken> {
        let Chunk::File(mut range) = chunk else {
            cx.budget.set(cx.budget.get().saturating_sub(chunk.len()));
            return Ok((chunk, None));
        };
        let left = range.len.saturating_sub(READ_BYTES);
        range.len -= left;
        cx.budget.set(cx.budget.get().saturating_sub(range.len));
        let bytes = cx
            .files
            .read(&range)
            .map_err(|error| self.unreadable(&error))?;
        let rest = (left > 0).then(|| {
            let offset = range.offset + range.len;
            Chunk::File(FileRange {
                file: range.file,
                offset,
                len: left,
            })
        });
        Ok((Chunk::Owned(bytes), rest))
    }

    pub(super) fn unreadable(&self, error: &io::Error) -> Broken {
        let text = format_args!("pread() failed ({})", conf::os_error(error));
        self.log(Level::Crit, text);
        Broken("")
    }
}

/// Maximum number of bytes of a file that are read at a time for stages.
const READ_BYTES: u64 = 32 << 10;

#[cfg(test)]
mod tests;
