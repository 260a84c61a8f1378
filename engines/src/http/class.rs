//! Byte classes as 256-entry tables: one load classifies a byte.
//!
//! Source: RFC 9110 section 5.6.2 (`token`).

/// Whether `bytes` is a `token`: at least one byte, all of them token bytes.
#[must_use]
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_token_byte(byte))
}

/// Whether `byte` is valid in a `token` (`tchar`).
#[inline]
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    TOKEN[byte as usize]
}

/// A table that is true for the bytes of `chars`, letters and digits.
pub(crate) const fn alphanumeric_and(chars: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < chars.len() {
        table[chars[at] as usize] = true;
        at += 1;
    }
    table
}

const TOKEN: [bool; 256] = alphanumeric_and(b"!#$%&'*+-.^_`|~");

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9110 section 5.6.2: delimiters are `"(),/:;<=>?@[\]{}`.
    #[test]
    fn a_token_has_no_delimiter_space_or_control() {
        assert!(is_token(b"X-Forwarded_For!"));
        for bad in [
            &b""[..],
            b"a b",
            b"a:",
            b"(",
            b"\"",
            b"a\x00",
            b"\xef",
            b"[x",
            b"{",
            b"@",
        ] {
            assert!(!is_token(bad), "{bad:?}");
        }
    }
}
