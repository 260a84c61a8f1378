//! The body stage that compresses a stream.
//!
//! What is made is passed on once there is a buffer's worth of it; a flush mark lets out all that came before it at
//! once.

use std::collections::VecDeque;
use std::rc::Rc;

use engines::http::Chunk;
use server_core::exchange::{BodyStage, Broken};

use super::coding::Params;
use super::encoder::{Encoder, Until};
use super::ratio::Ratio;

/// The stage.
pub(super) struct Stage {
    encoder: Encoder,
    /// Compressed and not passed on yet.
    made: Vec<u8>,
    /// How much of that is passed on at a time.
    piece_bytes: usize,
    /// Something came since the last mark.
    dirty: bool,
    ratio: Rc<Ratio>,
}

impl Stage {
    pub(super) fn new(
        params: Params,
        length: Option<u64>,
        piece_bytes: usize,
        ratio: Rc<Ratio>,
    ) -> Self {
        Self {
            encoder: Encoder::new(params, length),
            made: Vec::new(),
            piece_bytes,
            dirty: false,
            ratio,
        }
    }

    fn write(
        &mut self,
        bytes: &[u8],
        until: Until,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Broken> {
        let before = self.made.len();
        self.encoder.write(bytes, until, &mut self.made)?;
        self.ratio.count(bytes.len(), self.made.len() - before);
        if !self.made.is_empty() && (until != Until::Later || self.made.len() >= self.piece_bytes) {
            out.push_back(Chunk::Owned(std::mem::take(&mut self.made)));
        }
        Ok(())
    }
}

impl BodyStage for Stage {
    fn chunk(&mut self, chunk: Chunk, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        self.dirty = true;
        self.write(chunk.bytes(), Until::Later, out)
    }

    fn flush(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        // A second mark in a row has nothing to let out, and an encoder would write an empty block for it.
        if std::mem::take(&mut self.dirty) {
            self.write(b"", Until::Flushed, out)?;
        }
        out.push_back(Chunk::Flush);
        Ok(())
    }

    fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), Broken> {
        self.write(b"", Until::Ended, out)?;
        self.ratio.end();
        Ok(())
    }
}
