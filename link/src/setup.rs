//! The two ends: a namespace each, with a TUN device, an address and a route.
//!
//! Addresses and routes are told to the `ip` command of iproute2. The routes say `quickack`, so that the kernel
//! sends each acknowledgement at once and only `hold` delays any.
//! Addresses are of 198.18.0.0/15, which is set aside for measuring (RFC 2544 appendix C.2.2); being alone in
//! their namespaces they meet no others.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread;

use driver::sys::namespace::Network;
use driver::sys::tun;

use crate::options::Options;

/// The device of each end.
const DEVICE: &str = "link0";

/// How many packets may wait to be read; more than the largest windows hold, because what a device drops is a
/// loss that nobody asked for.
const DEVICE_QUEUE_PACKETS: u32 = 20_000;

/// What makes connections alike, on all machines and from the first to the last: windows of earlier ones are not
/// remembered, and Reno's slow start sends each flight at once, where BBR would spread it over the round trip.
/// Reno is the one congestion control that every namespace may use.
const SETTINGS: [(&str, &str); 2] = [
    ("tcp_no_metrics_save", "1"),
    ("tcp_congestion_control", "reno"),
];

/// One end of the link.
#[derive(Debug)]
pub(crate) struct End {
    /// Its address.
    pub(crate) address: Ipv4Addr,
    /// The other end's.
    pub(crate) other: Ipv4Addr,
}

/// The client's end.
pub(crate) const CLIENT: End = End {
    address: Ipv4Addr::new(198, 18, 0, 1),
    other: Ipv4Addr::new(198, 18, 0, 2),
};

/// The server's end.
pub(crate) const SERVER: End = End {
    address: CLIENT.other,
    other: CLIENT.address,
};

/// Makes a namespace and its device.
pub(crate) fn end(end: &End, options: &Options) -> io::Result<(Network, OwnedFd)> {
    let network = Network::create().map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => unsupported("network namespaces need root", &error),
        _ => error,
    })?;
    let made = thread::scope(|scope| {
        let inside = scope.spawn(|| {
            network.enter()?;
            furnish(end, options)
        });
        inside.join()
    });
    let device = made.unwrap_or_else(|_| Err(io::Error::other("the set-up of a link panicked")))?;
    Ok((network, device))
}

/// What is done inside the namespace.
fn furnish(end: &End, options: &Options) -> io::Result<OwnedFd> {
    let device = tun::open(DEVICE).map_err(|error| match error.kind() {
        ErrorKind::NotFound => unsupported("/dev/net/tun is missing", &error),
        ErrorKind::PermissionDenied => unsupported("TUN devices are not allowed", &error),
        _ => error,
    })?;
    for (name, value) in SETTINGS {
        // Where /proc/sys is read-only, last bytes of large bodies come at other times; first bytes do not.
        let _ = fs::write(format!("/proc/sys/net/ipv4/{name}"), value);
    }
    let End { address, other } = end;
    let mtu = options.mtu;
    configure(&format!(
        "link set lo up\n\
         link set dev {DEVICE} mtu {mtu} txqueuelen {DEVICE_QUEUE_PACKETS} up\n\
         address add {address}/32 dev {DEVICE}\n\
         route add {other}/32 dev {DEVICE} src {address} quickack 1\n"
    ))?;
    Ok(device)
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
    io::Error::new(ErrorKind::Unsupported, format!("{why} ({error})"))
}
