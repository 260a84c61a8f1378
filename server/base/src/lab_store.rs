//! Settings of the store of the lab, for the store process.
//!
//! Source: docs/map.md.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::address::parse_port;
use crate::experiment::ExperimentSettings;

/// Settings of `lab_store`, `lab_retention`, `lab_network`, `lab_dashboard` and `geoip_database`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabStoreConf {
    /// The store and its parameters.
    pub engine: LabEngine,
    /// Name of this server in the rows; `None` for the name of the host.
    pub server: Option<String>,
    /// Time for which histograms by day are kept, seconds.
    pub retention_s: u64,
    /// Time for which rows of single connections are kept, seconds.
    pub rows_s: u64,
    /// Limit of the file's size, bytes; 0 for none. It applies to SQLite alone.
    pub max_bytes: u64,
    /// Prefix lengths to which IPv4 and IPv6 addresses are truncated; `None` stores no networks.
    pub network: Option<(u8, u8)>,
    /// Files of `geoip_database`, absolute.
    pub databases: Vec<PathBuf>,
    /// Connections are recorded (`rtt_map on`).
    pub records: bool,
    /// Settings of the experiments with a beacon. Page views of users are recorded if there are any.
    pub experiments: Vec<ExperimentSettings>,
    /// The socket of the dashboard, if a location has one.
    pub dashboard: Option<DashboardSocket>,
}

/// A kind of store, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabEngine {
    /// The absolute path of a SQLite file.
    Sqlite(PathBuf),
    /// A ClickHouse server.
    ClickHouse(ClickHouseConf),
}

impl LabStoreConf {
    /// Returns whether the store is written. If not, it is only read.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.records || !self.experiments.is_empty()
    }
}

impl fmt::Display for LabEngine {
    /// Writes the store as in `lab_store`, without its parameters.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(out, "sqlite:{}", path.display()),
            Self::ClickHouse(conf) => write!(out, "clickhouse:{}", conf.url),
        }
    }
}

/// Parameters of a ClickHouse server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClickHouseConf {
    /// Address and database.
    pub url: StoreUrl,
    /// Name of the user.
    pub user: Option<String>,
    /// Absolute path of a file with the password.
    pub password_file: Option<PathBuf>,
    /// Absolute path of a PEM file with trusted certificates, instead of those of the system.
    pub ca_file: Option<PathBuf>,
    /// Absolute path of the directory for batches that are not sent yet.
    pub spill: PathBuf,
    /// Limit of that directory, bytes.
    pub spill_bytes: u64,
    /// Longest time of a row before its batch is sent, milliseconds.
    pub batch_ms: u64,
}

/// Address of a store that is reached by HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl {
    /// The scheme is https.
    pub is_tls: bool,
    /// Name or address of the host. An IPv6 address is in brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Name of the database.
    pub database: String,
}

impl StoreUrl {
    /// Parses `http[s]://host[:port]/database`. The default port is 8123, or 8443 for https.
    ///
    /// # Errors
    /// The reason. It never has a part of the URL, which may have a password.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        let (is_tls, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err("the URL must begin with \"http://\" or \"https://\""),
        };
        if rest.contains('@') {
            return Err("the URL must have no user and no password");
        }
        let (authority, database) = rest.split_once('/').ok_or("the URL has no database")?;
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (
                host,
                parse_port(port).map_err(|_| "the URL has an invalid port")?,
            ),
            _ if is_tls => (authority, HTTPS_PORT),
            _ => (authority, HTTP_PORT),
        };
        if !is_host(host) {
            return Err("the URL has an invalid host");
        }
        if !is_database(database) {
            return Err("the URL has an invalid database name");
        }
        Ok(Self {
            is_tls,
            host: host.to_owned(),
            port,
            database: database.to_owned(),
        })
    }

    /// Returns whether the host is this machine by its name or its loopback address.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let address = self.host.trim_start_matches('[').trim_end_matches(']');
        let address = address.parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            is_tls,
            host,
            port,
            database,
        } = self;
        let scheme = if *is_tls { "https" } else { "http" };
        write!(out, "{scheme}://{host}:{port}/{database}")
    }
}

fn is_host(host: &str) -> bool {
    let bracketed = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    if let Some(address) = bracketed {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (1..=HOST_BYTES_MAX).contains(&host.len()) && host.bytes().all(fits)
}

/// Names of databases need no quotes in SQL.
fn is_database(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = !name.starts_with(|first: char| first.is_ascii_digit());
    begins && (1..=DATABASE_BYTES_MAX).contains(&name.len()) && name.bytes().all(fits)
}

/// The UNIX-domain socket of the dashboard. Clones share one path, which is known when the whole configuration is read.
#[derive(Clone, Debug, Default)]
pub struct DashboardSocket(Arc<OnceLock<PathBuf>>);

impl DashboardSocket {
    /// Returns the path; `None` while the configuration is read.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.get().map(PathBuf::as_path)
    }

    /// Sets the path to the path of the pid file with the suffix `.lab.sock`.
    pub(crate) fn place_beside(&self, pid: &Path) {
        let mut path = pid.as_os_str().to_owned();
        path.push(DASHBOARD_SUFFIX);
        // The first path is kept.
        let _ = self.0.set(path.into());
    }
}

impl PartialEq for DashboardSocket {
    fn eq(&self, other: &Self) -> bool {
        self.path() == other.path()
    }
}

impl Eq for DashboardSocket {}

/// End of the name of the dashboard's socket.
const DASHBOARD_SUFFIX: &str = ".lab.sock";
/// Ports of ClickHouse's HTTP interface.
const HTTP_PORT: u16 = 8123;
const HTTPS_PORT: u16 = 8443;
/// Longest name of a host, bytes (RFC 1035 section 2.3.4).
const HOST_BYTES_MAX: usize = 253;
/// Longest name of a database, bytes.
const DATABASE_BYTES_MAX: usize = 64;

/// Limit of the spill directory by default, and at least, bytes.
pub const SPILL_BYTES: u64 = 1 << 30;
/// See [`SPILL_BYTES`].
pub const SPILL_LEAST_BYTES: u64 = 1 << 20;
/// Time of a batch by default, milliseconds.
pub const BATCH_MS: u64 = 10_000;
/// Least and longest time of a batch, milliseconds.
pub const BATCH_LEAST_MS: u64 = 100;
/// See [`BATCH_LEAST_MS`].
pub const BATCH_MAX_MS: u64 = 600_000;
/// Time for which histograms are kept by default, seconds: 400 days.
pub const RETENTION_S: u64 = 400 * DAY_S;
/// Time for which rows of connections are kept by default, seconds: 30 days.
pub const ROWS_S: u64 = 30 * DAY_S;
/// Limit of the file's size by default, bytes.
pub const MAX_BYTES: u64 = 1 << 30;
/// Least limit of the file's size, bytes.
pub const LEAST_BYTES: u64 = 1 << 20;
/// Longest prefix of IPv4 addresses that may be stored, bits.
pub const V4_PREFIX_MAX: u8 = 24;
/// Longest prefix of IPv6 addresses that may be stored, bits.
pub const V6_PREFIX_MAX: u8 = 48;
/// Seconds of a day.
pub const DAY_S: u64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_host_and_a_database() {
        for (url, shown) in [
            ("http://a/b", "http://a:8123/b"),
            ("https://a/b", "https://a:8443/b"),
            ("http://a.b-c_d:1/_x9", "http://a.b-c_d:1/_x9"),
            ("http://127.0.0.1:65535/b", "http://127.0.0.1:65535/b"),
            ("http://[::1]/b", "http://[::1]:8123/b"),
            ("https://[2001:db8::1]:9/b", "https://[2001:db8::1]:9/b"),
        ] {
            let parsed = StoreUrl::parse(url).map(|url| url.to_string());
            assert_eq!(parsed.as_deref(), Ok(shown), "{url}");
        }
        for (url, why) in [
            ("ftp://a/b", "begin with"),
            ("HTTP://a/b", "begin with"),
            ("a/b", "begin with"),
            ("http://u:p@a/b", "no user"),
            ("http://a/b@c", "no user"),
            ("http://a", "no database"),
            ("http://a/", "database name"),
            ("http://a/9b", "database name"),
            ("http://a/b/c", "database name"),
            ("http://a/b?c", "database name"),
            ("http://a/b-c", "database name"),
            ("http:///b", "invalid host"),
            ("http://:8123/b", "invalid host"),
            ("http://a b/c", "invalid host"),
            ("http://[::1/b", "invalid"),
            ("http://[a]/b", "invalid host"),
            ("http://::1/b", "invalid host"),
            ("http://a:0/b", "invalid port"),
            ("http://a:65536/b", "invalid port"),
            ("http://a:/b", "invalid port"),
        ] {
            let error = StoreUrl::parse(url).expect_err(url);
            assert!(error.contains(why), "{url}: {error}");
        }
    }

    #[test]
    fn names_have_limits() {
        let parse = |host: usize, database: usize| {
            let url = format!("http://{}/{}", "h".repeat(host), "d".repeat(database));
            StoreUrl::parse(&url).is_ok()
        };
        assert!(parse(HOST_BYTES_MAX, DATABASE_BYTES_MAX));
        assert!(!parse(HOST_BYTES_MAX + 1, 1));
        assert!(!parse(1, DATABASE_BYTES_MAX + 1));
    }

    #[test]
    fn loopback_is_this_machine() {
        let is_loopback = |url: &str| StoreUrl::parse(url).map(|url| url.is_loopback());
        for url in ["http://localhost/a", "http://127.9.9.9/a", "http://[::1]/a"] {
            assert_eq!(is_loopback(url), Ok(true), "{url}");
        }
        for url in [
            "http://localhost.example/a",
            "http://10.0.0.1/a",
            "http://[::2]/a",
        ] {
            assert_eq!(is_loopback(url), Ok(false), "{url}");
        }
    }

    #[test]
    fn socket_is_beside_the_pid_file() {
        let socket = DashboardSocket::default();
        let same = socket.clone();
        assert_eq!(same.path(), None);
        socket.place_beside(Path::new("/run/a.pid"));
        assert_eq!(same.path(), Some(Path::new("/run/a.pid.lab.sock")));
    }
}
