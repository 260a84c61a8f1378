//! Servers that speak TLS to clients of plain HTTP, and the reverse.
//!
//! Both are recognised by the first bytes of the server. A server that closes without a byte is not recognised.
//!
//! Source: RFC 8446 section 5.1, RFC 9113 section 3.4, the error pages of nginx, Apache httpd and Go's net/http.

/// The reason why the first bytes of a server are no TLS; `None` if they may be.
pub(crate) fn instead_of_tls(first: &[u8]) -> Option<&'static str> {
    if first.starts_with(b"HTTP/") {
        return Some(PLAIN_HTTP);
    }
    if let [_, _, _, SETTINGS, flags, 0, 0, 0, 0, ..] = first
        && *flags == 0
    {
        return Some(PLAIN_HTTP2);
    }
    let is_record = |kind: &u8| (CHANGE_CIPHER_SPEC..=APPLICATION_DATA).contains(kind);
    let is_other = first.first().is_some_and(|kind| !is_record(kind));
    is_other.then_some(NO_TLS)
}

/// The reason why the first bytes of a server are no answer to plain HTTP, if it expects TLS: an alert, or an error page.
pub(crate) fn instead_of_plain(first: &[u8]) -> Option<&'static str> {
    if let [ALERT | HANDSHAKE, 3, 0..=4, ..] = first {
        return Some(TLS);
    }
    let status = first
        .strip_prefix(b"HTTP/1.")
        .and_then(|rest| rest.get(2..5));
    if !matches!(status, Some(b"400" | b"497")) {
        return None;
    }
    let text = String::from_utf8_lossy(&first[..first.len().min(PAGE_BYTES)]);
    PAGES.iter().any(|page| text.contains(page)).then_some(TLS)
}

/// Parts of the pages with which servers of TLS answer plain HTTP.
const PAGES: [&str; 3] = [
    "plain HTTP request was sent to HTTPS port",
    "speaking plain HTTP to an SSL-enabled server port",
    "Client sent an HTTP request to an HTTPS server",
];
/// Bytes of a page that are searched: these pages have fewer.
const PAGE_BYTES: usize = 4096;

const PLAIN_HTTP: &str = "the server speaks plain HTTP at this port: use http://";
const PLAIN_HTTP2: &str = "the server speaks plain HTTP/2 at this port: use http://";
const NO_TLS: &str = "the server does not speak TLS at this port";
const TLS: &str = "the server speaks TLS at this port: use https://";

/// Types of TLS records.
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
/// The type of the frame that an HTTP/2 server sends first.
const SETTINGS: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_servers_are_recognised_by_their_first_bytes() {
        for (first, expected) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], Some(PLAIN_HTTP)),
            (b"\0\0\x12\x04\0\0\0\0\0", Some(PLAIN_HTTP2)),
            (b"SSH-2.0-OpenSSH_9.2\r\n", Some(NO_TLS)),
            (b"\x16\x03\x03\0\x7a", None),
            (b"\x15\x03\x03\0\x02\x02\x28", None),
            (b"", None),
        ] {
            assert_eq!(instead_of_tls(first), expected, "{first:?}");
        }
    }

    #[test]
    fn servers_of_tls_are_recognised_by_alerts_and_pages() {
        let page = |status: &str, text: &str| format!("HTTP/1.1 {status} x\r\n\r\n{text}");
        for text in PAGES {
            assert_eq!(instead_of_plain(page("400", text).as_bytes()), Some(TLS));
            assert_eq!(instead_of_plain(page("200", text).as_bytes()), None);
        }
        assert_eq!(instead_of_plain(page("400", "no host").as_bytes()), None);
        let far = |bytes: usize| page("400", &" ".repeat(bytes)) + PAGES[0];
        let room = PAGE_BYTES - far(0).len();
        assert_eq!(instead_of_plain(far(room).as_bytes()), Some(TLS));
        assert_eq!(instead_of_plain(far(room + 1).as_bytes()), None);
        assert_eq!(instead_of_plain(b"\x15\x03\x01\0\x02\x02\x46"), Some(TLS));
        assert_eq!(instead_of_plain(b"\x16\x03\x03\0\x7a"), Some(TLS));
        assert_eq!(instead_of_plain(b"\x15\x07"), None);
        assert_eq!(instead_of_plain(b"HTTP/1.1"), None);
    }
}
