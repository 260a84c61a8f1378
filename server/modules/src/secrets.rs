//! Comparing secrets.

use std::hint::black_box;

/// Compares in a time that does not depend on the position of the first difference. Lengths are not secret.
pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).map(|(a, b)| a ^ b);
    let any = differences.fold(0, |all, difference| black_box(all | difference));
    a.len() == b.len() && any == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_is_equal() {
        assert!(equal(b"", b""));
        assert!(equal(b"abc", b"abc"));
        for other in [&b""[..], b"ab", b"abcd", b"Abc", b"abC", b"abc\0"] {
            assert!(!equal(b"abc", other) && !equal(other, b"abc"), "{other:?}");
        }
    }
}
