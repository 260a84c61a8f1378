//! Tests of how a sweep is judged.

use std::net::{Ipv4Addr, SocketAddrV4};

use link::{Flags, Flow, Segment, Verdict};

use super::*;

const MS: Duration = Duration::from_millis(1);
const RTT: Duration = Duration::from_millis(50);

/// A sweep in which all came just after a round trip: each size, twelve requests.
fn good() -> Outcome {
    let mut samples = Vec::new();
    for body_bytes in SIZES {
        for request in 1..=REQUESTS {
            samples.push(Sample {
                body_bytes,
                request,
                first: RTT + MS,
                last: RTT + MS,
                served: None,
                link_late: Duration::ZERO,
            });
        }
    }
    Outcome {
        round_trip: RTT,
        samples,
    }
}

fn findings(change: impl FnOnce(&mut [Sample])) -> Vec<String> {
    let mut outcome = good();
    change(&mut outcome.samples);
    outcome.findings()
}

#[test]
fn times_near_the_round_trip_are_good() {
    assert_eq!(good().findings(), [""; 0]);
}

#[test]
fn one_late_first_byte_is_found() {
    let limit = RTT + SAMPLE_OVER;
    assert_eq!(findings(|samples| samples[3].first = limit), [""; 0]);
    let found = findings(|samples| samples[3].first = limit + Duration::from_nanos(1));
    assert!(
        found[0].starts_with("1 bytes, request 4: the first byte"),
        "{found:?}"
    );
}

#[test]
fn late_last_byte_is_found_by_the_flights_of_its_size() {
    let limit = RTT + SAMPLE_OVER;
    assert_eq!(findings(|samples| samples[0].last = limit), [""; 0]);
    let found = findings(|samples| samples[0].last = limit + Duration::from_nanos(1));
    assert!(
        found[0].starts_with("1 bytes, request 1: the last byte"),
        "{found:?}"
    );
    assert_eq!(
        findings(|samples| samples[107].last = 3 * RTT + SAMPLE_OVER),
        [""; 0]
    );
    let found = findings(|samples| samples[107].last = 3 * RTT + 31 * MS);
    assert!(
        found[0].starts_with("65536 bytes, request 12: the last byte"),
        "{found:?}"
    );
    assert_eq!(SIZES.map(flights), [1, 1, 1, 1, 1, 1, 2, 2, 3]);
}

#[test]
fn medians_are_judged_by_size_and_by_place() {
    let slow = |sample: &mut Sample, over: Duration| sample.first = RTT + over;
    let by_size =
        |over| findings(|samples| samples.iter_mut().take(12).for_each(|s| slow(s, over)));
    assert_eq!(by_size(2 * MS), [""; 0]);
    assert!(
        by_size(3 * MS)[0].starts_with("1 bytes, any request"),
        "{:?}",
        by_size(3 * MS)
    );
    let found = findings(|samples| {
        samples
            .iter_mut()
            .filter(|s| s.request == 7)
            .for_each(|s| slow(s, 3 * MS));
    });
    assert!(found[0].starts_with("any size, request 7"), "{found:?}");
    let mut outcome = good();
    outcome.samples = good().samples.repeat(5);
    let cell = |s: &&mut Sample| s.request == 7 && s.body_bytes == 4096;
    outcome
        .samples
        .iter_mut()
        .filter(cell)
        .for_each(|s| slow(s, 3 * MS));
    let found = outcome.findings();
    assert!(found[0].starts_with("4096 bytes, request 7"), "{found:?}");
}

#[test]
fn samples_of_a_late_link_are_void_but_few_may_be() {
    let with_late = |count: usize| {
        let mut outcome = good();
        for sample in &mut outcome.samples[..count] {
            sample.first = 9 * RTT;
            sample.link_late = LATE_THRESHOLD + Duration::from_nanos(1);
        }
        outcome
    };
    assert_eq!(with_late(108).findings(), [""; 0]);
    let conclusive = [0, 1, 2].map(|count| with_late(count).is_conclusive());
    assert_eq!(conclusive, [true, true, false]);
    // One in a hundred of many.
    let of_many = |count| {
        let mut outcome = with_late(0);
        outcome.samples = outcome.samples.repeat(3);
        outcome.samples[..count]
            .iter_mut()
            .for_each(|s| s.link_late = 2 * LATE_THRESHOLD);
        outcome.is_conclusive()
    };
    assert_eq!((of_many(3), of_many(4)), (true, false));
}

#[test]
fn servers_part_is_between_the_first_data_each_way() {
    let start = Instant::now();
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
    let entry = |direction, came_ms: u32, payload: &[u8]| TraceEntry {
        direction,
        verdict: Verdict::Delivered,
        came: start + came_ms * MS,
        due: start + (came_ms + 25) * MS,
        left: start + (came_ms + 25) * MS,
        packet_bytes: 40 + payload.len(),
        segment: Some(Segment {
            flow: Flow {
                source: address,
                destination: address,
            },
            seq: 1,
            ack: 1,
            flags: Flags(Flags::ACK),
            payload_bytes: payload.len() as u32,
        }),
    };
    let (up, down) = (Direction::ToServer, Direction::ToClient);
    let entries = [
        entry(up, 0, b"request"),
        entry(down, 25, b""),
        entry(down, 28, b"response"),
        entry(down, 60, b"more"),
        entry(up, 90, b"request"),
        entry(down, 120, b"response"),
    ];
    let served = |entries, sent: u32, first: u32| {
        let (sent, first) = (start + sent * MS, start + first * MS);
        part_of_server(
            entries,
            Timing {
                sent,
                first,
                last: first,
            },
        )
    };
    assert_eq!(served(&entries, 0, 54), Some(3 * MS));
    assert_eq!(served(&entries, 90, 146), Some(5 * MS));
    // Packets after the response was read do not belong to it.
    assert_eq!(served(&entries, 0, 27), None);
    assert_eq!(served(&[], 0, 54), None);
}

#[test]
fn times_shorter_than_the_link_are_no_times() {
    let found = findings(|samples| samples[0].first = RTT - Duration::from_nanos(1));
    assert!(
        found[0].contains("sooner than the link lets it"),
        "{found:?}"
    );
}

#[test]
fn table_has_a_line_for_each_size() {
    assert_eq!(good().table().lines().count(), 1 + SIZES.len());
}
