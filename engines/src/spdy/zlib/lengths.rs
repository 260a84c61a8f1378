//! The codes defined by a block of DEFLATE: the lengths of all codes, themselves encoded.
//!
//! Source: RFC 1951 section 3.2.7.

use super::huffman::{Code, Next};
use super::inflate::{Bits, DecodeState, Decoded, END_OF_BLOCK, Step, Unreadable};

/// The code lengths of a dynamic block, as far as they are known.
#[derive(Debug)]
pub(super) struct Lengths {
    literals: usize,
    distances: usize,
    /// Number of lengths in the code for lengths, and that code once it is complete.
    steps: usize,
    of_lengths: [u8; ORDER.len()],
    code: Option<Code>,
    known: usize,
    lens: [u8; LITERALS_MAX + DISTANCES_MAX],
}

impl Lengths {
    /// Reads the numbers of lengths.
    pub(super) fn begin(bits: &mut Bits, input: &mut &[u8]) -> Decoded {
        bits.fill(input);
        let Some(counts) = bits.take(14) else {
            return Ok(Step::Wants(DecodeState::Counts));
        };
        let (literals, distances) = ((counts & 31) + 257, (counts >> 5 & 31) + 1);
        if literals > LITERALS_MAX || distances > DISTANCES_MAX {
            return Err(Unreadable::Corrupted);
        }
        Ok(Step::On(DecodeState::Lengths(Box::new(Self {
            literals,
            distances,
            steps: (counts >> 10) + 4,
            of_lengths: [0; ORDER.len()],
            code: None,
            known: 0,
            lens: [0; LITERALS_MAX + DISTANCES_MAX],
        }))))
    }

    /// Reads lengths until the codes are known.
    pub(super) fn read(mut self: Box<Self>, bits: &mut Bits, input: &mut &[u8]) -> Decoded {
        let all = self.literals + self.distances;
        loop {
            bits.fill(input);
            let went_on = match &self.code {
                None if self.known < self.steps => match bits.take(3) {
                    Some(len) => {
                        self.of_lengths[ORDER[self.known]] = len as u8;
                        self.known += 1;
                        true
                    }
                    None => false,
                },
                None => {
                    let code = Code::new(&self.of_lengths, false);
                    self.code = Some(code.ok_or(Unreadable::Corrupted)?);
                    self.known = 0;
                    true
                }
                Some(_) if self.known == all => return self.codes(),
                Some(code) => match code.next(bits.buffer, bits.count) {
                    Next::Symbol(symbol, len) => self.length(symbol, len, bits)?,
                    Next::TooFew => false,
                    Next::Invalid => return Err(Unreadable::Corrupted),
                },
            };
            if !went_on {
                return Ok(Step::Wants(DecodeState::Lengths(self)));
            }
        }
    }

    /// Takes a symbol of the code for lengths, with a code of `len` bits; false if its extra bits have not arrived.
    fn length(&mut self, symbol: u16, len: u32, bits: &mut Bits) -> Result<bool, Unreadable> {
        let (extra, least) = match symbol {
            0..=15 => (0, 1),
            16 => (2, 3),
            17 => (3, 3),
            _ => (7, 11),
        };
        if bits.count < len + extra {
            return Ok(false);
        }
        bits.drop(len);
        let value = match symbol {
            0..=15 => symbol as u8,
            16 => match self.known.checked_sub(1) {
                Some(before) => self.lens[before],
                None => return Err(Unreadable::Corrupted),
            },
            _ => 0,
        };
        let times = bits.take(extra).unwrap_or_default() + least;
        let end = self.known + times;
        if end > self.literals + self.distances {
            return Err(Unreadable::Corrupted);
        }
        self.lens[self.known..end].fill(value);
        self.known = end;
        Ok(true)
    }

    fn codes(&self) -> Decoded {
        let (literals, distances) =
            self.lens[..self.literals + self.distances].split_at(self.literals);
        let codes = Code::new(literals, true).zip(Code::new(distances, true));
        match codes {
            Some((literal, distance)) if literals[END_OF_BLOCK] > 0 => {
                Ok(Step::On(DecodeState::Own(Box::new([literal, distance]))))
            }
            _ => Err(Unreadable::Corrupted),
        }
    }
}

/// The most literal and length symbols of a block's own codes.
const LITERALS_MAX: usize = 286;
const DISTANCES_MAX: usize = 30;
/// Order of the lengths in the code for lengths.
const ORDER: [usize; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];
