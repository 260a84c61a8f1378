//! A fast hash for tables that the configuration fills and requests only look up, such as `types`.
//!
//! Absent: resistance to chosen keys. The author of the configuration chooses them, so the standard library's slower
//! hash would protect against no attacker. Source: the FNV hash, variant 1a (RFC 9923).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table of the configuration.
pub type ConfigMap<K, V> = HashMap<K, V, BuildHasherDefault<Fnv>>;

/// FNV-1a with 64 bits.
#[derive(Debug)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    /// Mixes the length of a key in one step.
    #[inline]
    fn write_usize(&mut self, length: usize) {
        self.0 = (self.0 ^ length as u64).wrapping_mul(0x100_0000_01b3);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hashes_are_found() {
        let hash = |text: &str| {
            let mut hash = Fnv::default();
            hash.write(text.as_bytes());
            hash.finish()
        };
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }
}
