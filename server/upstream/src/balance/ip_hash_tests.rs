//! Choices by `ip_hash`, those of its formula, and recorded ones of nginx 1.31.4.

use super::*;
use crate::balance::testing::{NOW_MS, PICKS, key, peers, pick, port, servers, tried};
use crate::peers::TriedPeers;

/// The port by the definition of nginx's hash.
fn formula(bytes: &[u8], weights: &[i64]) -> u16 {
    let hash = bytes
        .iter()
        .fold(89, |hash, byte| (hash * 113 + i64::from(*byte)) % 6271);
    let mut at = hash % weights.iter().sum::<i64>();
    let mut port = 8081;
    for weight in weights {
        if at < *weight {
            break;
        }
        at -= weight;
        port += 1;
    }
    port
}

#[test]
fn choices_are_those_of_the_formula() {
    let rng = &mut fastrand::Rng::with_seed(1);
    for weights in [
        &[1, 1][..],
        &[1, 1, 1],
        &[5, 1, 2],
        &[1; 40],
        &[7, 3000, 7000],
    ] {
        let mut list = peers(&servers(weights), &IpHash);
        for _ in 0..PICKS / 5 {
            let mut bytes = [0; 16];
            rng.fill(&mut bytes);
            let bytes = &bytes[..[3, 16][rng.usize(..2)]];
            assert_eq!(
                pick(&mut list, &key(bytes)),
                formula(bytes, weights),
                "{bytes:?} {weights:?}"
            );
        }
    }
}

#[test]
fn further_choices_of_a_request_are_those_of_nginx() {
    let mut list = peers(&servers(&[1; 3]), &IpHash);
    for (bytes, ports) in TRIED {
        assert_eq!(tried(&mut list, &key(bytes)), *ports, "{bytes:?}");
    }
}

#[test]
fn a_server_that_is_down_keeps_its_place() {
    let mut all = servers(&[1; 4]);
    let mut list = peers(&all, &IpHash);
    let keys: Vec<_> = (0..=255).map(|n| key(&[10, 0, n])).collect();
    let before: Vec<u16> = keys.iter().map(|key| pick(&mut list, key)).collect();
    all[2].is_down = true;
    let mut list = peers(&all, &IpHash);
    for (key, before) in keys.iter().zip(before) {
        let after = pick(&mut list, key);
        assert!(after != 8083 && (after == before || before == 8083));
    }
}

#[test]
fn after_twenty_one_unusable_choices_servers_take_turns() {
    // Of 10,000 positions all but two belong to a server that is down.
    let mut all = servers(&[9998, 1, 1]);
    all[0].is_down = true;
    let mut list = peers(&all, &IpHash);
    let ports: Vec<u16> = (0..4).map(|_| pick(&mut list, &key(&[1, 2, 3]))).collect();
    assert_eq!(ports, [8082, 8083, 8082, 8083]);
    let mut state = TriedPeers::default();
    list.pick(&mut state, &key(&[1, 2, 3]), NOW_MS)
        .expect("one is usable");
    let second = list.pick(&mut state, &key(&[1, 2, 3]), NOW_MS);
    assert_eq!(second.map(|id| port(&list, id)), Some(8083));
}

/// Bytes of clients, and the servers that their requests try, of three with equal weights.
const TRIED: &[(&[u8], &str)] = &[
    (&[127, 0, 0], "8083 8082 8081"),
    (&[10, 1, 2], "8082 8083 8081"),
    (&[192, 0, 2], "8081 8082 8083"),
    (
        &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        "8083 8081 8082",
    ),
    (
        &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5],
        "8081 8083 8082",
    ),
];
