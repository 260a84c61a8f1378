//! Settings of the cache of one location, as requests read them.
//!
//! Source: nginx documentation, `ngx_http_proxy_module`; defaults are nginx's.

use std::sync::Arc;

use engines::http::Method;

use super::zone::{CacheZone, Caches};
use crate::next_upstream::NextUpstream;
use crate::value::Value;

/// Settings of one location with a cache.
#[derive(Clone, Debug)]
pub struct CacheConf {
    /// `*_cache`.
    pub zone: ZoneChoice,
    /// `*_cache_key`; `None`: the default key of the module.
    pub key: Option<Value>,
    /// Whether the key has the method of the request: a response to HEAD is stored as such then.
    pub has_method_in_key: bool,
    /// Whether the key depends on scheme, host and URI of the request alone. Keys of other URIs can be made then.
    pub is_key_of_uri: bool,
    /// Values that decide about a request.
    pub conditions: CacheConditions,
    /// `*_cache_valid`.
    pub valid: CacheValid,
    /// `*_cache_min_uses`: number of requests after which a response is stored.
    pub min_uses: u32,
    /// `*_cache_max_range_offset`, bytes: ranges behind it are not served from the cache; `None`: no limit.
    pub max_range_offset: Option<u64>,
    /// `*_cache_use_stale`: failures with which a stale response is served. Empty for `off`; `error` includes
    /// [`NextUpstream::NO_LIVE`].
    pub use_stale: NextUpstream,
    /// `*_cache_methods`.
    pub methods: CacheMethods,
    /// `*_cache_lock` and its times.
    pub lock: CacheLock,
    /// Rules of storing and using responses.
    pub rules: CacheRules,
    /// `*_cache_status`: responses have the field `Cache-Status` (RFC 9211).
    pub sends_status: bool,
}

/// The cache of a request.
#[derive(Clone, Debug)]
pub enum ZoneChoice {
    /// This one.
    Fixed(Arc<CacheZone>),
    /// The one with this name, of all caches of the module. An empty name and `off` mean none, as in nginx.
    Computed(Value, Caches),
}

/// Values that decide about a request: a condition is true if one of its values is neither empty nor `0`.
#[derive(Clone, Debug, Default)]
pub struct CacheConditions {
    /// `*_cache_bypass`: the response is not taken from the cache.
    pub bypass: Vec<Value>,
    /// `*_no_cache`: the response is not stored.
    pub no_cache: Vec<Value>,
    /// `*_cache_purge`: the request purges entries.
    pub purge: Vec<Value>,
}

/// `*_cache_valid`: times by status.
#[derive(Clone, Debug, Default)]
pub struct CacheValid(Vec<(StatusMatch, u32)>);

/// The statuses of a time of `*_cache_valid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMatch {
    /// All.
    Any,
    /// This one.
    Status(u16),
}

impl CacheValid {
    /// Appends a time in seconds for a status.
    pub fn push(&mut self, statuses: StatusMatch, seconds: u32) {
        self.0.push((statuses, seconds));
    }

    /// Returns the seconds for which a response with this status is fresh; `None`: it is not stored. The first time
    /// that is written for the status counts, as in nginx: a time of `any` also counts for statuses written behind it.
    #[must_use]
    pub fn seconds(&self, status: u16) -> Option<u32> {
        let is_of = |statuses: &StatusMatch| match statuses {
            StatusMatch::Any => true,
            StatusMatch::Status(own) => *own == status,
        };
        let found = self.0.iter().find(|(statuses, _)| is_of(statuses));
        found
            .map(|(_, seconds)| *seconds)
            .filter(|seconds| *seconds > 0)
    }
}

/// `*_cache_methods`: a set of methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheMethods(u32);

impl CacheMethods {
    /// The words of the directive.
    pub const NAMES: &[(&str, u32)] = &[
        ("GET", 1 << Method::Get as u32),
        ("HEAD", 1 << Method::Head as u32),
        ("POST", 1 << Method::Post as u32),
    ];

    /// Returns the methods with these bits of [`Self::NAMES`], and `GET` and `HEAD`.
    #[must_use]
    pub fn with(bits: u32) -> Self {
        Self(bits | Self::default().0)
    }

    /// Whether responses to requests with this method are cached.
    #[must_use]
    #[inline]
    pub fn contains(self, method: Method) -> bool {
        self.0 >> method as u32 & 1 == 1
    }
}

impl Default for CacheMethods {
    /// `GET` and `HEAD`.
    fn default() -> Self {
        Self(1 << Method::Get as u32 | 1 << Method::Head as u32)
    }
}

/// `*_cache_lock` and its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLock {
    /// Whether requests wait for a response that another request receives.
    pub is_on: bool,
    /// `*_cache_lock_timeout`: longest wait, milliseconds.
    pub timeout_ms: u64,
    /// `*_cache_lock_age`: time after which another request is sent to the server, milliseconds.
    pub age_ms: u64,
}

/// Rules of storing and using responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheRules {
    /// `*_cache_rfc`: the rules of RFC 9111; false: those of nginx.
    pub rfc: bool,
    /// `*_cache_revalidate`: conditional requests for stale responses.
    pub revalidate: bool,
    /// `*_cache_background_update`: a stale response is served during its update.
    pub background_update: bool,
    /// `proxy_cache_convert_head`: HEAD is sent as GET. False for modules without it.
    pub convert_head: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_for_a_status_counts() {
        let mut valid = CacheValid::default();
        assert_eq!(valid.seconds(200), None);
        valid.push(StatusMatch::Status(200), 10);
        valid.push(StatusMatch::Status(404), 0);
        valid.push(StatusMatch::Any, 1);
        valid.push(StatusMatch::Status(500), 99);
        let seconds = [200, 404, 301, 500].map(|status| valid.seconds(status));
        assert_eq!(seconds, [Some(10), None, Some(1), Some(1)]);
    }

    #[test]
    fn get_and_head_are_always_cached() {
        let post = 1 << Method::Post as u32;
        for (methods, has_post) in [
            (CacheMethods::default(), false),
            (CacheMethods::with(0), false),
            (CacheMethods::with(post), true),
        ] {
            assert!(methods.contains(Method::Get) && methods.contains(Method::Head));
            assert_eq!(methods.contains(Method::Post), has_post);
            assert!(!methods.contains(Method::Put) && !methods.contains(Method::Trace));
        }
    }
}
