//! Prepares random numbers before the first handshake needs them.
//!
//! Source: AWS-LC, the comment of `tree_drbg_jitter_entropy.c`.

use aws_lc_rs::rand;

/// Prepares the random generator of the process: at its first use AWS-LC times the CPU, which takes tens of
/// milliseconds. The cost of further calls is negligible.
pub fn warm_up() {
    // Without randomness each handshake fails by itself, with an error.
    let _ = rand::fill(&mut [0]);
}
