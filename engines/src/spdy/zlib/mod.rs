//! Header blocks under zlib: one stream for each direction of a connection, flushed after each block.
//!
//! A compressor's state is large and can be rebuilt from the text that it may still refer to. So it is released
//! while a connection is idle, and that text is kept.
//!
//! Source: RFC 1950, RFC 1951, draft-mbelshe-httpbis-spdy-00 section 2.6.10.1.

mod deflate;
mod huffman;
mod inflate;
mod lengths;

pub(super) use deflate::Deflater;
pub(super) use inflate::{Inflater, Unreadable};

/// The last text of a stream; the next text may refer to it.
#[derive(Debug)]
struct Tail {
    text: Vec<u8>,
    most: usize,
}

impl Tail {
    fn new(most: usize) -> Self {
        Self {
            text: Vec::new(),
            most,
        }
    }

    fn push(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        self.drop_old();
    }

    /// Start of the text that the next block may refer to.
    fn start(&self) -> usize {
        self.text.len().saturating_sub(self.most)
    }

    /// Window of text that the next block may refer to.
    fn last(&self) -> &[u8] {
        &self.text[self.start()..]
    }

    /// Drops old text. It runs rarely, since it moves the remaining text.
    fn drop_old(&mut self) {
        let most = self.most + SLACK_BYTES;
        if self.text.len() > most {
            self.text.drain(..self.start());
        }
        // The memory of a far longer text than usual is released.
        if self.text.capacity() > 2 * most {
            self.text.shrink_to(most);
        }
    }

    /// Whether it holds memory that [`Self::trim`] releases.
    fn is_slack(&self) -> bool {
        self.text.capacity() > self.most
    }

    /// Drops all text that is too old, and excess memory.
    fn trim(&mut self) {
        self.text.drain(..self.start());
        self.text.shrink_to(self.most);
    }
}

/// Slack of a tail's memory, in bytes.
const SLACK_BYTES: usize = 16 << 10;
