//! Header blocks under zlib: one stream for each direction of a connection, flushed after each block.
//!
//! The zlib header is read and written here, so that the stream behind it is bare DEFLATE. What is sent at level 0 are
//! stored blocks, for which no state is needed. At other levels a value that only one party should know never shares a
//! context with anything that another party could choose (CRIME): it leaves as a stored block, and what comes after it
//! begins with an empty context.
//!
//! A stream's state is large and can be made anew from the text that it may still refer to. So it is let go while a
//! connection rests, and that text is kept.
//!
//! Absent: the checksum at the end of a zlib stream, which never ends.
//!
//! Source: RFC 1950, RFC 1951, draft-mbelshe-httpbis-spdy-00 section 2.6.10.1.

use std::ops::Range;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::dictionary::{DICTIONARY, DICTIONARY_ID};

/// The last text of a stream, to which the next may refer.
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
        let text = &text[text.len().saturating_sub(self.most)..];
        // What is too old is dropped now and then, since all that stays is moved.
        if self.text.len() + text.len() > self.most + SLACK_BYTES {
            let beyond = (self.text.len() + text.len()).saturating_sub(self.most);
            self.text.drain(..beyond);
        }
        self.text.extend_from_slice(text);
    }

    /// What the next block may refer to.
    fn last(&self) -> &[u8] {
        &self.text[self.text.len().saturating_sub(self.most)..]
    }

    /// Drops what is too old, and memory that is not needed.
    fn trim(&mut self) {
        let beyond = self.text.len().saturating_sub(self.most);
        self.text.drain(..beyond);
        self.text.shrink_to(self.most);
    }
}

/// Writes header blocks.
#[derive(Debug)]
pub(super) struct Deflater {
    level: u8,
    begun: bool,
    tail: Tail,
    /// Absent at level 0, while the connection rests, and while blocks repeat.
    stream: Option<Box<Compress>>,
    last: Last,
}

/// The last block. One that has the same text again, when all that it could refer to is repetitions of that text, is the
/// same on the wire.
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
    pub(super) fn new(level: u8) -> Self {
        Self {
            level,
            begun: false,
            tail: Tail::new(1 << WINDOW_BITS),
            stream: None,
            last: Last::default(),
        }
    }

    /// Appends `text` as it is on the wire; `secrets` are the parts of it, in order, that share no context.
    pub(super) fn block(&mut self, text: &[u8], secrets: &[Range<usize>], out: &mut Vec<u8>) {
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
            // It has not seen this; where another text comes, it is made anew.
            self.stream = None;
            return;
        }
        let (level, tail) = (self.level, self.tail.last());
        let stream = self.stream.get_or_insert_with(|| compress(level, tail));
        let (mut at, start) = (0, out.len());
        for secret in secrets {
            // A full flush makes the compressor forget all that it has seen: it will not refer to anything before, so it
            // need not know of the stored block.
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

    /// Whether it holds memory that it need not keep.
    pub(super) fn is_awake(&self) -> bool {
        self.stream.is_some()
    }

    /// Gives memory back until the next block.
    pub(super) fn rest(&mut self) {
        self.tail.trim();
        self.stream = None;
        self.last = Last::default();
    }
}

/// A compressor that may refer to `before`.
fn compress(level: u8, before: &[u8]) -> Box<Compress> {
    let level = Compression::new(u32::from(level.min(9)));
    let mut stream = Box::new(Compress::new_with_window_bits(level, false, WINDOW_BITS));
    // That is an aid; what it writes without is valid as well.
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

/// Reads header blocks.
#[derive(Debug, Default)]
pub(super) struct Inflater {
    /// What has come of the zlib header.
    header: Vec<u8>,
    /// Present as soon as that is whole.
    tail: Option<Tail>,
    /// Absent before the first block, and while the connection rests.
    stream: Option<Box<Decompress>>,
    /// The last block ended with a flush, so that the stream is between two blocks and two bytes.
    flushed: bool,
}

/// Why a block cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is not zlib, or the stream has ended.
    Corrupted,
    /// It wants another dictionary.
    WrongDictionary,
    /// More than the limit came out of it.
    TooLong,
}

impl Inflater {
    /// Inflates a whole block. Up to `keep` bytes of it go to `out`; what is more is read and dropped, up to `most` bytes in
    /// all.
    pub(super) fn block(
        &mut self,
        mut input: &[u8],
        keep: usize,
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Unreadable> {
        if self.tail.is_none() {
            input = self.header(input)?;
        }
        let Some(tail) = &mut self.tail else {
            return Ok(());
        };
        let before = tail.last();
        let stream = self.stream.get_or_insert_with(|| decompress(before));
        let ends_as_flush = input.ends_with(&FLUSH);
        let mut total = 0;
        loop {
            let start = out.len();
            out.reserve(PIECE_BYTES);
            let room = out.capacity() - start;
            let seen = stream.total_in();
            let status = stream.decompress_vec(input, out, FlushDecompress::Sync);
            let len = out.len() - start;
            input = &input[(stream.total_in() - seen) as usize..];
            total += len;
            tail.push(&out[start..]);
            out.truncate(keep.max(start));
            match status {
                Ok(Status::StreamEnd) | Err(_) => return Err(Unreadable::Corrupted),
                _ if total > most => return Err(Unreadable::TooLong),
                Ok(_) if input.is_empty() && len < room => break,
                Ok(Status::BufError) if len == 0 => break,
                Ok(_) => {}
            }
        }
        // Bytes of a stored block that is not over may look like a flush; they are in the text then.
        let seen_as_text = (1..=FLUSH.len()).any(|n| tail.last().ends_with(&FLUSH[..n]));
        self.flushed = ends_as_flush && !seen_as_text;
        Ok(())
    }

    /// Reads the zlib header, which may come in pieces; gives what is behind it.
    fn header<'a>(&mut self, input: &'a [u8]) -> Result<&'a [u8], Unreadable> {
        for (n, byte) in input.iter().enumerate() {
            self.header.push(*byte);
            let whole = match self.header[..] {
                [method, _] if method & 0xf != DEFLATE || method >> 4 > 7 => {
                    return Err(Unreadable::Corrupted);
                }
                [method, flags] if u16::from_be_bytes([method, flags]) % 31 != 0 => {
                    return Err(Unreadable::Corrupted);
                }
                [_, flags] => flags & HAS_DICTIONARY == 0,
                [_, _, a, b, c, d] if [a, b, c, d] != DICTIONARY_ID => {
                    return Err(Unreadable::WrongDictionary);
                }
                [_, _, _, _, _, _] => true,
                _ => false,
            };
            if whole {
                let window_bits = (self.header[0] >> 4) + 8;
                let mut tail = Tail::new(1 << window_bits);
                if self.header.len() > 2 {
                    tail.push(DICTIONARY);
                }
                self.tail = Some(tail);
                self.header = Vec::new();
                return Ok(&input[n + 1..]);
            }
        }
        Ok(&[])
    }

    /// Whether it holds memory that it need not keep.
    pub(super) fn is_awake(&self) -> bool {
        self.flushed && self.stream.is_some()
    }

    /// Gives memory back until the next block, where the text alone is enough to go on from.
    pub(super) fn rest(&mut self) {
        if self.flushed {
            self.stream = None;
        }
        if let Some(tail) = &mut self.tail {
            tail.trim();
        }
    }
}

/// A decompressor that is referred to `before`.
fn decompress(before: &[u8]) -> Box<Decompress> {
    let mut stream = Box::new(Decompress::new(false));
    if !before.is_empty() {
        let set = stream.set_dictionary(before);
        debug_assert!(set.is_ok(), "bare DEFLATE takes a dictionary at any time");
    }
    stream
}

/// A zlib header: DEFLATE with a window of 2 KiB, which a dictionary goes before (RFC 1950 section 2.2).
const HEADER: [u8; 2] = [0x38, 0x30];
/// How a block ends after a flush: an empty stored block (RFC 1951 section 3.2.4).
const FLUSH: [u8; 4] = [0, 0, 0xff, 0xff];
const DEFLATE: u8 = 8;
const HAS_DICTIONARY: u8 = 0x20;
/// nginx's window: header blocks repeat what came shortly before.
const WINDOW_BITS: u8 = 11;
/// What a tail may be longer than it need be.
const SLACK_BYTES: usize = 16 << 10;
/// Bytes that are inflated at a time, or more where there is room.
const PIECE_BYTES: usize = 1024;
/// Room for what a flush adds.
const SPARE_BYTES: usize = 64;
