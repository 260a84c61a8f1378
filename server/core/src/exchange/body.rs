//! The response body on its way out: chunks are pulled, through stages where a module added some.
//!
//! What a stage holds back it puts out piece by piece: nothing is asked of a stage while what it has put out before is
//! still on its way, so that a small body that becomes a large one takes no more memory than a large one.

use std::collections::VecDeque;
use std::io;

use engines::http::{Chunk, FileRange};

use super::{Ctx, Exchange, Supplied};
use crate::errlog::Level;

/// A transformation of the response body, added for one response by a header stage.
pub trait BodyStage {
    /// Takes a chunk in memory and puts out none, one or several.
    ///
    /// # Errors
    /// The body is none that the stage can change: the response breaks off.
    fn chunk(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>) -> Result<(), Broken>;

    /// What came before is to leave at once: puts out all that it holds back, and the mark.
    ///
    /// # Errors
    /// As [`BodyStage::chunk`].
    fn flush(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        out.push_back(Chunk::Flush);
        Ok(())
    }

    /// The body has ended: what is left is put out here or by [`BodyStage::resume`].
    ///
    /// # Errors
    /// As [`BodyStage::chunk`].
    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Broken>;

    /// Goes on with what it was given last; false when nothing is left of that. Asked before it is given more.
    ///
    /// # Errors
    /// As [`BodyStage::chunk`].
    fn resume(&mut self, _: &mut VecDeque<Chunk>) -> Result<bool, Broken> {
        Ok(false)
    }
}

/// Why a stage cannot go on, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken(pub &'static str);

/// What a stage has put out, and how far it is.
#[derive(Default)]
pub(super) struct Lane {
    out: VecDeque<Chunk>,
    state: LaneState,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum LaneState {
    /// The stage takes more.
    #[default]
    Open,
    /// It has been told of the end, and may still have something to put out.
    Ending,
    /// Nothing comes any more.
    Ended,
}

/// What [`Exchange::pull`] gives.
#[derive(Debug)]
pub enum Pulled {
    /// A piece of the body.
    Chunk(Chunk),
    /// Nothing yet: what comes next is made elsewhere, and looked for when `rate.until_ms` has come.
    Later,
    /// The body has ended.
    End,
    /// The body breaks off here: what was promised cannot be kept, so the connection must close.
    Broken,
}

impl Exchange {
    /// The next piece of the body. Called only while the exchange is [`State::Responding`](super::State::Responding).
    /// Whoever writes what is pulled in the same turn needs no marks.
    pub fn pull(&mut self, cx: &mut Ctx<'_>) -> Pulled {
        loop {
            match self.pull_marked(cx) {
                Pulled::Chunk(Chunk::Flush) => {}
                pulled => return pulled,
            }
        }
    }

    /// As [`Exchange::pull`], with the marks of what is to leave at once ([`Chunk::Flush`]).
    pub fn pull_marked(&mut self, cx: &mut Ctx<'_>) -> Pulled {
        if self.stages.is_empty() {
            return match self.body.pop_front() {
                Some(chunk) => Pulled::Chunk(chunk),
                None => self.supplied(cx),
            };
        }
        self.lanes.resize_with(self.stages.len(), Lane::default);
        loop {
            let last = self.lanes.last_mut().expect("a lane for each stage");
            if let Some(chunk) = last.out.pop_front() {
                return Pulled::Chunk(chunk);
            }
            // The stage nearest to the wire goes first: what is under way is not joined by more.
            let stages = (0..self.stages.len()).rev();
            match stages
                .map(|i| self.step(i, cx))
                .find(|done| *done != Ok(false))
            {
                Some(Ok(_)) => {}
                Some(Err(broken)) => {
                    if !broken.0.is_empty() {
                        self.log(Level::Error, format_args!("{}", broken.0));
                    }
                    return Pulled::Broken;
                }
                None if last_ended(&self.lanes) => return Pulled::End,
                None => return Pulled::Later,
            }
        }
    }

    /// What comes behind the chunks that were at hand.
    fn supplied(&mut self, cx: &mut Ctx<'_>) -> Pulled {
        let Some(supply) = &mut self.supply else {
            return Pulled::End;
        };
        self.rate.until_ms = 0;
        match supply.next(cx) {
            Supplied::Chunk(chunk) => Pulled::Chunk(chunk),
            Supplied::Later(until_ms) => {
                self.rate.until_ms = until_ms;
                Pulled::Later
            }
            Supplied::End => {
                self.supply = None;
                Pulled::End
            }
        }
    }

    /// Takes back what was pulled and could not leave yet.
    pub(super) fn put_back(&mut self, chunk: Chunk) {
        let queue = match self.lanes.last_mut() {
            Some(lane) if !self.stages.is_empty() => &mut lane.out,
            _ => &mut self.body,
        };
        queue.push_front(chunk);
    }

    /// Lets a stage do a piece of work; false if there is none for it now.
    fn step(&mut self, i: usize, cx: &mut Ctx<'_>) -> Result<bool, Broken> {
        if self.stages[i].resume(&mut self.lanes[i].out)? {
            return Ok(true);
        }
        match self.lanes[i].state {
            LaneState::Open => {}
            LaneState::Ending => {
                self.lanes[i].state = LaneState::Ended;
                return Ok(true);
            }
            LaneState::Ended => return Ok(false),
        }
        let input = match i.checked_sub(1).map(|before| &mut self.lanes[before]) {
            None => match self.next_in_memory(cx)? {
                Pulled::Chunk(chunk) => Some(chunk),
                Pulled::End => None,
                Pulled::Later | Pulled::Broken => return Ok(false),
            },
            Some(before) => match before.out.pop_front() {
                None if before.state != LaneState::Ended => return Ok(false),
                input => input,
            },
        };
        let (stage, lane) = (&mut self.stages[i], &mut self.lanes[i]);
        match input {
            Some(Chunk::Flush) => stage.flush(&mut lane.out)?,
            Some(chunk) => stage.chunk(chunk, &mut lane.out)?,
            None => {
                lane.state = LaneState::Ending;
                stage.end(&mut lane.out)?;
            }
        }
        Ok(true)
    }

    /// The next chunk of the source; of a file at most [`READ_BYTES`], read.
    fn next_in_memory(&mut self, cx: &mut Ctx<'_>) -> Result<Pulled, Broken> {
        let pulled = match self.body.pop_front() {
            Some(chunk) => Pulled::Chunk(chunk),
            None => self.supplied(cx),
        };
        let Pulled::Chunk(Chunk::File(mut range)) = pulled else {
            return Ok(pulled);
        };
        let rest = range.len.saturating_sub(READ_BYTES);
        range.len -= rest;
        let bytes = cx
            .files
            .read(&range)
            .map_err(|error| self.unreadable(&error))?;
        if rest > 0 {
            let offset = range.offset + range.len;
            self.body.push_front(Chunk::File(FileRange {
                file: range.file,
                offset,
                len: rest,
            }));
        }
        Ok(Pulled::Chunk(Chunk::Owned(bytes)))
    }

    fn unreadable(&self, error: &io::Error) -> Broken {
        let text = format_args!("pread() failed ({})", conf::os_error(error));
        self.log(Level::Crit, text);
        Broken("")
    }
}

/// Whether the stage nearest to the wire has put out all that it ever will.
fn last_ended(lanes: &[Lane]) -> bool {
    lanes
        .last()
        .is_none_or(|lane| lane.state == LaneState::Ended)
}

/// How much of a file is read at a time for stages.
const READ_BYTES: u64 = 32 << 10;
