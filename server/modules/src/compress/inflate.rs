//! Decompresses a gzip body that arrives in chunks.
//!
//! Output is produced in bounded chunks, at the speed of the client, so a small body that inflates to a huge one needs
//! little memory. Consecutive members form one body.
//!
//! Source: RFC 1952, section 2.2.

use engines::http::Chunk;
use flate2::{Decompress, FlushDecompress, Status};

/// A decoder of one body.
pub(super) struct Inflate {
    inflate: Box<Decompress>,
    input: Chunk,
    /// Number of bytes consumed from `input`.
    at: usize,
    /// Whether more output may follow from the consumed input.
    more: bool,
    /// Whether a member has ended; at the end of the input the body is then complete.
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

    /// Sets the next input; the previous one must be consumed.
    pub(super) fn take(&mut self, chunk: Chunk) {
        self.input = chunk;
        self.at = 0;
        self.more = true;
    }

    /// Returns the next output, which may be empty; `None` if more input is needed.
    ///
    /// # Errors
    /// The body is not gzip.
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

    /// Ends the input.
    ///
    /// # Errors
    /// The body is incomplete.
    pub(super) fn end(&self) -> Result<(), &'static str> {
        if self.whole {
            Ok(())
        } else {
            Err("inflate() failed: the response is truncated")
        }
    }
}

const WINDOW_LOG: u8 = 15;
/// Minimum size of an output chunk, bytes, independent of `gunzip_buffers`.
const STEP_LEAST: u64 = 512;
const STEP_MOST: u64 = 1 << 20;

#[cfg(test)]
#[path = "inflate_tests.rs"]
mod tests;
