//! The sweep over bodies that the server compresses: gzip, brotli, zstd, in each protocol.
//!
//! A body in a file is compressed for the first request, and later ones may get a stored copy. A stream is compressed
//! each time, as it comes.

use std::time::Duration;

use crate::sweep::SIZES;
use firstbyte_tests::peer;

use crate::{
    HTTP_1, HTTP_1_TLS13, HTTP_2, HTTP_2_TLS, MS, Protocol, SPDY, SPDY_TLS, each, sweep_of,
};

/// Compresses every body in the requested coding.
const ALL: &str =
    "gzip on; gzip_types *; gzip_min_length 0; brotli on; brotli_types *; brotli_min_length 0;
    zstd on; zstd_types *; zstd_min_length 0;";

/// Makes bodies streams, by a filter that matches nothing.
const STREAMED: &str = "sub_filter_types *; sub_filter --- +;";

/// Sizes of streams; a subset, for the time it takes.
const STREAM_SIZES: [usize; 4] = [100, 4096, 14_336, 65_536];

/// Bodies in all codings, from files and streamed. The numbers of sizes and of codings have no common divisor, so that
/// each size has each coding in some round.
fn compressed(protocol: Protocol, hold: Duration) {
    if peer::is_firstbyte() {
        let codings = ["gzip", "br", "zstd", "gzip"];
        sweep_of(ALL, protocol, hold, &codings, &SIZES);
        let streamed = format!("{ALL} {STREAMED}");
        sweep_of(&streamed, protocol, hold, &codings[..3], &STREAM_SIZES);
    }
}

/// Protocols that are tested at the same time: compression is limited by the CPU.
const AT_ONCE: usize = 3;

const PROTOCOLS: [Protocol; 6] = [HTTP_1, HTTP_1_TLS13, HTTP_2, HTTP_2_TLS, SPDY, SPDY_TLS];

#[test]
fn compressed_bodies_wait_for_no_acknowledgement_held_for_200_ms() {
    each(&PROTOCOLS, AT_ONCE, |protocol| {
        compressed(protocol, 200 * MS)
    });
}

#[test]
fn compressed_bodies_wait_for_no_acknowledgement_held_for_40_ms() {
    each(&PROTOCOLS, AT_ONCE, |protocol| {
        compressed(protocol, 40 * MS)
    });
}
