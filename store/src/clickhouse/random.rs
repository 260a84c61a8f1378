//! Random numbers without a library: the keys of the standard library's hashes come from the system.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Returns 64 random bits.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
