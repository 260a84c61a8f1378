//! Addresses as directives name them: a host by address or name, with or without a port.
//!
//! Names are looked up while the configuration is read, by way of its [`Source`](conf::Source), so that the worker has
//! the addresses that the supervisor found. Absent: ranges of ports and the wildcard, which belong to `listen`, and
//! names that are resolved at run time.
//!
//! Source: nginx documentation, `resolver`; nginx's behaviour.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Looks up a host; `None` for no such host.
pub type Lookup<'a> = &'a mut dyn FnMut(&str) -> Option<Vec<IpAddr>>;

/// Reads `host`, `host:port`, `[address]` or `[address]:port`: at least one address.
///
/// # Errors
/// nginx's text after `in "..."`: "invalid port", "no host", "host not found", ...
pub fn parse_endpoint(
    text: &str,
    default_port: u16,
    lookup: Lookup<'_>,
) -> Result<Vec<SocketAddr>, &'static str> {
    let end = |ips: Vec<IpAddr>, port| {
        Ok(ips
            .into_iter()
            .map(|ip| SocketAddr::new(ip, port))
            .collect())
    };
    if let Some(rest) = text.strip_prefix('[') {
        let (host, tail) = rest.split_once(']').ok_or("invalid host")?;
        let port = match tail.strip_prefix(':') {
            Some(port) => parse_port(port)?,
            None if tail.is_empty() => default_port,
            None => return Err("invalid host"),
        };
        if host.is_empty() {
            return Err("no host");
        }
        let ip = host
            .parse::<Ipv6Addr>()
            .map_err(|_| "invalid IPv6 address")?;
        return end(vec![ip.into()], port);
    }
    if text.contains(['/', '?']) {
        return Err("invalid host");
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, parse_port(port)?),
        None => (text, default_port),
    };
    end(host_addresses(host, lookup)?, port)
}

/// The addresses of a host that is an IPv4 address or a name.
///
/// # Errors
/// "no host" or "host not found".
pub fn host_addresses(host: &str, lookup: Lookup<'_>) -> Result<Vec<IpAddr>, &'static str> {
    if host.is_empty() {
        return Err("no host");
    }
    if let Ok(ip) = host.parse::<Ipv4Addr>() {
        return Ok(vec![ip.into()]);
    }
    lookup(host).ok_or("host not found")
}

/// Reads a port, which is not 0.
///
/// # Errors
/// "invalid port".
pub fn parse_port(text: &str) -> Result<u16, &'static str> {
    conf::parse_number(text.as_bytes())
        .and_then(|port| u16::try_from(port).ok())
        .filter(|port| *port != 0)
        .ok_or("invalid port")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let mut lookup = |host: &str| {
            let ips = ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse().expect("an address"));
            (host == "ns.test").then(|| ips.to_vec())
        };
        match parse_endpoint(text, 53, &mut lookup) {
            Ok(found) => {
                let shown: Vec<_> = found.iter().map(SocketAddr::to_string).collect();
                shown.join(" ")
            }
            Err(error) => error.to_owned(),
        }
    }

    #[test]
    fn endpoints_are_read_as_nginx_reads_them() {
        for (text, told) in [
            ("127.0.0.1", "127.0.0.1:53"),
            ("127.0.0.1:5353", "127.0.0.1:5353"),
            ("[::1]", "[::1]:53"),
            ("[::1]:65535", "[::1]:65535"),
            ("ns.test", "192.0.2.1:53 [2001:db8::1]:53"),
            ("ns.test:1", "192.0.2.1:1 [2001:db8::1]:1"),
            ("none.test", "host not found"),
            ("", "no host"),
            (":53", "no host"),
            ("[]", "no host"),
            ("127.0.0.1:", "invalid port"),
            ("127.0.0.1:0", "invalid port"),
            ("127.0.0.1:65536", "invalid port"),
            ("127.0.0.1:+53", "invalid port"),
            ("::1", "invalid port"),
            ("[::1]:", "invalid port"),
            ("[::1", "invalid host"),
            ("[::1]53", "invalid host"),
            ("ns.test/x", "invalid host"),
            ("unix:/run/x", "invalid host"),
            ("[x]", "invalid IPv6 address"),
        ] {
            assert_eq!(read(text), told, "{text}");
        }
    }
}
