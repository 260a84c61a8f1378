//! Connections that were opened late: a SYN was sent again.
//!
//! Source: RFC 6298 section 2.1: the first timeout is a second.

use super::flow::{Flow, Side};

/// A connection whose first SYN brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlowConnect {
    pub(super) first_packet: u64,
    /// The SYN that was answered, or the last one.
    pub(super) last_packet: u64,
    /// Time from one to the other.
    pub(super) lost_ns: u64,
    pub(super) was_answered: bool,
}

pub(super) fn of(flow: &Flow) -> Option<SlowConnect> {
    let answer = flow
        .segments
        .iter()
        .position(|one| one.from == Side::Server);
    let before = &flow.segments[..answer.unwrap_or(flow.segments.len())];
    let mut syns = before.iter().filter(|one| one.is_syn());
    let first = syns.next()?;
    let last = syns.next_back()?;
    let lost_ns = last.at_ns.saturating_sub(first.at_ns);
    // The same packet is seen twice where it passes two devices of the captured machine.
    (lost_ns >= SENT_AGAIN_NS_MIN).then_some(SlowConnect {
        first_packet: first.packet,
        last_packet: last.packet,
        lost_ns,
        was_answered: answer.is_some(),
    })
}

/// No system sends a SYN again before.
pub(super) const SENT_AGAIN_NS_MIN: u64 = 100_000_000;
