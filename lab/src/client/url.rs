//! URLs of HTTP: `https://host:port/path?query`.
//!
//! Absent: user names, and fragments, which no request carries. Source: RFC 3986, RFC 9110 section 4.2.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// A URL of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Whether it is https.
    pub tls: bool,
    /// The host, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Host and port as `Host` and `:authority` have them.
    pub authority: String,
    /// Path and query.
    pub path: String,
}

impl Url {
    /// Reads a URL.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("\"{text}\" is no URL: {why}");
        if let Some(c) = text.chars().find(|c| c.is_ascii_control() || *c == ' ') {
            let why = format!("{c:?} is written %{:02X} in one", u32::from(c));
            return Err(wrong(&why));
        }
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| wrong("it has no scheme, as in http://localhost/"))?;
        let (tls, usual_port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => {
                return Err(format!(
                    "unknown scheme \"{scheme}\": http and https are served"
                ));
            }
        };
        // A fragment is the browser's alone and is never sent.
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(wrong("a user is sent in a field: -H 'Authorization: ...'"));
        }
        // Brackets hold the colons of an IPv6 address.
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => bracketed
                .split_once(']')
                .ok_or_else(|| wrong("its address is none"))?,
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        let port = match port {
            "" | ":" => usual_port,
            port => port
                .strip_prefix(':')
                .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|digits| digits.parse().ok())
                .filter(|port| *port != 0)
                .ok_or_else(|| wrong("its port is no number from 1 to 65535"))?,
        };
        let path = match path {
            "" => "/".to_owned(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_owned(),
        };
        Ok(Self {
            tls,
            host: host.to_owned(),
            port,
            authority: authority.to_owned(),
            path,
        })
    }

    /// Whether both are of one server.
    #[must_use]
    pub fn same_server(&self, other: &Self) -> bool {
        (self.tls, &self.host, self.port) == (other.tls, &other.host, other.port)
    }

    /// The first of its addresses.
    ///
    /// # Errors
    /// There is no such host.
    pub fn address(&self) -> Result<SocketAddr, String> {
        let found = sys::host::addresses(&self.host);
        let found = found.and_then(|list| {
            let first = list.first().copied();
            first.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        });
        match found {
            Ok(address) => Ok(SocketAddr::new(address, self.port)),
            Err(_) => Err(format!("no address of the host \"{}\" is known", self.host)),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(out, "{scheme}://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (bool, String, u16, String) {
        let url = Url::parse(text).expect("a URL");
        (url.tls, url.host, url.port, url.path)
    }

    #[test]
    fn urls_are_read() {
        let expected = (true, "h".to_owned(), 443, "/".to_owned());
        assert_eq!(parts("https://h"), expected);
        assert_eq!(
            parts("http://[::1]:81/a?b#c"),
            (false, "::1".into(), 81, "/a?b".into())
        );
        assert_eq!(parts("HTTP://h:8080?q").3, "/?q");
        assert_eq!(
            Url::parse("http://[::1]:81/a").expect("a URL").to_string(),
            "http://[::1]:81/a"
        );
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "h",
            "ftp://h",
            "http://",
            "http://u@h/",
            "http://h:0/",
            "http://h:+1/",
            "http://[::1]81/",
            "http://h:x/",
            "http://h/a b",
            "http://[h/",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }
}
