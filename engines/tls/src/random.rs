//! Random numbers that are there when the first handshake needs them.
//!
//! Source: AWS-LC, the comment of `tree_drbg_jitter_entropy.c`.

use aws_lc_rs::rand;

/// Gathers what a process needs before it can draw random numbers: AWS-LC times its CPU for that at the first use, which
/// takes tens of milliseconds. Further calls cost nothing worth naming.
pub fn warm_up() {
    // Without randomness each handshake fails by itself, and says so.
    let _ = rand::fill(&mut [0]);
}
