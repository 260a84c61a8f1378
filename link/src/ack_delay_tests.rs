//! Tests of the policy of held acknowledgements.

use std::net::Ipv4Addr;

use super::*;
use crate::segment::tests::packet;

const MS: Duration = Duration::from_millis(1);
const HOLD: Duration = Duration::from_millis(200);

/// A policy and the packets that left it.
struct World {
    hold: AckDelay,
    start: Instant,
    out: Vec<Released>,
}

impl World {
    /// A connection with a finished handshake: acknowledged up to 1000.
    fn new() -> Self {
        let mut world = Self {
            hold: AckDelay::new(HOLD),
            start: Instant::now(),
            out: Vec::new(),
        };
        assert_eq!(world.offer(0, Flags::SYN, 0, b""), [(true, 0)]);
        assert_eq!(world.offer(0, Flags::ACK, 1000, b""), [(true, 0)]);
        world
    }

    /// Data of the opposite direction with this length.
    fn data(&mut self, bytes: usize) {
        let segment = Segment::parse(&packet(Flags::ACK, 1, 1, &vec![0; bytes]));
        let mut segment = segment.expect("a whole packet");
        segment.flow = segment.flow.reversed();
        self.hold.observe(&segment);
    }

    fn offer(&mut self, at_ms: u32, flags: u8, ack: u32, payload: &[u8]) -> Vec<(bool, u32)> {
        let bytes = packet(flags, 1, ack, payload);
        let segment = Segment::parse(&bytes).expect("a whole packet");
        let now = self.start + at_ms * MS;
        self.hold.offer(&segment, bytes, now, &mut self.out);
        self.left()
    }

    fn expire(&mut self, at_ms: u32) -> Vec<(bool, u32)> {
        self.hold.expire(self.start + at_ms * MS, &mut self.out);
        self.left()
    }

    /// Packets that left: whether they are forwarded, and the milliseconds they were held.
    fn left(&mut self) -> Vec<(bool, u32)> {
        let held = |r: &Released| u32::try_from((r.at - r.came).as_millis()).expect("short");
        self.out
            .drain(..)
            .map(|r| (r.is_forwarded, held(&r)))
            .collect()
    }
}

#[test]
fn acknowledgement_waits_its_time() {
    let mut world = World::new();
    assert_eq!(world.offer(10, Flags::ACK, 1001, b""), []);
    assert_eq!(world.hold.next(), Some(world.start + 210 * MS));
    assert_eq!(world.expire(209), []);
    // Released late, it counts as released in time: lateness is measured by the link.
    assert_eq!(world.expire(215), [(true, 200)]);
    assert_eq!(world.hold.next(), None);
}

#[test]
fn data_of_the_same_flow_takes_the_acknowledgement_along() {
    let mut world = World::new();
    assert_eq!(world.offer(0, Flags::ACK, 1001, b""), []);
    assert_eq!(
        world.offer(50, Flags::ACK, 1001, b"request"),
        [(false, 50), (true, 0)]
    );
    assert_eq!(world.expire(300), []);
    assert_eq!(world.offer(301, Flags::ACK, 1002, b""), []);
    assert_eq!(
        world.offer(302, Flags::ACK | Flags::FIN, 1002, b""),
        [(false, 1), (true, 0)]
    );
}

#[test]
fn later_acknowledgement_takes_the_place_and_the_time_of_the_held_one() {
    let mut world = World::new();
    assert_eq!(world.offer(0, Flags::ACK, 1001, b""), []);
    assert_eq!(world.offer(60, Flags::ACK, 1002, b""), [(false, 60)]);
    assert_eq!(world.offer(70, Flags::ACK, 1002, b""), [(false, 10)]);
    assert_eq!(world.expire(200), [(true, 130)]);
    assert_eq!(world.expire(500), []);
}

#[test]
fn two_full_segments_are_acknowledged_at_once() {
    let mut world = World::new();
    world.data(1448);
    assert_eq!(world.offer(0, Flags::ACK, 1000 + 1448, b""), []);
    assert_eq!(world.offer(1, Flags::ACK, 1000 + 2895, b""), [(false, 1)]);
    assert_eq!(
        world.offer(2, Flags::ACK, 1000 + 2896, b""),
        [(false, 1), (true, 0)]
    );
}

#[test]
fn small_segments_count_as_full_only_up_to_the_least_size() {
    let mut world = World::new();
    world.data(1);
    assert_eq!(world.offer(0, Flags::ACK, 1000 + 1071, b""), []);
    assert_eq!(
        world.offer(0, Flags::ACK, 1000 + 1072, b""),
        [(false, 0), (true, 0)]
    );
}

#[test]
fn repeated_acknowledgement_is_not_held() {
    let mut world = World::new();
    assert_eq!(world.offer(0, Flags::ACK, 1000, b""), [(true, 0)]);
    assert_eq!(world.offer(0, Flags::ACK, 999, b""), [(true, 0)]);
}

#[test]
fn sequence_numbers_wrap() {
    let mut world = World::new();
    assert_eq!(world.offer(0, Flags::SYN, 0, b""), [(true, 0)]);
    assert_eq!(world.offer(0, Flags::ACK, u32::MAX, b""), [(true, 0)]);
    assert_eq!(world.offer(0, Flags::ACK, 1, b""), []);
    assert_eq!(world.offer(0, Flags::ACK, u32::MAX - 1, b""), [(true, 0)]);
    // An acknowledgement of old data does not release the held one.
    assert_eq!(world.expire(200), [(true, 200)]);
}

#[test]
fn reset_ends_what_is_remembered() {
    let mut world = World::new();
    assert_eq!(world.offer(0, Flags::ACK, 1001, b""), []);
    assert_eq!(world.offer(1, Flags::RST, 0, b""), [(false, 1), (true, 0)]);
    assert!(world.hold.flows.is_empty());
}

#[test]
fn flows_are_limited() {
    let mut world = World::new();
    let bytes = packet(Flags::ACK, 1, 1, b"");
    let mut segment = Segment::parse(&bytes).expect("a whole packet");
    let mut offer = |world: &mut World, n: usize, ack: u32| {
        let [.., high, low] = n.to_be_bytes();
        segment.flow.source.set_ip(Ipv4Addr::new(10, 1, high, low));
        segment.ack = ack;
        let now = world.start;
        world.hold.offer(&segment, Vec::new(), now, &mut world.out);
        world.left().len()
    };
    // The connection of `World::new` is one of them, and holds nothing.
    for n in 1..FLOWS_MAX {
        assert_eq!(offer(&mut world, n, 1), 1);
    }
    assert_eq!(world.hold.flows.len(), FLOWS_MAX);
    for n in 1..FLOWS_MAX {
        assert_eq!(offer(&mut world, n, 2), 0, "held");
    }
    assert_eq!(
        (
            offer(&mut world, FLOWS_MAX, 1),
            offer(&mut world, FLOWS_MAX, 2)
        ),
        (1, 0)
    );
    assert_eq!(
        world.hold.flows.len(),
        FLOWS_MAX,
        "the one that held nothing was forgotten"
    );
    let beyond = FLOWS_MAX + 1;
    assert_eq!(
        (offer(&mut world, beyond, 1), offer(&mut world, beyond, 2)),
        (1, 1),
        "not held"
    );
}
