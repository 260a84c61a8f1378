//! Choices by `hash`, those of its formula, and recorded ones of nginx 1.31.4.

use super::*;
use crate::balance::testing::{PICKS, key, peers, pick, servers, tried};

/// CRC-32, bit by bit.
pub(in crate::balance) fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 * (crc & 1))
        })
    };
    !bytes.iter().fold(!0, step)
}

/// The port by the definition of `Cache::Memcached`, for the first choice.
fn formula(bytes: &[u8], weights: &[i64]) -> u16 {
    let hash = i64::from((crc32(bytes) >> 16) & 0x7fff);
    let mut buckets = (8081..)
        .zip(weights)
        .flat_map(|(port, weight)| vec![port; *weight as usize]);
    buckets
        .nth((hash % weights.iter().sum::<i64>()) as usize)
        .expect("a bucket")
}

#[test]
fn choices_are_those_of_the_formula() {
    for weights in [&[1, 1][..], &[1, 1, 1], &[5, 1, 2], &[1; 40]] {
        let mut list = peers(&servers(weights), &Hash);
        for n in 0..PICKS / 4 {
            let bytes = format!("key {n}").into_bytes();
            assert_eq!(
                pick(&mut list, &key(&bytes)),
                formula(&bytes, weights),
                "{n} {weights:?}"
            );
        }
    }
}

#[test]
fn choices_are_those_of_nginx() {
    for (weights, sum) in RECORDED {
        let mut list = peers(&servers(weights), &Hash);
        let ports: Vec<u8> = (0..PICKS)
            .map(|n| (pick(&mut list, &key(n.to_string().as_bytes())) - 8080) as u8)
            .collect();
        assert_eq!(crc32(&ports), *sum, "{weights:?} {:?}", &ports[..20]);
    }
}

#[test]
fn further_choices_of_a_request_are_those_of_nginx() {
    let mut list = peers(&servers(&[1; 5]), &Hash);
    for (bytes, ports) in TRIED {
        assert_eq!(tried(&mut list, &key(bytes.as_bytes())), *ports);
    }
}

#[test]
fn requests_with_an_empty_key_take_turns() {
    let mut list = peers(&servers(&[1; 3]), &Hash);
    let ports: Vec<u16> = (0..6).map(|_| pick(&mut list, &key(b""))).collect();
    assert_eq!(ports, [8081, 8082, 8083, 8081, 8082, 8083]);
}

#[test]
fn after_twenty_one_unusable_choices_servers_take_turns() {
    let mut all = servers(&[32_000, 1, 1]);
    all[0].is_down = true;
    let mut list = peers(&all, &Hash);
    let ports: Vec<u16> = (0..4).map(|_| pick(&mut list, &key(b"k"))).collect();
    assert_eq!(ports, [8082, 8083, 8082, 8083]);
}

/// Weights, and the checksum of the servers of the keys 0 to 99,999, a byte each.
const RECORDED: &[(&[i64], u32)] = &[(&[5, 1, 2], 0xb8aa_b75d), (&[1; 40], 0x66e4_d882)];
/// Keys, and the servers that their requests try, of five with equal weights.
const TRIED: &[(&str, &str)] = &[
    ("1", "8084 8085 8082 8081 8083"),
    ("2", "8085 8082 8083 8084 8081"),
    ("key", "8085 8082 8084 8081 8083"),
    ("a+b", "8082 8084 8083 8081 8085"),
];
