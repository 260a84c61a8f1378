//! Parser of `/etc/resolv.conf`: the system's name servers and search domains.
//!
//! Absent: `sortlist`, protocol options (`edns0`, `use-vc`), and the environment (`RES_OPTIONS`, `LOCALDOMAIN`).
//!
//! Source: resolv.conf(5).

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};

use engines::http::parse_decimal;

/// Contents of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvConf {
    /// The servers in order of preference; at least one.
    pub servers: Vec<SocketAddr>,
    /// Domains appended to short names.
    pub search: Vec<String>,
    /// A name with at least this many dots is tried unchanged before the search domains.
    pub ndots: usize,
    /// Timeout of one server, milliseconds.
    pub timeout_ms: u64,
    /// Attempts per server.
    pub attempts: u64,
    /// Whether servers take turns at being first.
    pub rotate: bool,
}

impl ResolvConf {
    /// Parses the text. `scope` returns the index of a network interface. The domain of `hostname` is the default
    /// search domain.
    pub fn parse(text: &[u8], hostname: &str, scope: &dyn Fn(&str) -> Option<u32>) -> Self {
        let domain = hostname.split_once('.').map(|(_, domain)| domain);
        let mut read = Self {
            servers: Vec::new(),
            search: domain.into_iter().filter_map(as_domain).collect(),
            ndots: 1,
            timeout_ms: TIMEOUT_MS,
            attempts: ATTEMPTS,
            rotate: false,
        };
        for line in lines(text) {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let server = words.next().and_then(|word| server(word, scope));
                    let room = read.servers.len() < SERVERS_MAX;
                    read.servers.extend(server.filter(|_| room));
                }
                // The last `domain` or `search` line counts.
                Some("domain") => {
                    read.search = words.next().and_then(as_domain).into_iter().collect();
                }
                Some("search") => {
                    read.search = words.filter_map(as_domain).take(SEARCH_MAX).collect();
                }
                Some("options") => words.for_each(|word| read.option(word)),
                _ => {}
            }
        }
        if read.servers.is_empty() {
            read.servers
                .push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), DNS_PORT));
        }
        read
    }

    fn option(&mut self, word: &str) {
        let (name, value) = word.split_once(':').unwrap_or((word, ""));
        let number = || value.parse::<u64>().ok();
        match name {
            "rotate" => self.rotate = true,
            "ndots" => self.ndots = number().map_or(self.ndots, |n| n.min(NDOTS_MAX) as usize),
            "timeout" => {
                let seconds = number().map(|n| n.clamp(1, TIMEOUT_S_MAX));
                self.timeout_ms = seconds.map_or(self.timeout_ms, |s| s * 1000);
            }
            "attempts" => {
                self.attempts = number().map_or(self.attempts, |n| n.clamp(1, ATTEMPTS_MAX));
            }
            _ => {}
        }
    }

    /// Returns the names to query for `name`, in order.
    pub fn candidates(&self, name: &str) -> Vec<String> {
        if name.ends_with('.') {
            return vec![name.to_owned()];
        }
        let completed = self.search.iter().map(|domain| match domain.as_str() {
            "" => name.to_owned(),
            domain => format!("{name}.{domain}"),
        });
        let as_it_is = std::iter::once(name.to_owned());
        let dots = name.bytes().filter(|byte| *byte == b'.').count();
        let mut all: Vec<String> = match dots >= self.ndots {
            true => as_it_is.chain(completed).collect(),
            false => completed.chain(as_it_is).collect(),
        };
        all.dedup();
        all
    }

    /// Returns the maximum time for one name over all servers, milliseconds.
    pub fn name_timeout_ms(&self) -> u64 {
        self.timeout_ms * self.attempts * self.servers.len() as u64
    }
}

/// Returns the lines that are valid UTF-8, no comments, and at most [`LINE_BYTES_MAX`] long.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &str> {
    let lines = text.split(|byte| *byte == b'\n');
    let short = lines.filter(|line| line.len() <= LINE_BYTES_MAX);
    let text = short.filter_map(|line| std::str::from_utf8(line).ok());
    text.filter(|line| !line.starts_with(['#', ';']))
}

fn server(word: &str, scope: &dyn Fn(&str) -> Option<u32>) -> Option<SocketAddr> {
    if let Some((ip, zone)) = word.split_once('%') {
        let scope_id = parse_decimal(zone.as_bytes()).or_else(|| scope(zone))?;
        let address = SocketAddrV6::new(ip.parse().ok()?, DNS_PORT, 0, scope_id);
        return Some(SocketAddr::V6(address));
    }
    let ip: IpAddr = word.parse().ok()?;
    Some(SocketAddr::new(ip, DNS_PORT))
}

/// Returns a domain in lower case without its final dot; the root is the empty string.
fn as_domain(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text);
    (text == "." || !name.is_empty()).then(|| name.to_ascii_lowercase())
}

const DNS_PORT: u16 = 53;
/// Defaults of `timeout_ms` and `attempts`.
const TIMEOUT_MS: u64 = 5_000;
const ATTEMPTS: u64 = 2;
/// The system's maximum values: servers, `ndots`, `timeout` in seconds, `attempts`.
const SERVERS_MAX: usize = 3;
const NDOTS_MAX: u64 = 15;
const TIMEOUT_S_MAX: u64 = 30;
const ATTEMPTS_MAX: u64 = 5;
/// Maximum number of search domains. The system has no limit; each domain costs a query.
pub const SEARCH_MAX: usize = 32;
/// Maximum length of a line, bytes. Longer lines are ignored.
pub const LINE_BYTES_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ResolvConf {
        let scope = |name: &str| (name == "eth0").then_some(7);
        ResolvConf::parse(text.as_bytes(), "host", &scope)
    }

    fn servers(text: &str) -> String {
        let shown: Vec<_> = parse(text)
            .servers
            .iter()
            .map(SocketAddr::to_string)
            .collect();
        shown.join(" ")
    }

    #[test]
    fn servers_are_read_up_to_three() {
        for (text, told) in [
            ("nameserver 192.0.2.1\n", "192.0.2.1:53"),
            ("nameserver\t2001:db8::1\r\n", "[2001:db8::1]:53"),
            ("nameserver fe80::1%eth0", "[fe80::1%7]:53"),
            ("nameserver fe80::1%3", "[fe80::1%3]:53"),
            (
                "nameserver fe80::1%eth9\nnameserver 192.0.2.2",
                "192.0.2.2:53",
            ),
            (
                "nameserver fe80::1%+3\nnameserver 192.0.2.2",
                "192.0.2.2:53",
            ),
            (
                "# nameserver 192.0.2.1\n;nameserver 192.0.2.2\n",
                "127.0.0.1:53",
            ),
            (
                "nameserver x\nnameserver\n nameserver 192.0.2.3",
                "192.0.2.3:53",
            ),
            ("", "127.0.0.1:53"),
            (
                "nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\nnameserver 192.0.2.4",
                "192.0.2.1:53 192.0.2.2:53 192.0.2.3:53",
            ),
        ] {
            assert_eq!(servers(text), told, "{text:?}");
        }
    }

    #[test]
    fn the_last_search_or_domain_counts() {
        let search = |text: &str| parse(text).search.join(",");
        assert_eq!(search("search a.test B.test.\ndomain c.test x"), "c.test");
        assert_eq!(
            search("domain c.test\nsearch a.test\tb.test"),
            "a.test,b.test"
        );
        assert_eq!(search("nameserver 192.0.2.1"), "");
        let named = ResolvConf::parse(b"", "host.example.test", &|_| None);
        assert_eq!(named.search, ["example.test"]);
        let many = vec!["d.test"; SEARCH_MAX + 1].join(" ");
        assert_eq!(parse(&format!("search {many}")).search.len(), SEARCH_MAX);
    }

    #[test]
    fn options_are_bounded() {
        let read = parse("options ndots:5 timeout:1\noptions attempts:3 rotate edns0");
        assert_eq!((read.ndots, read.timeout_ms), (5, 1000));
        assert_eq!((read.attempts, read.rotate), (3, true));
        let read = parse("options ndots:99 timeout:99 attempts:99");
        assert_eq!(
            (read.ndots, read.timeout_ms, read.attempts),
            (15, 30_000, 5)
        );
        let read = parse("options ndots:0 timeout:0 attempts:0");
        assert_eq!((read.ndots, read.timeout_ms, read.attempts), (0, 1000, 1));
        let read = parse("options ndots:x timeout: attempts");
        assert_eq!((read.ndots, read.timeout_ms, read.attempts), (1, 5000, 2));
        assert_eq!(read.name_timeout_ms(), 10_000);
    }

    #[test]
    fn lines_that_are_too_long_mean_nothing() {
        let line = |bytes: usize| format!("nameserver 192.0.2.1{}\n", " ".repeat(bytes - 20));
        assert_eq!(servers(&line(LINE_BYTES_MAX)), "192.0.2.1:53");
        assert_eq!(servers(&line(LINE_BYTES_MAX + 1)), "127.0.0.1:53");
    }

    #[test]
    fn short_names_are_looked_for_in_domains_first() {
        let read = parse("search default.svc.cluster.local svc.cluster.local\noptions ndots:2");
        let names = |name: &str| read.candidates(name).join(" ");
        assert_eq!(
            names("app"),
            "app.default.svc.cluster.local app.svc.cluster.local app"
        );
        assert_eq!(
            names("app.other"),
            "app.other.default.svc.cluster.local app.other.svc.cluster.local app.other"
        );
        assert_eq!(
            names("www.example.test"),
            "www.example.test www.example.test.default.svc.cluster.local \
             www.example.test.svc.cluster.local"
        );
        assert_eq!(names("app."), "app.");
        assert_eq!(parse("search .").candidates("app"), ["app"]);
    }
}
