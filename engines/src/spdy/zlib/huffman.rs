//! Prefix codes of DEFLATE: the fixed ones, and those defined by a block.
//!
//! Short codes are looked up in a table, longer ones are decoded bit by bit.
//!
//! Source: RFC 1951 sections 3.2.2 and 3.2.6.

/// A prefix code: a map from bits to symbols.
#[derive(Debug)]
pub(super) struct Code {
    /// Indexed by the next [`FAST_BITS`] bits, first bit lowest: the symbol shifted left by four, and the length of
    /// its code in the lower four bits. 0 if the code is longer, or none.
    fast: [u16; 1 << FAST_BITS],
    /// Number of codes of each length.
    counts: [u16; LEN_MAX + 1],
    /// The symbols in the order of their codes.
    symbols: [u16; SYMBOLS_MAX],
}

/// Meaning of the next bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A symbol, and the length of its code in bits.
    Symbol(u16, u32),
    /// The beginning of a code.
    TooFew,
    /// No code begins so.
    Invalid,
}

impl Code {
    /// Builds the code from the length of each symbol's code in bits; 0 for absent symbols. `None` if these lengths
    /// do not form a complete code. `may_be_incomplete` also permits a code of a single bit and one without
    /// symbols.
    pub(super) const fn new(lens: &[u8], may_be_incomplete: bool) -> Option<Self> {
        let mut code = Self {
            fast: [0; 1 << FAST_BITS],
            counts: [0; LEN_MAX + 1],
            symbols: [0; SYMBOLS_MAX],
        };
        let mut symbol = 0;
        let mut longest = 0;
        while symbol < lens.len() {
            let len = lens[symbol] as usize;
            code.counts[len] += 1;
            if len > longest {
                longest = len;
            }
            symbol += 1;
        }
        code.counts[0] = 0;
        // Codes of each length follow the shorter ones, and are assigned to symbols in order.
        let mut left = 1_i32;
        let (mut next, mut places) = ([0_u16; LEN_MAX + 2], [0_u16; LEN_MAX + 2]);
        let mut len = 1;
        while len <= LEN_MAX {
            left = (left << 1) - code.counts[len] as i32;
            if left < 0 {
                return None;
            }
            next[len + 1] = (next[len] + code.counts[len]) << 1;
            places[len + 1] = places[len] + code.counts[len];
            len += 1;
        }
        if left > 0 && !(may_be_incomplete && longest <= 1) {
            return None;
        }
        symbol = 0;
        while symbol < lens.len() {
            let len = lens[symbol] as usize;
            if len > 0 {
                code.symbols[places[len] as usize] = symbol as u16;
                places[len] += 1;
                if len <= FAST_BITS {
                    let entry = (symbol as u16) << 4 | len as u16;
                    let mut at = (next[len].reverse_bits() >> (u16::BITS as usize - len)) as usize;
                    while at < 1 << FAST_BITS {
                        code.fast[at] = entry;
                        at += 1 << len;
                    }
                }
                next[len] += 1;
            }
            symbol += 1;
        }
        Some(code)
    }

    /// Decodes the next bits; `count` of them are valid and the rest are 0.
    #[inline]
    pub(super) fn next(&self, bits: u64, count: u32) -> Next {
        let entry = self.fast[bits as usize & ((1 << FAST_BITS) - 1)];
        let len = u32::from(entry & 15);
        if entry == 0 {
            self.slow(bits, count)
        } else if len <= count {
            Next::Symbol(entry >> 4, len)
        } else {
            Next::TooFew
        }
    }

    fn slow(&self, bits: u64, count: u32) -> Next {
        let (mut code, mut first, mut index) = (0, 0, 0);
        for len in 1..=LEN_MAX {
            if len as u32 > count {
                return Next::TooFew;
            }
            code |= (bits >> (len - 1)) as u32 & 1;
            let here = u32::from(self.counts[len]);
            if code < first + here {
                let symbol = self.symbols[(index + code - first) as usize];
                return Next::Symbol(symbol, len as u32);
            }
            index += here;
            first = (first + here) << 1;
            code <<= 1;
        }
        Next::Invalid
    }
}

const fn fixed_literals() -> Code {
    let mut lens = [8; 288];
    let mut symbol = 144;
    while symbol < 280 {
        lens[symbol] = if symbol < 256 { 9 } else { 7 };
        symbol += 1;
    }
    match Code::new(&lens, false) {
        Some(code) => code,
        None => panic!("it is complete"),
    }
}

const fn fixed_distances() -> Code {
    match Code::new(&[5; 32], false) {
        Some(code) => code,
        None => panic!("it is complete"),
    }
}

/// The codes of blocks that bring none.
pub(super) static FIXED_LITERALS: Code = fixed_literals();
pub(super) static FIXED_DISTANCES: Code = fixed_distances();

/// The longest code.
const LEN_MAX: usize = 15;
/// Bits looked up at once: all of a fixed code.
const FAST_BITS: usize = 9;
/// The most symbols of a code, including the two unused ones.
const SYMBOLS_MAX: usize = 288;
