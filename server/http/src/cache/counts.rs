//! Numbers of requests of a cache by their result, for API and metrics.
//!
//! Source: nginx documentation, `ngx_http_api_module`, "HTTP Cache".

use std::sync::atomic::{AtomicU64, Ordering};

/// The way in which a cache took part in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheResult {
    /// No response was stored.
    Miss,
    /// A condition of `*_cache_bypass` holds.
    Bypass,
    /// The stored response was stale, and a server has sent another one.
    Expired,
    /// The stored response is stale and was sent.
    Stale,
    /// The stored response is stale and was sent, since another request updates it.
    Updating,
    /// A server has confirmed the stored response.
    Revalidated,
    /// The stored response is fresh and was sent.
    Hit,
}

impl CacheResult {
    /// All results, in the order of nginx's API.
    pub const ALL: [Self; 7] = [
        Self::Hit,
        Self::Stale,
        Self::Updating,
        Self::Revalidated,
        Self::Miss,
        Self::Expired,
        Self::Bypass,
    ];

    /// The value of `$upstream_cache_status`.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Miss => "MISS",
            Self::Bypass => "BYPASS",
            Self::Expired => "EXPIRED",
            Self::Stale => "STALE",
            Self::Updating => "UPDATING",
            Self::Revalidated => "REVALIDATED",
            Self::Hit => "HIT",
        }
    }

    /// The value in lower case, for names and labels.
    #[must_use]
    pub const fn metric_label(self) -> &'static str {
        match self {
            Self::Miss => "miss",
            Self::Bypass => "bypass",
            Self::Expired => "expired",
            Self::Stale => "stale",
            Self::Updating => "updating",
            Self::Revalidated => "revalidated",
            Self::Hit => "hit",
        }
    }

    /// Whether the response came from a server and may have been stored.
    #[must_use]
    pub const fn is_of_server(self) -> bool {
        matches!(self, Self::Miss | Self::Expired | Self::Bypass)
    }
}

/// Numbers of the requests with one result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResultCounts {
    /// Responses.
    pub responses: u64,
    /// Bytes of their bodies, from the cache or from the server.
    pub bytes: u64,
    /// Responses that were stored.
    pub written: u64,
    /// Bytes of the bodies that were stored.
    pub bytes_written: u64,
}

/// Numbers of the requests of a cache, by their result.
#[derive(Debug, Default)]
pub struct CacheCounts([[AtomicU64; 4]; CacheResult::ALL.len()]);

impl CacheCounts {
    /// Counts a response.
    pub fn count(&self, result: CacheResult, bytes: u64) {
        let [responses, all_bytes, ..] = &self.0[result as usize];
        responses.fetch_add(1, Ordering::Relaxed);
        all_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a response that was stored.
    pub fn count_written(&self, result: CacheResult, bytes: u64) {
        let [.., written, bytes_written] = &self.0[result as usize];
        written.fetch_add(1, Ordering::Relaxed);
        bytes_written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the numbers of a result.
    #[must_use]
    pub fn of(&self, result: CacheResult) -> ResultCounts {
        let [responses, bytes, written, bytes_written] = (self.0[result as usize])
            .each_ref()
            .map(|one| one.load(Ordering::Relaxed));
        ResultCounts {
            responses,
            bytes,
            written,
            bytes_written,
        }
    }

    /// Sets all numbers to 0.
    pub fn reset(&self) {
        for one in self.0.iter().flatten() {
            one.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_has_its_numbers() {
        let counts = CacheCounts::default();
        for result in CacheResult::ALL {
            counts.count(result, 5);
            counts.count(result, 2);
            counts.count_written(result, 7);
        }
        let expected = ResultCounts {
            responses: 2,
            bytes: 7,
            written: 1,
            bytes_written: 7,
        };
        assert!(
            CacheResult::ALL
                .iter()
                .all(|one| counts.of(*one) == expected)
        );
        counts.reset();
        let none = ResultCounts::default();
        assert!(CacheResult::ALL.iter().all(|one| counts.of(*one) == none));
    }
}
