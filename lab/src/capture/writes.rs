//! Runs of segments far below the segment size, each followed by more at once: each segment was a separate write.

use super::flow::{Flow, Segment, Side};
use crate::doctor::judge::write_size::Run;

/// The longest run, if it is of [`RUN_MIN`] segments or more.
pub(super) fn of(flow: &Flow) -> Option<Run> {
    // Segments, their bytes, the first packet, and the packet after the last segment.
    let mut longest: Option<(u64, u64, u64, u64)> = None;
    let mut run = None;
    let mut before: Option<&Segment> = None;
    for segment in flow.segments.iter().filter(|one| one.bytes > 0) {
        if segment.from == Side::Client || !segment.is_new {
            (run, before) = (None, None);
            continue;
        }
        let is_short = |one: &Segment| one.bytes < flow.segment_bytes / 2;
        let follows = before.filter(|before| {
            is_short(before) && segment.at_ns.saturating_sub(before.at_ns) <= AT_ONCE_NS
        });
        run = follows.map(|before| {
            let (segments, bytes, first) = run.unwrap_or((0, 0, before.packet));
            (segments + 1, bytes + u64::from(before.bytes), first)
        });
        if let Some((segments, bytes, first)) = run
            && longest.is_none_or(|(most, ..)| most < segments)
        {
            longest = Some((segments, bytes, first, segment.packet));
        }
        before = Some(segment);
    }
    let (segments, bytes, first, last) = longest.filter(|(most, ..)| *most >= RUN_MIN)?;
    Some(Run {
        segments,
        bytes,
        segment_bytes: flow.segment_bytes,
        packets: flow.packets(first, last),
    })
}

/// A segment that follows within this time was there, or was being made, when the segment left.
const AT_ONCE_NS: u64 = 500_000;
/// Least run for a finding: settings, heads and a short body may be separate segments.
pub(super) const RUN_MIN: u64 = 8;
