//! The body stage that compresses a stream.
//!
//! Output is passed on once it fills a buffer; a flush mark lets out all that came before it at once. The encoder is
//! made when the first piece is asked for, which is when the client reads, and is dropped with the last: memory limits
//! the number of a connection's encoders, further ones wait.

use std::collections::VecDeque;
use std::rc::Rc;

use engines::http::Chunk;
use server_base::memory::{self, Claim};
use server_http::exchange::{BodyStage, Broken};

use super::cache::Keep;
use super::coding::Params;
use super::encoder::{Encoder, Until};
use super::fit;
use super::ratio::Ratio;

/// The stage.
pub(super) struct Stage {
    connection: u64,
    params: Params,
    length: Option<u64>,
    encoder: Option<(Encoder, Claim)>,
    /// The output is also collected here, to be kept.
    kept: Option<(Keep, Vec<u8>)>,
    /// Compressed and not passed on yet.
    made: Vec<u8>,
    /// Maximum number of its bytes that are passed on at a time.
    piece_bytes: usize,
    /// Something came since the last mark.
    dirty: bool,
    ratio: Rc<Ratio>,
}

impl Stage {
    /// A stage for a response of a connection; `length` is that of its body, where it is known.
    pub(super) fn new(
        connection: u64,
        params: Params,
        length: Option<u64>,
        ratio: Rc<Ratio>,
    ) -> Self {
        Self {
            connection,
            params,
            length,
            encoder: None,
            kept: None,
            made: Vec::new(),
            piece_bytes: 0,
            dirty: false,
            ratio,
        }
    }

    /// Sets how much is passed on at a time.
    pub(super) fn in_pieces_of(mut self, piece_bytes: usize) -> Self {
        self.piece_bytes = piece_bytes;
        self
    }

    /// Sets where the whole form is kept.
    pub(super) fn kept_as(mut self, keep: Option<Keep>) -> Self {
        self.kept = keep.map(|keep| (keep, Vec::new()));
        self
    }

    fn write(
        &mut self,
        bytes: &[u8],
        until: Until,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), Broken> {
        let Some((encoder, _)) = &mut self.encoder else {
            return Err(Broken("there is no encoder"));
        };
        let before = self.made.len();
        encoder.write(bytes, until, &mut self.made)?;
        let made = &self.made[before..];
        self.ratio.count(bytes.len(), made.len());
        if let Some((keep, form)) = &mut self.kept {
            form.extend_from_slice(made);
            if form.len() as u64 > keep.most_bytes() {
                self.kept = None;
            }
        }
        if !self.made.is_empty() && (until != Until::Later || self.made.len() >= self.piece_bytes) {
            out.push_back(Chunk::Owned(std::mem::take(&mut self.made)));
        }
        Ok(())
    }

    /// Makes the encoder; returns the bytes that it would take, if there is no memory for them.
    fn make(&mut self) -> Option<u64> {
        let fitting = fit::stream(self.params, self.length);
        let (params, mut cost) = fitting.unwrap_or_else(|| fit::smallest(self.params));
        if Some(params) != fit::unhindered(self.params, self.length) {
            // What was made in need is not to be served once that is over.
            self.kept = None;
        }
        if self.kept.is_some() {
            // What is collected is hardly ever longer than half of the body.
            cost += self.length.unwrap_or_default() / 2;
        }
        let bytes = cost.max(ENCODER_MIN_BYTES);
        let Some(claim) = memory::claim(self.connection, bytes) else {
            return Some(bytes);
        };
        self.encoder = Some((Encoder::new(params, self.length), claim));
        None
    }
}

/// Encoders that one connection has at the same time.
const ENCODERS_A_CONNECTION: u64 = 8;
/// Minimum bytes that an encoder is accounted with, which limits their number.
const ENCODER_MIN_BYTES: u64 = memory::CONNECTION_BYTES / ENCODERS_A_CONNECTION;

impl BodyStage for Stage {
    fn missing_bytes(&mut self) -> Option<u64> {
        match self.encoder {
            Some(_) => None,
            None => self.make(),
        }
    }

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
        self.encoder = None;
        self.ratio.end();
        if let Some((keep, form)) = self.kept.take() {
            keep.keep(&form.into());
        }
        Ok(())
    }
}
