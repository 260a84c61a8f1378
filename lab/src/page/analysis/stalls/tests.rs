//! The rule of the stall, tried with recorded times.

use super::traffic::RESUMED_MS;
use super::*;
use crate::page::{Agent, PROGRAM, Phases, Withheld};

/// Makes a response with its head at 100 ms, then its pieces.
fn response(url: &str, connection: u64, pieces: &[(f64, u64)]) -> Resource {
    let end = pieces.last().map_or(100.0, |(at, _)| *at);
    Resource {
        url: url.to_owned(),
        method: "GET".to_owned(),
        connection: Some(connection),
        phases: Phases {
            wait_ms: Some(100.0),
            receive_ms: Some(end - 100.0),
            ..Phases::default()
        },
        pieces: pieces
            .iter()
            .map(|(at_ms, bytes)| Piece {
                at_ms: *at_ms,
                bytes: *bytes,
            })
            .collect(),
        ..Resource::default()
    }
}

fn visit(resources: Vec<Resource>, round_trip_ms: Option<f64>) -> Visit {
    Visit {
        resources,
        round_trip_ms,
        agent: Agent {
            name: "Chromium".to_owned(),
            is_browser: true,
            ..Agent::default()
        },
        ..Visit::default()
    }
}

fn of(visit: &Visit) -> Vec<Stall> {
    stalls(visit, &RoundTrips::of(visit))
}

fn found(resources: Vec<Resource>, round_trip_ms: Option<f64>) -> Vec<Stall> {
    of(&visit(resources, round_trip_ms))
}

fn causes(pieces: &[(f64, u64)], round_trip_ms: Option<f64>) -> Vec<StallCause> {
    let stalls = found(vec![response("http://a.test/", 1, pieces)], round_trip_ms);
    stalls.iter().map(|stall| stall.cause).collect()
}

/// Whole segments of a response, before a pause.
const WHOLE: u64 = 2 * SEGMENT_BYTES;

#[test]
fn a_small_rest_behind_a_timer_and_a_round_trip_is_a_delayed_acknowledgement() {
    let pieces = [(101.0, 1460), (351.0, 142)];
    let stalls = found(vec![response("http://a.test/", 1, &pieces)], Some(50.0));
    let expected = Stall {
        resource: 0,
        from_ms: 101.0,
        to_ms: 351.0,
        rest_bytes: 142,
        cause: StallCause::DelayedAck,
    };
    assert_eq!(stalls, [expected]);
    // Both timers, at their ends and beyond.
    for (held, expected) in [
        (38.0, StallCause::DelayedAck),
        (60.0, StallCause::DelayedAck),
        (61.0, StallCause::Gap),
        (194.0, StallCause::Gap),
        (195.0, StallCause::DelayedAck),
        (215.0, StallCause::DelayedAck),
        (216.0, StallCause::Gap),
    ] {
        let pieces = [(100.0, WHOLE), (150.0 + held, 10)];
        assert_eq!(causes(&pieces, Some(50.0)), [expected], "{held}");
    }
}

#[test]
fn a_whole_segment_or_an_unknown_round_trip_carries_no_cause() {
    let pieces = |rest| [(100.0, WHOLE), (350.0, rest)];
    assert_eq!(causes(&pieces(1459), Some(50.0)), [StallCause::DelayedAck]);
    assert_eq!(causes(&pieces(1460), Some(50.0)), [StallCause::Gap]);
    assert_eq!(causes(&pieces(10), None), [StallCause::Gap]);
}

#[test]
fn a_round_trip_and_a_large_rest_are_no_stall() {
    assert_eq!(causes(&[(100.0, WHOLE), (179.0, 9)], Some(50.0)), []);
    assert_eq!(
        causes(&[(100.0, WHOLE), (180.0, 9)], Some(50.0)),
        [StallCause::Gap]
    );
    let pieces = |rest| [(100.0, 1), (300.0, rest)];
    assert_eq!(
        causes(&pieces(REST_BYTES_MAX), Some(1.0)),
        [StallCause::Gap]
    );
    assert_eq!(causes(&pieces(REST_BYTES_MAX + 1), Some(1.0)), []);
}

#[test]
fn a_response_of_one_segment_proves_nothing() {
    let pieces = |all: u64| [(100.0, all - 10), (340.0, 10)];
    assert_eq!(causes(&pieces(SEGMENT_BYTES), Some(40.0)), []);
    let longer = causes(&pieces(SEGMENT_BYTES + 1), Some(40.0));
    assert_eq!(longer, [StallCause::DelayedAck]);
    // The head counts, which a server may send by itself.
    let with_head = |head_bytes| {
        let mut one = response("http://a.test/", 1, &pieces(68));
        (one.head_bytes, one.body_bytes) = (Some(head_bytes), Some(68));
        found(vec![one], Some(40.0)).len()
    };
    assert_eq!(with_head(SEGMENT_BYTES - 68), 0);
    assert_eq!(with_head(SEGMENT_BYTES - 67), 1);
}

#[test]
fn a_late_end_with_nothing_left_proves_nothing() {
    let mut late = response("http://a.test/", 1, &[(100.0, WHOLE)]);
    late.phases.receive_ms = Some(240.0);
    assert_eq!(found(vec![late], Some(40.0)), []);
}

/// The network process of a browser sees the first byte, and the page the pieces. The time between the two is the browser's own.
/// Other pieces may be as late.
#[test]
fn time_in_which_a_browser_hands_a_response_on_proves_nothing() {
    assert_eq!(causes(&[(200.0, WHOLE)], Some(1.0)), []);
    let pieces = |pause_ms: f64| [(150.0, WHOLE), (150.0 + pause_ms, 10)];
    assert_eq!(causes(&pieces(80.9), Some(1.0)), []);
    assert_eq!(causes(&pieces(81.0), Some(1.0)), [StallCause::Gap]);
    // Without a browser, the head arrived alone.
    let mut by_wire = visit(
        vec![response("http://a.test/", 1, &[(200.0, WHOLE)])],
        Some(1.0),
    );
    by_wire.agent.is_browser = false;
    assert_eq!(of(&by_wire).len(), 1);
}

/// Two reads of a socket are two segments, however small they are.
#[test]
fn two_reads_of_a_socket_are_two_segments() {
    let small = || response("http://a.test/", 1, &[(100.0, 90), (350.0, 10)]);
    let by_wire = |resources: Vec<Resource>| {
        let mut visit = visit(resources, Some(50.0));
        visit.agent = Agent {
            name: PROGRAM.to_owned(),
            ..Agent::default()
        };
        of(&visit)
    };
    let stalls = by_wire(vec![small()]);
    assert_eq!(stalls.len(), 1);
    assert_eq!(stalls[0].cause, StallCause::DelayedAck);
    assert_eq!(found(vec![small()], Some(50.0)), []);
    // If a connection has other requests in progress, a read may belong to any of them.
    let other = |connection| {
        let mut other = response("http://a.test/b", connection, &[(900.0, 50)]);
        other.phases.wait_ms = Some(900.0);
        other.phases.receive_ms = Some(0.0);
        other
    };
    assert_eq!(by_wire(vec![small(), other(1)]), []);
    assert_eq!(by_wire(vec![small(), other(2)]).len(), 1);
    // A response that has ended is not a concurrent one.
    let mut before = other(1);
    before.phases.wait_ms = Some(99.0);
    before.pieces.clear();
    assert_eq!(by_wire(vec![small(), before]).len(), 1);
}

/// Responses on connections of their own that pause from 110 ms on, until these times.
fn paused(ends: &[f64], is_browser: bool) -> usize {
    let one = |(n, end): (usize, &f64)| {
        response("http://a.test/", n as u64, &[(110.0, WHOLE), (*end, 10)])
    };
    let mut visit = visit(ends.iter().enumerate().map(one).collect(), Some(1.0));
    visit.agent.is_browser = is_browser;
    of(&visit).len()
}

/// A receiver without a CPU, or with another task, is late with everything.
#[test]
fn responses_that_pause_together_prove_nothing() {
    for is_browser in [true, false] {
        assert_eq!(paused(&[350.0], is_browser), 1);
        assert_eq!(paused(&[350.0, 350.0, 352.0], is_browser), 0);
        assert_eq!(paused(&[350.0, 350.0 + RESUMED_MS], is_browser), 0);
    }
    // The clients of this crate read all received data at once; a browser reads connections one after another.
    assert_eq!(paused(&[350.0, 350.1 + RESUMED_MS], false), 2);
    assert_eq!(paused(&[350.0, 350.1 + RESUMED_MS], true), 0);
    // The other one pauses for less than half of 490 ms, and has a stall of its own.
    assert_eq!(paused(&[354.0, 600.0], true), 1);
}

#[test]
fn a_pause_beside_responses_that_go_on_is_a_stall() {
    let slow = || response("http://a.test/", 1, &[(110.0, WHOLE), (310.0, 10)]);
    let beside = |pieces: &[(f64, u64)]| {
        let other = response("http://a.test/b", 2, pieces);
        let all = found(vec![slow(), other], Some(1.0));
        all.iter().filter(|one| one.resource == 0).count()
    };
    // The other response arrives in the last half of the pause, and when it ends.
    let large = 50_000;
    assert_eq!(beside(&[(150.0, large), (210.1, large), (310.0, large)]), 1);
    assert_eq!(beside(&[(150.0, large), (210.0, large), (310.0, large)]), 0);
    // A request that was sent meanwhile has not paused.
    let mut later = response("http://a.test/b", 2, &[(311.0, large)]);
    later.start_ms = 211.0;
    assert_eq!(found(vec![slow(), later.clone()], Some(1.0)).len(), 1);
    later.start_ms = 109.0;
    later.phases.wait_ms = Some(202.0);
    later.phases.receive_ms = Some(0.0);
    assert_eq!(found(vec![slow(), later], Some(1.0)), []);
}

#[test]
fn a_connection_that_carries_another_response_does_not_stall() {
    let pieces = [(100.0, WHOLE), (350.0, 10)];
    let slow = || response("http://a.test/", 1, &pieces);
    let other = |connection| response("http://a.test/b", connection, &[(200.0, 50_000)]);
    assert_eq!(found(vec![slow(), other(1)], Some(50.0)), []);
    assert_eq!(found(vec![slow(), other(2)], Some(50.0)).len(), 1);
    // Without its pieces, the arrival of the other response is unknown.
    let unseen = |from: f64, to: f64| {
        let mut other = other(1);
        other.pieces.clear();
        other.start_ms = from - 1.0;
        other.phases.wait_ms = Some(1.0);
        other.phases.receive_ms = Some(to - from);
        other
    };
    let stalls = |spans: &[(f64, f64)]| {
        let others = spans.iter().map(|(from, to)| unseen(*from, *to));
        found(std::iter::once(slow()).chain(others).collect(), Some(50.0)).len()
    };
    assert_eq!(stalls(&[(50.0, 200.0)]), 0);
    assert_eq!(stalls(&[(10.0, 60.0), (20.0, 150.0), (30.0, 90.0)]), 0);
    assert_eq!(stalls(&[(10.0, 100.0), (381.0, 400.0), (20.0, 90.0)]), 1);
}

fn captured(resources: Vec<Resource>, withheld: Vec<Withheld>) -> Vec<StallCause> {
    let mut visit = visit(resources, Some(50.0));
    visit.withheld = Some(withheld);
    of(&visit).iter().map(|stall| stall.cause).collect()
}

fn shown(request: Option<&str>, from_ms: f64, to_ms: f64) -> Withheld {
    Withheld {
        port: 80,
        request: request.map(str::to_owned),
        from_ms,
        to_ms,
        bytes: 10,
    }
}

/// Packets prove the pause of a small response, and disprove the cause that a length suggests.
#[test]
fn a_capture_decides() {
    let small = || response("http://a.test/x", 1, &[(100.0, 90), (350.0, 10)]);
    let large = || response("http://a.test/x", 1, &[(100.0, WHOLE), (350.0, 10)]);
    let delayed = [StallCause::DelayedAck];
    assert_eq!(captured(vec![small()], vec![]), []);
    assert_eq!(captured(vec![large()], vec![]), [StallCause::Gap]);
    for request in [None, Some("GET /x")] {
        let stall = shown(request, 99.0, 349.0);
        assert_eq!(captured(vec![small()], vec![stall.clone()]), delayed);
        assert_eq!(captured(vec![large()], vec![stall]), delayed);
    }
    for other in ["GET /y", "GET /", "POST /x", "GET /xx"] {
        let stall = shown(Some(other), 99.0, 349.0);
        assert_eq!(captured(vec![small()], vec![stall]), [], "{other}");
    }
    let elsewhere = |request| Withheld {
        port: 81,
        ..shown(request, 99.0, 349.0)
    };
    assert_eq!(captured(vec![small()], vec![elsewhere(None)]), []);
    assert_eq!(captured(vec![small()], vec![elsewhere(Some("GET /x"))]), []);
    // The sign of the end was withheld, and nothing else was left.
    let mut late = response("http://a.test/x", 1, &[(100.0, 90)]);
    late.phases.receive_ms = Some(250.0);
    assert_eq!(
        captured(vec![late], vec![shown(None, 99.0, 349.0)]),
        delayed
    );
}

#[test]
fn a_stall_of_a_capture_is_half_of_a_pause_or_half_within_its_request() {
    let small = || response("http://a.test/x", 1, &[(100.0, 90), (350.0, 10)]);
    let count = |stall| captured(vec![small()], vec![stall]).len();
    // From 100 to 350 ms.
    assert_eq!(count(shown(None, 0.0, 225.0)), 1);
    assert_eq!(count(shown(None, 0.0, 224.9)), 0);
    // A late client sees a shorter pause. A proven one needs 30 ms only.
    let seen_from = |from_ms: f64| {
        let mut one = response("http://a.test/x", 1, &[(from_ms, 90), (175.0, 10)]);
        one.phases.wait_ms = Some(from_ms);
        one.phases.receive_ms = Some(175.0 - from_ms);
        captured(vec![one], vec![shown(None, 100.0, 179.0)]).len()
    };
    assert_eq!((seen_from(145.0), seen_from(145.1)), (1, 0));
    // The request is under way from 0 to 350 ms; when its page saw the pieces does not matter.
    let named = Some("GET /x");
    assert_eq!(count(shown(named, 250.0, 450.0)), 1);
    assert_eq!(count(shown(named, 250.1, 450.1)), 0);
    let mut whole = small();
    whole.pieces = vec![Piece {
        at_ms: 350.0,
        bytes: 100,
    }];
    let found = captured(vec![whole], vec![shown(named, 101.0, 349.0)]);
    assert_eq!(found, [StallCause::DelayedAck]);
}

/// A stall of a URL that was requested twice belongs to the request in progress.
#[test]
fn a_stall_of_a_capture_has_one_resource() {
    let mut second = response("http://a.test/x", 1, &[(1100.0, 90), (1350.0, 10)]);
    second.start_ms = 1000.0;
    second.phases.receive_ms = Some(250.0);
    let first = response("http://a.test/x", 1, &[(100.0, 90), (350.0, 10)]);
    let mut visit = visit(vec![first, second], Some(50.0));
    visit.withheld = Some(vec![shown(Some("GET /x"), 1100.0, 1350.0)]);
    let expected = Stall {
        resource: 1,
        from_ms: 1100.0,
        to_ms: 1350.0,
        rest_bytes: 10,
        cause: StallCause::DelayedAck,
    };
    assert_eq!(of(&visit), [expected]);
}

/// Returns stalls in the requests of [`RECORDED`], with bodies of 68 bytes received after `before` bytes.
fn recorded(before: u64) -> Vec<Stall> {
    let one = |(connection, [sent, first, piece, end]): &(u64, [f64; 4])| {
        let pieces = [(*first, before), (*piece, 68)];
        let mut one = response("http://a.test/", *connection, &pieces);
        one.start_ms = *sent;
        one.phases.wait_ms = Some(first - sent);
        one.phases.receive_ms = Some(end - first);
        (one.head_bytes, one.body_bytes) = (Some(239), Some(before + 68));
        one
    };
    found(RECORDED.iter().map(one).collect(), Some(0.3))
}

/// Nineteen of these pauses were reported as stalls, six as delayed acknowledgements.
#[test]
fn a_recorded_page_of_small_images_has_no_stall() {
    assert_eq!(recorded(0), []);
    // These responses paused together, so larger ones would not have been stalls either.
    assert_eq!(recorded(WHOLE), []);
}

/// Requests for images of 68 bytes, recorded with Chromium 156 over HTTP/1.1 and loopback while two CPUs were busy. Each has its
/// connection, and four times in ms: request sent, first byte, piece, end.
const RECORDED: [(u64, [f64; 4]); 27] = [
    (28, [24.4, 31.3, 41.4, 41.4]),
    (39, [24.5, 41.2, 41.8, 41.8]),
    (39, [221.7, 222.7, 271.6, 290.8]),
    (28, [222.8, 234.9, 273.9, 292.8]),
    (54, [273.6, 281.7, 291.1, 350.7]),
    (61, [275.0, 283.2, 291.3, 358.7]),
    (68, [282.6, 290.1, 307.5, 366.2]),
    (75, [283.5, 290.5, 308.5, 368.7]),
    (75, [399.7, 400.4, 432.7, 451.0]),
    (68, [403.9, 404.5, 434.1, 452.4]),
    (61, [411.4, 412.5, 442.7, 462.9]),
    (54, [421.3, 422.6, 443.4, 469.9]),
    (28, [423.3, 424.4, 443.7, 474.2]),
    (39, [425.1, 430.2, 446.0, 481.0]),
    (39, [518.2, 518.7, 559.2, 576.6]),
    (28, [526.0, 526.6, 562.6, 583.3]),
    (54, [531.0, 532.2, 565.2, 589.6]),
    (61, [537.3, 538.0, 575.0, 591.7]),
    (68, [544.1, 544.6, 575.8, 601.9]),
    (75, [549.1, 549.8, 551.2, 571.2]),
    (68, [625.8, 631.2, 658.6, 719.8]),
    (61, [629.2, 631.1, 658.9, 729.7]),
    (54, [633.1, 633.6, 659.1, 729.8]),
    (28, [635.1, 635.4, 659.3, 729.9]),
    (39, [637.3, 637.7, 659.4, 730.1]),
    (75, [638.3, 638.6, 640.0, 658.0]),
    (68, [1552.7, 1557.9, 1558.9, 1558.9]),
];
