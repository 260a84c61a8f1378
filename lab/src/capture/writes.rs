//! Runs of segments far below the segment size with more behind them at once: each was a write of its own.

use super::flow::{Flow, Segment, Side};

/// The longest run of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Segments below half the segment size that were followed at once.
    pub(super) segments: u64,
    pub(super) bytes: u64,
    pub(super) first_packet: u64,
    pub(super) last_packet: u64,
}

impl Run {
    /// Segments that the same bytes need.
    pub(super) fn needed(&self, segment_bytes: u32) -> u64 {
        self.bytes.div_ceil(u64::from(segment_bytes).max(1))
    }
}

/// The longest run, if it is of [`RUN_MIN`] segments or more.
pub(super) fn of(flow: &Flow) -> Option<Run> {
    let mut longest: Option<Run> = None;
    let mut run: Option<Run> = None;
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
            let run = run.unwrap_or(Run {
                segments: 0,
                bytes: 0,
                first_packet: before.packet,
                last_packet: before.packet,
            });
            Run {
                segments: run.segments + 1,
                bytes: run.bytes + u64::from(before.bytes),
                last_packet: segment.packet,
                ..run
            }
        });
        if let Some(run) = run
            && longest.is_none_or(|longest| longest.segments < run.segments)
        {
            longest = Some(run);
        }
        before = Some(segment);
    }
    longest.filter(|run| run.segments >= RUN_MIN)
}

/// A segment that follows within this time was there, or was being made, when the segment left.
const AT_ONCE_NS: u64 = 500_000;
/// The shortest run that is worth a word: settings, heads and a short body may leave apart.
pub(super) const RUN_MIN: u64 = 8;
