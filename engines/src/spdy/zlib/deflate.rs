//! Outgoing header blocks under zlib: one stream for a connection, flushed after each block.
//!
//! The zlib header is written here, so that the stream behind it is bare DEFLATE. At level 0 the output is stored
//! blocks, which need no state. At other levels a secret value never shares a context with bytes that another party
//! could choose (CRIME). It is sent as a stored block, and the bytes after it begin with an empty context.
//!
//! Absent: the checksum at the end of a zlib stream, which never ends.
//!
//! Source: RFC 1950, RFC 1951, draft-mbelshe-httpbis-spdy-00 section 2.6.10.1.

use std::ops::Range;

use flate2::{Compress, Compression, FlushCompress};

use super::super::dictionary::{DICTIONARY, DICTIONARY_ID};
use super::Tail;

/// Writes header blocks.
#[derive(Debug)]
pub(in crate::spdy) struct Deflater {
    level: u8,
    begun: bool,
    tail: Tail,
    /// Absent at level 0, while the connection rests, and while blocks repeat.
    stream: Option<Box<Compress>>,
    last: Last,
}

/// The last block. The block of an equal text is identical if the whole window holds repetitions of that text.
#[derive(Debug, Default)]
struct Last {
    text: Vec<u8>,
    block: Vec<u8>,
    /// Bytes of repetitions before it.
    repeated_bytes: usize,
}

impl Last {
    /// The block of this text, if it is known.
    fn block(&self, text: &[u8]) -> Option<&[u8]> {
        let known = self.repeated_bytes >= 1 << WINDOW_BITS && self.text == text;
        known.then_some(&self.block)
    }

    fn keep(&mut self, text: &[u8], block: &[u8]) {
        if self.text == text {
            self.repeated_bytes += text.len();
        } else {
            self.repeated_bytes = 0;
            self.text.clear();
            self.text.extend_from_slice(text);
        }
        self.block.clear();
        self.block.extend_from_slice(block);
    }
}

impl Deflater {
    /// Bytes of memory of the text and of the compressor's state, about.
    pub(in crate::spdy) fn memory_bytes(&self) -> usize {
        let state = self.stream.as_ref().map_or(0, |_| STATE_BYTES);
        let last = self.last.text.capacity() + self.last.block.capacity();
        state + self.tail.text.capacity() + last
    }

    pub(in crate::spdy) fn new(level: u8) -> Self {
        Self {
            level,
            begun: false,
            tail: Tail::new(1 << WINDOW_BITS),
            stream: None,
            last: Last::default(),
        }
    }

    /// Appends `text` in wire form; `secrets` are its parts, in order, that share no context.
    pub(in crate::spdy) fn block(
        &mut self,
        text: &[u8],
        secrets: &[Range<usize>],
        out: &mut Vec<u8>,
    ) {
        if !self.begun {
            self.begun = true;
            out.extend_from_slice(&HEADER);
            out.extend_from_slice(&DICTIONARY_ID);
            if self.level > 0 {
                self.tail.push(DICTIONARY);
            }
        }
        if self.level == 0 {
            return stored(text, out);
        }
        if secrets.is_empty()
            && let Some(block) = self.last.block(text)
        {
            out.extend_from_slice(block);
            self.tail.push(text);
            // The compressor has not seen this text; for a different text a new one is made.
            self.stream = None;
            return;
        }
        let (level, tail) = (self.level, self.tail.last());
        let stream = self.stream.get_or_insert_with(|| compress(level, tail));
        let (mut at, start) = (0, out.len());
        for secret in secrets {
            // A full flush clears the compressor's window: it will not refer to anything before, so it need not
            // know the stored block.
            deflate(stream, &text[at..secret.start], FlushCompress::Full, out);
            stored(&text[secret.clone()], out);
            self.tail.text.clear();
            at = secret.end;
        }
        deflate(stream, &text[at..], FlushCompress::Sync, out);
        self.tail.push(&text[at..]);
        if secrets.is_empty() {
            self.last.keep(text, &out[start..]);
        } else {
            self.last = Last::default();
        }
    }

    /// Whether it holds memory that can be released.
    pub(in crate::spdy) fn holds_spare_memory(&self) -> bool {
        self.stream.is_some()
    }

    /// Releases memory until the next block.
    pub(in crate::spdy) fn shrink(&mut self) {
        self.tail.trim();
        self.stream = None;
        self.last = Last::default();
    }
}

/// A compressor that may refer to `before`.
fn compress(level: u8, before: &[u8]) -> Box<Compress> {
    let level = Compression::new(u32::from(level.min(9)));
    let mut stream = Box::new(Compress::new_with_window_bits(level, false, WINDOW_BITS));
    // The dictionary only improves compression; the output is valid without it.
    let set = stream.set_dictionary(before);
    debug_assert!(set.is_ok(), "a new compressor takes a dictionary");
    stream
}

fn deflate(stream: &mut Compress, mut input: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
    loop {
        out.reserve(input.len() / 2 + SPARE_BYTES);
        let before = stream.total_in();
        let result = stream.compress_vec(input, out, flush);
        debug_assert!(result.is_ok(), "a compressor refuses nothing");
        input = &input[(stream.total_in() - before) as usize..];
        if result.is_err() || (input.is_empty() && out.len() < out.capacity()) {
            return;
        }
    }
}

/// Stored blocks (RFC 1951 section 3.2.4); the stream is at a byte boundary before and after them.
fn stored(text: &[u8], out: &mut Vec<u8>) {
    for piece in text.chunks(usize::from(u16::MAX)) {
        let len = piece.len() as u16;
        out.push(0);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(piece);
    }
}

/// A zlib header: DEFLATE with a window of 2 KiB, and a preset dictionary (RFC 1950 section 2.2).
const HEADER: [u8; 2] = [0x38, 0x30];
/// nginx's window: header blocks repeat text from shortly before.
const WINDOW_BITS: u8 = 11;
/// Memory of a compressor, bytes: window and hash table (zlib's zconf.h, with its default memory level).
const STATE_BYTES: usize = (1 << (WINDOW_BITS as usize + 2)) + (128 << 10);
/// Room for the bytes that a flush adds.
const SPARE_BYTES: usize = 64;
