//! Addresses of this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Whether an address is assigned to this machine; packets to it take the loopback device.
pub(crate) fn is_own(address: SocketAddr) -> bool {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a UDP socket sends nothing, but chooses a source address.
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    address.ip().is_loopback() || from.is_ok_and(|from| from.ip() == address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loopback also carries packets to own addresses of other devices.
    #[test]
    fn own_addresses_are_known() {
        let at = |text: &str| is_own(SocketAddr::new(text.parse().expect("an address"), 80));
        assert!(at("127.0.0.1") && at("127.1.2.3") && at("::1"));
        // Reserved for documentation (RFC 3849).
        assert!(!at("2001:db8::1"));
        let outwards = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
            socket.connect("192.0.2.1:80")?;
            socket.local_addr()
        });
        if let Ok(own) = outwards {
            assert!(is_own(own), "{own}");
        }
    }
}
