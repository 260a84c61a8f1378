//! Content-Length's value. Source: RFC 9110 section 8.6.

use super::parse_decimal;

/// A length in bytes: digits only, below 2^63.
pub fn parse_length(value: &[u8]) -> Option<u64> {
    parse_decimal(value).filter(|length| *length <= i64::MAX as u64)
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
