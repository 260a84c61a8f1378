//! Options and limits of a visit.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::client::trust::Trust;
use crate::client::{Protocol, Url};
use crate::fetch::KeyLog;

/// Options of a visit.
#[derive(Clone, Debug)]
pub struct Options {
    /// The page.
    pub url: Url,
    /// The protocol of all connections; `None` for HTTP/2 and HTTP/1.1 by ALPN, and HTTP/1.1 without TLS.
    pub protocol: Option<Protocol>,
    /// Hosts with an address or a protocol of their own.
    pub hosts: Vec<HostOverride>,
    /// Authorities with trusted certificates.
    pub trust: Trust,
    /// Longest time of a visit; incomplete resources have failed then.
    pub timeout: Duration,
    /// File for TLS secrets.
    pub key_log: Option<Arc<KeyLog>>,
}

/// A host that the visitor knows before the visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOverride {
    /// Name, in lower case.
    pub name: String,
    /// Address in place of a lookup.
    pub address: Option<IpAddr>,
    /// The protocol of its connections, in place of [`Options::protocol`]. Browsers remember protocols of servers: with
    /// HTTP/1.1 all connections are opened at once.
    pub protocol: Option<Protocol>,
}

impl Options {
    /// A visit of a page as browsers make it, of at most a minute.
    #[must_use]
    pub fn new(url: Url) -> Self {
        Self {
            url,
            protocol: None,
            hosts: Vec::new(),
            trust: Trust::default(),
            timeout: Duration::from_secs(60),
            key_log: None,
        }
    }

    /// The protocol of a host's connections, if it is not left to ALPN.
    pub(super) fn protocol_of(&self, host: &str) -> Option<Protocol> {
        let known = self.host_override(host);
        known.and_then(|known| known.protocol).or(self.protocol)
    }

    /// The address of a host that is not looked up.
    pub(super) fn address_of(&self, host: &str) -> Option<IpAddr> {
        self.host_override(host)?.address
    }

    fn host_override(&self, host: &str) -> Option<&HostOverride> {
        self.hosts.iter().find(|known| known.name == host)
    }
}

/// Most resources of one visit; further ones are not requested.
pub const MAX_RESOURCES: usize = 2000;
/// Most bytes received by one visit.
pub const MAX_VISIT_BYTES: u64 = 512 << 20;
/// Most decoded bytes of a content that are parsed.
pub(super) const MAX_CONTENT_BYTES: usize = 32 << 20;
/// Most redirects of one resource.
pub(super) const MAX_REDIRECTS: usize = 20;
/// Style sheets that import each other, in a row.
pub(super) const MAX_IMPORTS: usize = 8;
/// Most connections tried for a request, if connections close before a response.
pub(super) const MAX_ATTEMPTS: usize = 3;
/// Connections of one visit.
pub(super) const MAX_CONNECTIONS: usize = 256;
/// Connections of HTTP/1.1 that browsers make to one server.
pub(super) const CONNECTIONS_OF_H1: usize = 6;
