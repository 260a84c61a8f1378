//! Incoming header blocks: zlib's header, and behind it one stream of DEFLATE.
//!
//! Decoding stops at the end of a header block's bytes, even within a code, and resumes there with the next block.
//! The state is then small: some bits, the position in a DEFLATE block, the codes of an unfinished block, and the
//! last text. So an idle connection needs no more memory than that. (Libraries keep tens of kilobytes. Those that
//! expose their position rebuild the fixed codes for each block.)
//!
//! A match reaches at most as far back as zlib's header permits (RFC 1950 section 2.2). zlib itself accepts any
//! distance within its buffer.
//!
//! Absent: the checksum at the end of a zlib stream; a header block with that end is refused.
//!
//! Source: RFC 1950, RFC 1951, draft-mbelshe-httpbis-spdy-00 section 2.6.10.1.

use super::super::dictionary::{DICTIONARY, DICTIONARY_ID};
use super::Tail;
use super::huffman::{Code, FIXED_DISTANCES, FIXED_LITERALS, Next};
use super::lengths::Lengths;

/// Reads header blocks.
#[derive(Debug, Default)]
pub(in crate::spdy) struct Inflater {
    /// Received part of the zlib header.
    header: Vec<u8>,
    /// Present as soon as that is whole.
    tail: Option<Tail>,
    bits: Bits,
    state: DecodeState,
}

/// Reason why a block cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::spdy) enum Unreadable {
    /// It is not zlib, or the stream has ended.
    Corrupted,
    /// The stream needs another dictionary.
    WrongDictionary,
    /// More than the limit came out of it.
    TooLong,
}

/// Received bits that are not decoded yet; the first is the lowest.
#[derive(Debug, Default)]
pub(super) struct Bits {
    pub(super) buffer: u64,
    pub(super) count: u32,
    /// The current DEFLATE block is marked as the last: no header block may contain its end.
    last: bool,
}

/// Position in the stream.
#[derive(Debug, Default)]
pub(super) enum DecodeState {
    /// Between two of DEFLATE's blocks.
    #[default]
    Between,
    /// Before the length of a stored block.
    Stored,
    /// In a stored block, with this many bytes left.
    Copying(usize),
    /// In a block with fixed codes.
    Fixed,
    /// Before the code definitions of a dynamic block.
    Counts,
    /// In the middle of them.
    Lengths(Box<Lengths>),
    /// Behind them.
    Own(Box<[Code; 2]>),
}

/// Result of a decoding step.
pub(super) enum Step {
    /// Decoding continues in this state.
    On(DecodeState),
    /// More bytes are needed.
    Wants(DecodeState),
}

pub(super) type Decoded = Result<Step, Unreadable>;

impl Inflater {
    /// Inflates a whole block. Up to `keep` bytes of it are written to `out`; the rest is read and dropped, up to
    /// `most` bytes in all.
    pub(in crate::spdy) fn block(
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
        let begin = tail.text.len();
        let mut text = Text {
            most: begin + most,
            window: tail.most,
            bytes: &mut tail.text,
        };
        let decoded = decode(&mut self.state, &mut self.bits, &mut input, &mut text);
        let room = keep.saturating_sub(out.len());
        let end = tail.text.len().min(begin + room);
        out.extend_from_slice(&tail.text[begin..end]);
        tail.drop_old();
        decoded
    }

    /// Reads the zlib header, which may come in pieces; returns the input behind it.
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

    /// Whether it holds memory that can be released.
    pub(in crate::spdy) fn holds_spare_memory(&self) -> bool {
        self.tail.as_ref().is_some_and(Tail::is_slack)
    }

    /// Bytes of memory that the text takes.
    pub(in crate::spdy) fn memory_bytes(&self) -> usize {
        self.tail.as_ref().map_or(0, |tail| tail.text.capacity())
    }

    /// Releases memory until the next block.
    pub(in crate::spdy) fn shrink(&mut self) {
        if let Some(tail) = &mut self.tail {
            tail.trim();
        }
    }
}

/// Decodes all available bits.
fn decode(
    state: &mut DecodeState,
    bits: &mut Bits,
    input: &mut &[u8],
    text: &mut Text<'_>,
) -> Result<(), Unreadable> {
    loop {
        let step = match std::mem::take(state) {
            DecodeState::Between => bits.block_header(input)?,
            DecodeState::Stored => bits.stored_len(input)?,
            DecodeState::Copying(left) => copy_stored(left, bits, input, text)?,
            DecodeState::Fixed => {
                let ended = symbols(&FIXED_LITERALS, &FIXED_DISTANCES, bits, input, text)?;
                Step::of(ended, DecodeState::Fixed)
            }
            DecodeState::Counts => Lengths::begin(bits, input)?,
            DecodeState::Lengths(lengths) => lengths.read(bits, input)?,
            DecodeState::Own(codes) => {
                let ended = symbols(&codes[0], &codes[1], bits, input, text)?;
                Step::of(ended, DecodeState::Own(codes))
            }
        };
        match step {
            Step::On(next) => *state = next,
            Step::Wants(same) => {
                *state = same;
                return Ok(());
            }
        }
    }
}

impl Step {
    /// The step of a block's symbols: its end, or the same place.
    fn of(ended: bool, state: DecodeState) -> Self {
        match ended {
            true => Self::On(DecodeState::Between),
            false => Self::Wants(state),
        }
    }
}

impl Bits {
    /// Fills the free bits with whole bytes of the input.
    #[inline]
    pub(super) fn fill(&mut self, input: &mut &[u8]) {
        while self.count <= u64::BITS - 8
            && let Some((byte, rest)) = input.split_first()
        {
            self.buffer |= u64::from(*byte) << self.count;
            self.count += 8;
            *input = rest;
        }
    }

    /// Forgets bits that are decoded.
    #[inline]
    pub(super) fn drop(&mut self, count: u32) {
        self.buffer >>= count;
        self.count -= count;
    }

    /// Returns the next `count` bits as a number, if they have arrived.
    #[inline]
    pub(super) fn take(&mut self, count: u32) -> Option<usize> {
        if self.count < count {
            return None;
        }
        let value = self.buffer & ((1 << count) - 1);
        self.drop(count);
        Some(value as usize)
    }

    fn block_header(&mut self, input: &mut &[u8]) -> Decoded {
        if self.last {
            return Err(Unreadable::Corrupted);
        }
        self.fill(input);
        let Some(header) = self.take(3) else {
            return Ok(Step::Wants(DecodeState::Between));
        };
        self.last = header & 1 == 1;
        match header >> 1 {
            0 => Ok(Step::On(DecodeState::Stored)),
            1 => Ok(Step::On(DecodeState::Fixed)),
            2 => Ok(Step::On(DecodeState::Counts)),
            _ => Err(Unreadable::Corrupted),
        }
    }

    fn stored_len(&mut self, input: &mut &[u8]) -> Decoded {
        // The rest of a byte is padding. Bits that remain after it are whole bytes.
        self.drop(self.count % 8);
        self.fill(input);
        let Some(lens) = self.take(32) else {
            return Ok(Step::Wants(DecodeState::Stored));
        };
        let len = lens & 0xffff;
        if lens >> 16 != len ^ 0xffff {
            return Err(Unreadable::Corrupted);
        }
        Ok(Step::On(DecodeState::Copying(len)))
    }
}

fn copy_stored(left: usize, bits: &mut Bits, input: &mut &[u8], text: &mut Text<'_>) -> Decoded {
    let mut left = left;
    // Bytes already in the bit buffer come first.
    while left > 0
        && let Some(byte) = bits.take(8)
    {
        text.push(byte as u8)?;
        left -= 1;
    }
    let (piece, rest) = input.split_at(left.min(input.len()));
    text.append(piece)?;
    *input = rest;
    left -= piece.len();
    Ok(match left {
        0 => Step::On(DecodeState::Between),
        _ => Step::Wants(DecodeState::Copying(left)),
    })
}

/// Decodes symbols until the block or the input ends; true if the block has ended.
#[inline]
fn symbols(
    literals: &Code,
    distances: &Code,
    bits: &mut Bits,
    input: &mut &[u8],
    text: &mut Text<'_>,
) -> Result<bool, Unreadable> {
    loop {
        bits.fill(input);
        let (symbol, len) = match literals.next(bits.buffer, bits.count) {
            Next::Symbol(symbol, len) => (usize::from(symbol), len),
            Next::TooFew => return Ok(false),
            Next::Invalid => return Err(Unreadable::Corrupted),
        };
        if symbol < END_OF_BLOCK {
            bits.drop(len);
            text.push(symbol as u8)?;
        } else if symbol == END_OF_BLOCK {
            bits.drop(len);
            return Ok(true);
        } else {
            // A match has 48 bits at most; all of them are buffered if they have arrived.
            let &(least, extra) = LENGTHS
                .get(symbol - END_OF_BLOCK - 1)
                .ok_or(Unreadable::Corrupted)?;
            if bits.count < len + extra {
                return Ok(false);
            }
            let times = least + (bits.buffer >> len) as usize % (1 << extra);
            let taken = len + extra;
            let (symbol, len) = match distances.next(bits.buffer >> taken, bits.count - taken) {
                Next::Symbol(symbol, len) => (symbol, len),
                Next::TooFew => return Ok(false),
                Next::Invalid => return Err(Unreadable::Corrupted),
            };
            let &(least, extra) = DISTANCES
                .get(usize::from(symbol))
                .ok_or(Unreadable::Corrupted)?;
            let taken = taken + len;
            if bits.count < taken + extra {
                return Ok(false);
            }
            let distance = least + (bits.buffer >> taken) as usize % (1 << extra);
            bits.drop(taken + extra);
            text.repeat(distance, times)?;
        }
    }
}

/// The text as it grows.
struct Text<'a> {
    bytes: &'a mut Vec<u8>,
    /// Maximum length, in bytes.
    most: usize,
    /// Maximum distance of a match, in bytes.
    window: usize,
}

impl Text<'_> {
    #[inline]
    fn push(&mut self, byte: u8) -> Result<(), Unreadable> {
        self.bytes.push(byte);
        self.check()
    }

    fn append(&mut self, piece: &[u8]) -> Result<(), Unreadable> {
        self.bytes.extend_from_slice(piece);
        self.check()
    }

    #[inline]
    fn repeat(&mut self, distance: usize, times: usize) -> Result<(), Unreadable> {
        let len = self.bytes.len();
        if distance > len.min(self.window) {
            return Err(Unreadable::Corrupted);
        }
        let from = len - distance;
        if distance >= times {
            self.bytes.extend_from_within(from..from + times);
        } else {
            // The match overlaps its own output.
            for at in from..from + times {
                self.bytes.push(self.bytes[at]);
            }
        }
        self.check()
    }

    #[inline]
    fn check(&self) -> Result<(), Unreadable> {
        match self.bytes.len() > self.most {
            true => Err(Unreadable::TooLong),
            false => Ok(()),
        }
    }
}

const DEFLATE: u8 = 8;
const HAS_DICTIONARY: u8 = 0x20;
/// Symbols below it are bytes, those above it lengths.
pub(super) const END_OF_BLOCK: usize = 256;
/// For each symbol of a length its least length, and the number of extra bits added to it.
const LENGTHS: [(usize, u32); 29] = ranges(4, 3, 28);
/// For each symbol of a distance its least distance, and the number of extra bits added to it.
const DISTANCES: [(usize, u32); 30] = ranges(2, 1, 30);

/// Consecutive ranges, the first `2 * group` of one number each, then `group` of 2, 4 and so on.
const fn ranges<const N: usize>(group: usize, first: usize, doubling: usize) -> [(usize, u32); N] {
    let mut all = [(0, 0); N];
    let (mut at, mut least) = (0, first);
    while at < N {
        let extra = if at < 2 * group || at >= doubling {
            0
        } else {
            (at / group - 1) as u32
        };
        all[at] = (least, extra);
        least += 1 << extra;
        at += 1;
    }
    // The longest match has a symbol of its own, though the range before it could include it.
    if N > doubling {
        all[doubling].0 -= 1;
    }
    all
}
