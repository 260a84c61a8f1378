//! Tests of the times that attempts report.

use super::*;
use crate::balance::least_time::{LeastTime, Time};

/// A group of two servers with `least_time`.
fn timed(time: Time, in_flight: bool) -> Bench {
    let bench = Bench::new(&[server(1), server(2)]);
    let method = LeastTime { time, in_flight };
    bench
        .group
        .peers
        .with(|peers| drop(peers.set_method(Some(&method))));
    bench
}

/// Header time, response time and attempts in progress of the chosen peer.
fn times(bench: &Bench, id: PeerId) -> (u64, u64, u64) {
    bench.group.peers.with(|peers| {
        let times = peers.get(id).expect("it stays").times();
        (times.header_ms(), times.response_ms(), times.in_flight())
    })
}

#[test]
fn times_of_an_attempt_reach_its_peer_once() {
    for (time, in_flight, begun, answered) in [
        (Time::Header, false, (0, 0, 0), (0, 0, 0)),
        (Time::LastByte, false, (0, 0, 0), (0, 0, 0)),
        (Time::Header, true, (0, 0, 1), (70, 0, 0)),
        (Time::LastByte, true, (0, 0, 1), (0, 0, 1)),
    ] {
        let mut bench = timed(time, in_flight);
        let mut picker = bench.picker();
        bench.pick(&mut picker);
        let id = picker.current.expect("a server is chosen");
        let shown = format!("{time:?} {in_flight}");
        assert_eq!(times(&bench, id), begun, "{shown}");
        for _ in 0..2 {
            picker.answered(70);
            assert_eq!(times(&bench, id), answered, "{shown}");
        }
        let ended = AttemptTimes {
            header_ms: 70,
            response_ms: 90,
        };
        for _ in 0..2 {
            picker.finish(bench.now_ms, Outcome::Alive, Some(ended));
            assert_eq!(times(&bench, id), (70, 90, 0), "{shown}");
        }
    }
}

#[test]
fn a_failed_attempt_and_a_dropped_one_have_no_times() {
    let ended = AttemptTimes {
        header_ms: 70,
        response_ms: 90,
    };
    for outcome in [Some(Outcome::Failed), Some(Outcome::Next), None] {
        for time in [Time::Header, Time::LastByte] {
            let mut bench = timed(time, true);
            let mut picker = bench.picker();
            bench.pick(&mut picker);
            let id = picker.current.expect("a server is chosen");
            match outcome {
                Some(outcome) => drop(picker.finish(bench.now_ms, outcome, Some(ended))),
                None => drop(picker),
            }
            assert_eq!(times(&bench, id), (0, 0, 0), "{outcome:?} {time:?}");
        }
    }
}

#[test]
fn a_response_that_is_cut_has_the_time_of_its_head_alone() {
    for time in [Time::Header, Time::LastByte] {
        let mut bench = timed(time, false);
        let mut picker = bench.picker();
        bench.pick(&mut picker);
        let id = picker.current.expect("a server is chosen");
        let cut = AttemptTimes {
            header_ms: 70,
            response_ms: 90,
        };
        picker.finish(bench.now_ms, Outcome::Cut, Some(cut));
        assert_eq!(times(&bench, id), (70, 0, 0), "{time:?}");
    }
}
