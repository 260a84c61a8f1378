//! Under which conditions something was measured.
//!
//! Source: proc(5), sysfs(5), ethtool(8).

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use serde::{Deserialize, Serialize};
use sys::device;

use super::route::device_to;
use crate::load::Plan;

/// Conditions of a bench.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Conditions {
    /// Processors of this machine.
    pub processors: usize,
    /// Its kernel.
    pub kernel: String,
    /// The congestion control of its TCP.
    pub congestion_control: Option<String>,
    /// The least round trip that TCP has seen, microseconds.
    pub round_trip_us: Option<u32>,
    /// The network device on the way to the server.
    pub device: Option<String>,
    /// The MTU of that device.
    pub mtu_bytes: Option<u64>,
    /// Offloads of that device.
    #[serde(default)]
    pub offloads: Offloads,
    /// The load of the machine over the last minute, at the end.
    pub load_average: Option<f64>,
    /// The share of its time in which the processors were busy.
    pub busy: f64,
    /// The share of its time that other machines on the same hardware took.
    pub steal: f64,
    /// No emulated link is between client and server unless somebody has put one there.
    pub link: String,
}

/// Offloads of a device: whether each is on, where the kernel says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offloads {
    /// TCP segmentation offload.
    pub tso: Option<bool>,
    /// Generic segmentation offload.
    pub gso: Option<bool>,
    /// Generic receive offload.
    pub gro: Option<bool>,
}

impl Offloads {
    /// Those of a device of the calling thread's network.
    #[must_use]
    pub fn of(device: &str) -> Self {
        let device::Offloads { tso, gso, gro } = device::offloads(device);
        Self { tso, gso, gro }
    }

    /// `TSO on, GSO off, GRO unknown`.
    #[must_use]
    pub fn sentence(self) -> String {
        let all = [("TSO", self.tso), ("GSO", self.gso), ("GRO", self.gro)];
        let said = all.map(|(name, on)| match on {
            Some(true) => format!("{name} on"),
            Some(false) => format!("{name} off"),
            None => format!("{name} unknown"),
        });
        said.join(", ")
    }
}

impl Conditions {
    pub(crate) fn now(
        round_trip_us: Option<u32>,
        busy: f64,
        steal: f64,
        plan: Option<&Plan>,
    ) -> Self {
        let read = |path: &str| {
            let text = fs::read_to_string(path).ok()?;
            Some(text.trim().to_owned())
        };
        let loopback = plan.is_some_and(|plan| is_own(plan.address));
        let device = match loopback {
            true => Some("lo".to_owned()),
            false => plan.and_then(|plan| device_to(plan.address.ip())),
        };
        let of_device = |what: &str| {
            let path = format!("/sys/class/net/{}/{what}", device.as_deref()?);
            read(&path)?.parse().ok()
        };
        let load = read("/proc/loadavg");
        Self {
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
            congestion_control: read("/proc/sys/net/ipv4/tcp_congestion_control"),
            round_trip_us,
            mtu_bytes: of_device("mtu"),
            offloads: device.as_deref().map(Offloads::of).unwrap_or_default(),
            load_average: load
                .as_deref()
                .and_then(|text| text.split_whitespace().next()?.parse().ok()),
            busy,
            steal,
            link: match loopback {
                true => "loopback, no emulated link".to_owned(),
                false => "as it is, no emulated link".to_owned(),
            },
            device,
        }
    }
}

/// Whether an address is this machine's: then what is sent from it to itself takes the loopback device.
pub(crate) fn is_own(address: SocketAddr) -> bool {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a socket of UDP sends nothing, and chooses the address to send from.
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    address.ip().is_loopback() || from.is_ok_and(|from| from.ip() == address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address of a device of this machine but loopback, where there is one, is reached by loopback all the same.
    #[test]
    fn own_addresses_are_known() {
        let at = |text: &str| is_own(SocketAddr::new(text.parse().expect("an address"), 80));
        assert!(at("127.0.0.1") && at("127.1.2.3") && at("::1"));
        // Set aside for documents (RFC 3849): nobody has it.
        assert!(!at("2001:db8::1"));
        let outwards = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
            socket.connect("192.0.2.1:80")?;
            socket.local_addr()
        });
        if let Ok(own) = outwards {
            assert!(is_own(own), "{own}");
        }
    }

    #[test]
    fn offloads_are_read_and_what_is_unknown_is_said_to_be() {
        let of_loopback = Offloads::of("lo");
        let known = [of_loopback.tso, of_loopback.gso, of_loopback.gro];
        assert!(known.iter().all(Option::is_some), "{of_loopback:?}");
        let unknown = Offloads::of("nonesuch");
        assert_eq!(unknown.sentence(), "TSO unknown, GSO unknown, GRO unknown");
        let mixed = Offloads {
            tso: Some(true),
            gso: Some(false),
            gro: None,
        };
        assert_eq!(mixed.sentence(), "TSO on, GSO off, GRO unknown");
    }
}
