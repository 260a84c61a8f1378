//! Numbers as text. A formatter would cost more than the rest of a line.

/// Writes a number in decimal; returns its digits.
pub fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// Appends a number in decimal.
pub fn push_decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(decimal(number, &mut [0; 20]));
}

/// Reads decimal digits, at least one, as a number; `None` if it exceeds the type.
///
/// Unlike `str::parse` it rejects `+`: the grammars of HTTP permit only digits (RFC 9110, sections 8.6 and 10.2.3).
pub fn parse_decimal<T: TryFrom<u64>>(text: &[u8]) -> Option<T> {
    if text.is_empty() {
        return None;
    }
    let number = text.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })?;
    T::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_up_to_the_limit_of_the_type() {
        assert_eq!(parse_decimal::<u8>(b"255"), Some(255));
        assert_eq!(parse_decimal::<u8>(b"256"), None);
        assert_eq!(parse_decimal(b"0018446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_decimal::<u64>(b"18446744073709551616"), None);
        for wrong in [&b""[..], b"+1", b"-1", b" 1", b"1 ", b"1.0", b"0x1"] {
            assert_eq!(parse_decimal::<u64>(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn numbers_are_those_of_a_formatter() {
        for number in [0, 9, 10, 255, 1_000_000, u64::MAX] {
            let mut out = b"n".to_vec();
            push_decimal(&mut out, number);
            assert_eq!(out, format!("n{number}").into_bytes());
        }
    }
}
