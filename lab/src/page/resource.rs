//! One resource of a page: its request, its response, and the time of each phase.

use engines::http::parse_decimal;
use serde::Serialize;

/// A request and its response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource {
    /// Its URL as requested, without a fragment.
    pub url: String,
    /// The request's method.
    pub method: String,
    /// Its use to the page.
    pub kind: Kind,
    /// Status of the response; 0 without a response.
    pub status: u16,
    /// The protocol as ALPN names it (RFC 7301): `http/1.1`, `h2`, `h3`, `spdy/3.1`; empty if unknown.
    pub protocol: String,
    /// Number of its connection, as the source numbers them; `None` without a connection.
    pub connection: Option<u64>,
    /// Address and port of the server, if known.
    pub remote: Option<String>,
    /// When the page requested it, ms.
    pub start_ms: f64,
    /// Durations of its phases.
    pub phases: Phases,
    /// When parts of its body arrived, in order; empty if the source does not report them.
    pub pieces: Vec<Piece>,
    /// Fields of the request, in order.
    pub request_fields: Vec<(String, String)>,
    /// Fields of the response, in order.
    pub response_fields: Vec<(String, String)>,
    /// Transferred bytes of the response head; `None` if unknown.
    pub head_bytes: Option<u64>,
    /// Transferred bytes of the body, compressed; `None` if unknown.
    pub body_bytes: Option<u64>,
    /// Bytes of the body after decoding; `None` if unknown.
    pub content_bytes: Option<u64>,
    /// Type of the content, from the field `Content-Type`.
    pub mime_type: String,
    /// Whether it came from the browser's cache without a request to a server.
    pub from_cache: bool,
    /// Priority as the browser names it, if it has one.
    pub priority: Option<String>,
    /// Place in [`Visit::resources`](super::Visit::resources) of the resource that caused the request.
    pub initiator: Option<usize>,
    /// Why there is no whole response.
    pub error: Option<String>,
}

/// The use of a resource to its page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The page itself, or a frame.
    Document,
    /// A style sheet.
    Stylesheet,
    /// A script.
    Script,
    /// An image.
    Image,
    /// A font.
    Font,
    /// Audio or video.
    Media,
    /// A request of a script.
    Fetch,
    /// Everything else.
    #[default]
    Other,
}

/// Durations of a resource's phases in their order, ms; `None` for a phase that did not take place or is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Phases {
    /// Waiting for a connection, or for its turn on one.
    pub queued_ms: Option<f64>,
    /// Looking its host's addresses up.
    pub dns_ms: Option<f64>,
    /// Opening a TCP connection, without TLS.
    pub connect_ms: Option<f64>,
    /// The TLS handshake.
    pub tls_ms: Option<f64>,
    /// Sending the request.
    pub send_ms: Option<f64>,
    /// From the request's last byte to the response's first.
    pub wait_ms: Option<f64>,
    /// From the response's first byte to its last.
    pub receive_ms: Option<f64>,
}

/// A part of a body, as it arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// When it arrived, ms.
    pub at_ms: f64,
    /// Its transferred bytes.
    pub bytes: u64,
}

impl Kind {
    /// Its name in archives and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Stylesheet => "stylesheet",
            Self::Script => "script",
            Self::Image => "image",
            Self::Font => "font",
            Self::Media => "media",
            Self::Fetch => "fetch",
            Self::Other => "other",
        }
    }
}

impl Phases {
    /// All phases in their order.
    #[must_use]
    pub fn all(&self) -> [Option<f64>; 7] {
        [
            self.queued_ms,
            self.dns_ms,
            self.connect_ms,
            self.tls_ms,
            self.send_ms,
            self.wait_ms,
            self.receive_ms,
        ]
    }

    /// The sum of all phases, ms.
    #[must_use]
    pub fn total_ms(&self) -> f64 {
        self.all().into_iter().flatten().sum()
    }
}

impl Resource {
    /// Returns the beginning of its connection's opening, ms; the queue and the lookup were before.
    #[must_use]
    pub fn opening_ms(&self) -> f64 {
        let before = [self.phases.queued_ms, self.phases.dns_ms];
        self.start_ms + before.into_iter().flatten().sum::<f64>()
    }

    /// When the request began to be sent, ms.
    #[must_use]
    pub fn sent_ms(&self) -> f64 {
        let opening = [self.phases.connect_ms, self.phases.tls_ms];
        self.opening_ms() + opening.into_iter().flatten().sum::<f64>()
    }

    /// Returns the time of its last byte, ms.
    #[must_use]
    pub fn end_ms(&self) -> f64 {
        self.start_ms + self.phases.total_ms()
    }

    /// Returns the time of its first byte, ms.
    #[must_use]
    pub fn first_byte_ms(&self) -> f64 {
        self.end_ms() - self.phases.receive_ms.unwrap_or_default()
    }

    /// Returns the transferred bytes of head and body, as far as they are known; `None` if neither is.
    #[must_use]
    pub fn transferred_bytes(&self) -> Option<u64> {
        let parts = [self.head_bytes, self.body_bytes].into_iter().flatten();
        parts.reduce(u64::saturating_add)
    }

    /// Returns path and query of its URL, `/` without a path.
    #[must_use]
    pub fn target(&self) -> &str {
        match &self.url[self.origin().len()..] {
            "" => "/",
            target => target,
        }
    }

    /// The server's port: of its address, else of its URL, else that of the scheme; `None` for other schemes.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        let port = |text: &str| parse_decimal(text.rsplit_once(':')?.1.as_bytes());
        let remote = self.remote.as_deref().and_then(port);
        remote.or_else(|| port(self.origin())).or_else(|| {
            let (scheme, _) = self.url.split_once("://")?;
            match scheme {
                "http" => Some(80),
                "https" => Some(443),
                _ => None,
            }
        })
    }

    /// Returns scheme, host and port of its URL, as written.
    #[must_use]
    pub fn origin(&self) -> &str {
        origin(&self.url)
    }
}

/// Returns scheme, host and port of a URL, as written.
#[must_use]
pub fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + "://".len());
    let end = url[host..].find(['/', '?', '#']);
    &url[..end.map_or(url.len(), |at| host + at)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_all_before_the_path() {
        for (url, expected) in [
            ("https://h.test:8443/a?b", "https://h.test:8443"),
            ("http://h?x", "http://h"),
            ("\u{4e2d}?x", "\u{4e2d}"),
            ("", ""),
        ] {
            assert_eq!(origin(url), expected);
        }
    }

    #[test]
    fn a_resource_has_a_target_and_the_port_of_its_server() {
        for (url, remote, target, port) in [
            ("https://h.test:8443/a?b", None, "/a?b", Some(8443)),
            ("https://h.test?b", None, "?b", Some(443)),
            ("http://h.test", Some("[::1]:81"), "/", Some(81)),
            ("http://[::1]/", Some("unix:/a"), "/", Some(80)),
            ("blob:x", None, "/", None),
            ("", None, "/", None),
        ] {
            let one = Resource {
                url: url.to_owned(),
                remote: remote.map(str::to_owned),
                ..Resource::default()
            };
            assert_eq!((one.target(), one.port()), (target, port), "{url}");
        }
    }

    #[test]
    fn a_resource_is_opened_sent_and_transferred() {
        let mut one = Resource {
            start_ms: 1.0,
            phases: Phases {
                queued_ms: Some(2.0),
                dns_ms: Some(4.0),
                connect_ms: Some(8.0),
                tls_ms: Some(16.0),
                send_ms: Some(32.0),
                ..Phases::default()
            },
            ..Resource::default()
        };
        assert_eq!((one.opening_ms(), one.sent_ms()), (7.0, 31.0));
        assert_eq!(one.transferred_bytes(), None);
        one.body_bytes = Some(1);
        assert_eq!(one.transferred_bytes(), Some(1));
        one.head_bytes = Some(u64::MAX);
        assert_eq!(one.transferred_bytes(), Some(u64::MAX));
    }
}
