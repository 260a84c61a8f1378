//! The checks of an examination, in their order.
//!
//! A check is a file with `pub(super) fn run(&mut Examination<'_>) -> Result<Vec<Finding>, Failure>` and a line of [`CHECKS`].
//! What costs few requests comes first, so that a small budget gets as far as it can.

mod caching;
mod codings;
mod compression;
mod delayed_ack_stall;
mod first_flight;
mod handshake;
mod handshakes;
mod head_of_line;
mod header_bloat;
mod held_first_byte;
mod http2;
mod keepalive;
mod kernel;
mod pick;
mod reaching;
mod redirects;
mod resumption;
mod sample;
mod slow_server;
mod small_slower;
mod tls_record_size;
mod trials;
mod write_size;

pub(super) use compression::is_text;

use super::examine::Examination;
use super::failure::Failure;
use super::finding::Finding;

/// A check.
pub(super) struct Check {
    /// Its name in progress and notes.
    pub(super) name: &'static str,
    /// Runs it.
    pub(super) run: fn(&mut Examination<'_>) -> Result<Vec<Finding>, Failure>,
}

/// All checks.
pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "heads of responses",
        run: header_bloat::run,
    },
    Check {
        name: "names and connections",
        run: reaching::run,
    },
    Check {
        name: "redirects",
        run: redirects::run,
    },
    Check {
        name: "protocols",
        run: http2::run,
    },
    Check {
        name: handshakes::NAME,
        run: handshakes::run,
    },
    Check {
        name: "resumption",
        run: resumption::run,
    },
    Check {
        name: "compression",
        run: compression::run,
    },
    Check {
        name: "caching",
        run: caching::run,
    },
    Check {
        name: "time of the server",
        run: slow_server::run,
    },
    Check {
        name: "kept connections",
        run: keepalive::run,
    },
    Check {
        name: "settings of the kernel",
        run: kernel::run,
    },
    Check {
        name: "tls-record-size",
        run: tls_record_size::run,
    },
    Check {
        name: "write-size",
        run: write_size::run,
    },
    Check {
        name: "head-of-line",
        run: head_of_line::run,
    },
    Check {
        name: "held-first-byte",
        run: held_first_byte::run,
    },
    Check {
        name: "delayed-ack-stall",
        run: delayed_ack_stall::run,
    },
    // Behind the stall, which explains it.
    Check {
        name: "small-slower-than-large",
        run: small_slower::run,
    },
    // The others see the server as it is.
    Check {
        name: "settings of the kernel, tried",
        run: trials::run,
    },
];
