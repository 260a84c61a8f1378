//! The URL of the request: the destination of the connection, and the sent parts.
//!
//! Names are not resolved, since nothing is opened. An address is known only if the URL contains it, or the name is
//! `localhost`. Source: RFC 3986, RFC 9110, section 4.2.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// A URL of the scheme `http` or `https`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    /// The connection has TLS.
    pub(super) tls: bool,
    /// Destination of the connection.
    pub(super) destination: Endpoint,
    /// Value of the field `Host`.
    pub(super) host: String,
    /// Path and query, as sent.
    pub(super) target: String,
}

/// Destination of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// A port, at this address if it is known.
    Inet(Option<IpAddr>, u16),
    /// A UNIX-domain socket.
    Unix(PathBuf),
}

impl Url {
    /// Parses a URL.
    ///
    /// # Errors
    /// It is not a URL, or has an unsupported scheme.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (_, rest) = text.split_once("://").unwrap_or_default();
        let is_socket = rest.starts_with("unix:");
        if is_socket && !rest.starts_with("unix:/") {
            return Err(format!(
                "invalid URL \"{text}\": the path of a socket must be absolute: http://unix:/path:/uri"
            ));
        }
        let url = lab::client::Url::parse(text)?;
        if is_socket {
            let (path, target) = url.path.split_once(':').unwrap_or((&url.path, ""));
            return Ok(Self {
                tls: url.tls,
                destination: Endpoint::Unix(PathBuf::from(path)),
                host: "localhost".to_owned(),
                target: match target.starts_with('/') {
                    true => target.to_owned(),
                    false => format!("/{target}"),
                },
            });
        }
        let ip = match url.host.as_str() {
            "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            host => host.parse().ok(),
        };
        Ok(Self {
            tls: url.tls,
            destination: Endpoint::Inet(ip, url.port),
            host: url.authority,
            target: url.path,
        })
    }
}

impl Url {
    /// Returns the server name in the handshake: the host, unless it is an address (RFC 6066, section 3).
    pub(super) fn server_name(&self) -> Option<String> {
        let name = self.host.split(':').next()?;
        let is_address = self.host.starts_with('[') || name.parse::<IpAddr>().is_ok();
        (!is_address).then(|| name.trim_end_matches('.').to_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (Endpoint, String, String) {
        let url = Url::parse(text).expect("a URL");
        (url.destination, url.host, url.target)
    }

    fn inet(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn a_url_has_host_port_and_target() {
        let url = |ip, port, host: &str, target: &str| {
            (Endpoint::Inet(ip, port), host.to_owned(), target.to_owned())
        };
        assert_eq!(parts("http://a.test"), url(None, 80, "a.test", "/"));
        assert_eq!(parts("HTTP://a.test:80/x"), url(None, 80, "a.test", "/x"));
        assert_eq!(parts("http://a:81?b#c"), url(None, 81, "a:81", "/?b"));
        assert_eq!(parts("http://a:/"), url(None, 80, "a", "/"));
        assert_eq!(
            parts("http://192.0.2.1/a:b@c"),
            url(inet("192.0.2.1"), 80, "192.0.2.1", "/a:b@c")
        );
        assert_eq!(
            parts("http://[::1]:8080/"),
            url(inet("::1"), 8080, "[::1]:8080", "/")
        );
        assert_eq!(
            parts("http://localhost/"),
            url(inet("127.0.0.1"), 80, "localhost", "/")
        );
    }

    #[test]
    fn https_has_its_port_and_asks_for_a_name() {
        let url = |text| Url::parse(text).expect("a URL");
        for (text, host, port, name) in [
            ("https://A.test", "a.test", 443, Some("a.test")),
            ("HTTPS://a.test.:443/x", "a.test.", 443, Some("a.test")),
            ("https://a.test:80/", "a.test:80", 80, Some("a.test")),
            ("https://192.0.2.1:8443/", "192.0.2.1:8443", 8443, None),
            ("https://[::1]/", "[::1]", 443, None),
        ] {
            let url = url(text);
            assert_eq!((url.tls, url.host.as_str()), (true, host));
            assert!(matches!(url.destination, Endpoint::Inet(_, n) if n == port));
            assert_eq!(url.server_name().as_deref(), name, "{text}");
        }
        assert!(!url("http://a:443/").tls);
        assert_eq!(url("http://a:443/").host, "a:443");
    }

    #[test]
    fn a_socket_has_a_path() {
        let socket = Endpoint::Unix("/run/a.sock".into());
        let expected = (socket.clone(), "localhost".to_owned(), "/b?c".to_owned());
        assert_eq!(parts("http://unix:/run/a.sock:/b?c"), expected);
        assert_eq!(parts("http://unix:/run/a.sock").0, socket);
    }

    #[test]
    fn what_is_no_url_is_told_why() {
        for (text, why) in [
            ("localhost/x", "the scheme is missing"),
            ("ftp://a/", "unknown scheme \"ftp\""),
            ("http:///x", "the host is missing"),
            ("http://a:0/", "the port"),
            ("http://a:65536/", "the port"),
            ("http://a:+1/", "the port"),
            ("http://u:p@a/", "Authorization"),
            ("http://[::1/", "the IPv6 address"),
            ("http://[a]/", "the IPv6 address"),
            ("http://a/b c", "' ' must be written as %20"),
            ("http://a/b\n", "'\\n' must be written as %0A"),
            ("http://unix:a:/", "absolute"),
        ] {
            let error = Url::parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
