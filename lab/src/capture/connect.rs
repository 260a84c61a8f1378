//! Connections that were opened late: a SYN was sent again.
//!
//! Source: RFC 6298 section 2.1: the first timeout is a second.

use super::flow::{Flow, Side};
use crate::doctor::judge::connect::SynRetry;
use crate::doctor::milliseconds;

/// Finds an unanswered first SYN of a flow.
pub(super) fn of(flow: &Flow) -> Option<SynRetry> {
    let answer = flow
        .segments
        .iter()
        .position(|one| one.from == Side::Server);
    let before = &flow.segments[..answer.unwrap_or(flow.segments.len())];
    let mut syns = before.iter().filter(|one| one.is_syn());
    let first = syns.next()?;
    let last = syns.next_back()?;
    let lost_ns = last.at_ns.saturating_sub(first.at_ns);
    // Two devices of the captured machine may show the same packet twice.
    (lost_ns >= SENT_AGAIN_NS_MIN).then(|| SynRetry {
        lost_ms: milliseconds(lost_ns),
        packets: flow.packets(first.packet, last.packet),
        was_answered: answer.is_some(),
    })
}

/// No system sends a SYN again before.
pub(super) const SENT_AGAIN_NS_MIN: u64 = 100_000_000;
