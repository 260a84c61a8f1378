//! Content-Length's value. Source: RFC 9110 section 8.6.

/// A length in bytes: digits only, below 2^63.
pub(crate) fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    let length = value.iter().try_fold(0_u64, |length, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        length.checked_mul(10)?.checked_add(digit)
    })?;
    (length <= i64::MAX as u64).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_digits_below_two_to_the_sixty_third() {
        assert_eq!(parse_length(b"007"), Some(7));
        assert_eq!(parse_length(b"9223372036854775807"), Some(i64::MAX as u64));
        for bad in [
            &b""[..],
            b"+1",
            b"-1",
            b"1,1",
            b" 1",
            b"9223372036854775808",
        ] {
            assert_eq!(parse_length(bad), None, "{bad:?}");
        }
    }
}
