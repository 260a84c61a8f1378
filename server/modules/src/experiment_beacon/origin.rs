//! Whether a page of the same origin sent a request, and in the way of `sendBeacon`.
//!
//! Source: WHATWG Fetch, "`Origin` header"; W3C Fetch Metadata; RFC 6454 section 7; W3C Beacon.

use engines::http::FieldId;
use server_http::exchange::Exchange;

/// Returns whether the fields `Origin` and `Sec-Fetch-Site` name the origin of the request. All browsers with `sendBeacon` send
/// the first; a request without it is refused.
pub(super) fn is_same(x: &Exchange) -> bool {
    let mut sites = x.head.named(b"sec-fetch-site");
    if sites.any(|site| site != b"same-origin") {
        return false;
    }
    let mut origins = x.head.fields_by_id(FieldId::Origin);
    match (origins.next(), origins.next()) {
        (Some(origin), None) => {
            let host = (x.target.host.as_slice(), x.target.host_port);
            names(origin, host, x.tls.is_some())
        }
        _ => false,
    }
}

/// Returns whether an origin names a host with its port. Over TLS its scheme must be `https`. A proxy may end TLS in front of
/// a plain connection, so there the scheme may be either.
fn names(origin: &[u8], (host, port): (&[u8], Option<u16>), is_tls: bool) -> bool {
    let (authority, default_port) = match origin {
        [b'h', b't', b't', b'p', b's', b':', b'/', b'/', rest @ ..] => (rest, 443),
        [b'h', b't', b't', b'p', b':', b'/', b'/', rest @ ..] if !is_tls => (rest, 80),
        _ => return false,
    };
    let (name, named_port) = match memchr::memrchr(b':', authority) {
        // Colons of an IPv6 address are in brackets.
        Some(at) if !authority[at..].contains(&b']') => match number(&authority[at + 1..]) {
            Some(port) => (&authority[..at], port),
            None => return false,
        },
        _ => (authority, default_port),
    };
    !name.is_empty()
        && name.eq_ignore_ascii_case(host)
        && named_port == port.unwrap_or(default_port)
}

fn number(text: &[u8]) -> Option<u16> {
    conf::parse_number(text).and_then(|port| u16::try_from(port).ok())
}

/// Returns whether the body is a text, as `sendBeacon` sends a string, without a coding.
pub(super) fn is_text(x: &Exchange) -> bool {
    let mut types = x.head.fields_by_id(FieldId::ContentType);
    let (Some(value), None) = (types.next(), types.next()) else {
        return false;
    };
    let media_type = value.split(|byte| *byte == b';').next();
    media_type.is_some_and(|text| text.trim_ascii().eq_ignore_ascii_case(b"text/plain"))
        && x.head.field(FieldId::ContentEncoding).is_none()
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn origin_is_compared_with_host_and_port() {
        for (origin, host, port) in [
            ("https://example.com", "example.com", None),
            ("https://example.com", "example.com", Some(443)),
            ("https://example.com:443", "example.com", None),
            ("https://example.com:8443", "example.com", Some(8443)),
            ("https://EXAMPLE.com", "example.com", None),
            ("https://[::1]:8443", "[::1]", Some(8443)),
            ("https://[::1]", "[::1]", None),
        ] {
            for is_tls in [false, true] {
                let same = names(origin.as_bytes(), (host.as_bytes(), port), is_tls);
                assert!(same, "{origin} {host} {port:?}");
            }
        }
        for (origin, host, port) in [
            ("https://example.com", "www.example.com", None),
            ("https://www.example.com", "example.com", None),
            ("https://example.com", "example.com", Some(8443)),
            ("https://example.com:8443", "example.com", None),
            ("https://example.com.evil.org", "example.com", None),
            ("https://example.com/", "example.com", None),
            ("https://example.com:", "example.com", None),
            ("https://example.com:70000", "example.com", None),
            ("https://user@example.com", "example.com", None),
            ("ftp://example.com", "example.com", None),
            ("null", "example.com", None),
            ("", "", None),
            ("https://", "", None),
            ("https://[::1]", "[::2]", None),
        ] {
            let same = names(origin.as_bytes(), (host.as_bytes(), port), false);
            assert!(!same, "{origin} {host} {port:?}");
        }
    }

    /// Anybody on the way can serve a page by plain HTTP.
    #[test]
    fn plain_page_is_of_another_origin_over_tls() {
        let host = (&b"example.com"[..], None);
        assert!(!names(b"http://example.com", host, true));
        assert!(names(b"http://example.com", host, false));
    }
}
