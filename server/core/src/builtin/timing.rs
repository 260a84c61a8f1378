//! Variables that tell how long the parts of a request took, in seconds to the microsecond.
//!
//! They are ours; docs/metrics.md says from when to when each counts. The driver notes the moments if one of [`TIMED`] is
//! named anywhere in the configuration.

use super::{Out, put};
use crate::timing::between;
use crate::vars::Variable;

/// The variables.
pub(super) const VARIABLES: &[Variable] = &[
    var!(
        "first_byte_time",
        "time from the end of the request head to the first byte given to the kernel, seconds",
        |x, _, _, o| put_us(o, x.moments.since_head(x.moments.first_byte_us))
    ),
    var!(
        "request_wait_time",
        "time for which the request waited before work on it began, seconds",
        |x, _, _, o| put_us(o, x.moments.since_head(x.moments.begun_us))
    ),
    var!(
        "handshake_time",
        "time of the TLS handshake, from the client's first message to its last, seconds",
        |x, _, _, o| put_us(
            o,
            x.tls
                .as_ref()
                .and_then(|tls| between(tls.greeted_us, tls.finished_us))
        )
    ),
];

/// Those for which moments are noted.
pub(crate) const TIMED: &[&str] = &["first_byte_time", "request_wait_time", "handshake_time"];

/// Seconds with microseconds: `1.000234`.
fn put_us(out: &mut Out, us: Option<u64>) -> bool {
    us.is_some_and(|us| {
        put(
            out,
            format!("{}.{:06}", us / 1_000_000, us % 1_000_000).as_bytes(),
        )
    })
}
