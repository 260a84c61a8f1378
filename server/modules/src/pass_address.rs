//! Parses server addresses without scheme and URI, as in `fastcgi_pass` and `memcached_pass`.
//!
//! Source: nginx documentation, directive `fastcgi_pass`; nginx's rules for addresses.

use server_base::address::parse_port;
use server_base::listen::MAX_UNIX_PATH;

/// An address, in the form of the names of groups.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// A name, an IPv4 address, an IPv6 address in brackets, or `unix:` and a path.
    pub(crate) host: String,
    /// The port, if one is written.
    pub(crate) port: Option<u16>,
}

/// Reads `host[:port]`, `[address][:port]` or `unix:path`.
///
/// # Errors
/// The error, in nginx's words.
pub(crate) fn parse(text: &[u8]) -> Result<Address, &'static str> {
    if let Some((schema, path)) = text.split_at_checked(UNIX.len())
        && schema.eq_ignore_ascii_case(UNIX)
    {
        let host = unix_host(path)?;
        return Ok(Address { host, port: None });
    }
    if text.iter().any(|byte| b"/?".contains(byte)) {
        return Err("invalid host");
    }
    parse_inet(text)
}

/// Reads `host[:port]` or `[address][:port]`.
///
/// # Errors
/// The error, in nginx's words.
pub(crate) fn parse_inet(text: &[u8]) -> Result<Address, &'static str> {
    let host_end = match text.first() {
        Some(b'[') => memchr::memchr(b']', text).ok_or("invalid host")? + 1,
        _ => memchr::memchr(b':', text).unwrap_or(text.len()),
    };
    let (host, port) = text.split_at(host_end);
    let port = match port {
        [] => None,
        [b':', digits @ ..] => {
            let digits = str::from_utf8(digits).map_err(|_| "invalid port")?;
            Some(parse_port(digits)?)
        }
        _ => return Err("invalid host"),
    };
    if host.is_empty() || host == b"[]" {
        return Err("no host");
    }
    if host.starts_with(b"[") && !is_ipv6(&host[1..host.len() - 1]) {
        return Err("invalid IPv6 address");
    }
    let host = str::from_utf8(host).map_err(|_| "invalid host")?.to_owned();
    Ok(Address { host, port })
}

/// The host of a UNIX-domain socket with a path.
///
/// # Errors
/// The error in the path, in nginx's words.
pub(crate) fn unix_host(path: &[u8]) -> Result<String, &'static str> {
    match path.len() {
        0 => return Err("no path in the unix domain socket"),
        n if n > MAX_UNIX_PATH => return Err("too long path in the unix domain socket"),
        _ => {}
    }
    let path = str::from_utf8(path).map_err(|_| "invalid host")?;
    Ok(format!("unix:{path}"))
}

/// Whether a text is an IPv6 address, without brackets.
fn is_ipv6(text: &[u8]) -> bool {
    let text = str::from_utf8(text).ok();
    text.is_some_and(|text| text.parse::<std::net::Ipv6Addr>().is_ok())
}

/// Begins the address of a UNIX-domain socket.
pub(crate) const UNIX: &[u8] = b"unix:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_with_a_port_or_a_socket() {
        for (text, host, port) in [
            ("localhost:9000", "localhost", Some(9000)),
            ("group", "group", None),
            ("127.0.0.1:1", "127.0.0.1", Some(1)),
            ("[::1]:65535", "[::1]", Some(65535)),
            ("[::1]", "[::1]", None),
            ("unix:/run/a b?.sock", "unix:/run/a b?.sock", None),
            ("UNIX:/a", "unix:/a", None),
        ] {
            let host = host.to_owned();
            assert_eq!(parse(text.as_bytes()), Ok(Address { host, port }), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_the_words_of_nginx() {
        for (text, why) in [
            ("", "no host"),
            (":80", "no host"),
            ("[]:80", "no host"),
            ("http://a", "invalid host"),
            ("a:80/", "invalid host"),
            ("a?b", "invalid host"),
            ("[::1", "invalid host"),
            ("[::1]80", "invalid host"),
            ("[::g]:80", "invalid IPv6 address"),
            ("a:", "invalid port"),
            ("a:0", "invalid port"),
            ("a:65536", "invalid port"),
            ("unix:", "no path in the unix domain socket"),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(why), "{text}");
        }
        let long = [UNIX, &[b'a'; MAX_UNIX_PATH + 1]].concat();
        assert_eq!(parse(&long), Err("too long path in the unix domain socket"));
        assert!(parse(&long[..long.len() - 1]).is_ok());
        assert_eq!(parse(b"\xff:80"), Err("invalid host"));
        assert_eq!(parse(b"a:\xff"), Err("invalid port"));
    }
}
