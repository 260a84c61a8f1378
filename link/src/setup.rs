//! The two ends: a namespace each, with a TUN device, an address and a route.
//!
//! Addresses and routes are set by the `ip` command of iproute2. The routes have `quickack`, so that the kernel
//! sends each acknowledgement at once and only `ack_delay` delays any. Addresses are of 198.18.0.0/15, which is set aside
//! for measuring (RFC 2544 appendix C.2.2).
//!
//! The far end may be the network that the caller is in: then its device has a number, and the addresses follow from
//! it, so that several links find room. Device, addresses and routes go with the descriptor.
//! Sources: ip-link(8), ip-route(8), ip-rule(8), ip-sysctl.rst of the kernel for `route_localnet` and its kin.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread;

use sys::namespace::Network;
use sys::os_error;
use sys::tun;

use crate::options::Options;
use crate::tuning::RouteOptions;

/// The addresses of both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) client: Ipv4Addr,
    pub(crate) server: Ipv4Addr,
}

/// Addresses of a link with two namespaces of its own.
const APART: Addresses = Addresses {
    client: Ipv4Addr::new(198, 18, 0, 1),
    server: Ipv4Addr::new(198, 18, 0, 2),
};

/// Both ends, and the devices: the client's and the server's.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) client: Network,
    pub(crate) server: Network,
    pub(crate) addresses: Addresses,
    pub(crate) devices: [OwnedFd; 2],
    /// The name of the server's device; the client's is [`DEVICE`].
    pub(crate) far_name: String,
}

impl Ends {
    /// Two namespaces.
    pub(crate) fn apart(options: &Options) -> io::Result<Self> {
        let (server, far) = namespace(|| {
            let (device, name) = open(DEVICE)?;
            own_settings();
            server_end(&name, &APART, options)?;
            Ok(device)
        })?;
        Self::with_client(server, (far, DEVICE.to_owned()), APART, options)
    }

    /// A namespace for the client; the server is in the network of the calling thread.
    pub(crate) fn here(options: &Options) -> io::Result<Self> {
        let (far, name) = open(NUMBERED_DEVICE)?;
        let addresses = numbered(&name)?;
        // The kernel's metrics of an earlier link with this address do not apply to this one.
        let _ = configure(&format!("tcp_metrics delete {}\n", addresses.client));
        server_end(&name, &addresses, options)?;
        Self::with_client(Network::current()?, (far, name), addresses, options)
    }

    fn with_client(
        server: Network,
        (far, far_name): (OwnedFd, String),
        addresses: Addresses,
        options: &Options,
    ) -> io::Result<Self> {
        let (client, near) = namespace(|| {
            let (device, name) = open(DEVICE)?;
            own_settings();
            client_end(&name, &addresses, options)?;
            Ok(device)
        })?;
        Ok(Self {
            client,
            server,
            addresses,
            devices: [near, far],
            far_name,
        })
    }
}

/// Number of packets that the kernel could not put into the queue of a device of the calling thread's network, because
/// it was not read fast enough: a column of /proc/net/dev after the device's name.
pub(crate) fn unread(device: &str) -> io::Result<u64> {
    const TRANSMIT_DROPPED: usize = 11;
    let table = fs::read_to_string("/proc/thread-self/net/dev")?;
    let mut lines = table
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'));
    let number = lines
        .next()
        .and_then(|line| line.split_whitespace().nth(TRANSMIT_DROPPED)?.parse().ok());
    number.ok_or_else(|| io::Error::other("a device is gone"))
}

/// The addresses that go with a numbered device.
fn numbered(device: &str) -> io::Result<Addresses> {
    let digits = device.trim_start_matches(|c: char| !c.is_ascii_digit());
    let number = digits.parse().ok().filter(|number| *number < NUMBERED_MAX);
    let number: u16 = number.ok_or_else(|| io::Error::other("too many links"))?;
    let [high, low] = (number * 4).to_be_bytes();
    Ok(Addresses {
        client: Ipv4Addr::new(198, 19, high, low + 1),
        server: Ipv4Addr::new(198, 19, high, low + 2),
    })
}

/// Makes a namespace and configures it from inside.
fn namespace(
    furnish: impl FnOnce() -> io::Result<OwnedFd> + Send,
) -> io::Result<(Network, OwnedFd)> {
    let network = Network::create().map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => unsupported("network namespaces need root", &error),
        _ => error,
    })?;
    let made = thread::scope(|scope| {
        let inside = scope.spawn(|| {
            network.enter()?;
            furnish()
        });
        inside.join()
    });
    let device = made.unwrap_or_else(|_| Err(io::Error::other("the set-up of a link panicked")))?;
    Ok((network, device))
}

fn open(device: &str) -> io::Result<(OwnedFd, String)> {
    tun::open(device).map_err(|error| match error.kind() {
        ErrorKind::NotFound => unsupported("/dev/net/tun is missing", &error),
        ErrorKind::PermissionDenied if fs::File::open("/dev/net/tun").is_err() => {
            unsupported("/dev/net/tun may not be opened by this user", &error)
        }
        ErrorKind::PermissionDenied => unsupported("TUN devices are not allowed", &error),
        _ => error,
    })
}

/// Settings of a separate namespace.
fn own_settings() {
    for (name, value) in SETTINGS {
        set(name, value);
    }
}

/// Sets a value under /proc/sys/net. If that is read-only, last bytes of large bodies come at other times, and
/// `localhost` stays each end's own; first bytes are correct.
fn set(name: &str, value: &str) {
    let _ = fs::write(format!("/proc/sys/net/{name}"), value);
}

fn server_end(device: &str, addresses: &Addresses, options: &Options) -> io::Result<()> {
    let server = &addresses.server;
    device_settings(device, options);
    let own = if device == DEVICE {
        "link set lo up\n"
    } else {
        ""
    };
    configure(&format!(
        "{own}{}route add {}\n",
        device_lines(device, *server, options),
        route_to_client(device, addresses)
    ))
}

/// The route from the server to the client.
fn route_to_client(device: &str, Addresses { client, server }: &Addresses) -> String {
    format!("{client}/32 dev {device} src {server} quickack 1")
}

/// Changes the options of that route, in the network of the calling thread.
pub(crate) fn change_route(
    device: &str,
    addresses: &Addresses,
    options: &RouteOptions,
) -> io::Result<()> {
    let mut line = format!("route change {}", route_to_client(device, addresses));
    if let Some(segments) = options.initial_window {
        line += &format!(" initcwnd {segments}");
    }
    if let Some(name) = &options.congestion_control {
        line += &format!(" congctl {name}");
    }
    configure(&(line + "\n"))
}

fn client_end(device: &str, addresses: &Addresses, options: &Options) -> io::Result<()> {
    let Addresses { client, server } = addresses;
    device_settings(device, options);
    let route = format!("dev {device} src {client} quickack 1");
    let mut lines = format!(
        "link set lo up\n{}route add {server}/32 {route}\nroute add default {route}\n",
        device_lines(device, *client, options)
    );
    if !options.localhost.is_empty() {
        // The local table makes 127.0.0.0/8 local. Its rule moves back, so that these rules apply first.
        lines += &format!("rule add pref 20 lookup {TABLE_LOCAL}\nrule del pref 0\n");
        for (first, last) in &options.localhost {
            for protocol in [TCP, UDP] {
                lines += &format!(
                    "rule add pref 10 to 127.0.0.0/8 ipproto {protocol} dport {first}-{last} lookup 100\n"
                );
            }
        }
        lines += &format!("route add 127.0.0.0/8 {route} table 100\n");
    }
    configure(&lines)
}

fn device_lines(device: &str, address: Ipv4Addr, options: &Options) -> String {
    let mtu = options.mtu;
    format!(
        "link set dev {device} mtu {mtu} txqueuelen {DEVICE_QUEUE_PACKETS} up\n\
         address add {address}/32 dev {device}\n"
    )
}

fn device_settings(device: &str, options: &Options) {
    // Without this, the device would send IPv6 packets itself, and they would be counted.
    set(&format!("ipv6/conf/{device}/disable_ipv6"), "1");
    if !options.localhost.is_empty() {
        for name in ["route_localnet", "accept_local"] {
            set(&format!("ipv4/conf/{device}/{name}"), "1");
        }
    }
}

/// Hands lines to `ip -batch`.
fn configure(lines: &str) -> io::Result<()> {
    let spawned = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = spawned.map_err(|error| match error.kind() {
        ErrorKind::NotFound => unsupported("the ip command of iproute2 is missing", &error),
        _ => error,
    })?;
    let told = match child.stdin.take() {
        Some(mut input) => input.write_all(lines.as_bytes()),
        None => Ok(()),
    };
    let output = child.wait_with_output()?;
    told?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("ip: {}", said.trim())))
}

/// There can be no link on this machine, and why.
fn unsupported(why: &str, error: &io::Error) -> io::Error {
    io::Error::new(
        ErrorKind::Unsupported,
        format!("{why} ({})", os_error(error)),
    )
}

/// Protocol numbers of IP: their names are in /etc/protocols, which minimal images lack.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// The number of the routing table `local`, `RT_TABLE_LOCAL` of the kernel.
const TABLE_LOCAL: u8 = 255;
/// The device of an end in a namespace of its own.
pub(crate) const DEVICE: &str = "link0";
/// The device in a network that was there before; the kernel numbers it.
const NUMBERED_DEVICE: &str = "via%d";
/// The most numbered devices: each has a quarter of 256 addresses of 198.19.0.0/16.
const NUMBERED_MAX: u16 = 16_384;
/// Maximum number of packets that wait to be read; more than the largest windows hold, because a drop by the device is a
/// loss that was not configured.
const DEVICE_QUEUE_PACKETS: u32 = 20_000;
/// Every program may bind ports below 1024, so that servers need no rights. The other settings make connections alike
/// on all machines and from first to last. Windows of earlier connections are not remembered. Reno's slow start sends
/// each flight at once, unlike BBR, which spreads it over the round trip. Reno is the one congestion control that every
/// namespace may use.
const SETTINGS: [(&str, &str); 3] = [
    ("ipv4/ip_unprivileged_port_start", "0"),
    ("ipv4/tcp_no_metrics_save", "1"),
    ("ipv4/tcp_congestion_control", "reno"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_devices_have_addresses_of_their_own() {
        let shown = |device| {
            let addresses = numbered(device).expect("there is room");
            [addresses.client, addresses.server].map(|address| address.to_string())
        };
        assert_eq!(shown("via0"), ["198.19.0.1", "198.19.0.2"]);
        assert_eq!(shown("via64"), ["198.19.1.1", "198.19.1.2"]);
        assert_eq!(shown("via16383"), ["198.19.255.253", "198.19.255.254"]);
        assert!(numbered("via16384").is_err());
    }
}
