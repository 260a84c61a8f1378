//! The network device on the way to an address, from the main routing table.
//!
//! Absent: policy rules (by source or mark) and multipath routes, which name one device.
//!
//! Source: proc_pid_net(5), and for IPv6 the columns of net/ipv6/route.c of the kernel.

use std::fs;
use std::net::IpAddr;

/// Returns the device for an address in the network namespace of the calling thread, `None` without a route.
pub(crate) fn device_to(address: IpAddr) -> Option<String> {
    let address = address.to_canonical();
    let table = match address {
        IpAddr::V4(_) => "/proc/thread-self/net/route",
        IpAddr::V6(_) => "/proc/thread-self/net/ipv6_route",
    };
    best(&fs::read_to_string(table).ok()?, address).map(str::to_owned)
}

/// Returns the device of the route with the longest prefix, then the least metric.
fn best(table: &str, address: IpAddr) -> Option<&str> {
    let (address, parse): (_, fn(&str) -> Option<Route<'_>>) = match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, v4),
        IpAddr::V6(address) => (address.to_bits(), v6),
    };
    let routes = table.lines().filter_map(parse);
    let there = routes.filter(|route| route.flags & UP != 0 && route.has(address));
    let best = there.min_by_key(|route| (128 - route.prefix_bits, route.metric))?;
    (best.flags & REJECT == 0).then_some(best.device)
}

struct Route<'a> {
    /// Destination; an IPv4 address has the upper 32 bits.
    to: u128,
    prefix_bits: u32,
    flags: u32,
    metric: u32,
    device: &'a str,
}

impl Route<'_> {
    fn has(&self, address: u128) -> bool {
        // A prefix of no bits has every address.
        (self.to ^ address)
            .checked_shr(128 - self.prefix_bits)
            .is_none_or(|rest| rest == 0)
    }
}

/// Device, destination, gateway, flags, references, uses, metric, mask; addresses as the machine has them in memory.
fn v4(line: &str) -> Option<Route<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let address = |word: &str| Some(u32::from_be(u32::from_str_radix(word, 16).ok()?));
    Some(Route {
        to: u128::from(address(words.get(1)?)?) << 96,
        prefix_bits: address(words.get(7)?)?.leading_ones(),
        flags: u32::from_str_radix(words.get(3)?, 16).ok()?,
        metric: words.get(6)?.parse().ok()?,
        device: words.first()?,
    })
}

/// Destination and length of its prefix, source and its length, gateway, metric, references, uses, flags, device.
fn v6(line: &str) -> Option<Route<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let hex = |word: &str| u32::from_str_radix(word, 16).ok();
    Some(Route {
        to: u128::from_str_radix(words.first()?, 16).ok()?,
        prefix_bits: hex(words.get(1)?)?.min(128),
        flags: hex(words.get(8)?)?,
        metric: hex(words.get(5)?)?,
        device: words.get(9)?,
    })
}

/// Flags of a route: usable, and a refusal of its addresses.
const UP: u32 = 1;
const REJECT: u32 = 0x200;

#[cfg(test)]
mod tests {
    use super::*;

    fn device<'a>(table: &'a str, address: &str) -> Option<&'a str> {
        best(table, address.parse().expect("an address"))
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn longest_prefix_of_ipv4_has_the_device() {
        let table = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
wlan0\t00000000\t010200C0\t0003\t0\t0\t50\t00000000\t0\t0\t0
eth1\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
down0\t070200C0\t00000000\t0000\t0\t0\t0\tFFFFFFFF\t0\t0\t0
*\t0000000A\t00000000\t0201\t0\t0\t0\t000000FF\t0\t0\t0
";
        assert_eq!(device(table, "203.0.113.9"), Some("wlan0"));
        assert_eq!(device(table, "192.0.2.7"), Some("eth1"));
        assert_eq!(device(table, "192.0.3.7"), Some("wlan0"));
        // Refused there.
        assert_eq!(device(table, "10.1.2.3"), None);
        assert_eq!(device("", "10.1.2.3"), None);
    }

    #[test]
    fn longest_prefix_of_ipv6_has_the_device() {
        let zero = "0".repeat(32);
        let line = |to: &str, bits: u32, metric: u32, flags: u32, device: &str| {
            format!(
                "{to:0<32} {bits:02x} {zero} 00 {zero} {metric:08x} 0 0 {flags:08x} {device:>8}\n"
            )
        };
        let table = line("fd00", 64, 256, 1, "eth1")
            + &line("", 0, 1024, 3, "eth0")
            + &line(
                "fd000000000000000000000000000002",
                128,
                0,
                0x8020_0001,
                "lo",
            )
            + &line("", 0, u32::MAX, 0x0020_0200, "lo");
        assert_eq!(device(&table, "fd00::1"), Some("eth1"));
        assert_eq!(device(&table, "fd00::2"), Some("lo"));
        assert_eq!(device(&table, "2001:db8::1"), Some("eth0"));
        assert_eq!(
            device(&line("", 0, u32::MAX, 0x0020_0200, "lo"), "2001:db8::1"),
            None
        );
    }

    /// The routes of the machine itself, if it has any.
    #[test]
    fn device_of_this_machine_is_one_it_has() {
        for address in ["192.0.2.1", "2001:db8::1"] {
            if let Some(device) = device_to(address.parse().expect("an address")) {
                assert!(
                    fs::metadata(format!("/sys/class/net/{device}")).is_ok(),
                    "{device}"
                );
            }
        }
    }
}
