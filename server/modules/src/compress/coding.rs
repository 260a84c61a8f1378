//! The content codings, and the configured parameters of a response's encoder.

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Coding {
    /// Brotli, RFC 7932.
    Brotli,
    /// Zstandard, RFC 8878.
    Zstd,
    /// gzip, RFC 1952.
    Gzip,
}

/// Number of codings.
pub(super) const CODINGS: usize = 3;

impl Coding {
    /// All codings, in the order of preference if the client has none.
    pub(super) const ALL: [Self; CODINGS] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// The name in `Accept-Encoding` and `Content-Encoding`.
    pub(super) const fn token(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The extension of precompressed files.
    pub(super) const fn extension(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }

    /// The coding of a name.
    pub(super) fn of(token: &[u8]) -> Option<Self> {
        let is = |coding: &Self| token.eq_ignore_ascii_case(coding.token().as_bytes());
        // RFC 9110, section 8.4.1.3: "x-gzip" is equivalent.
        let gzip = token.eq_ignore_ascii_case(b"x-gzip");
        Self::ALL
            .into_iter()
            .find(is)
            .or(gzip.then_some(Self::Gzip))
    }
}

/// The parameters that determine the compressed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Params {
    /// The coding.
    pub(super) coding: Coding,
    /// Its level.
    pub(super) level: u8,
    /// The window of Brotli and gzip, as a power of two.
    pub(super) window_log: u8,
}

/// gzip's largest window, as a power of two; the smallest one is 9.
pub(super) const GZIP_WINDOW_LOG: u8 = 15;
