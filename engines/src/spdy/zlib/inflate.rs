//! Header blocks as they are received.
//!
//! The zlib header is read here. A stream rests only between two of DEFLATE's blocks, where nothing but the bits that begin
//! the next one need be known: the end of a header block is such a place if it was flushed, as it should be, and the
//! decompressor says whether it is.
//!
//! Absent: the checksum at the end of a zlib stream, for which a header block is refused.
//!
//! Source: RFC 1950, RFC 1951, draft-mbelshe-httpbis-spdy-00 section 2.6.10.1.

use std::fmt;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY,
    TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{BlockBoundaryState, DecompressorOxide, decompress};

use super::super::dictionary::{DICTIONARY, DICTIONARY_ID};
use super::Tail;

/// Reads header blocks.
#[derive(Debug, Default)]
pub(in crate::spdy) struct Inflater {
    /// What has come of the zlib header.
    header: Vec<u8>,
    /// Present as soon as that is whole.
    tail: Option<Tail>,
    stream: Stream,
}

/// Why a block cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::spdy) enum Unreadable {
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
        if input.is_empty() {
            return Ok(());
        }
        // The text before stays where it is until the block is over: a match may be copied in several pieces.
        let (begin, start) = (tail.text.len(), tail.start());
        let mut end = begin;
        let decoder = self.stream.awake();
        let result = loop {
            tail.text
                .resize((end + PIECE_BYTES).max(tail.text.len()), 0);
            let (status, read, written) =
                decompress(decoder, input, &mut tail.text[start..], end - start, FLAGS);
            input = &input[read..];
            end += written;
            match status {
                _ if end - begin > most => break Err(Unreadable::TooLong),
                TINFLStatus::NeedsMoreInput => break Ok(false),
                TINFLStatus::BlockBoundary if input.is_empty() => break Ok(true),
                TINFLStatus::BlockBoundary | TINFLStatus::HasMoreOutput => {}
                _ => break Err(Unreadable::Corrupted),
            }
        };
        tail.text.truncate(end);
        let room = keep.saturating_sub(out.len());
        out.extend_from_slice(&tail.text[begin..end.min(begin + room)]);
        tail.drop_old();
        self.stream.is_between_blocks = result?;
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
    pub(in crate::spdy) fn is_awake(&self) -> bool {
        self.stream.is_between_blocks && self.stream.decoder.is_some()
    }

    /// Gives memory back until the next block, where the text alone is enough to go on from.
    pub(in crate::spdy) fn rest(&mut self) {
        self.stream.rest();
        if let Some(tail) = &mut self.tail {
            tail.trim();
        }
    }
}

/// The state of a DEFLATE stream, but for its text.
struct Stream {
    /// Absent before the first block, and while the connection rests.
    decoder: Option<Box<DecompressorOxide>>,
    /// Bits of the last byte that belong to the next block, where there is no decoder: how many, and which.
    bits: (u8, u8),
    is_between_blocks: bool,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            decoder: None,
            bits: (0, 0),
            is_between_blocks: true,
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("awake", &self.decoder.is_some())
            .field("is_between_blocks", &self.is_between_blocks)
            .finish()
    }
}

impl Stream {
    /// A decoder that goes on where the last one ended.
    fn awake(&mut self) -> &mut DecompressorOxide {
        let (num_bits, bit_buf) = self.bits;
        self.decoder.get_or_insert_with(|| {
            Box::new(DecompressorOxide::from_block_boundary_state(
                &BlockBoundaryState {
                    num_bits,
                    bit_buf,
                    ..BlockBoundaryState::default()
                },
            ))
        })
    }

    fn rest(&mut self) {
        if self.is_between_blocks
            && let Some(decoder) = &self.decoder
            && let Some(state) = decoder.block_boundary_state()
        {
            self.bits = (state.num_bits, state.bit_buf);
            self.decoder = None;
        }
    }
}

const DEFLATE: u8 = 8;
const HAS_DICTIONARY: u8 = 0x20;
/// Bytes that are inflated at a time.
const PIECE_BYTES: usize = 1024;
const FLAGS: u32 = TINFL_FLAG_HAS_MORE_INPUT
    | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF
    | TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY;
