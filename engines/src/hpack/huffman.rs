//! The Huffman code of HPACK.
//!
//! The code is canonical: the lengths of its codes determine it, and only they are stored here. Short codes are
//! looked up a byte at a time; longer ones are found by the first code of each length.
//!
//! Source: RFC 7541 section 5.2, appendix B.

/// Decodes `input` and appends the text. False if it is no Huffman text: an unknown code, EOS, or padding that is
/// too long or has a zero (RFC 7541 section 5.2). Output is at most 8/5 of the input.
pub(super) fn decode(input: &[u8], out: &mut Vec<u8>) -> bool {
    let mut bits: u64 = 0;
    let mut count: u32 = 0;
    let mut input = input.iter();
    loop {
        while count <= 56 {
            let Some(byte) = input.next() else { break };
            bits |= u64::from(*byte) << (56 - count);
            count += 8;
        }
        if count == 0 {
            return true;
        }
        let quick = CODE.quick[(bits >> 56) as usize];
        let (symbol, len) = if quick.len > 0 {
            (u16::from(quick.symbol), u32::from(quick.len))
        } else {
            match long_code(bits) {
                Some(found) => found,
                None => return is_padding(bits, count),
            }
        };
        if len > count || symbol == EOS {
            return is_padding(bits, count);
        }
        out.push(symbol as u8);
        bits <<= len;
        count -= len;
    }
}

/// Whether the last `count` bits are the beginning of EOS, shorter than a byte.
fn is_padding(bits: u64, count: u32) -> bool {
    count < 8 && bits >> (64 - count) == (1 << count) - 1
}

/// The symbol of a code longer than a byte, and its length.
fn long_code(bits: u64) -> Option<(u16, u32)> {
    let front = (bits >> (64 - MAX_LEN)) as u32;
    (QUICK_BITS + 1..=MAX_LEN).find_map(|len| {
        let code = front >> (MAX_LEN - len);
        let row = CODE.rows[len as usize];
        let nth = code.checked_sub(row.first)?;
        (nth < row.count).then(|| (CODE.symbols[(row.start + nth) as usize], len))
    })
}

/// Length of the Huffman text of `input` in bytes.
pub(super) fn encoded_len(input: &[u8]) -> usize {
    let bits: usize = input
        .iter()
        .map(|byte| usize::from(LENGTHS[usize::from(*byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends the Huffman text of `input`.
pub(super) fn encode(input: &[u8], out: &mut Vec<u8>) {
    let mut bits: u64 = 0;
    let mut count: u32 = 0;
    for byte in input {
        let len = u32::from(LENGTHS[usize::from(*byte)]);
        bits = bits << len | u64::from(CODE.codes[usize::from(*byte)]);
        count += len;
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        let pad = 8 - count;
        out.push((bits << pad) as u8 | ((1 << pad) - 1) as u8);
    }
}

/// Decoding table made from the lengths of the codes.
struct Code {
    /// The code of each symbol.
    codes: [u32; SYMBOLS],
    /// Symbols by length, then by code.
    symbols: [u16; SYMBOLS],
    /// The codes of each length.
    rows: [Row; MAX_LEN as usize + 1],
    /// Indexed by the next eight bits: the symbol of the code at their start; length 0 if the code is longer.
    quick: [Quick; 1 << QUICK_BITS],
}

#[derive(Clone, Copy)]
struct Row {
    first: u32,
    count: u32,
    /// Index of the first symbol.
    start: u32,
}

#[derive(Clone, Copy)]
struct Quick {
    symbol: u8,
    len: u8,
}

const fn build() -> Code {
    let mut code = Code {
        codes: [0; SYMBOLS],
        symbols: [0; SYMBOLS],
        rows: [Row {
            first: 0,
            count: 0,
            start: 0,
        }; MAX_LEN as usize + 1],
        quick: [Quick { symbol: 0, len: 0 }; 1 << QUICK_BITS],
    };
    let (mut len, mut next, mut index) = (1, 0_u32, 0);
    while len <= MAX_LEN {
        next <<= 1;
        code.rows[len as usize].first = next;
        code.rows[len as usize].start = index;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as u32 == len {
                code.codes[symbol] = next;
                code.symbols[index as usize] = symbol as u16;
                if len <= QUICK_BITS {
                    fill(
                        &mut code.quick,
                        next << (QUICK_BITS - len),
                        symbol as u8,
                        len,
                    );
                }
                next += 1;
                index += 1;
            }
            symbol += 1;
        }
        code.rows[len as usize].count = index - code.rows[len as usize].start;
        len += 1;
    }
    code
}

/// Sets every entry that begins with a code.
const fn fill(quick: &mut [Quick; 1 << QUICK_BITS], first: u32, symbol: u8, len: u32) {
    let mut n = 0;
    while n < 1 << (QUICK_BITS - len) {
        quick[(first + n) as usize] = Quick {
            symbol,
            len: len as u8,
        };
        n += 1;
    }
}

static CODE: Code = build();

const SYMBOLS: usize = 257;
const EOS: u16 = 256;
const MAX_LEN: u32 = 30;
const QUICK_BITS: u32 = 8;

/// Length of each symbol's code in bits.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(input: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        decode(input, &mut out).then_some(out)
    }

    /// RFC 7541 appendix C.4 and C.6.
    #[test]
    fn examples_of_the_specification() {
        for (text, wire) in [
            (
                "www.example.com",
                &[
                    0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
                ][..],
            ),
            ("no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            ("302", &[0x64, 0x02]),
            ("private", &[0xae, 0xc3, 0x77, 0x1a, 0x4b]),
        ] {
            let mut out = Vec::new();
            encode(text.as_bytes(), &mut out);
            assert_eq!(out, wire, "{text}");
            assert_eq!(encoded_len(text.as_bytes()), wire.len());
            assert_eq!(decoded(wire).as_deref(), Some(text.as_bytes()));
        }
    }

    #[test]
    fn every_byte_round_trips_beside_every_other() {
        for a in 0..=255 {
            for b in 0..=255 {
                let mut out = Vec::new();
                encode(&[a, b, a], &mut out);
                assert_eq!(decoded(&out), Some(vec![a, b, a]));
            }
        }
    }

    #[test]
    fn padding_is_the_beginning_of_eos_and_shorter_than_a_byte() {
        assert_eq!(decoded(&[]), Some(Vec::new()));
        assert_eq!(decoded(&[0x1f]), Some(b"a".to_vec()));
        assert_eq!(decoded(&[0x1e]), None);
        assert_eq!(decoded(&[0x1f, 0xff]), None);
        assert_eq!(decoded(&[0xff]), None);
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(decoded(&[0x3f, 0xff, 0xff, 0xff]), None);
    }
}
