//! The system's resolver configuration, read again when its files change.
//!
//! A query checks `/etc/resolv.conf` and `/etc/hosts`, at most once per [`LOOK_MS`]. Both are small and readable by
//! everybody. Absent: `nsswitch.conf`; the order is files, then servers.

use std::fs::{self, File};
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::hosts::Hosts;
use super::resolv_conf::ResolvConf;

/// The name servers and hosts of the system.
#[derive(Debug)]
pub struct SystemNames {
    resolv_conf: Watched,
    hosts_file: Watched,
    hostname: String,
    conf: ResolvConf,
    hosts: Hosts,
    /// Whether IPv6 addresses are usable.
    ipv6: bool,
    look_again_ms: u64,
    /// Number of changes of [`SystemNames::conf`].
    changes: u64,
}

/// A file, and its state at the last read.
#[derive(Debug)]
struct Watched {
    path: PathBuf,
    state: Option<(u64, u64, u64, i64, i64)>,
}

impl Default for SystemNames {
    fn default() -> Self {
        Self::new("/etc/resolv.conf", "/etc/hosts")
    }
}

impl SystemNames {
    /// Makes names from these files, which are not read yet.
    pub fn new(resolv_conf: impl Into<PathBuf>, hosts: impl Into<PathBuf>) -> Self {
        let watched = |path| Watched { path, state: None };
        Self {
            resolv_conf: watched(resolv_conf.into()),
            hosts_file: watched(hosts.into()),
            hostname: String::new(),
            conf: ResolvConf::parse(b"", "", &|_| None),
            hosts: Hosts::default(),
            ipv6: false,
            look_again_ms: 0,
            changes: 0,
        }
    }

    /// Makes names with fixed contents, for tests and the simulator.
    pub fn fixed(conf: ResolvConf, hosts: Hosts) -> Self {
        Self {
            conf,
            hosts,
            look_again_ms: u64::MAX,
            ..Self::new("", "")
        }
    }

    /// Reads files that have changed. Call it before each query.
    pub fn refresh(&mut self, now_ms: u64) {
        if now_ms < self.look_again_ms {
            return;
        }
        self.look_again_ms = now_ms + LOOK_MS;
        if let Some(text) = self.resolv_conf.changed() {
            self.hostname = String::from_utf8_lossy(&sys::process::hostname()).into_owned();
            self.conf = ResolvConf::parse(&text, &self.hostname, &scope);
            self.changes += 1;
        }
        if let Some(text) = self.hosts_file.changed() {
            self.hosts = Hosts::parse(&text);
        }
        let ipv6 = match read("/proc/net/if_inet6".into()) {
            Ok(text) => has_ipv6(&text),
            // A kernel without IPv6 does not have this file either. Then the fallback finds none.
            Err(_) => sys::interfaces::have_global_ipv6(),
        };
        if ipv6 != self.ipv6 {
            self.ipv6 = ipv6;
            self.changes += 1;
        }
    }

    /// Returns the contents of `/etc/resolv.conf`.
    pub fn conf(&self) -> &ResolvConf {
        &self.conf
    }

    /// Returns the addresses of a host in `/etc/hosts`.
    pub fn addresses(&self, name: &str) -> Option<Vec<IpAddr>> {
        self.hosts.addresses(name)
    }

    /// Whether the machine has an IPv6 address of global scope.
    pub fn has_ipv6(&self) -> bool {
        self.ipv6
    }

    /// Returns the number of changes of the servers.
    pub fn changes(&self) -> u64 {
        self.changes
    }
}

impl Watched {
    /// Returns the text of the file if it has changed; the text of a missing file is empty.
    fn changed(&mut self) -> Option<Vec<u8>> {
        let state = fs::metadata(&self.path).ok();
        let state = state.map(|m| (m.dev(), m.ino(), m.size(), m.mtime(), m.mtime_nsec()));
        if state == self.state {
            return None;
        }
        let text = match state {
            // The file may be replaced at this moment. The next check tries again.
            Some(_) => read(self.path.clone()).ok()?,
            None => Vec::new(),
        };
        self.state = state;
        Some(text)
    }
}

fn read(path: PathBuf) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?
        .take(FILE_BYTES_MAX)
        .read_to_end(&mut text)?;
    Ok(text)
}

/// Returns the index of a network interface.
fn scope(interface: &str) -> Option<u32> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None);
    rustix::net::netdevice::name_to_index(socket.ok()?, interface).ok()
}

/// Whether an interface has an address of global scope.
///
/// Source: Linux, `if_inet6_seq_show`: address, index, length of the prefix, scope, flags, name.
fn has_ipv6(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    text.lines()
        .any(|line| line.split_ascii_whitespace().nth(3) == Some("00"))
}

/// Minimum interval between checks of the files, milliseconds.
const LOOK_MS: u64 = 1_000;
/// Maximum number of bytes read of a file. Blocklists of hosts have some megabytes.
const FILE_BYTES_MAX: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_again_when_they_change() {
        let dir = std::env::temp_dir().join(format!("firstbyte-names-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory can be made");
        let (conf, hosts) = (dir.join("resolv.conf"), dir.join("hosts"));
        let mut names = SystemNames::new(&conf, &hosts);
        let mut told = Vec::new();
        let mut look = |now_ms| {
            names.refresh(now_ms);
            let servers: Vec<_> = names.conf().servers.iter().map(|s| s.to_string()).collect();
            let host = names.addresses("one.test").map(|found| found.len());
            told.push(format!("{} {}", servers.join(","), host.unwrap_or(0)));
        };
        look(5);
        fs::write(&conf, "nameserver 192.0.2.1\n").expect("it can be written");
        fs::write(&hosts, "192.0.2.5 one.test\n").expect("it can be written");
        look(5 + LOOK_MS - 1);
        look(5 + LOOK_MS);
        fs::write(&conf, "nameserver 192.0.2.11\n").expect("it can be written");
        fs::remove_file(&hosts).expect("it is there");
        look(5 + 2 * LOOK_MS);
        fs::remove_dir_all(&dir).expect("what was made can be removed");
        assert_eq!(
            told,
            [
                "127.0.0.1:53 0",
                "127.0.0.1:53 0",
                "192.0.2.1:53 1",
                "192.0.2.11:53 0"
            ]
        );
    }

    #[test]
    fn interfaces_have_numbers() {
        assert_eq!(scope("lo"), Some(1));
        assert_eq!(scope("../lo"), None);
    }

    #[test]
    fn addresses_of_global_scope_count_alone() {
        let line =
            |scope: &str| format!("fe800000000000000000000000000001 02 40 {scope} 80 eth0\n");
        assert!(!has_ipv6(line("20").as_bytes()) && !has_ipv6(line("10").as_bytes()));
        assert!(has_ipv6((line("20") + &line("00")).as_bytes()));
    }
}
