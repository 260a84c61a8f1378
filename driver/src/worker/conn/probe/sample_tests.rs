//! When a first byte counts as late, and why; which times of the kernel are believed.

use engines::http::probe::{Point, ProbeEvent, Stall};
use server_base::transport::TcpInfo;

use super::{CLOCKS_US, STALL_US, Sample};

/// Time of the write to the kernel, on our clock and the wall clock, and the minimum round trip.
const GIVEN_US: u64 = 5_000_000;
const WALL_US: u64 = 1_700_000_000_000_000;
const RTT_US: u64 = 50_000;

fn sample(left_us: Option<u64>, again_us: Option<u64>) -> Sample {
    Sample {
        event: ProbeEvent {
            point: Point::Sent,
            connection: 1,
            stream: 1,
            at_us: 0,
            head_us: GIVEN_US - 100,
        },
        given_us: GIVEN_US,
        given_wall_us: WALL_US,
        before: info(3, 1, 700),
        idle: true,
        void: false,
        left_us: left_us.map(|us| GIVEN_US + us),
        again_us: again_us.map(|us| GIVEN_US + us),
        until_ms: 0,
        held: None,
    }
}

/// Segments sent again, those of them that came twice, and the time for which the window was closed.
fn info(total_retrans: u32, dsack_dups: u32, rwnd_limited_us: u64) -> TcpInfo {
    TcpInfo {
        total_retrans,
        dsack_dups: Some(dsack_dups),
        rwnd_limited_us: Some(rwnd_limited_us),
        min_rtt_us: Some(RTT_US as u32),
        ..TcpInfo::default()
    }
}

const QUIET: (u32, u32, u64) = (3, 1, 700);

fn stall(
    (left_us, again_us): (Option<u64>, Option<u64>),
    acked_us: u64,
    (retrans, dsack, window_us): (u32, u32, u64),
) -> Option<Stall> {
    let now = Some(info(retrans, dsack, window_us));
    sample(left_us, again_us).stall(GIVEN_US + acked_us, now)
}

#[test]
fn late_is_more_than_a_round_trip_and_the_margin() {
    let left = (Some(10), None);
    let last_us = 10 + RTT_US + STALL_US;
    assert_eq!(stall(left, last_us, QUIET), None);
    assert_eq!(stall(left, last_us + 1, QUIET), Some(Stall::DelayedAck));
    // If the device reports no departure, the time of the write replaces it.
    let unknown = (None, None);
    assert_eq!(stall(unknown, RTT_US + STALL_US, QUIET), None);
    assert_eq!(
        stall(unknown, RTT_US + STALL_US + 1, QUIET),
        Some(Stall::DelayedAck)
    );
    assert_eq!(sample(None, None).stall(u64::MAX, None), None);
}

#[test]
fn a_segment_that_was_lost_is_the_cause_if_the_second_one_was_acknowledged() {
    let again = (Some(0), Some(200_000));
    let lost = (4, 1, 700);
    assert_eq!(
        stall(again, 200_000 + RTT_US, lost),
        Some(Stall::Retransmit)
    );
    // Sooner than the second one can have been.
    assert_eq!(
        stall(again, 200_000 + RTT_US - 1, lost),
        Some(Stall::DelayedAck)
    );
    // The client had it already.
    assert_eq!(
        stall(again, 200_000 + RTT_US, (4, 2, 700)),
        Some(Stall::DelayedAck)
    );
    // Another segment was lost.
    assert_eq!(
        stall((Some(0), None), 200_000, lost),
        Some(Stall::DelayedAck)
    );
    assert_eq!(stall((None, None), 200_000, lost), Some(Stall::Retransmit));
}

#[test]
fn a_window_is_the_cause_if_the_byte_did_not_leave() {
    let closed = (3, 1, 701);
    let left = |us| (Some(us), None);
    assert_eq!(
        stall(left(STALL_US + 1), STALL_US + 1 + RTT_US, closed),
        Some(Stall::Window)
    );
    assert_eq!(stall(left(STALL_US), STALL_US + RTT_US, closed), None);
    // It is held back now, after the byte has left.
    assert_eq!(stall(left(0), 200_000, closed), Some(Stall::DelayedAck));
    // Not left so far.
    assert_eq!(stall((None, None), 1_000_000, closed), Some(Stall::Window));
    assert_eq!(
        stall(left(STALL_US + 1), STALL_US + 1 + RTT_US, QUIET),
        None
    );
}

#[test]
fn times_are_brought_to_our_clock_unless_the_walls_was_set() {
    let sample = sample(None, None);
    let now_us = GIVEN_US + 1000;
    let at = |wall_us| sample.monotonic(wall_us, now_us);
    assert_eq!(at(WALL_US + 7), Some(GIVEN_US + 7));
    // Both clocks are read one after the other.
    assert_eq!(at(WALL_US - CLOCKS_US), Some(GIVEN_US));
    assert_eq!(at(WALL_US + 1000 + CLOCKS_US), Some(now_us));
    assert_eq!(at(WALL_US - CLOCKS_US - 1), None);
    assert_eq!(at(WALL_US + 1001 + CLOCKS_US), None);
    assert_eq!(at(0), None);
}
