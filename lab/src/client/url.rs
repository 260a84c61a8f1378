//! URLs of HTTP: `https://host:port/path?query`.
//!
//! Absent: user names, and fragments, which no request carries; names of hosts that are not ASCII. Source: RFC 3986, RFC 9110
//! section 4.2.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use engines::http::parse_decimal;

/// A URL of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Whether it is https.
    pub tls: bool,
    /// The host, in lower case and without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Host and port as `Host` and `:authority` have them: without a port that is the scheme's own.
    pub authority: String,
    /// Path and query.
    pub path: String,
}

impl Url {
    /// Parses a URL.
    ///
    /// # Errors
    /// The fault of the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("\"{text}\" is not a URL: {why}");
        if let Some(c) = text.chars().find(|c| c.is_ascii_control() || *c == ' ') {
            let why = format!("{c:?} must be written as %{:02X}", u32::from(c));
            return Err(wrong(&why));
        }
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| wrong("the scheme is missing: use http:// or https://"))?;
        let (tls, usual_port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => {
                return Err(format!("unknown scheme \"{scheme}\": use http or https"));
            }
        };
        // A fragment is the browser's alone and is never sent.
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if let Some((_, host)) = authority.rsplit_once('@') {
            // The message is logged: it has neither user nor password.
            let why = "send credentials in a field Authorization instead";
            return Err(format!(
                "\"{scheme}://***@{host}{path}\" is not a URL: {why}"
            ));
        }
        let (host, port) = host_and_port(authority).map_err(wrong)?;
        let port = port.unwrap_or(usual_port);
        let shown = match host.contains(':') {
            true => format!("[{host}]"),
            false => host.clone(),
        };
        let authority = match port == usual_port {
            true => shown,
            false => format!("{shown}:{port}"),
        };
        let path = match path {
            "" => "/".to_owned(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_owned(),
        };
        Ok(Self {
            tls,
            host,
            port,
            authority,
            path,
        })
    }

    /// Resolves a reference against this URL: `../a?b`, `//host/`, `https://host/`.
    ///
    /// As in browsers, white space around it and line ends within are removed, and a backslash in the path is a slash.
    /// Characters that are invalid in a URL are written as `%XX`. A fragment is dropped, and the scheme of this URL
    /// before a path (`http:a`) is ignored.
    ///
    /// Source: RFC 3986 section 5.2; WHATWG URL for the differences.
    ///
    /// # Errors
    /// The result has another scheme than HTTP's, or is invalid.
    pub fn join(&self, reference: &str) -> Result<Self, String> {
        let reference = escaped(reference);
        let reference = reference.split('#').next().unwrap_or_default();
        let own = if self.tls { "https" } else { "http" };
        let relative = match scheme(reference) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(own) => rest,
            Some((scheme, _)) => match scheme.to_ascii_lowercase().as_str() {
                "http" | "https" => return Self::parse(reference).map(Self::without_dots),
                _ => return Err(format!("unknown scheme \"{scheme}\"")),
            },
            None => reference,
        };
        if relative.starts_with("//") {
            return Self::parse(&format!("{own}:{relative}")).map(Self::without_dots);
        }
        let (base_path, _) = split_query(&self.path);
        let path = match relative.as_bytes() {
            [] => self.path.clone(),
            [b'?', ..] => format!("{base_path}{relative}"),
            [b'/', ..] => relative.to_owned(),
            _ => {
                let folder = base_path.rfind('/').map_or("/", |at| &base_path[..=at]);
                format!("{folder}{relative}")
            }
        };
        Ok(Self {
            path,
            ..self.clone()
        }
        .without_dots())
    }

    /// Resolves `.` and `..` in its path (RFC 3986 section 5.2.4).
    fn without_dots(mut self) -> Self {
        let (path, query) = split_query(&self.path);
        let mut kept: Vec<&str> = Vec::new();
        let segments = path.strip_prefix('/').unwrap_or(path).split('/');
        let mut ends_in_folder = false;
        for segment in segments {
            ends_in_folder = matches!(segment, "." | "..");
            match segment {
                "." => {}
                ".." => _ = kept.pop(),
                segment => kept.push(segment),
            }
        }
        if ends_in_folder {
            kept.push("");
        }
        self.path = format!("/{}{query}", kept.join("/"));
        self
    }

    /// Returns whether both have the same server.
    #[must_use]
    pub fn same_server(&self, other: &Self) -> bool {
        (self.tls, &self.host, self.port) == (other.tls, &other.host, other.port)
    }

    /// Returns whether its host is an address, not a name.
    #[must_use]
    pub fn is_address(&self) -> bool {
        self.host.parse::<IpAddr>().is_ok()
    }

    /// Returns its addresses in the system's order, at least one. A lookup may take seconds.
    ///
    /// # Errors
    /// There is no such host.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let found = match self.host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => sys::host::addresses(&self.host).unwrap_or_default(),
        };
        if found.is_empty() {
            return Err(format!("no address of the host \"{}\" is known", self.host));
        }
        let with_port = |address| SocketAddr::new(address, self.port);
        Ok(found.into_iter().map(with_port).collect())
    }
}

impl fmt::Display for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(out, "{scheme}://{}{}", self.authority, self.path)
    }
}

/// Returns host and port of an authority. Equivalent spellings of a host become equal (RFC 3986 section 6.2).
///
/// # Errors
/// The fault of the authority.
fn host_and_port(authority: &str) -> Result<(String, Option<u16>), &'static str> {
    // Brackets hold the colons of an IPv6 address.
    let (host, port) = match authority.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(bracketed) => {
            let (host, port) = bracketed.ok_or(NO_ADDRESS)?;
            let address: Ipv6Addr = host.parse().map_err(|_| NO_ADDRESS)?;
            (address.to_string(), port)
        }
        None => {
            let colon = authority.find(':').unwrap_or(authority.len());
            let (host, port) = authority.split_at(colon);
            (host.to_ascii_lowercase(), port)
        }
    };
    if host.is_empty() {
        return Err("the host is missing");
    }
    if matches!(port, "" | ":") {
        return Ok((host, None));
    }
    let digits = port.strip_prefix(':');
    let port = digits.and_then(|digits| parse_decimal(digits.as_bytes()));
    match port.filter(|port| *port != 0) {
        Some(port) => Ok((host, Some(port))),
        None => Err("the port is not a number from 1 to 65535"),
    }
}

const NO_ADDRESS: &str = "the IPv6 address is invalid";

/// Returns the scheme of a reference and the text after the colon; `None` without a scheme.
fn scheme(reference: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = reference.split_once(':')?;
    let others = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let is_one =
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(others);
    is_one.then_some((scheme, rest))
}

/// Splits path and query; the query keeps its question mark.
fn split_query(path: &str) -> (&str, &str) {
    path.split_at(path.find('?').unwrap_or(path.len()))
}

/// The reference without white space around it and without line ends, other characters that no URL has as `%XX`.
fn escaped(reference: &str) -> String {
    let mut text = String::with_capacity(reference.len());
    let mut in_path = true;
    for byte in reference.trim_matches(|c: char| c <= ' ').bytes() {
        in_path &= !matches!(byte, b'?' | b'#');
        match byte {
            b'\t' | b'\r' | b'\n' => {}
            b'\\' if in_path => text.push('/'),
            0..=b' ' | b'"' | b'<' | b'>' | b'`' | 0x7f.. => {
                text.push_str(&format!("%{byte:02X}"));
            }
            byte => text.push(char::from(byte)),
        }
    }
    text
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
    }

    /// RFC 3986 section 6.2: hosts are case-insensitive, and the default port of the scheme is redundant.
    #[test]
    fn spellings_of_one_url_are_one() {
        for (text, expected) in [
            ("HTTP://Host.Example:80/A?B", "http://host.example/A?B"),
            ("https://h:443", "https://h/"),
            ("https://h:80/", "https://h:80/"),
            ("http://h:443/", "http://h:443/"),
            ("http://[0:0::1]:81/a", "http://[::1]:81/a"),
            ("http://[::A]:080", "http://[::a]/"),
        ] {
            let url = Url::parse(text).expect("a URL");
            assert_eq!(url.to_string(), expected, "{text}");
            assert_eq!(Url::parse(expected).as_ref(), Ok(&url), "{text}");
        }
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
            "http://[h]/",
            "http://[]/",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }

    /// Errors are logged, and a user name in a URL comes with a password.
    #[test]
    fn errors_name_no_user() {
        let error = Url::parse("https://u:pass@h:81/a").expect_err("a user");
        assert!(error.contains("\"https://***@h:81/a\""), "{error}");
        assert!(!error.contains("pass"), "{error}");
    }

    fn joined(base: &str, reference: &str) -> String {
        let base = Url::parse(base).expect("a URL");
        let joined = base.join(reference);
        joined.map_or_else(|why| why, |url| url.to_string())
    }

    /// RFC 3986 section 5.4; fragments are never sent, and a host's path is never empty.
    #[test]
    fn references_are_joined_as_the_rfc_says() {
        for (reference, expected) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            ("g?y#s", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"),
            ("g;x", "http://a/b/c/g;x"),
            ("g;x?y#s", "http://a/b/c/g;x?y"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../", "http://a/"),
            ("../../g", "http://a/g"),
            // Section 5.4.2.
            ("../../../g", "http://a/g"),
            ("../../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            (".g", "http://a/b/c/.g"),
            ("g..", "http://a/b/c/g.."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"),
            ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/./x", "http://a/b/c/g?y/./x"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("g#s/../x", "http://a/b/c/g"),
            // For compatibility, as the section allows.
            ("http:g", "http://a/b/c/g"),
        ] {
            assert_eq!(
                joined("http://a/b/c/d;p?q", reference),
                expected,
                "{reference}"
            );
        }
        assert_eq!(joined("http://a/", "g:h"), "unknown scheme \"g\"");
    }

    #[test]
    fn references_of_pages_are_joined_as_browsers_do() {
        let base = "https://[::1]:81/x/y?z";
        for (reference, expected) in [
            (" \n a b.css\t", "https://[::1]:81/x/a%20b.css"),
            ("a\nb?\u{e9}\"<>", "https://[::1]:81/x/ab?%C3%A9%22%3C%3E"),
            ("//h:8080", "https://h:8080/"),
            ("HTTP://h/a/../b", "http://h/b"),
            ("a:b/c", "unknown scheme \"a\""),
            ("data:,x", "unknown scheme \"data\""),
            ("./a:b", "https://[::1]:81/x/a:b"),
            ("1:2", "https://[::1]:81/x/1:2"),
            (r"..\a\b?c\d", r"https://[::1]:81/a/b?c\d"),
            (r"\\h\a", "https://h/a"),
        ] {
            assert_eq!(joined(base, reference), expected, "{reference}");
        }
        assert!(joined(base, "//u@h/").contains("is not a URL"));
        assert!(joined(base, "//").contains("the host is missing"));
    }
}
