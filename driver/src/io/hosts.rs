//! `/etc/hosts`: addresses of hosts that need no query.
//!
//! Absent: reverse lookups.
//!
//! Source: hosts(5); RFC 6761, section 6.3 (`localhost`).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::resolv_conf::lines;

/// Hosts and their addresses.
#[derive(Debug, Default)]
pub struct Hosts(HashMap<String, Vec<IpAddr>>);

impl Hosts {
    /// Parses the text. A host on several lines has the addresses of all of them.
    pub fn parse(text: &[u8]) -> Self {
        let mut hosts = Self::default();
        for line in lines(text) {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_ascii_whitespace();
            let Some(address) = words.next().and_then(|word| word.parse().ok()) else {
                continue;
            };
            for name in words {
                let known = hosts.0.entry(name.to_ascii_lowercase()).or_default();
                if !known.contains(&address) {
                    known.push(address);
                }
            }
        }
        hosts
    }

    /// Returns the addresses of a host. `localhost` and its subdomains are loopback, with or without a line.
    pub fn addresses(&self, name: &str) -> Option<Vec<IpAddr>> {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if let Some(known) = self.0.get(&name) {
            return Some(known.clone());
        }
        let is_local = name == "localhost" || name.ends_with(".localhost");
        is_local.then(|| vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::super::resolv_conf::LINE_BYTES_MAX;
    use super::*;

    fn addresses(text: &str, name: &str) -> String {
        let found = Hosts::parse(text.as_bytes()).addresses(name);
        let shown = found.into_iter().flatten().map(|ip| ip.to_string());
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_host_has_the_addresses_of_all_its_lines() {
        let text = "192.0.2.1 one.test One\r\n# 192.0.2.9 one.test\n2001:db8::1\tone.test # two.test\n\
                    192.0.2.1 one.test\nx one.test\n192.0.2.3\n\n  192.0.2.2 two.test";
        assert_eq!(addresses(text, "one.test"), "192.0.2.1 2001:db8::1");
        assert_eq!(addresses(text, "ONE"), "192.0.2.1");
        assert_eq!(addresses(text, "one.test."), "192.0.2.1 2001:db8::1");
        assert_eq!(addresses(text, "two.test"), "192.0.2.2");
        assert_eq!(addresses(text, "three.test"), "");
    }

    #[test]
    fn this_machine_is_known_without_a_line() {
        assert_eq!(addresses("", "localhost"), "127.0.0.1 ::1");
        assert_eq!(addresses("", "app.localhost"), "127.0.0.1 ::1");
        assert_eq!(addresses("127.0.0.2 localhost", "localhost"), "127.0.0.2");
        assert_eq!(addresses("", "notlocalhost"), "");
    }

    #[test]
    fn lines_that_are_too_long_or_no_text_mean_nothing() {
        let line = |bytes: usize| format!("192.0.2.1 a.test{}\n", " ".repeat(bytes - 16));
        assert_eq!(addresses(&line(LINE_BYTES_MAX), "a.test"), "192.0.2.1");
        assert_eq!(addresses(&line(LINE_BYTES_MAX + 1), "a.test"), "");
        let hosts = Hosts::parse(b"192.0.2.1 \xff\n192.0.2.2 b.test");
        assert!(hosts.addresses("b.test").is_some());
    }
}
