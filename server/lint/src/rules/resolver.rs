//! FB106: host names are looked up at a server somewhere in the internet.
//!
//! Answers come over UDP without authentication: an attacker who can inject packets controls the destination of requests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Warn;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree.everywhere("resolver") {
        let foreign = |word: &conf::Word| ip(word.as_str()).is_some_and(|ip| !is_near(ip));
        if let Some(index) = tree.args(*id).iter().position(foreign) {
            let message = format!(
                "resolver \"{}\" is outside of this network: its answers can be forged on the way",
                tree.arg(*id, index)
            );
            let hint = "use a resolver on this machine or in this network";
            warn.word(*id, index, message, hint);
        }
    }
}

/// `1.2.3.4`, `1.2.3.4:53`, `[::1]`, `[::1]:53`; names are not analyzed.
pub(super) fn ip(text: &str) -> Option<IpAddr> {
    if let Some(inside) = text.strip_prefix('[') {
        return inside.split(']').next()?.parse().ok();
    }
    let host = match text.matches(':').count() {
        1 => text.split(':').next()?,
        _ => text,
    };
    host.parse().ok()
}

/// Whether an address is of this machine, of a private network, or inside a cloud.
pub(super) fn is_near(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            // 100.64.0.0/10 is shared space behind a provider's translation (RFC 6598).
            let [a, b, ..] = ip.octets();
            let shared = a == 100 && (64..128).contains(&b);
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || shared || ip == AZURE
        }
        IpAddr::V6(ip) => is_near_v6(ip),
    }
}

fn is_near_v6(ip: Ipv6Addr) -> bool {
    if let Some(mapped) = ip.to_ipv4_mapped() {
        return is_near(IpAddr::V4(mapped));
    }
    ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
}

/// The address at which Azure answers inside its own networks.
const AZURE: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

#[cfg(test)]
mod tests {
    use crate::testing::in_server;

    #[test]
    fn addresses_of_the_internet_are_found() {
        for address in [
            "1.1.1.1",
            "127.0.0.1 8.8.8.8:53",
            "[2001:4860:4860::8888]",
            "172.32.0.1",
        ] {
            assert_eq!(
                in_server(&format!("resolver {address};")),
                ["FB106"],
                "{address}"
            );
        }
    }

    #[test]
    fn near_addresses_and_names_are_not() {
        let near = "127.0.0.53 10.1.2.3:5353 172.31.0.2 192.168.0.1 169.254.169.253 100.100.2.136 [::1] \
                    [fd00::1]:53 168.63.129.16 dns.internal valid=30s";
        assert_eq!(in_server(&format!("resolver {near};")), [""; 0]);
    }
}
