//! Choices by `random` and their expected shares.

use super::*;
use crate::balance::PickKey;
use crate::balance::testing::{NOW_MS, PICKS, peers, pick, port, servers, tried};
use crate::peers::{PeerList, TriedPeers};

/// Counts the choices of each server.
fn counts(list: &mut PeerList, servers: usize) -> Vec<usize> {
    let mut counts = vec![0; servers];
    for _ in 0..PICKS {
        counts[usize::from(pick(list, &PickKey::default())) - 8081] += 1;
    }
    counts
}

/// Asserts that counts are within five standard deviations of their expected shares.
fn assert_shares(counts: &[usize], shares: &[f64]) {
    for (count, share) in counts.iter().zip(shares) {
        let expected = share * PICKS as f64;
        let deviation = (expected * (1.0 - share)).sqrt();
        assert!(
            (*count as f64 - expected).abs() <= 5.0 * deviation,
            "{counts:?} {shares:?}"
        );
    }
}

#[test]
fn one_server_is_chosen_by_weight() {
    let mut list = peers(&servers(&[1, 2, 5]), &Random::One);
    assert_shares(&counts(&mut list, 3), &[0.125, 0.25, 0.625]);
}

#[test]
fn the_servers_of_a_down_one_are_chosen_by_their_weights() {
    let mut all = servers(&[1, 2, 5]);
    all[2].is_down = true;
    let mut list = peers(&all, &Random::One);
    // Of 21 peeks all are at the third server with a probability of 0.00005.
    assert_shares(&counts(&mut list, 3), &[1.0 / 3.0, 2.0 / 3.0, 0.0]);
}

#[test]
fn of_two_servers_the_second_one_is_chosen_if_they_are_equal() {
    // The second one is a server by weight that is not the first.
    let mut list = peers(&servers(&[1, 2, 5]), &Random::TwoLeastConn);
    let share = |weight: f64, others: [f64; 2]| {
        let after = |first: f64| first / 8.0 * weight / (8.0 - first);
        after(others[0]) + after(others[1])
    };
    let shares = [
        share(1.0, [2.0, 5.0]),
        share(2.0, [1.0, 5.0]),
        share(5.0, [1.0, 2.0]),
    ];
    assert_shares(&counts(&mut list, 3), &shares);
}

#[test]
fn of_two_servers_the_one_with_fewer_attempts_for_its_weight_is_chosen() {
    let mut list = peers(&servers(&[1, 1, 1]), &Random::TwoLeastConn);
    let key = PickKey::default();
    let mut held = Vec::new();
    while held.len() < 100 {
        held.extend(list.pick(&mut TriedPeers::default(), &key, NOW_MS));
    }
    let busy = held[0];
    held.retain(|id| match *id == busy {
        true => true,
        false => {
            list.release(*id);
            false
        }
    });
    let counts = counts(&mut list, 3);
    assert_eq!(counts[busy.index()], 0, "{counts:?}");
    assert!(
        counts
            .iter()
            .filter(|count| **count > PICKS / 2 - 1000)
            .count()
            == 2,
        "{counts:?}"
    );
}

#[test]
fn of_two_servers_the_faster_one_is_chosen() {
    for (time, winner) in [(Time::Header, 8082), (Time::LastByte, 8081)] {
        let mut list = peers(&servers(&[1, 1]), &Random::TwoLeastTime(time));
        let (key, mut state) = (PickKey::default(), TriedPeers::default());
        while let Some(id) = list.pick(&mut state, &key, NOW_MS) {
            let (header_ms, response_ms) = match port(&list, id) {
                8081 => (100, 200),
                _ => (50, 300),
            };
            list.release(id);
            list.add_header_time(id, header_ms);
            list.add_response_time(id, response_ms);
        }
        for _ in 0..1000 {
            assert_eq!(pick(&mut list, &key), winner, "{time:?}");
        }
    }
}

#[test]
fn a_request_tries_each_server_once() {
    for method in [
        Random::One,
        Random::TwoLeastConn,
        Random::TwoLeastTime(Time::Header),
    ] {
        let mut list = peers(&servers(&[1; 30]), &method);
        let ports = tried(&mut list, &PickKey::default());
        let mut ports: Vec<&str> = ports.split(' ').collect();
        ports.sort_unstable();
        let all: Vec<String> = (8081..8111).map(|port| port.to_string()).collect();
        assert_eq!(ports, all);
    }
}
