//! Parses the HTTP URL of a responder.
//!
//! Source: nginx documentation, `ssl_stapling_responder`; RFC 3986.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use server_base::address::{Lookup, parse_endpoint};

/// The parts of a URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Url {
    /// The host as written, without the port.
    pub(super) host: String,
    pub(super) port: u16,
    /// Its addresses; empty if the name is resolved later.
    pub(super) addresses: Vec<SocketAddr>,
    /// The text after the host.
    pub(super) path: String,
}

impl Url {
    /// Parses a URL. A host name is resolved now, unless `resolved_later` is set.
    ///
    /// # Errors
    /// nginx's error text.
    pub(super) fn parse(
        url: &str,
        resolved_later: bool,
        lookup: Lookup<'_>,
    ) -> Result<Self, &'static str> {
        let scheme = url.get(..SCHEME.len());
        let rest = match scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME)) {
            true => &url[SCHEME.len()..],
            false => return Err("invalid URL prefix"),
        };
        // The rest becomes part of a request line unchanged.
        if !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("invalid URL");
        }
        let (endpoint, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let path = path.split('#').next().unwrap_or_default();
        if endpoint.contains('@') {
            return Err("invalid host");
        }
        let mut is_name = false;
        let mut addresses = parse_endpoint(endpoint, HTTP_PORT, &mut |host| {
            is_name = true;
            match resolved_later {
                // Only the port is used.
                true => Some(vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED)]),
                false => lookup(host),
            }
        })?;
        let port = addresses.first().map_or(HTTP_PORT, SocketAddr::port);
        if is_name && resolved_later {
            addresses.clear();
        }
        let host = match endpoint.rfind([':', ']']) {
            Some(at) if endpoint[at..].starts_with(':') => &endpoint[..at],
            _ => endpoint,
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self {
            host: host.to_owned(),
            port,
            addresses,
            path: format!("{slash}{path}"),
        })
    }

    /// The value of the field `Host`.
    pub(super) fn host_field(&self) -> String {
        match self.port {
            HTTP_PORT => self.host.clone(),
            port => format!("{}:{port}", self.host),
        }
    }
}

const SCHEME: &str = "http://";
const HTTP_PORT: u16 = 80;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str, resolved_later: bool) -> String {
        let mut lookup = |host: &str| {
            let ip = "192.0.2.1".parse().expect("an address");
            (host == "ocsp.test").then(|| vec![ip])
        };
        match Url::parse(url, resolved_later, &mut lookup) {
            Ok(place) => {
                let addresses: Vec<_> = place.addresses.iter().map(SocketAddr::to_string).collect();
                format!(
                    "{} {} [{}]",
                    place.host_field(),
                    place.path,
                    addresses.join(" ")
                )
            }
            Err(error) => error.to_owned(),
        }
    }

    #[test]
    fn responders_are_read_as_nginx_reads_them() {
        for (url, told) in [
            ("http://127.0.0.1", "127.0.0.1 / [127.0.0.1:80]"),
            (
                "http://127.0.0.1:8081/",
                "127.0.0.1:8081 / [127.0.0.1:8081]",
            ),
            ("HTTP://ocsp.test/a/b", "ocsp.test /a/b [192.0.2.1:80]"),
            (
                "http://ocsp.test:81/a?b#c",
                "ocsp.test:81 /a?b [192.0.2.1:81]",
            ),
            ("http://ocsp.test?a", "ocsp.test /?a [192.0.2.1:80]"),
            ("http://[::1]", "[::1] / [[::1]:80]"),
            ("http://[::1]:81/x", "[::1]:81 /x [[::1]:81]"),
            ("http://none.test/", "host not found"),
            ("http://ocsp.test:0/", "invalid port"),
            ("http://", "no host"),
            ("http:///x", "no host"),
            ("http://me@ocsp.test/", "invalid host"),
            ("http://ocsp.test/ x", "invalid URL"),
            ("http://ocsp.test/\r\nX: y", "invalid URL"),
            ("https://ocsp.test/", "invalid URL prefix"),
            ("ocsp.test", "invalid URL prefix"),
            ("", "invalid URL prefix"),
        ] {
            assert_eq!(read(url, false), told, "{url}");
        }
    }

    #[test]
    fn names_are_left_to_name_servers_where_there_are_any() {
        for (url, told) in [
            ("http://none.test:81/x", "none.test:81 /x []"),
            ("http://127.0.0.1:81/x", "127.0.0.1:81 /x [127.0.0.1:81]"),
            ("http://none.test:x/", "invalid port"),
        ] {
            assert_eq!(read(url, true), told, "{url}");
        }
    }
}
