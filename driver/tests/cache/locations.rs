//! Locations of the simulated site: the settings of the cache that differ.

/// A location with a cache.
#[derive(Debug)]
pub(crate) struct LocationSpec {
    /// First segment of its path.
    pub(crate) name: &'static str,
    /// Its directives, besides those of all locations.
    pub(crate) conf: &'static str,
    /// `proxy_cache_use_stale updating`.
    pub(crate) stale_while_updating: bool,
    /// `proxy_cache_use_stale` after failures.
    pub(crate) stale_on_error: bool,
}

const PLAIN: LocationSpec = LocationSpec {
    name: "plain",
    conf: "",
    stale_while_updating: false,
    stale_on_error: false,
};

/// All locations. They share the entries of one cache.
pub(crate) const LOCATIONS: [LocationSpec; 8] = [
    PLAIN,
    LocationSpec {
        name: "lock",
        conf: "proxy_cache_lock on; proxy_cache_lock_timeout 2s; proxy_cache_lock_age 3s;",
        ..PLAIN
    },
    LocationSpec {
        name: "patient",
        conf: "proxy_cache_lock on; proxy_cache_lock_timeout 60s; proxy_cache_lock_age 60s;",
        ..PLAIN
    },
    LocationSpec {
        name: "stale",
        conf: "proxy_cache_lock on; proxy_cache_use_stale error timeout http_500;",
        stale_on_error: true,
        ..PLAIN
    },
    LocationSpec {
        name: "behind",
        conf: "proxy_cache_use_stale updating; proxy_cache_background_update on;",
        stale_while_updating: true,
        ..PLAIN
    },
    LocationSpec {
        name: "uses",
        conf: "proxy_cache_min_uses 2; proxy_cache_lock on;",
        ..PLAIN
    },
    LocationSpec {
        name: "heads",
        conf: "proxy_cache_convert_head off; proxy_cache_lock on;",
        ..PLAIN
    },
    LocationSpec {
        name: "direct",
        conf: "proxy_buffering off; proxy_cache_lock on;",
        ..PLAIN
    },
];
