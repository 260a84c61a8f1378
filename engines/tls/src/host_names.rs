//! Whether a server's certificate is valid for a host.
//!
//! The rules are those of OpenSSL's `X509_check_host`, which nginx uses: names of the extension `subjectAltName`, or
//! without such names the common names of the subject. Two differences: a wildcard is a whole first label, and an IP
//! address is also compared with the addresses of `subjectAltName`.
//!
//! Source: RFC 9525 section 6, RFC 5280 section 4.2.1.6, X509_check_host(3).

use std::net::IpAddr;

use super::x509::{Certificate, der, dn};

/// Whether a certificate is valid for a host: a name, or an IP address with or without brackets.
pub(crate) fn is_valid_for(certificate: &Certificate<'_>, host: &[u8]) -> bool {
    if host.is_empty() {
        return false;
    }
    let mut has_names = false;
    let mut names = der::Reader::new(certificate.extensions.alt_names.unwrap_or_default());
    let address = address_of(host);
    while let Some(name) = names.value() {
        match name.tag {
            DNS_NAME => {
                has_names = true;
                if matches(name.body, host) {
                    return true;
                }
            }
            IP_ADDRESS if address.is_some_and(|ip| is_address(name.body, ip)) => return true,
            _ => {}
        }
    }
    let common = || dn::common_names(certificate.subject);
    !has_names && common().iter().any(|name| matches(name.as_bytes(), host))
}

/// Whether hosts are compared with the common names of a certificate, since it has no other names.
pub(crate) fn relies_on_common_name(certificate: &Certificate<'_>) -> bool {
    let mut names = der::Reader::new(certificate.extensions.alt_names.unwrap_or_default());
    while let Some(name) = names.value() {
        if name.tag == DNS_NAME {
            return false;
        }
    }
    !dn::common_names(certificate.subject).is_empty()
}

fn address_of(host: &[u8]) -> Option<IpAddr> {
    let bare = host.strip_prefix(b"[").and_then(|h| h.strip_suffix(b"]"));
    str::from_utf8(bare.unwrap_or(host)).ok()?.parse().ok()
}

fn is_address(bytes: &[u8], ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => bytes == ip.octets(),
        IpAddr::V6(ip) => bytes == ip.octets(),
    }
}

/// Whether a name of a certificate covers a host.
fn matches(pattern: &[u8], host: &[u8]) -> bool {
    let Some(suffix) = pattern.strip_prefix(b"*").filter(|rest| is_suffix(rest)) else {
        return pattern.eq_ignore_ascii_case(host);
    };
    let Some(end) = memchr_dot(host) else {
        return false;
    };
    let (label, rest) = host.split_at(end);
    let is_label = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    !label.is_empty() && label.iter().all(is_label) && rest.eq_ignore_ascii_case(suffix)
}

/// Whether a text may follow a wildcard: a dot and at least two labels of letters, digits and hyphens.
fn is_suffix(text: &[u8]) -> bool {
    let Some(labels) = text.strip_prefix(b".") else {
        return false;
    };
    let is_label = |label: &[u8]| {
        let inner = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        !label.is_empty()
            && label.iter().all(inner)
            && !label.starts_with(b"-")
            && !label.ends_with(b"-")
    };
    let mut labels = labels.split(|byte| *byte == b'.');
    labels.clone().count() >= WILDCARD_LABELS_MIN && labels.all(is_label)
}

fn memchr_dot(host: &[u8]) -> Option<usize> {
    host.iter().position(|byte| *byte == b'.')
}

/// Labels behind a wildcard, at least: a certificate for `*.com` is valid for no host.
const WILDCARD_LABELS_MIN: usize = 2;
/// `dNSName` in a general name.
const DNS_NAME: u8 = 0x82;
/// `iPAddress` in a general name.
const IP_ADDRESS: u8 = 0x87;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_matches_itself_in_any_case() {
        assert!(matches(b"a.test", b"A.Test"));
        assert!(!matches(b"a.test", b"b.a.test") && !matches(b"b.a.test", b"a.test"));
    }

    #[test]
    fn wildcard_is_one_whole_first_label() {
        assert!(matches(b"*.example.com", b"a.example.com"));
        assert!(matches(b"*.Example.com", b"A.example.COM"));
        for (pattern, host) in [
            (&b"*.example.com"[..], &b"example.com"[..]),
            (b"*.example.com", b".example.com"),
            (b"*.example.com", b"a.b.example.com"),
            (b"*.com", b"example.com"),
            (b"*", b"localhost"),
            (b"f*.example.com", b"foo.example.com"),
            (b"*o.example.com", b"foo.example.com"),
            (b"a.*.example.com", b"a.b.example.com"),
            (b"*.exa mple.com", b"a.exa mple.com"),
            (b"*.-a.com", b"b.-a.com"),
            (b"*.a..com", b"b.a..com"),
        ] {
            assert!(!matches(pattern, host), "{}", host.escape_ascii());
        }
    }

    #[test]
    fn addresses_are_compared_as_numbers() {
        let v6 = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        for host in ["::1", "[::1]", "[0:0::1]"] {
            let ip = address_of(host.as_bytes());
            assert!(ip.is_some_and(|ip| is_address(&v6, ip)), "{host}");
        }
        let ip = address_of(b"127.0.0.1").expect("an address");
        assert!(is_address(&[127, 0, 0, 1], ip) && !is_address(&[127, 0, 0, 2], ip));
        assert_eq!(address_of(b"localhost"), None);
    }
}
