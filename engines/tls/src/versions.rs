//! Versions of TLS.

use rustls::{SupportedProtocolVersion, version};

/// Versions of TLS of a server or a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Versions {
    /// 1.2 alone.
    Tls12,
    /// 1.3 alone.
    Tls13,
    /// 1.2 and 1.3.
    #[default]
    Both,
}

impl Versions {
    /// Common versions; `None` if there are none.
    #[must_use]
    pub fn common(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Both, one) | (one, Self::Both) => Some(one),
            (one, other) => (one == other).then_some(one),
        }
    }

    pub(crate) fn list(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Tls12 => ONLY_12,
            Self::Tls13 => ONLY_13,
            Self::Both => rustls::ALL_VERSIONS,
        }
    }
}

static ONLY_12: &[&SupportedProtocolVersion] = &[&version::TLS12];
static ONLY_13: &[&SupportedProtocolVersion] = &[&version::TLS13];
