//! Integers with a prefix. Source: RFC 7541 section 5.1.

/// Reason why there is no integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The bytes end first.
    Truncated,
    /// It is larger than any valid length or index.
    TooLong,
}

/// Reads an integer with `prefix_bits` bits in its first byte; returns the number and its length in bytes.
#[inline]
pub(super) fn decode(input: &[u8], prefix_bits: u32) -> Result<(usize, usize), Broken> {
    let mask = (1_usize << prefix_bits) - 1;
    let first = usize::from(*input.first().ok_or(Broken::Truncated)?) & mask;
    if first < mask {
        return Ok((first, 1));
    }
    let mut number = mask;
    for (n, byte) in input.iter().skip(1).take(MORE_BYTES).enumerate() {
        number += usize::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            return Ok((number, n + 2));
        }
    }
    if input.len() > MORE_BYTES {
        Err(Broken::TooLong)
    } else {
        Err(Broken::Truncated)
    }
}

/// Appends an integer; `first` holds the bits above the prefix.
#[inline]
pub(super) fn encode(out: &mut Vec<u8>, first: u8, prefix_bits: u32, number: usize) {
    let mask = (1_usize << prefix_bits) - 1;
    if number < mask {
        out.push(first | number as u8);
        return;
    }
    out.push(first | mask as u8);
    let mut rest = number - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Bytes after the first: enough for 2^28, more than any frame holds.
const MORE_BYTES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541 appendix C.1.
    #[test]
    fn examples_of_the_specification() {
        for (number, prefix, wire) in [
            (10, 5, &[0x0a][..]),
            (1337, 5, &[0x1f, 0x9a, 0x0a]),
            (42, 8, &[0x2a]),
        ] {
            let mut out = Vec::new();
            encode(&mut out, 0, prefix, number);
            assert_eq!(out, wire);
            assert_eq!(decode(wire, prefix), Ok((number, wire.len())));
        }
    }

    #[test]
    fn every_number_near_a_boundary_round_trips() {
        for prefix in 4..=8 {
            for number in (0..600).chain(16_000..17_000).chain(2_097_000..2_098_000) {
                let mut out = Vec::new();
                encode(&mut out, 0, prefix, number);
                assert_eq!(decode(&out, prefix), Ok((number, out.len())));
                assert_eq!(
                    decode(&out[..out.len() - 1], prefix),
                    Err(Broken::Truncated)
                );
            }
        }
    }

    #[test]
    fn number_has_five_bytes_at_most() {
        assert_eq!(decode(&[0x1f, 0x80, 0x80, 0x80, 0], 5), Ok((31, 5)));
        let long = [0x1f, 0x80, 0x80, 0x80, 0x80, 0];
        assert_eq!(decode(&long, 5), Err(Broken::TooLong));
        assert_eq!(decode(&long[..5], 5), Err(Broken::TooLong));
        assert_eq!(decode(&long[..4], 5), Err(Broken::Truncated));
    }
}
