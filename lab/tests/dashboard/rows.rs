//! Generated rows of a store: visitors of two servers over some days.
#![allow(dead_code, reason = "each user takes its own part")]

use store::{Connection, HandshakeKind, Network, OpenSample, Prefixes, Stalls};

/// Servers of the rows.
pub(crate) const SERVERS: [&str; 2] = ["web-1", "web-2"];

/// Country, subdivision, operator, least RTT in ms, share of visitors.
const PLACES: [(&[u8; 2], &str, &str, u32, u64); 10] = [
    (b"DE", "DE-BE", "AS64496 Example Net", 12, 30),
    (b"DE", "DE-BY", "AS64497 Other Net", 16, 14),
    (b"FR", "FR-IDF", "AS64498 Reseau", 24, 14),
    (b"GB", "GB-LND", "AS64499 Isle", 28, 10),
    (b"US", "US-CA", "AS64500 Coast", 148, 10),
    (b"US", "US-NY", "AS64501 Harbour", 92, 8),
    (b"BR", "BR-SP", "AS64502 Sul", 205, 5),
    (b"IN", "IN-MH", "AS64503 Monsoon", 132, 5),
    (b"AU", "AU-NSW", "AS64504 Reef", 292, 3),
    (b"SG", "", "AS64505 Strait", 168, 1),
];

/// Returns `count` connections that were closed in the `length_s` seconds before `end_s`; equal seeds give equal rows.
pub(crate) fn rows(seed: u64, count: usize, end_s: u64, length_s: u64) -> Vec<Connection> {
    let mut random = fastrand::Rng::with_seed(seed);
    let all: u64 = PLACES.iter().map(|place| place.4).sum();
    let mut rows: Vec<Connection> = (0..count)
        .map(|_| {
            let mut left = random.u64(..all);
            let place = PLACES.into_iter().find(|place| {
                let is_it = left < place.4;
                left = left.saturating_sub(place.4);
                is_it
            });
            let closed_s = end_s - 1 - random.u64(..length_s);
            row(&mut random, place.unwrap_or(PLACES[0]), closed_s)
        })
        .collect();
    rows.sort_by_key(|row| row.closed_s);
    rows
}

fn row(
    random: &mut fastrand::Rng,
    place: (&[u8; 2], &str, &str, u32, u64),
    closed_s: u64,
) -> Connection {
    let (country, subdivision, operator, ms, _) = place;
    // Nearly exponential tails, as times of networks have them.
    let mut spread = |us: u32, part: f64| {
        let tail = -(1.0 - random.f64()).ln();
        (f64::from(us) * (1.0 + part * tail)) as u32
    };
    let rtt_us = spread(ms * 1000, 0.15);
    let server_us = spread(4000, 1.2);
    let handshake = spread(1500, 0.5);
    let is_plain = random.u8(..20) == 0;
    let is_proxied = random.u8(..40) == 0;
    let is_resumed = random.bool();
    let requests = 1 + random.u32(..12);
    let failed = u32::from(random.u8(..50) == 0);
    let missing = u32::from(random.u8(..12) == 0).min(requests - failed);
    let fresh = u32::from(random.u8(..4) == 0).min(requests - failed - missing);
    let host = [198, 51, 100, random.u8(..)];
    Connection {
        closed_s,
        server: SERVERS[usize::from(random.u8(..3) == 0)].to_owned(),
        protocol: if is_plain { "HTTP/1.1" } else { "HTTP/2.0" }.to_owned(),
        tls: if is_plain { "" } else { "TLSv1.3" }.to_owned(),
        network: Some(Network::of(host.into(), Prefixes::default())),
        country: Some(*country),
        subdivision: subdivision.to_owned(),
        operator: operator.to_owned(),
        via_proxy: is_proxied,
        min_rtt_us: Some(rtt_us),
        rtt_us: Some(rtt_us + rtt_us / 8),
        retransmits: u32::from(random.u8(..15) == 0),
        bytes_sent: u64::from(requests) * random.u64(2_000..60_000),
        bytes_received: u64::from(requests) * random.u64(200..900),
        requests,
        duration_ms: random.u64(200..90_000),
        handshake_us: (!is_plain).then_some(rtt_us * if is_resumed { 1 } else { 2 } + handshake),
        handshake_kind: match (is_plain, is_resumed) {
            (true, _) => HandshakeKind::None,
            (false, true) => HandshakeKind::Resumed,
            (false, false) => HandshakeKind::Full,
        },
        first_byte_us: Some(rtt_us + server_us),
        stalls: Stalls {
            delayed_ack: u64::from(random.u8(..30) == 0),
            retransmit: u64::from(random.u8(..40) == 0),
            window: u64::from(random.u8(..60) == 0),
        },
        statuses: [requests - failed - missing - fresh, fresh, missing, failed],
    }
}

/// Returns samples of open connections, one a minute for each server and protocol.
pub(crate) fn open(seed: u64, end_s: u64, length_s: u64) -> Vec<OpenSample> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut samples = Vec::new();
    let first = (end_s - length_s).next_multiple_of(60);
    for at_s in (first..end_s).step_by(60) {
        for server in SERVERS {
            for (protocol, mean) in [("HTTP/1.1", 12), ("HTTP/2.0", 90)] {
                samples.push(OpenSample {
                    at_s,
                    server: server.to_owned(),
                    protocol: protocol.to_owned(),
                    connections: mean + random.u64(..mean),
                });
            }
        }
    }
    samples
}
