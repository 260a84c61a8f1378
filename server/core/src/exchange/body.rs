//! The response body on its way out: chunks are pulled, through stages where a module added some.

use std::collections::VecDeque;
use std::io;

use engines::http::{Chunk, FileRange};

use super::{Ctx, Exchange};
use crate::errlog::Level;

/// A transformation of the response body, added for one response by a header stage.
pub trait BodyStage {
    /// Takes a chunk and puts out none, one or several.
    fn chunk(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>);
    /// The body has ended.
    fn end(&mut self, out: &mut VecDeque<Chunk>);
}

/// What [`Exchange::pull`] gives.
#[derive(Debug)]
pub enum Pulled {
    /// A piece of the body.
    Chunk(Chunk),
    /// The body has ended.
    End,
    /// The body breaks off here: what was promised cannot be kept, so the connection must close.
    Broken,
}

impl Exchange {
    /// The next piece of the body. Called only while the exchange is [`State::Responding`].
    pub fn pull(&mut self, cx: &mut Ctx<'_>) -> Pulled {
        if self.stages.is_empty() {
            return self.body.pop_front().map_or(Pulled::End, Pulled::Chunk);
        }
        loop {
            if let Some(chunk) = self.staged.pop_front() {
                return Pulled::Chunk(chunk);
            }
            if self.stages_ended {
                return Pulled::End;
            }
            let next = match self.next_in_memory(cx) {
                Ok(next) => next,
                Err(error) => {
                    self.log(
                        Level::Crit,
                        format_args!("pread() failed ({})", conf::os_error(&error)),
                    );
                    return Pulled::Broken;
                }
            };
            self.stages_ended = next.is_none();
            self.run_stages(next);
        }
    }

    /// Takes back what was pulled and could not leave yet.
    pub(super) fn put_back(&mut self, chunk: Chunk) {
        let queue = if self.stages.is_empty() {
            &mut self.body
        } else {
            &mut self.staged
        };
        queue.push_front(chunk);
    }

    /// The next chunk of the source; of a file at most [`READ_BYTES`], read.
    fn next_in_memory(&mut self, cx: &mut Ctx<'_>) -> io::Result<Option<Chunk>> {
        match self.body.pop_front() {
            Some(Chunk::File(mut range)) => {
                let rest = range.len.saturating_sub(READ_BYTES);
                range.len -= rest;
                let bytes = cx.files.read(&range)?;
                if rest > 0 {
                    let offset = range.offset + range.len;
                    self.body.push_front(Chunk::File(FileRange {
                        file: range.file,
                        offset,
                        len: rest,
                    }));
                }
                Ok(Some(Chunk::Owned(bytes)))
            }
            other => Ok(other),
        }
    }

    /// Passes one chunk, or the end, through all stages.
    fn run_stages(&mut self, next: Option<Chunk>) {
        let ended = next.is_none();
        let mut input: VecDeque<Chunk> = next.into_iter().collect();
        for stage in &mut self.stages {
            let mut out = VecDeque::new();
            for chunk in input {
                stage.chunk(chunk, &mut out);
            }
            if ended {
                stage.end(&mut out);
            }
            input = out;
        }
        self.staged = input;
    }
}

/// How much of a file is read at a time for stages.
const READ_BYTES: u64 = 32 << 10;
