//! Sets of bytes: the possible bytes at a position of an expression, or in a variable.

/// A set of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct ByteSet([u64; 4]);

impl ByteSet {
    pub(crate) const NONE: Self = Self([0; 4]);
    pub(crate) const ALL: Self = Self([u64::MAX; 4]);

    /// One byte.
    pub(crate) const fn of(byte: u8) -> Self {
        Self::NONE.with(byte)
    }

    /// All bytes from `low` to `high`.
    pub(crate) const fn range(low: u8, high: u8) -> Self {
        let mut set = Self::NONE;
        let mut byte = low;
        while byte <= high {
            set = set.with(byte);
            if byte == u8::MAX {
                break;
            }
            byte += 1;
        }
        set
    }

    /// The set and one byte more.
    pub(crate) const fn with(mut self, byte: u8) -> Self {
        self.0[(byte >> 6) as usize] |= 1 << (byte & 63);
        self
    }

    /// The set without the bytes.
    pub(crate) const fn without(self, bytes: &[u8]) -> Self {
        let mut out = Self::NONE;
        let mut n = 0;
        while n < bytes.len() {
            out = out.with(bytes[n]);
            n += 1;
        }
        self.and(out.not())
    }

    /// The union of two sets.
    pub(crate) const fn or(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        Self([a[0] | b[0], a[1] | b[1], a[2] | b[2], a[3] | b[3]])
    }

    /// The intersection of two sets.
    pub(crate) const fn and(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        Self([a[0] & b[0], a[1] & b[1], a[2] & b[2], a[3] & b[3]])
    }

    /// The complement of the set.
    pub(crate) const fn not(self) -> Self {
        let a = self.0;
        Self([!a[0], !a[1], !a[2], !a[3]])
    }

    /// Whether a byte is in it.
    pub(crate) const fn has(self, byte: u8) -> bool {
        self.0[(byte >> 6) as usize] >> (byte & 63) & 1 == 1
    }

    /// Whether any of the bytes is in it.
    pub(crate) fn has_any(self, bytes: &[u8]) -> bool {
        bytes.iter().any(|byte| self.has(*byte))
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// Whether the two have nothing in common.
    pub(crate) fn is_disjoint(self, other: Self) -> bool {
        self.and(other).is_empty()
    }

    /// With the other case of every letter.
    pub(crate) fn caseless(self) -> Self {
        let mut set = self;
        for byte in b'a'..=b'z' {
            let upper = byte.to_ascii_uppercase();
            if self.has(byte) || self.has(upper) {
                set = set.with(byte).with(upper);
            }
        }
        set
    }

    /// The single byte of the set, with letters in lower case; `None` for other sets.
    pub(crate) fn single(self) -> Option<u8> {
        let mut bytes = (0..=u8::MAX).filter(|byte| self.has(*byte));
        let first = bytes.next()?.to_ascii_lowercase();
        bytes
            .all(|byte| byte.to_ascii_lowercase() == first)
            .then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_sets() {
        let digits = ByteSet::range(b'0', b'9');
        assert!(digits.has(b'0') && digits.has(b'9') && !digits.has(b'/') && !digits.has(b':'));
        assert!(digits.is_disjoint(digits.not()) && digits.or(digits.not()) == ByteSet::ALL);
        assert!(ByteSet::range(0, 255) == ByteSet::ALL);
        assert!(!ByteSet::ALL.without(b"\r\n").has_any(b"\r\n"));
    }

    #[test]
    fn a_letter_in_both_cases_is_one() {
        assert_eq!(ByteSet::of(b'a').caseless().single(), Some(b'a'));
        assert_eq!(ByteSet::of(b'.').single(), Some(b'.'));
        assert_eq!(ByteSet::range(b'a', b'b').single(), None);
        assert_eq!(ByteSet::NONE.single(), None);
    }
}
