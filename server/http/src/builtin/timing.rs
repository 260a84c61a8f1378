//! Variables with the durations of the parts of a request, in seconds to the microsecond.
//!
//! nginx has none of them; docs/metrics.md defines the begin and the end of each. The driver notes the timings if one
//! of [`TIMED`] is named anywhere in the configuration. The kernel's times of a first byte are known for sampled
//! responses.

use super::out::{Out, put};
use crate::timing::{Stall, between};
use crate::var;
use crate::vars::Variable;

/// The variables.
pub(super) const VARIABLES: &[Variable] = &[
    var!(
        "first_byte_time",
        "time from the end of the request head to the first byte given to the kernel, seconds",
        |x, _, _, o| put_us(o, x.timings.since_head(x.timings.first_byte_us))
    ),
    var!(
        "request_wait_time",
        "time for which the request waited before work on it began, seconds",
        |x, _, _, o| put_us(o, x.timings.since_head(x.timings.begun_us))
    ),
    var!(
        "handshake_time",
        "time of the TLS handshake, from the client's first message to its last, seconds",
        |x, _, _, o| put_us(
            o,
            x.tls
                .as_ref()
                .and_then(|tls| between(tls.client_hello_us, tls.finished_us))
        )
    ),
    var!(
        "first_byte_sent_time",
        "time from the end of the request head until the first byte left the machine, of a sampled response, seconds",
        |x, _, _, o| put_us(o, x.sampled.sent_us)
    ),
    var!(
        "first_byte_acked_time",
        "time from the end of the request head until the first byte was acknowledged, of a sampled response, seconds",
        |x, _, _, o| put_us(o, x.sampled.acked_us)
    ),
    var!(
        "first_byte_stall",
        "why the first byte of a sampled response was acknowledged late; empty where it was not",
        |x, _, _, o| x
            .sampled
            .stall
            .is_some_and(|stall| put(o, stall.map_or("", Stall::as_str).as_bytes()))
    ),
];

/// Those for which timings are noted.
pub(crate) const TIMED: &[&str] = &["first_byte_time", "request_wait_time", "handshake_time"];

/// Those for which the log of a sampled response waits.
pub(crate) const SAMPLED: &[&str] = &[
    "first_byte_sent_time",
    "first_byte_acked_time",
    "first_byte_stall",
];

/// Seconds with microseconds: `1.000234`.
fn put_us(out: &mut Out, us: Option<u64>) -> bool {
    us.is_some_and(|us| {
        put(
            out,
            format!("{}.{:06}", us / 1_000_000, us % 1_000_000).as_bytes(),
        )
    })
}
