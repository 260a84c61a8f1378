//! Listening addresses and the socket options of `listen`, as data: parsed here, opened by the driver.
//!
//! Source: nginx documentation, `ngx_http_core_module`, directive `listen`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use crate::address::{Lookup, host_addresses, parse_port};

/// The address on which a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListenAddr {
    /// An IPv4 or IPv6 address and port.
    Inet(SocketAddr),
    /// The path of a UNIX-domain socket.
    Unix(PathBuf),
}

impl fmt::Display for ListenAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inet(addr) => write!(f, "{addr}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl ListenAddr {
    /// The port number, 0 for a UNIX-domain socket.
    pub fn port(&self) -> u16 {
        match self {
            Self::Inet(addr) => addr.port(),
            Self::Unix(_) => 0,
        }
    }

    /// Whether the address is the wildcard of its family.
    pub fn is_wildcard(&self) -> bool {
        matches!(self, Self::Inet(addr) if addr.ip().is_unspecified())
    }
}

/// TCP keepalive as `so_keepalive` sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// SO_KEEPALIVE on or off.
    pub on: bool,
    /// TCP_KEEPIDLE in seconds.
    pub idle_s: Option<u32>,
    /// TCP_KEEPINTVL in seconds.
    pub interval_s: Option<u32>,
    /// TCP_KEEPCNT, number of probes.
    pub count: Option<u32>,
}

/// Socket options of one `listen` address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Length of the accept queue.
    pub backlog: i32,
    /// SO_RCVBUF in bytes.
    pub rcvbuf: Option<u32>,
    /// SO_SNDBUF in bytes.
    pub sndbuf: Option<u32>,
    /// TCP_DEFER_ACCEPT.
    pub deferred: bool,
    /// IPV6_V6ONLY.
    pub ipv6only: bool,
    /// One listening socket for each worker thread (SO_REUSEPORT).
    pub reuseport: bool,
    /// Multipath TCP (RFC 8684) instead of TCP.
    pub multipath: bool,
    /// TCP keepalive, if configured.
    pub keepalive: Option<KeepAlive>,
    /// TCP_FASTOPEN queue length.
    pub fastopen: Option<i32>,
    /// Users with access to a UNIX-domain socket.
    pub access: UnixAccess,
}

/// Users with access to a UNIX-domain socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnixAccess {
    /// All: the mode of its file is 0666.
    Everybody,
    /// Its owner: the mode is 0600.
    Owner,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            backlog: DEFAULT_BACKLOG,
            rcvbuf: None,
            sndbuf: None,
            deferred: false,
            ipv6only: true,
            reuseport: false,
            multipath: false,
            keepalive: None,
            fastopen: None,
            access: UnixAccess::Everybody,
        }
    }
}

/// One address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address.
    pub addr: ListenAddr,
    /// Its socket options.
    pub options: SocketOptions,
}

impl Listen {
    /// Returns the text by which sockets are matched: the address, and whether it takes IPv4 as well. Neither can be changed on
    /// a bound socket.
    pub fn key(&self) -> String {
        match self.is_dual() {
            true => format!("{} ipv6only=off", self.addr),
            false => self.addr.to_string(),
        }
    }

    /// Returns whether one socket can serve both.
    pub fn shares_socket(&self, other: &Self) -> bool {
        self.addr == other.addr && self.is_dual() == other.is_dual()
    }

    /// Whether connections to the address `local` come to this socket, if it is the only one on its port.
    pub fn covers(&self, local: SocketAddr) -> bool {
        let ListenAddr::Inet(own) = self.addr else {
            return false;
        };
        let ip = local.ip().to_canonical();
        let has_address = match own.ip() {
            IpAddr::V4(any) if any.is_unspecified() => ip.is_ipv4(),
            IpAddr::V6(any) if any.is_unspecified() => ip.is_ipv6() || self.is_dual(),
            only => only.to_canonical() == ip,
        };
        own.port() == local.port() && has_address
    }

    /// Whether some address and port belongs to both. The kernel refuses to bind both, unless they share it.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (ListenAddr::Inet(own), ListenAddr::Inet(theirs)) = (&self.addr, &other.addr) else {
            return self.addr == other.addr;
        };
        // Two wildcard addresses of one port overlap unless each has a family for itself.
        let are_wildcards = self.addr.is_wildcard() && other.addr.is_wildcard();
        let is_shared = own.is_ipv4() == theirs.is_ipv4() || self.is_dual() || other.is_dual();
        match are_wildcards {
            true => own.port() == theirs.port() && is_shared,
            false => self.covers(*theirs) || other.covers(*own),
        }
    }

    fn is_dual(&self) -> bool {
        let is_v6 = matches!(self.addr, ListenAddr::Inet(addr) if addr.is_ipv6());
        is_v6 && self.addr.is_wildcard() && !self.options.ipv6only
    }
}

/// Parses the address part of `listen`: `80`, `*:80`, `127.0.0.1`, `[::]:8080-8090`, `localhost:80`, `unix:/path`. A
/// port range yields several addresses.
///
/// # Errors
/// nginx's text after `in "..."`: "invalid port", "no host", "host not found", ...
pub fn parse_address(text: &str, lookup: Lookup<'_>) -> Result<Vec<ListenAddr>, &'static str> {
    let unix = text.split_at_checked(5);
    if let Some((_, path)) = unix.filter(|(kind, _)| kind.eq_ignore_ascii_case("unix:")) {
        return match path.len() {
            0 => Err("no path in the unix domain socket"),
            n if n > MAX_UNIX_PATH => Err("too long path in the unix domain socket"),
            _ => Ok(vec![ListenAddr::Unix(PathBuf::from(path))]),
        };
    }
    let (ips, (first, last)) = match text.strip_prefix('[') {
        Some(rest) => parse_inet6(rest)?,
        None => {
            let (host, ports) = parse_inet(text)?;
            (resolve_host(host, lookup)?, ports)
        }
    };
    let mut out = Vec::new();
    for port in first..=last {
        for ip in &ips {
            out.push(ListenAddr::Inet(SocketAddr::new(*ip, port)));
        }
    }
    Ok(out)
}

/// First and last port.
type Ports = (u16, u16);

/// Reads an IPv6 address and its ports, from after the opening bracket.
fn parse_inet6(text: &str) -> Result<(Vec<IpAddr>, Ports), &'static str> {
    let (host, tail) = text.split_once(']').ok_or("invalid host")?;
    let ports = match tail.strip_prefix(':') {
        _ if tail.contains('/') => return Err("invalid host"),
        Some(ports) => parse_ports(ports)?,
        None if tail.is_empty() => DEFAULT_PORTS,
        None => return Err("invalid host"),
    };
    if host.is_empty() {
        return Err("no host");
    }
    let ip: Ipv6Addr = host.parse().map_err(|_| "invalid IPv6 address")?;
    Ok((vec![ip.into()], ports))
}

/// Splits `host:port`; a bare number is a port, a bare host listens on port 80.
///
/// The first colon ends the host, so that an IPv6 address needs brackets.
fn parse_inet(text: &str) -> Result<(&str, Ports), &'static str> {
    if text.contains(['/', '?']) {
        return Err("invalid host");
    }
    if let Some((host, ports)) = text.split_once(':') {
        return Ok((host, parse_ports(ports)?));
    }
    let is_number = |text: &str| conf::parse_number(text.as_bytes()).is_some();
    let only_ports = match text.split_once('-') {
        Some((first, last)) => is_number(first) && is_number(last),
        None => is_number(text),
    };
    match only_ports {
        true => Ok(("*", parse_ports(text)?)),
        false => Ok((text, DEFAULT_PORTS)),
    }
}

fn parse_ports(text: &str) -> Result<Ports, &'static str> {
    let Some((first, last)) = text.split_once('-') else {
        return parse_port(text).map(|port| (port, port));
    };
    let (last, first) = (parse_port(last)?, parse_port(first)?);
    if first > last {
        return Err("invalid port range");
    }
    Ok((first, last))
}

fn resolve_host(host: &str, lookup: Lookup<'_>) -> Result<Vec<IpAddr>, &'static str> {
    if host == "*" {
        return Ok(vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED)]);
    }
    host_addresses(host, lookup)
}

const DEFAULT_PORTS: Ports = (80, 80);

/// nginx's default accept queue on Linux.
pub const DEFAULT_BACKLOG: i32 = 511;
/// Longest path of a UNIX-domain socket on Linux, without the final NUL.
pub const MAX_UNIX_PATH: usize = 107;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<ListenAddr>, &'static str> {
        parse_address(text, &mut |host| {
            (host == "localhost").then(|| vec![[127, 0, 0, 1].into()])
        })
    }

    fn one(text: &str) -> String {
        read(text)
            .map(|v| v[0].to_string())
            .unwrap_or_else(|e| e.to_owned())
    }

    fn listen(text: &str, ipv6only: bool) -> Listen {
        Listen {
            addr: read(text).expect("an address").remove(0),
            options: SocketOptions {
                ipv6only,
                ..SocketOptions::default()
            },
        }
    }

    #[test]
    fn addresses_that_contain_others_overlap() {
        let cases = [
            ("127.0.0.1:80", "80", true),
            ("127.0.0.1:80", "81", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("[::1]:80", "[::]:80", true),
            ("[::1]:80", "80", false),
            ("80", "[::]:80", false),
            ("127.0.0.1:80", "[::]:80", false),
            ("unix:/a", "unix:/b", false),
            ("unix:/a", "80", false),
        ];
        for (one, other, overlaps) in cases {
            let (one, other) = (listen(one, true), listen(other, true));
            assert_eq!(one.overlaps(&other), overlaps, "{one:?} {other:?}");
            assert_eq!(other.overlaps(&one), overlaps, "{other:?} {one:?}");
        }
    }

    #[test]
    fn wildcard_of_both_families_overlaps_all_of_its_port() {
        let both = listen("[::]:80", false);
        for (text, overlaps) in [
            ("127.0.0.1:80", true),
            ("80", true),
            ("[::1]:80", true),
            ("[::]:80", true),
            ("127.0.0.1:81", false),
        ] {
            let other = listen(text, true);
            assert_eq!(both.overlaps(&other), overlaps, "{text}");
            assert!(!both.shares_socket(&other), "{text}");
            assert_ne!(both.key(), other.key(), "{text}");
        }
        // For one address it means nothing.
        assert!(listen("[::1]:80", false).shares_socket(&listen("[::1]:80", true)));
    }

    #[test]
    fn local_address_is_covered_by_its_listener() {
        let cases = [
            ("80", true, "127.0.0.1:80", true),
            ("80", true, "127.0.0.1:81", false),
            ("80", true, "[::1]:80", false),
            ("[::]:80", true, "127.0.0.1:80", false),
            ("[::]:80", false, "127.0.0.1:80", true),
            // An IPv4 address as a socket of both families has it.
            ("80", true, "[::ffff:127.0.0.1]:80", true),
            ("127.0.0.1:80", true, "[::ffff:127.0.0.1]:80", true),
            ("127.0.0.1:80", true, "127.0.0.2:80", false),
            ("unix:/a", true, "127.0.0.1:80", false),
        ];
        for (text, ipv6only, local, covers) in cases {
            let local = local.parse().expect("an address");
            assert_eq!(
                listen(text, ipv6only).covers(local),
                covers,
                "{text} {local}"
            );
        }
    }

    #[test]
    fn addresses_are_read_as_nginx_reads_them() {
        assert_eq!(one("80"), "0.0.0.0:80");
        assert_eq!(one("*:8000"), "0.0.0.0:8000");
        assert_eq!(one("127.0.0.1"), "127.0.0.1:80");
        assert_eq!(one("[::1]:8080"), "[::1]:8080");
        assert_eq!(one("[::]"), "[::]:80");
        assert_eq!(one("unix:/run/x.sock"), "unix:/run/x.sock");
        assert_eq!(one("127.0.0.1:0"), "invalid port");
        assert_eq!(one("127.0.0.1:65536"), "invalid port");
        assert_eq!(one("127.0.0.1:20-10"), "invalid port range");
        assert_eq!(one("localhost:8080"), "127.0.0.1:8080");
        assert_eq!(one("elsewhere"), "host not found");
        assert_eq!(read("127.0.0.1:8000-8003").map(|v| v.len()), Ok(4));
        assert_eq!(read("8000-8003").map(|v| v.len()), Ok(4));
        assert_eq!(one("UNIX:/run/x.sock"), "unix:/run/x.sock");
    }

    #[test]
    fn a_port_has_digits_alone() {
        for text in [
            "127.0.0.1:+80",
            "127.0.0.1:80-+90",
            "127.0.0.1:-80",
            "127.0.0.1:",
            "[::1]:+80",
            "[::1]:",
            "*:+80",
            "0",
            "65536",
            "80-65536",
        ] {
            assert_eq!(one(text), "invalid port", "{text}");
        }
        assert_eq!(one("90-80"), "invalid port range");
        for name in ["+80", "80-", "80-+90", "80-90-95", "-"] {
            assert_eq!(one(name), "host not found", "{name}");
        }
    }

    #[test]
    fn an_ipv6_address_needs_brackets() {
        for text in ["::1:80", "::1", "::", "fe80::1"] {
            assert_eq!(one(text), "invalid port", "{text}");
        }
        for text in ["[::1", "[::1]80", "[::1]/", "127.0.0.1/", "a?:80"] {
            assert_eq!(one(text), "invalid host", "{text}");
        }
        for text in ["[]", "[]:80", ":80"] {
            assert_eq!(one(text), "no host", "{text}");
        }
        assert_eq!(one("[127.0.0.1]:80"), "invalid IPv6 address");
    }

    #[test]
    fn unix_path_is_limited() {
        let at = format!("unix:/{}", "a".repeat(MAX_UNIX_PATH - 1));
        assert!(read(&at).is_ok());
        assert!(read(&format!("{at}a")).is_err());
    }
}
