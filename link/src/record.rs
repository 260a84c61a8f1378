//! Record of the link: counts of packets by outcome, its lateness, and each packet if wanted.
//!
//! Late is a packet by the time from when it was due to when it was put into the other device, and by the time it
//! may have waited in its first device because the forwarder did not run (`Moving::unread`).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::pipe::Moving;
use crate::segment::{Direction, Segment, Verdict};

/// Counts of packets by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// On the way to the server.
    pub to_server: DirectionCounters,
    /// On the way to the client.
    pub to_client: DirectionCounters,
    /// Not IPv4, and not forwarded.
    pub ignored: u64,
    /// Delivered, and not in the pcap file because it could not be written so fast.
    pub uncaptured: u64,
}

/// Counts of packets of a direction by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionCounters {
    /// Delivered.
    pub packets: u64,
    /// Bytes of IP packets delivered.
    pub bytes: u64,
    /// Lost by chance, or by order.
    pub lost: u64,
    /// Dropped because too many waited before the rate.
    pub overflowed: u64,
    /// Not taken by the other end's device.
    pub refused: u64,
    /// Acknowledgements that were dropped since a later segment acknowledged as much.
    pub superseded: u64,
}

impl Counters {
    /// Delivered, both ways.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.to_server.packets + self.to_client.packets
    }

    /// Bytes of IP packets delivered, both ways.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.to_server.bytes + self.to_client.bytes
    }

    /// Neither delivered nor superseded, both ways.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.to_server.dropped() + self.to_client.dropped()
    }
}

impl DirectionCounters {
    /// Neither delivered nor superseded.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.lost + self.overflowed + self.refused
    }

    fn add(&mut self, verdict: Verdict, bytes: usize) {
        match verdict {
            Verdict::Delivered => {
                self.packets += 1;
                self.bytes += bytes as u64;
            }
            Verdict::Lost => self.lost += 1,
            Verdict::Overflowed => self.overflowed += 1,
            Verdict::Refused => self.refused += 1,
            Verdict::Superseded => self.superseded += 1,
        }
    }
}

/// Lateness of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// Packets delivered.
    pub packets: u64,
    /// Half of them were no later than this; in steps of 10 µs.
    pub median: Duration,
    /// 99 of 100 were no later than this; in steps of 10 µs, [`Lateness::worst`] from 20 ms on.
    pub p99: Duration,
    /// The latest.
    pub worst: Duration,
    /// Number of packets later than [`LATE_THRESHOLD`].
    pub late: u64,
    /// Whether the kernel reports how long the forwarder waited for a CPU; else packets may have waited unseen
    /// before they were read.
    pub waits_known: bool,
    /// Whether the CPUs are kept from sleeping; else packets may have come late by the wake-ups of the ends and of the
    /// forwarder, up to some hundred microseconds each, unseen.
    pub cpus_awake: bool,
}

impl Lateness {
    /// Remarks about the limits of the figures, to be printed after them.
    #[must_use]
    pub fn remarks(&self) -> String {
        let wakes = if self.cpus_awake {
            "CPUs kept awake"
        } else {
            "CPUs may sleep here, and their wake-ups come on top"
        };
        let waits = if self.waits_known {
            ""
        } else {
            "; waiting before the link is not known here"
        };
        format!("; {wakes}{waits}")
    }
}

/// A copy of the moments at which packets were delivered later than a limit, so that many samples can be judged while
/// the link continues.
#[derive(Debug)]
pub(crate) struct LateDeliveries {
    moments: Vec<Instant>,
    /// Up to this one they are not known, and some packet of the link was late.
    forgotten: Option<Instant>,
}

impl LateDeliveries {
    /// Returns whether a late delivery may have happened between two moments.
    pub(crate) fn any_between(&self, from: Instant, to: Instant) -> bool {
        let next = self.moments.partition_point(|when| *when < from);
        self.forgotten.is_some_and(|last| last >= from)
            || self.moments.get(next).is_some_and(|when| *when <= to)
    }
}

/// The packets recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// In the order in which they were delivered, or found not to be.
    pub entries: Vec<TraceEntry>,
    /// Number of entries beyond those kept.
    pub lost: u64,
}

/// A packet recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// Direction of the packet.
    pub direction: Direction,
    /// Its outcome.
    pub verdict: Verdict,
    /// When it came from its sender.
    pub came: Instant,
    /// When it was due; for one that was not delivered, when that was decided.
    pub due: Instant,
    /// When it reached its receiver, or was found not to.
    pub left: Instant,
    /// Its length with the IP header.
    pub packet_bytes: usize,
    /// Its TCP header, if it is TCP.
    pub segment: Option<Segment>,
}

/// The record of a link.
#[derive(Debug)]
pub(crate) struct Record {
    counters: Counters,
    steps: Vec<u64>,
    late: u64,
    worst: Duration,
    remembered: VecDeque<(Instant, Duration)>,
    /// The moment of the last delivery that was forgotten.
    forgotten: Option<Instant>,
    waits_known: bool,
    cpus_awake: bool,
    trace: Option<Trace>,
}

impl Record {
    pub(crate) fn new(trace: bool, waits_known: bool, cpus_awake: bool) -> Self {
        Self {
            counters: Counters::default(),
            steps: vec![0; STEPS + 1],
            late: 0,
            worst: Duration::ZERO,
            remembered: VecDeque::new(),
            forgotten: None,
            waits_known,
            cpus_awake,
            trace: trace.then(Trace::default),
        }
    }

    /// Adds the outcome of a packet.
    pub(crate) fn add(
        &mut self,
        direction: Direction,
        verdict: Verdict,
        moving: &Moving,
        now: Instant,
    ) {
        let way = match direction {
            Direction::ToServer => &mut self.counters.to_server,
            Direction::ToClient => &mut self.counters.to_client,
        };
        way.add(verdict, moving.packet.len());
        if verdict == Verdict::Delivered {
            let late = now.saturating_duration_since(moving.due) + moving.unread;
            self.add_lateness(late, now);
        }
        let Some(trace) = &mut self.trace else {
            return;
        };
        if trace.entries.len() >= TRACE_MAX {
            trace.lost += 1;
            return;
        }
        trace.entries.push(TraceEntry {
            direction,
            verdict,
            came: moving.came,
            due: moving.due,
            left: now,
            packet_bytes: moving.packet.len(),
            segment: moving.segment,
        });
    }

    /// Adds packets that are not forwarded, and sets the number of packets not captured so far.
    pub(crate) fn add_others(&mut self, ignored: u64, uncaptured: u64) {
        self.counters.ignored += ignored;
        self.counters.uncaptured = uncaptured;
    }

    fn add_lateness(&mut self, late: Duration, now: Instant) {
        let step = late.as_nanos() / STEP.as_nanos();
        let step = usize::try_from(step).map_or(STEPS, |step| step.min(STEPS));
        self.steps[step] += 1;
        self.worst = self.worst.max(late);
        self.late += u64::from(late > LATE_THRESHOLD);
        if late < REMEMBERED_FROM {
            return;
        }
        if self.remembered.len() >= REMEMBERED_MAX {
            self.forgotten = self.remembered.pop_front().map(|(when, _)| when);
        }
        self.remembered.push_back((now, late));
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    pub(crate) fn lateness(&self) -> Lateness {
        Lateness {
            packets: self.steps.iter().sum(),
            median: self.quantile(50),
            p99: self.quantile(99),
            worst: self.worst,
            late: self.late,
            waits_known: self.waits_known,
            cpus_awake: self.cpus_awake,
        }
    }

    /// The upper end of the step that has the packet at `percent`.
    fn quantile(&self, percent: u64) -> Duration {
        let packets: u64 = self.steps.iter().sum();
        let wanted = (packets * percent).div_ceil(100);
        let mut seen = 0;
        for (step, count) in (1_u32..).zip(&self.steps) {
            seen += count;
            if seen >= wanted && packets > 0 {
                return (STEP * step).min(self.worst);
            }
        }
        Duration::ZERO
    }

    /// The latest delivery between two moments; the worst of all for a time that is forgotten in part.
    pub(crate) fn worst_between(&self, from: Instant, to: Instant) -> Duration {
        if self.forgotten.is_some_and(|last| last >= from) {
            return self.worst;
        }
        let begin = self.remembered.partition_point(|(when, _)| *when < from);
        let of_then = self.remembered.range(begin..);
        let of_then = of_then.take_while(|(when, _)| *when <= to);
        of_then.map(|(_, late)| *late).max().unwrap_or_default()
    }

    /// The deliveries from a moment on that were later than a limit.
    pub(crate) fn later_than(&self, limit: Duration, from: Instant) -> LateDeliveries {
        let begin = self.remembered.partition_point(|(when, _)| *when < from);
        let of_then = self.remembered.range(begin..);
        let late = of_then.filter(|(_, late)| *late > limit);
        LateDeliveries {
            moments: late.map(|(when, _)| *when).collect(),
            forgotten: self.forgotten.filter(|_| self.worst > limit),
        }
    }

    pub(crate) fn take_trace(&mut self) -> Trace {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// Whether so few of `samples` are void that the others may be trusted.
#[must_use]
pub fn is_conclusive(samples: u64, void: u64) -> bool {
    void <= (samples * VOID_PERCENT_MAX / 100).max(1)
}

/// Lateness from which a packet is counted as late: a fiftieth of the round trip of 50 ms.
pub const LATE_THRESHOLD: Duration = Duration::from_millis(1);
/// Maximum percentage of void samples; of fewer than a hundred one may be.
const VOID_PERCENT_MAX: u64 = 1;
/// Lateness is counted in steps of 10 µs up to 20 ms; the last count has all above.
const STEP: Duration = Duration::from_micros(10);
const STEPS: usize = 2000;
/// Lateness below which no time is recorded.
const REMEMBERED_FROM: Duration = Duration::from_micros(100);
/// Maximum number of late deliveries remembered with their times; older ones are dropped.
const REMEMBERED_MAX: usize = 65_536;
/// Maximum number of packets traced until the trace is taken; later ones are only counted.
const TRACE_MAX: usize = 262_144;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn moving(due: Instant) -> Moving {
        Moving {
            packet: vec![0; 40],
            segment: None,
            came: due,
            due,
            unread: Duration::ZERO,
        }
    }

    fn deliver(record: &mut Record, due: Instant, late: Duration) {
        record.add(
            Direction::ToServer,
            Verdict::Delivered,
            &moving(due),
            due + late,
        );
    }

    #[test]
    fn what_the_record_cannot_know_is_said() {
        let remarks = |waits, awake| Record::new(false, waits, awake).lateness().remarks();
        assert_eq!(remarks(true, true), "; CPUs kept awake");
        assert!(remarks(false, true).contains("waiting"));
        assert!(remarks(true, false).contains("may sleep"));
    }

    #[test]
    fn lateness_has_its_quantiles() {
        let start = Instant::now();
        let mut record = Record::new(false, true, true);
        assert_eq!(record.lateness().p99, Duration::ZERO);
        for _ in 0..98 {
            deliver(&mut record, start, Duration::from_micros(15));
        }
        deliver(&mut record, start, 3 * MS);
        deliver(&mut record, start, 3 * MS + Duration::from_micros(15));
        let lateness = record.lateness();
        assert_eq!(lateness.packets, 100);
        assert_eq!(lateness.median, Duration::from_micros(20));
        assert_eq!(lateness.p99, Duration::from_micros(3010));
        assert_eq!(lateness.worst, Duration::from_micros(3015));
        assert_eq!(lateness.late, 2);
        deliver(&mut record, start, LATE_THRESHOLD);
        assert_eq!(record.lateness().late, 2);
    }

    #[test]
    fn late_deliveries_are_found_by_their_time() {
        let start = Instant::now();
        let mut record = Record::new(false, true, true);
        deliver(&mut record, start, MS);
        deliver(&mut record, start + 10 * MS, 2 * MS);
        let worst = |from, to| record.worst_between(start + from * MS, start + to * MS);
        assert_eq!(worst(0, 5), MS);
        assert_eq!(worst(0, 12), 2 * MS);
        assert_eq!(worst(2, 11), Duration::ZERO);
        assert_eq!(worst(13, 99), Duration::ZERO);
    }

    #[test]
    fn samples_are_judged_as_their_worst_delivery_says() {
        let start = Instant::now();
        let mut record = Record::new(false, true, true);
        for (at, late) in [(0, 1), (10, 2), (20, 3), (30, 2)] {
            deliver(&mut record, start + at * MS, late * MS);
        }
        let moments = || (0..40).map(|at| start + at * MS);
        for limit in [MS, 2 * MS, 3 * MS] {
            for from in moments() {
                let late = record.later_than(limit, from);
                let all = record.later_than(limit, start);
                for to in moments().filter(|to| *to >= from) {
                    let worst = record.worst_between(from, to);
                    assert_eq!(late.any_between(from, to), worst > limit);
                    assert_eq!(all.any_between(from, to), worst > limit);
                }
            }
        }
    }

    #[test]
    fn waiting_unread_is_lateness() {
        let start = Instant::now();
        let mut record = Record::new(false, true, true);
        let mut packet = moving(start);
        packet.unread = 4 * MS;
        record.add(Direction::ToClient, Verdict::Delivered, &packet, start + MS);
        assert_eq!(record.lateness().worst, 5 * MS);
    }

    #[test]
    fn what_is_forgotten_counts_as_late() {
        let start = Instant::now();
        let mut record = Record::new(false, true, true);
        for _ in 0..REMEMBERED_MAX {
            deliver(&mut record, start, MS);
        }
        assert_eq!(record.worst_between(start, start), Duration::ZERO);
        deliver(&mut record, start + 5 * MS, 2 * MS);
        assert_eq!(record.worst_between(start, start), 2 * MS);
        let judged = |limit| {
            let late = record.later_than(limit, start);
            late.any_between(start, start)
        };
        assert_eq!((judged(MS), judged(2 * MS)), (true, false));
        assert_eq!(
            record.worst_between(start + 2 * MS, start + 3 * MS),
            Duration::ZERO
        );
    }

    #[test]
    fn trace_is_limited_and_taken() {
        let start = Instant::now();
        let mut record = Record::new(true, true, true);
        for _ in 0..=TRACE_MAX {
            deliver(&mut record, start, MS);
        }
        let trace = record.take_trace();
        assert_eq!((trace.entries.len(), trace.lost), (TRACE_MAX, 1));
        assert_eq!(record.take_trace(), Trace::default());
    }
}
