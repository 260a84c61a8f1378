//! Takes gzip off a body that comes in pieces.
//!
//! Output is returned in pieces: a small body that becomes a huge one takes a piece's memory, and its client's speed.
//! Several members in a row are one body.
//!
//! Source: RFC 1952, section 2.2.

use engines::http::Chunk;
use flate2::{Decompress, FlushDecompress, Status};

/// A decoder of one body.
pub(super) struct Inflate {
    inflate: Box<Decompress>,
    input: Chunk,
    /// Number of bytes taken from `input`.
    at: usize,
    /// There may be more to put out of what was taken.
    more: bool,
    /// A member of the file is over; with nothing after it the body is.
    whole: bool,
    step_bytes: usize,
}

impl Inflate {
    pub(super) fn new(step_bytes: u64) -> Self {
        let step = step_bytes.clamp(STEP_LEAST, STEP_MOST);
        Self {
            inflate: Box::new(Decompress::new_gzip(WINDOW_LOG)),
            input: Chunk::Static(b""),
            at: 0,
            more: false,
            whole: false,
            step_bytes: step as usize,
        }
    }

    /// Takes a piece; the one before must have been used up.
    pub(super) fn take(&mut self, chunk: Chunk) {
        self.input = chunk;
        self.at = 0;
        self.more = true;
    }

    /// Some of what the piece becomes, perhaps no byte; `None` when the next piece is needed.
    ///
    /// # Errors
    /// It is no gzip.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, &'static str> {
        if !self.more {
            return Ok(None);
        }
        let mut made = Vec::with_capacity(self.step_bytes);
        while made.len() < made.capacity() {
            let rest = &self.input.bytes()[self.at..];
            if self.whole {
                if rest.is_empty() {
                    self.more = false;
                    break;
                }
                // Another member follows.
                *self.inflate = Decompress::new_gzip(WINDOW_LOG);
                self.whole = false;
            }
            let (came, left) = (self.inflate.total_in(), made.len());
            let status = self
                .inflate
                .decompress_vec(rest, &mut made, FlushDecompress::None)
                .map_err(|_| "inflate() failed: the response is not in gzip")?;
            let taken = (self.inflate.total_in() - came) as usize;
            self.at += taken;
            self.whole = status == Status::StreamEnd;
            if !self.whole && taken == 0 && made.len() == left {
                self.more = false;
                break;
            }
        }
        Ok(Some(made))
    }

    /// Nothing follows.
    ///
    /// # Errors
    /// Something should.
    pub(super) fn end(&self) -> Result<(), &'static str> {
        if self.whole {
            Ok(())
        } else {
            Err("inflate() failed: the response is truncated")
        }
    }
}

const WINDOW_LOG: u8 = 15;
/// Minimum number of bytes that are decompressed at a time, whatever `gunzip_buffers` says.
const STEP_LEAST: u64 = 512;
const STEP_MOST: u64 = 1 << 20;

#[cfg(test)]
#[path = "inflate_tests.rs"]
mod tests;
