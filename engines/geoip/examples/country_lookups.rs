//! Benchmark of lookups: countries of random addresses in databases, such as those of Debian's tor-geoipdb.
//!
//! `country_lookups 4|6 N [FILE ...]` looks up N addresses and prints the rate. Addresses come from a fixed seed; those
//! of IPv6 are in 2000::/3.
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a benchmark reads files and the clock and prints; the crate does not"
)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;
use std::time::Instant;

use geoip::Places;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [family, count, files @ ..] = &arguments[..] else {
        return usage();
    };
    let (true, Ok(count)) = (["4", "6"].contains(&family.as_str()), count.parse::<u64>()) else {
        return usage();
    };
    let places = match Places::open(files, |file| std::fs::read(file)) {
        Ok(places) => places,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    // Addresses are made before the measurement, so that only lookups are timed.
    let addresses: Vec<IpAddr> = (0..count)
        .map(|n| match family.as_str() {
            "4" => Ipv4Addr::from_bits(mixed(n) as u32).into(),
            _ => {
                let high = mixed(n) >> 3 | 1 << 61;
                Ipv6Addr::from_bits(u128::from(high) << 64).into()
            }
        })
        .collect();
    let begin = Instant::now();
    let known = addresses.iter().filter(|ip| places.country(**ip).is_some());
    let known = known.count();
    let rate = count as f64 / begin.elapsed().as_secs_f64() / 1e6;
    println!("{rate:.1} million lookups a second, {known} of {count} with a country");
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: country_lookups 4|6 N [FILE ...]");
    ExitCode::FAILURE
}

/// A number by chance for each number, after SplitMix64.
fn mixed(n: u64) -> u64 {
    let z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
