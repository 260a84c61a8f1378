//! Limits the rates of users and addresses, and detects recorded views. The tables are bounded, shared by all threads,
//! and survive reloads.
//!
//! A full table forgets the entry that was not used for the longest time. A client with many addresses can so get more than its
//! rate, but no more memory. The store drops repeated views that this table has forgotten.

use std::net::IpAddr;
use std::sync::Arc;

use server_base::peer::Peer;
use server_base::zone::{self, Zone};

use crate::limit_req::bucket::{self, Bucket, Verdict};

/// A rate: a number of beacons in a period. As many may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BeaconRate {
    /// Beacons, 1 to [`RATE_MAX`].
    count: u64,
    /// Length of the period, seconds.
    period_s: u64,
}

impl BeaconRate {
    /// One beacon a second.
    pub(super) const DEFAULT: Self = Self {
        count: 60,
        period_s: 60,
    };

    /// Reads `60r/m` or `1r/s`.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let (number, period_s) = match text {
            [number @ .., b'r', b'/', b's'] => (number, 1),
            [number @ .., b'r', b'/', b'm'] => (number, 60),
            _ => return None,
        };
        let count = conf::parse_number(number).filter(|n| (1..=RATE_MAX).contains(n))?;
        Some(Self { count, period_s })
    }

    fn times(self, factor: u64) -> Self {
        Self {
            count: self.count * factor,
            ..self
        }
    }
}

/// The tables.
#[derive(Clone)]
pub(super) struct Limits {
    rates: Arc<Zone<Bucket>>,
    views: Arc<Zone<()>>,
}

impl Limits {
    /// Returns the tables of the process.
    pub(super) fn shared() -> Self {
        let rates = zone::attach(MODULE, b"rates", RATES_BYTES, b"");
        let views = zone::attach(MODULE, b"views", VIEWS_BYTES, b"");
        Self {
            rates: rates.expect(ONE_KEY),
            views: views.expect(ONE_KEY),
        }
    }

    /// Counts a beacon of a user; false above the rate.
    pub(super) fn admits_user(&self, user: u64, rate: BeaconRate, now_ms: u64) -> bool {
        let mut key = [USER; 9];
        key[1..].copy_from_slice(&user.to_be_bytes());
        self.admits(&key, rate, now_ms)
    }

    /// Counts a beacon of an address; false above [`ADDRESS_FACTOR`] times the rate of a user. IPv6 addresses count by their
    /// network of 64 bits, which one client can have alone.
    pub(super) fn admits_address(&self, peer: &Peer, rate: BeaconRate, now_ms: u64) -> bool {
        let mut key = [ADDRESS; 9];
        match peer {
            Peer::Unix => return true,
            Peer::Inet(address) => match address.ip().to_canonical() {
                IpAddr::V4(ip) => key[5..].copy_from_slice(&ip.octets()),
                IpAddr::V6(ip) => key[1..].copy_from_slice(&ip.octets()[..8]),
            },
        }
        self.admits(&key, rate.times(ADDRESS_FACTOR), now_ms)
    }

    fn admits(&self, key: &[u8], rate: BeaconRate, now_ms: u64) -> bool {
        let per_second = rate.count * 1000 / rate.period_s;
        let burst = (rate.count - 1) * 1000;
        let mut shard = self.rates.lock(key);
        match bucket::check(&mut shard, key, now_ms, per_second, burst, true) {
            Verdict::Over(_) => false,
            // Without room in its part of the table a key is not limited.
            Verdict::Counted(_) | Verdict::Pending | Verdict::Full => true,
        }
    }

    /// Notes a view; false if it is known.
    pub(super) fn is_new(&self, view: u64) -> bool {
        let key = view.to_be_bytes();
        let mut shard = self.views.lock(&key);
        if shard.get_mut(&key).is_some() {
            return false;
        }
        while shard.insert(&key, ()).is_err() && shard.remove_oldest().is_some() {}
        true
    }
}

const MODULE: &str = "experiment_beacon";
const ONE_KEY: &str = "all configurations attach these zones with one key";
/// Kinds of keys.
const USER: u8 = 0;
const ADDRESS: u8 = 1;
/// Maximum number of beacons in the period of a rate.
pub(super) const RATE_MAX: u64 = 10_000;
/// Rate of an address as a multiple of the rate of a user, since users share addresses.
const ADDRESS_FACTOR: u64 = 16;
/// Memory of rates: 34,000 users and addresses.
const RATES_BYTES: u64 = 4 << 20;
/// Memory of views: 34,000 of the last.
const VIEWS_BYTES: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(bytes: u64) -> Limits {
        Limits {
            rates: Arc::new(Zone::new(bytes, b"")),
            views: Arc::new(Zone::new(bytes, b"")),
        }
    }

    fn rate(text: &str) -> BeaconRate {
        BeaconRate::parse(text.as_bytes()).expect("a rate")
    }

    /// Sends `count` beacons and returns the number of admitted ones.
    fn admitted(count: u64, mut admits: impl FnMut() -> bool) -> u64 {
        (0..count).filter(|_| admits()).count() as u64
    }

    #[test]
    fn rate_is_read_within_its_limits() {
        assert_eq!(rate("60r/m"), BeaconRate::DEFAULT);
        assert_eq!(rate("1r/s").period_s, 1);
        assert_eq!(rate("10000r/s").count, RATE_MAX);
        assert_eq!(rate("9999r/s").count, RATE_MAX - 1);
        for text in [
            "10001r/s", "0r/s", "r/s", "5", "5r/h", "-1r/s", "1.5r/s", "",
        ] {
            assert_eq!(BeaconRate::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn user_has_a_number_of_beacons_and_gets_more_with_time() {
        let limits = limits(1 << 16);
        let at = |user, ms: u64, count| {
            admitted(count, || limits.admits_user(user, rate("5r/m"), 1000 + ms))
        };
        assert_eq!(at(1, 0, 4), 4);
        assert_eq!(at(1, 0, 2), 1);
        assert_eq!(at(2, 0, 9), 5);
        // 83 thousandths a second, as `limit_req` rounds them.
        assert_eq!(at(1, 11_000, 3), 0);
        assert_eq!(at(1, 12_500, 3), 1);
        assert_eq!(at(1, 120_000, 9), 5);
    }

    #[test]
    fn address_has_a_multiple_of_the_rate() {
        let limits = limits(1 << 16);
        let peer = |text: &str| Peer::Inet(text.parse().expect("an address"));
        let of = |text: &str, count| {
            admitted(count, || {
                limits.admits_address(&peer(text), rate("1r/m"), 1)
            })
        };
        assert_eq!(of("192.0.2.1:1", ADDRESS_FACTOR - 1), ADDRESS_FACTOR - 1);
        assert_eq!(of("192.0.2.1:2", 1), 1);
        assert_eq!(of("192.0.2.1:3", 1), 0);
        assert_eq!(of("[::ffff:192.0.2.1]:3", 1), 0);
        assert_eq!(of("192.0.2.2:3", 1), 1);
        assert_eq!(of("[2001:db8::1]:1", 20), ADDRESS_FACTOR);
        assert_eq!(of("[2001:db8::2]:1", 1), 0);
        assert_eq!(of("[2001:db8:0:1::1]:1", 1), 1);
        let unix = admitted(20, || limits.admits_address(&Peer::Unix, rate("1r/m"), 1));
        assert_eq!(unix, 20);
    }

    #[test]
    fn view_is_new_once_until_it_is_forgotten() {
        let size = 1 << 14;
        let limits = limits(size);
        assert!(limits.is_new(7));
        assert!(!limits.is_new(7));
        let room = size / (zone::ENTRY_BYTES + 8);
        for other in 100..100 + room - 1 {
            assert!(limits.is_new(other));
            assert!(!limits.is_new(7), "{other}");
        }
        assert_eq!(limits.views.len() as u64, room);
        // A view without repeats is evicted by newer ones.
        for other in 1000..1000 + room {
            assert!(limits.is_new(other));
        }
        assert_eq!(limits.views.len() as u64, room);
        assert!(limits.is_new(7));
    }

    #[test]
    fn flood_of_users_takes_no_more_memory() {
        let size = 1 << 14;
        let limits = limits(size);
        for user in 0..10_000 {
            assert!(limits.admits_user(user, rate("1r/m"), 1));
        }
        assert!(limits.rates.len() as u64 <= size / zone::ENTRY_BYTES);
    }
}
