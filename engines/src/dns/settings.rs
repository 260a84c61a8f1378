//! Settings of a resolver, fixed when it is created.

/// Settings of a resolver.
///
/// Source: nginx documentation, `resolver`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Number of servers, numbered from 0.
    pub servers: usize,
    /// `valid`: time to cache answers, milliseconds; `None` for the time to live in the answers.
    pub valid_ms: Option<u64>,
    /// Whether names are resolved to IPv4 addresses.
    pub ipv4: bool,
    /// Whether names are resolved to IPv6 addresses.
    pub ipv6: bool,
    /// Time without an answer until the next server is queried, milliseconds.
    pub resend_ms: u64,
    /// Whether servers take turns as first server; else it is always the first one.
    pub rotate: bool,
    /// Whether a question fails as soon as no server is reachable; else it is retried, since a server may return.
    pub gives_up: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            servers: 1,
            valid_ms: None,
            ipv4: true,
            ipv6: true,
            resend_ms: RESEND_MS,
            rotate: true,
            gives_up: false,
        }
    }
}

/// nginx's time between two attempts.
const RESEND_MS: u64 = 5_000;
