//! The body stage that compresses a stream.
//!
//! Output is passed on in full buffers; a flush mark releases all of it. The encoder is created when the client first
//! reads, and dropped with the last chunk. The memory budget limits the encoders of a connection; further ones wait.

use std::collections::VecDeque;
use std::rc::Rc;

use engines::http::Chunk;
use server_base::memory::{self, Claim};
use server_http::exchange::{BodyStage, Broken};

use super::cache::CacheSlot;
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
    /// A copy of the output, for the cache.
    cached: Option<(CacheSlot, Vec<u8>)>,
    /// Compressed bytes that have not been passed on.
    made: Vec<u8>,
    /// Maximum number of its bytes that are passed on at a time.
    piece_bytes: usize,
    /// Whether there was input since the last flush mark.
    dirty: bool,
    ratio: Rc<Ratio>,
}

impl Stage {
    /// Creates the stage for a response; `length` is the length of its body, if it is known.
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
            cached: None,
            made: Vec::new(),
            piece_bytes: 0,
            dirty: false,
            ratio,
        }
    }

    /// Sets the size of output chunks, bytes.
    pub(super) fn in_pieces_of(mut self, piece_bytes: usize) -> Self {
        self.piece_bytes = piece_bytes;
        self
    }

    /// Sets the cache entry for the complete form.
    pub(super) fn cached_as(mut self, slot: Option<CacheSlot>) -> Self {
        self.cached = slot.map(|slot| (slot, Vec::new()));
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
        if let Some((slot, form)) = &mut self.cached {
            form.extend_from_slice(made);
            if form.len() as u64 > slot.most_bytes() {
                self.cached = None;
            }
        }
        if !self.made.is_empty() && (until != Until::Later || self.made.len() >= self.piece_bytes) {
            out.push_back(Chunk::Owned(std::mem::take(&mut self.made)));
        }
        Ok(())
    }

    /// Creates the encoder; returns the bytes needed if memory is too scarce.
    fn make(&mut self) -> Option<u64> {
        let fitting = fit::stream(self.params, self.length);
        let (params, mut cost) = fitting.unwrap_or_else(|| fit::smallest(self.params));
        if Some(params) != fit::unhindered(self.params, self.length) {
            // A form of the smallest settings is not cached: memory shortage is temporary.
            self.cached = None;
        }
        if self.cached.is_some() {
            // The collected form is rarely longer than half of the body.
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

/// Maximum number of concurrent encoders of a connection.
const ENCODERS_A_CONNECTION: u64 = 8;
/// Minimum bytes charged for an encoder, which limits their number.
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
        // Without new input an encoder would write an empty block for this flush.
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
        if let Some((slot, form)) = self.cached.take() {
            slot.insert(&form.into());
        }
        Ok(())
    }
}
