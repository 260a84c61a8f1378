//! Protocol versions, ordered from old to new.

/// The protocol a request came over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/0.9: one request line, a body for an answer, no head.
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
    /// Whether fields may follow every body, so that no client need say that it reads them (RFC 9113, 8.1).
    #[must_use]
    pub const fn has_trailer_section(self) -> bool {
        matches!(self, Self::Http2 | Self::Http3)
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
    fn versions_are_ordered_by_age() {
        assert!(Version::Http09 < Version::Http10);
        assert!(Version::Http10 < Version::Http11);
        assert!(Version::Http11 < Version::Http2);
        assert_eq!(Version::Http2.as_str(), "HTTP/2.0");
    }
}
