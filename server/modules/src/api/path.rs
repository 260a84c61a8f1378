//! Paths of the API: `/VERSION/http/upstreams/NAME/servers/ID` and their kin.
//!
//! A slash at the end of a path changes nothing. Names and IDs are not checked here.
//!
//! Source: nginx documentation, `ngx_http_api_module`, "Endpoints".

use engines::http::Method;

use super::error::ApiError;

/// An object or list of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint<'p> {
    /// The list of versions.
    Versions,
    /// The list of paths below a version.
    Root,
    /// The running instance.
    Nginx,
    /// Connections of clients.
    Connections,
    /// TLS handshakes.
    Ssl,
    /// Lost worker processes.
    Processes,
    /// The zones of resolvers, or one by its name.
    Resolvers(Option<&'p [u8]>),
    /// The worker processes, or one by its number.
    Workers(Option<&'p [u8]>),
    /// The list of paths below `http`.
    Http,
    /// Requests.
    Requests,
    /// The zones of servers, or one by its name.
    ServerZones(Option<&'p [u8]>),
    /// The zones of locations, or one by its name.
    LocationZones(Option<&'p [u8]>),
    /// The zones of `limit_conn`, or one by its name.
    LimitConns(Option<&'p [u8]>),
    /// The zones of `limit_req`, or one by its name.
    LimitReqs(Option<&'p [u8]>),
    /// The caches, or one by its name.
    Caches(Option<&'p [u8]>),
    /// All groups of servers.
    Upstreams,
    /// A group of servers by its name.
    Upstream(&'p [u8]),
    /// The servers of a group.
    Servers(&'p [u8]),
    /// A server of a group by its ID.
    Server(&'p [u8], &'p [u8]),
}

impl<'p> Endpoint<'p> {
    /// Finds the endpoint of a path below the location. Returns it with the version of the path, or of the API if the path
    /// has none.
    pub(super) fn find(path: &'p [u8]) -> (u64, Result<Self, ApiError>) {
        let parts = path.split(|b| *b == b'/');
        let parts: Vec<&[u8]> = parts.filter(|part| !part.is_empty()).collect();
        let Some((version, parts)) = parts.split_first() else {
            return (VERSION, Ok(Self::Versions));
        };
        let mut versions = VERSIONS;
        let version = versions.find(|known| known.to_string().as_bytes() == *version);
        let Some(version) = version else {
            return (VERSION, Err(ApiError::unknown_version()));
        };
        let endpoint = Self::below(parts).filter(|found| found.since() <= version);
        (version, endpoint.ok_or_else(ApiError::path_not_found))
    }

    fn below(parts: &[&'p [u8]]) -> Option<Self> {
        Some(match parts {
            [] => Self::Root,
            [b"nginx"] => Self::Nginx,
            [b"connections"] => Self::Connections,
            [b"ssl"] => Self::Ssl,
            [b"processes"] => Self::Processes,
            [b"resolvers"] => Self::Resolvers(None),
            [b"resolvers", name] => Self::Resolvers(Some(name)),
            [b"workers"] => Self::Workers(None),
            [b"workers", id] => Self::Workers(Some(id)),
            [b"http"] => Self::Http,
            [b"http", b"requests"] => Self::Requests,
            [b"http", b"server_zones"] => Self::ServerZones(None),
            [b"http", b"server_zones", name] => Self::ServerZones(Some(name)),
            [b"http", b"location_zones"] => Self::LocationZones(None),
            [b"http", b"location_zones", name] => Self::LocationZones(Some(name)),
            [b"http", b"limit_conns"] => Self::LimitConns(None),
            [b"http", b"limit_conns", name] => Self::LimitConns(Some(name)),
            [b"http", b"limit_reqs"] => Self::LimitReqs(None),
            [b"http", b"limit_reqs", name] => Self::LimitReqs(Some(name)),
            [b"http", b"caches"] => Self::Caches(None),
            [b"http", b"caches", name] => Self::Caches(Some(name)),
            [b"http", b"upstreams"] => Self::Upstreams,
            [b"http", b"upstreams", name] => Self::Upstream(name),
            [b"http", b"upstreams", name, b"servers"] => Self::Servers(name),
            [b"http", b"upstreams", name, b"servers", id] => Self::Server(name, id),
            _ => return None,
        })
    }

    /// Returns the first version with the endpoint.
    fn since(self) -> u64 {
        match self {
            Self::LocationZones(_) | Self::Resolvers(_) => 5,
            Self::LimitConns(_) | Self::LimitReqs(_) => 6,
            Self::Workers(_) => 9,
            _ => 1,
        }
    }

    /// Whether the endpoint has a method that changes it.
    pub(super) fn may_change(self, method: Method) -> bool {
        match self {
            Self::Connections
            | Self::Ssl
            | Self::Processes
            | Self::Resolvers(Some(_))
            | Self::LimitConns(Some(_))
            | Self::LimitReqs(Some(_))
            | Self::Workers(_)
            | Self::Requests
            | Self::ServerZones(Some(_))
            | Self::LocationZones(Some(_))
            | Self::Upstream(_) => method == Method::Delete,
            Self::Caches(Some(_)) => matches!(method, Method::Delete | Method::Post),
            Self::Servers(_) => method == Method::Post,
            Self::Server(..) => matches!(method, Method::Patch | Method::Delete),
            _ => false,
        }
    }

    /// Whether the endpoint is a collection of objects, of which `fields` names members.
    pub(super) fn is_collection(self) -> bool {
        matches!(
            self,
            Self::Workers(None)
                | Self::ServerZones(None)
                | Self::LocationZones(None)
                | Self::Resolvers(None)
                | Self::LimitConns(None)
                | Self::LimitReqs(None)
                | Self::Caches(None)
                | Self::Upstreams
        )
    }
}

/// Returns the names below a version.
pub(super) fn root_names(version: u64) -> impl Iterator<Item = &'static str> {
    since(ROOT_NAMES, version)
}

/// Returns the names below `http`.
pub(super) fn http_names(version: u64) -> impl Iterator<Item = &'static str> {
    since(HTTP_NAMES, version)
}

fn since(
    names: &'static [(&'static str, u64)],
    version: u64,
) -> impl Iterator<Item = &'static str> {
    let names = names.iter().filter(move |(_, since)| *since <= version);
    names.map(|(name, _)| *name)
}

/// Supported versions.
pub(super) const VERSIONS: std::ops::RangeInclusive<u64> = 1..=VERSION;
/// The current version.
const VERSION: u64 = 9;

/// Names below a version, with the first version that has them.
const ROOT_NAMES: &[(&str, u64)] = &[
    ("nginx", 1),
    ("processes", 1),
    ("connections", 1),
    ("http", 1),
    ("ssl", 1),
    ("resolvers", 5),
    ("workers", 9),
];
/// Names below `http`, with the first version that has them.
const HTTP_NAMES: &[(&str, u64)] = &[
    ("requests", 1),
    ("server_zones", 1),
    ("location_zones", 5),
    ("limit_conns", 6),
    ("limit_reqs", 6),
    ("caches", 1),
    ("upstreams", 1),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn find(path: &str) -> Result<(u64, Endpoint<'_>), ApiError> {
        let (version, found) = Endpoint::find(path.as_bytes());
        found.map(|endpoint| (version, endpoint))
    }

    #[test]
    fn paths_have_their_endpoints() {
        for (path, version, endpoint) in [
            ("", 9, Endpoint::Versions),
            ("/", 9, Endpoint::Versions),
            ("/9", 9, Endpoint::Root),
            ("/1/http/", 1, Endpoint::Http),
            ("/9/nginx/", 9, Endpoint::Nginx),
            ("/9/workers/0", 9, Endpoint::Workers(Some(b"0"))),
            ("/5/http/location_zones", 5, Endpoint::LocationZones(None)),
            ("/1/processes", 1, Endpoint::Processes),
            ("/5/resolvers/", 5, Endpoint::Resolvers(None)),
            ("/9/resolvers/r", 9, Endpoint::Resolvers(Some(b"r"))),
            ("/6/http/limit_conns", 6, Endpoint::LimitConns(None)),
            ("/9/http/limit_conns/c", 9, Endpoint::LimitConns(Some(b"c"))),
            ("/6/http/limit_reqs", 6, Endpoint::LimitReqs(None)),
            ("/9/http/limit_reqs/r", 9, Endpoint::LimitReqs(Some(b"r"))),
            ("/1/http/caches/", 1, Endpoint::Caches(None)),
            ("/9/http/caches/c", 9, Endpoint::Caches(Some(b"c"))),
            ("/9/http/upstreams", 9, Endpoint::Upstreams),
            ("/9/http/upstreams/a.b/", 9, Endpoint::Upstream(b"a.b")),
            ("/9/http/upstreams/a/servers/", 9, Endpoint::Servers(b"a")),
            (
                "9/http/upstreams/a/servers/07",
                9,
                Endpoint::Server(b"a", b"07"),
            ),
        ] {
            assert_eq!(find(path), Ok((version, endpoint)), "{path}");
        }
    }

    #[test]
    fn other_paths_and_versions_are_not_found() {
        for path in ["/0", "/10", "/09", "/x", "/nginx", "/v9/nginx"] {
            assert_eq!(find(path), Err(ApiError::unknown_version()), "{path}");
        }
        for path in [
            "/9/slabs",
            "/9/stream",
            "/8/workers",
            "/4/http/location_zones",
            "/4/resolvers",
            "/5/http/limit_conns",
            "/5/http/limit_reqs/r",
            "/9/nginx/version",
            "/9/http/upstreams/a/peers",
            "/9/http/upstreams/a/servers/1/weight",
        ] {
            assert_eq!(find(path), Err(ApiError::path_not_found()), "{path}");
        }
    }

    #[test]
    fn names_below_a_version_are_its_endpoints() {
        for version in VERSIONS {
            for name in root_names(version) {
                assert!(find(&format!("/{version}/{name}")).is_ok());
            }
            for name in http_names(version) {
                assert!(find(&format!("/{version}/http/{name}")).is_ok());
            }
        }
        assert!(!http_names(4).any(|name| name == "location_zones"));
        assert!(root_names(9).any(|name| name == "workers"));
    }
}
