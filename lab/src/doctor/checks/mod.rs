//! The checks of an examination, in their order.
//!
//! A check is a file with `pub(super) fn run(&mut Examination<'_>) -> Result<Vec<Finding>, Failure>` and a line of [`CHECKS`]. It
//! gathers facts by requests and passes them to a judge. Checks with few requests come first, so a small budget covers most of
//! them.

mod caching;
mod compression;
pub(super) mod connect;
mod delayed_ack_stall;
mod handshakes;
mod head_of_line;
mod header_bloat;
mod held_first_byte;
mod http2;
mod keepalive;
mod kernel;
mod pick;
mod redirects;
mod resumption;
mod slow_server;
mod small_slower;
mod tls_record_size;
mod trials;
mod write_size;

use super::examine::Examination;
use super::failure::Failure;
use super::finding::Finding;

/// A check.
pub(super) struct Check {
    /// Its name in progress and notes.
    pub(super) name: &'static str,
    /// Runs it.
    pub(super) run: Run,
}

type Run = fn(&mut Examination<'_>) -> Result<Vec<Finding>, Failure>;

/// All checks.
pub(super) const CHECKS: &[Check] = &[
    check("heads of responses", header_bloat::run),
    check("names and connections", connect::run),
    check("redirects", redirects::run),
    check("protocols", http2::run),
    check(handshakes::NAME, handshakes::run),
    check("resumption", resumption::run),
    check("compression", compression::run),
    check("caching", caching::run),
    check("time of the server", slow_server::run),
    check("kept connections", keepalive::run),
    check("settings of the kernel", kernel::run),
    check("tls-record-size", tls_record_size::run),
    check("write-size", write_size::run),
    check("head-of-line", head_of_line::run),
    check("held-first-byte", held_first_byte::run),
    check("delayed-ack-stall", delayed_ack_stall::run),
    // Behind the stall, which explains it.
    check("small-slower-than-large", small_slower::run),
    // The others see the server as it is.
    check("settings of the kernel, tried", trials::run),
];

const fn check(name: &'static str, run: Run) -> Check {
    Check { name, run }
}
