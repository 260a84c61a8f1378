//! Failures of servers, as `*_next_upstream` and `*_cache_use_stale` name them.
//!
//! Absent: their rules, which are in [`upstream`](crate::upstream).
//!
//! Source: nginx documentation, `proxy_next_upstream`, `proxy_cache_use_stale`.

/// `*_next_upstream`: the failures after which another server is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextUpstream(pub u32);

impl NextUpstream {
    /// A connection failed.
    pub const ERROR: u32 = 1;
    /// A time was over.
    pub const TIMEOUT: u32 = 1 << 1;
    /// A response that is none.
    pub const INVALID_HEADER: u32 = 1 << 2;
    /// The status of the same number, and so on.
    pub const HTTP_500: u32 = 1 << 3;
    /// See [`Self::HTTP_500`].
    pub const HTTP_502: u32 = 1 << 4;
    /// See [`Self::HTTP_500`].
    pub const HTTP_503: u32 = 1 << 5;
    /// See [`Self::HTTP_500`].
    pub const HTTP_504: u32 = 1 << 6;
    /// See [`Self::HTTP_500`].
    pub const HTTP_403: u32 = 1 << 7;
    /// See [`Self::HTTP_500`].
    pub const HTTP_404: u32 = 1 << 8;
    /// See [`Self::HTTP_500`].
    pub const HTTP_429: u32 = 1 << 9;
    /// Also requests with a method that is not idempotent.
    pub const NON_IDEMPOTENT: u32 = 1 << 10;
    /// None.
    pub const OFF: u32 = 1 << 11;
    /// `*_allow_upstream` does not admit the server.
    pub const DENIED: u32 = 1 << 12;
    /// No server is usable; no directive has this flag.
    pub const NO_LIVE: u32 = 1 << 13;
    /// `*_cache_use_stale`: the stored response is being updated. Without meaning in `*_next_upstream`.
    pub const UPDATING: u32 = 1 << 14;

    /// Whether one of these is written.
    #[must_use]
    pub fn has(self, of: u32) -> bool {
        self.0 & of != 0
    }

    /// Whether all of these are written.
    #[must_use]
    pub fn has_all(self, of: u32) -> bool {
        self.0 & of == of
    }

    /// Returns the failures of `*_cache_use_stale`: a stale response is served in their place. `off` means none. As in
    /// nginx, `error` includes a group without usable servers.
    #[must_use]
    pub fn for_stale(self) -> Self {
        match self {
            all if all.has(Self::OFF) => Self::default(),
            all if all.has(Self::ERROR) => Self(all.0 | Self::NO_LIVE),
            all => all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_means_no_stale_responses_and_error_includes_no_usable_server() {
        let bits = |bits| NextUpstream(bits).for_stale().0;
        let (error, updating) = (NextUpstream::ERROR, NextUpstream::UPDATING);
        assert_eq!(bits(error | updating | NextUpstream::OFF), 0);
        assert_eq!(bits(updating), updating);
        assert_eq!(
            bits(error | updating),
            error | updating | NextUpstream::NO_LIVE
        );
    }
}
