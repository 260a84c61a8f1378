//! Connections of visitors by lot.
//!
//! 200 countries, their 2,000 subdivisions and 5,000 network operators have the frequencies of Zipf's law; round-trip times are
//! lognormal.

use store::{Connection, HandshakeKind, Network, Prefixes, Stalls};

const COUNTRIES: usize = 200;
const SUBDIVISIONS: usize = 10;
const OPERATORS: usize = 25;
const PROTOCOLS: [(&str, u32); 4] = [
    ("HTTP/2.0", 70),
    ("HTTP/1.1", 95),
    ("SPDY/3.1", 98),
    ("HTTP/1.0", 100),
];

/// Frequencies of Zipf's law, added up.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(count: usize) -> Self {
        let mut sum = 0.0;
        let sums = (1..=count).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Self(sums.collect())
    }

    fn draw(&self, random: &mut fastrand::Rng) -> usize {
        let at = random.f64() * self.0.last().copied().unwrap_or_default();
        self.0
            .partition_point(|sum| *sum < at)
            .min(self.0.len() - 1)
    }
}

/// Makes connections.
pub(crate) struct Generator {
    random: fastrand::Rng,
    countries: Zipf,
    subdivisions: Zipf,
    operators: Zipf,
}

impl Generator {
    /// A generator that makes the same connections with the same seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            countries: Zipf::new(COUNTRIES),
            subdivisions: Zipf::new(SUBDIVISIONS),
            operators: Zipf::new(OPERATORS),
        }
    }

    /// A time around a median, with a lognormal distribution.
    fn time_us(&mut self, median_us: f64) -> u32 {
        let normal = (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0;
        (median_us * (normal * 0.5).exp()) as u32
    }

    /// A connection of a server, closed at this time, Unix seconds.
    pub(crate) fn row(&mut self, closed_s: u64, server: &str) -> Connection {
        let country = self.countries.draw(&mut self.random);
        let code = [b'A' + (country / 26) as u8, b'A' + (country % 26) as u8];
        let letters = code.map(char::from);
        let subdivision = self.subdivisions.draw(&mut self.random);
        let operator = country * OPERATORS + self.operators.draw(&mut self.random);
        let lot = self.random.u32(0..100);
        let protocol = PROTOCOLS.iter().find(|(_, below)| lot < *below);
        let median_us = 5000.0 + (country * 1500) as f64;
        let min_rtt_us = self.time_us(median_us);
        let rtt_us = min_rtt_us + self.time_us(median_us / 5.0);
        let handshake_us = min_rtt_us + 900;
        let client = self.random.u32(0x0100_0000..0xe000_0000).to_be_bytes();
        Connection {
            closed_s,
            server: server.to_owned(),
            protocol: protocol.map_or(PROTOCOLS[0].0, |(name, _)| name).to_owned(),
            tls: "TLSv1.3".to_owned(),
            network: Some(Network::of(client.into(), Prefixes::default())),
            country: Some(code),
            subdivision: format!("{}{}-{subdivision}", letters[0], letters[1]),
            operator: format!("AS{} Example {operator}", 64_496 + operator),
            via_proxy: false,
            min_rtt_us: Some(min_rtt_us),
            rtt_us: Some(rtt_us),
            retransmits: u32::from(lot == 0),
            bytes_sent: self.random.u64(1_000..1_000_000),
            bytes_received: self.random.u64(300..3_000),
            requests: self.random.u32(1..30),
            statuses: [self.random.u32(1..20), lot / 50, lot / 95, 0],
            duration_ms: self.random.u64(100..90_000),
            handshake_us: Some(handshake_us),
            handshake_kind: HandshakeKind::Full,
            first_byte_us: Some(rtt_us + 700),
            stalls: Stalls::default(),
        }
    }
}
