//! Protocols of clients, their names, and the versions of their messages.
//!
//! One row per protocol for all other code: the parameter of `listen`, the name in ALPN, the name in metrics.
//! Absent: engines, and their settings.
//!
//! Source: RFC 7301 section 6; nginx documentation, directive `listen`.

/// The protocol of a connection, ordered from old to new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 and older.
    Http1,
    /// SPDY/3.1.
    Spdy,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

/// The names of one protocol.
struct Names {
    protocol: Protocol,
    version: Version,
    metric: &'static str,
    alpn: Option<&'static [u8]>,
    listen: Option<&'static str>,
}

/// The names of a protocol that is not selected by name.
const fn http(protocol: Protocol, version: Version, metric: &'static str) -> Names {
    Names {
        protocol,
        version,
        metric,
        alpn: None,
        listen: None,
    }
}

/// The names of a protocol with streams, in the order metrics, ALPN, `listen`.
const fn mux(
    protocol: Protocol,
    version: Version,
    metric: &'static str,
    alpn: &'static [u8],
    listen: &'static str,
) -> Names {
    Names {
        protocol,
        version,
        metric,
        alpn: Some(alpn),
        listen: Some(listen),
    }
}

const NAMES: [Names; 4] = [
    http(Protocol::Http1, Version::Http11, "http/1"),
    mux(Protocol::Spdy, Version::Spdy31, "spdy", b"spdy/3.1", "spdy"),
    mux(Protocol::Http2, Version::Http2, "http/2", b"h2", "http2"),
    // It is counted, and not spoken yet.
    http(Protocol::Http3, Version::Http3, "http/3"),
];

impl Protocol {
    /// All protocols, in their order.
    pub const ALL: [Self; NAMES.len()] = {
        let mut all = [Self::Http1; NAMES.len()];
        let mut n = 0;
        while n < all.len() {
            all[n] = NAMES[n].protocol;
            assert!(
                all[n] as usize == n,
                "a row for each variant, in their order"
            );
            n += 1;
        }
        all
    };

    /// The name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        NAMES[self as usize].metric
    }

    /// The newest version of a request over this protocol.
    #[must_use]
    pub const fn newest_version(self) -> Version {
        NAMES[self as usize].version
    }

    /// The protocol with a name in ALPN; `None` for unknown names and for HTTP/1, since its names
    /// are TLS settings.
    #[must_use]
    pub fn from_alpn(name: &[u8]) -> Option<Self> {
        let names = NAMES.iter().find(|names| names.alpn == Some(name))?;
        Some(names.protocol)
    }

    /// The protocol that a parameter of `listen` adds to an address.
    #[must_use]
    pub fn from_listen(parameter: &str) -> Option<Self> {
        let names = NAMES.iter().find(|names| names.listen == Some(parameter))?;
        Some(names.protocol)
    }
}

/// A set of protocols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocols(u8);

impl Protocols {
    /// Returns the set with one protocol more.
    #[must_use]
    pub const fn with(self, protocol: Protocol) -> Self {
        Self(self.0 | 1 << protocol as u8)
    }

    /// Returns the protocols of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a protocol is in the set.
    #[must_use]
    pub const fn has(self, protocol: Protocol) -> bool {
        self.0 & 1 << protocol as u8 != 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// A bit for each protocol, the oldest in the lowest.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The protocols of the set, the newest first, which is the order of preference.
    pub fn newest_first(self) -> impl Iterator<Item = Protocol> {
        let all = Protocol::ALL.into_iter().rev();
        all.filter(move |protocol| self.has(*protocol))
    }

    /// The names in ALPN of the protocols of the set, the newest first.
    pub fn alpn(self) -> impl Iterator<Item = &'static [u8]> {
        self.newest_first()
            .filter_map(|protocol| NAMES[protocol as usize].alpn)
    }
}

/// The version of a request, ordered from old to new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/0.9: a request line only, and a body without a head as answer.
    Http09,
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1, and any later HTTP/1 minor version.
    #[default]
    Http11,
    /// SPDY/3.1.
    Spdy31,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

impl Version {
    /// All versions, in their order.
    pub const ALL: [Self; 6] = [
        Self::Http09,
        Self::Http10,
        Self::Http11,
        Self::Spdy31,
        Self::Http2,
        Self::Http3,
    ];

    /// Whether fields may follow every body, so that a client need not announce that it reads them (RFC 9113
    /// section 8.1).
    #[must_use]
    pub const fn has_trailer_section(self) -> bool {
        matches!(self, Self::Http2 | Self::Http3)
    }

    /// Whether a request begins with a line of method and target; the header block of later protocols has both.
    #[must_use]
    pub const fn has_request_line(self) -> bool {
        matches!(self, Self::Http09 | Self::Http10 | Self::Http11)
    }

    /// The name as nginx's `$server_protocol` writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http09 => "HTTP/0.9",
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Spdy31 => "SPDY/3.1",
            Self::Http2 => "HTTP/2.0",
            Self::Http3 => "HTTP/3.0",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_their_protocols() {
        assert_eq!(Protocol::from_alpn(b"h2"), Some(Protocol::Http2));
        assert_eq!(Protocol::from_alpn(b"spdy/3.1"), Some(Protocol::Spdy));
        assert_eq!(Protocol::from_alpn(b"http/1.1"), None);
        assert_eq!(Protocol::from_listen("spdy"), Some(Protocol::Spdy));
        assert_eq!(Protocol::from_listen("http2"), Some(Protocol::Http2));
        assert_eq!(Protocol::from_listen("ssl"), None);
        assert_eq!(Protocol::ALL.map(Protocol::as_str)[1], "spdy");
        let versions = Protocol::ALL.map(|protocol| protocol.newest_version().as_str());
        let expected = ["HTTP/1.1", "SPDY/3.1", "HTTP/2.0", "HTTP/3.0"];
        assert_eq!(versions, expected);
    }

    #[test]
    fn newer_protocols_are_offered_first() {
        let none = Protocols::default();
        assert!(none.is_empty() && none.alpn().next().is_none());
        let both = none.with(Protocol::Spdy).with(Protocol::Http2);
        assert!(both.has(Protocol::Spdy) && !both.has(Protocol::Http3));
        let names: Vec<_> = both.alpn().collect();
        assert_eq!(names, [&b"h2"[..], b"spdy/3.1"]);
        let spdy = none.with(Protocol::Spdy);
        assert_eq!(spdy.union(none.with(Protocol::Http2)), both);
    }

    #[test]
    fn versions_are_ordered_by_age() {
        assert!(Version::Http09 < Version::Http10);
        assert!(Version::Http10 < Version::Http11);
        assert!(Version::Http11 < Version::Http2);
        assert_eq!(Version::Http2.as_str(), "HTTP/2.0");
        assert!(Version::ALL.is_sorted());
        assert_eq!(
            Version::ALL.map(|version| version as usize),
            [0, 1, 2, 3, 4, 5]
        );
    }
}
