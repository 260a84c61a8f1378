//! Groups of servers in the configuration: defined by `upstream`, or made from the constant address of a `proxy_pass`.
//!
//! A group may be used before its definition. At the end of their block groups are checked, and the hosts of undefined
//! groups are looked up ([`Groups::finish`]). Absent: the choice of a server ([`crate::picker`]).
//!
//! Source: nginx documentation, `ngx_http_upstream_module`; nginx's behaviour.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Index;
use std::path::PathBuf;
use std::sync::Arc;

use conf::{ConfError, Directive};
use server_base::address::host_addresses;
use server_base::config::ConfigContext;
use server_base::name_servers::NameServers;

use crate::balance::Method;
use crate::health::active::CheckSpec;
use crate::members::PEERS_MAX;
use crate::retry_budget::RetryCounts;
use crate::route::UpstreamAddr;
pub use crate::server::{Server, UnresolvedHost};
use crate::shared::{PeerSettings, SharedPeers, Zone};

/// The index of a group in its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupId(pub usize);

/// The servers for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A group of the configuration, defined by `upstream` or made from a constant address.
    Group(GroupId),
    /// Addresses for this request only.
    Addresses(Vec<UpstreamAddr>),
    /// A name to be resolved for this request, and the port.
    Name(String, u16),
}

/// The groups of a configuration, in the order of their first use.
#[derive(Default)]
pub struct Groups {
    list: Vec<Group>,
    /// `upstream_unresolved error`: a host that is not found is an error, as in nginx; `None`: not set.
    pub unresolved_is_error: Option<bool>,
    /// Requests to addresses and names of one request, under a budget of retries.
    pub others: Arc<RetryCounts>,
    /// Indices in the list of groups with a name, in lower case: there may be thousands.
    by_name: HashMap<Vec<u8>, Vec<usize>>,
}

/// One group.
#[derive(Debug)]
pub struct Group {
    /// The name as first written, or the host.
    pub name: Arc<[u8]>,
    /// Whether an `upstream` block defines it.
    pub is_defined: bool,
    /// Port of all servers of an undefined group; 0 for a UNIX-domain socket, and for a defined group.
    pub port: u16,
    /// The servers, in their written order.
    pub servers: Vec<Server>,
    /// The method of choosing a server; `None`: the servers take turns.
    pub method: Option<Arc<dyn Method>>,
    /// `zone`; `None`: each thread has its own peers.
    pub zone: Option<Zone>,
    /// `state`: the file of the servers.
    pub state: Option<PathBuf>,
    /// `keepalive`; `None` if no connections are kept.
    pub keepalive: Option<Keepalive>,
    /// `queue`; `None`: a request for which there is no server fails.
    pub queue: Option<QueueLimits>,
    /// `sticky`: requests may be bound to servers by their identifiers.
    pub is_sticky: bool,
    /// `ntlm`: connections to servers are bound to connections of clients.
    pub is_ntlm: bool,
    /// Name servers for hosts that were not found; `None`: those of the system.
    pub resolver: Option<Arc<NameServers>>,
    /// `resolver_timeout`, milliseconds; `None` until the end of `http` if it is not set.
    pub resolver_timeout_ms: Option<u64>,
    /// Health checks of its servers.
    pub checks: Arc<[CheckSpec]>,
    /// Requests to the group, under a budget of retries.
    pub counts: Arc<RetryCounts>,
    /// The first use names no port.
    has_no_port: bool,
    /// The first use: a directive with the name as its first word.
    at: Directive,
}

/// `queue` of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Maximum number of requests that wait, for each thread.
    pub requests: usize,
    /// `timeout`: the longest wait, milliseconds.
    pub timeout_ms: u64,
}

impl Target {
    /// Returns the group of the configuration, if the target is one.
    pub fn group(&self) -> Option<GroupId> {
        match self {
            Self::Group(id) => Some(*id),
            Self::Addresses(_) | Self::Name(..) => None,
        }
    }
}

/// The idle connections of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Connections kept.
    pub connections: usize,
    /// Whether each location has its own connections.
    pub is_local: bool,
    /// `keepalive_requests`.
    pub requests: u64,
    /// `keepalive_time`, milliseconds.
    pub time_ms: u64,
    /// `keepalive_timeout`, milliseconds.
    pub timeout_ms: u64,
}

impl Index<GroupId> for Groups {
    type Output = Group;

    fn index(&self, id: GroupId) -> &Group {
        &self.list[id.0]
    }
}

impl Groups {
    /// Returns all groups.
    pub fn iter(&self) -> impl Iterator<Item = &Group> {
        self.list.iter()
    }

    /// Returns a group for changes during its definition.
    pub fn get_mut(&mut self, id: GroupId) -> &mut Group {
        &mut self.list[id.0]
    }

    /// Begins the definition of the group with the name in an `upstream` directive.
    ///
    /// # Errors
    /// The group is defined already, or was used with a port.
    pub fn define(&mut self, d: &Directive) -> Result<GroupId, ConfError> {
        let name = d.arg_str(0);
        let first = self.groups_named(name).next().map(|(id, _)| id);
        let Some(id) = first else {
            let id = self.push(d, name, 0, true);
            self.list[id.0].is_defined = true;
            return Ok(id);
        };
        let group = &mut self.list[id];
        if group.is_defined {
            let text = format!("duplicate upstream \"{name}\"");
            return Err(ConfError::word(d, d.word(0), text));
        }
        if !group.has_no_port {
            return Err(group.error(format!(
                "upstream \"{name}\" may not have port {}",
                group.port
            )));
        }
        group.is_defined = true;
        group.port = 0;
        group.servers.clear();
        Ok(GroupId(id))
    }

    /// The group of a constant address: the one of that name, defined before or after this use, or else one of the
    /// host's addresses. `host` is as in a URL: a name, an IPv4 address, an IPv6 address in brackets, or `unix:` and a
    /// path. `port` is the written one.
    ///
    /// # Errors
    /// A defined group is used with a port.
    pub fn add(
        &mut self,
        d: &Directive,
        host: &str,
        port: Option<u16>,
        default_port: u16,
    ) -> Result<GroupId, ConfError> {
        let is_unix = host.starts_with("unix:");
        let meant = match is_unix {
            true => 0,
            false => port.unwrap_or(default_port),
        };
        for (id, group) in self.groups_named(host) {
            if let Some(port) = port.filter(|_| group.is_defined) {
                let text = format!("upstream \"{host}\" may not have port {port}");
                return Err(ConfError::word(d, d.word(0), text));
            }
            if group.port == 0 || meant == 0 || group.port == meant {
                return Ok(GroupId(id));
            }
        }
        let id = self.push(d, host, meant, port.is_none() && !is_unix);
        let literal = literal(host, meant).filter(|_| is_unix || meant != 0);
        let server = literal.map(|address| Server {
            addresses: vec![address],
            // As in nginx, failures of a literal address do not count.
            max_fails: 0,
            fail_timeout_s: 0,
            ..Server::implicit(host)
        });
        self.list[id.0].servers.extend(server);
        Ok(id)
    }

    /// The target of a request with an address from variables; arguments as for [`Self::add`].
    ///
    /// # Errors
    /// The log text: there is no port.
    pub fn target(
        &self,
        host: &str,
        port: Option<u16>,
        default_port: u16,
    ) -> Result<Target, String> {
        let meant = port.unwrap_or(default_port);
        let mut named = self.groups_named(host);
        let found =
            named.find(|(_, group)| (group.port == 0 && port.is_none()) || group.port == meant);
        if let Some((id, _)) = found {
            return Ok(Target::Group(GroupId(id)));
        }
        if meant == 0 && !host.starts_with("unix:") {
            return Err(format!("no port in upstream \"{host}\""));
        }
        Ok(match literal(host, meant) {
            Some(address) => Target::Addresses(vec![address]),
            None => Target::Name(host.to_owned(), meant),
        })
    }

    /// Looks up the hosts of undefined groups, and checks each group. `resolver` is for groups without their own: name
    /// servers, and the timeout of a lookup in milliseconds.
    ///
    /// # Errors
    /// nginx's: a group has no servers or no port. With `upstream_unresolved error` also a host that is not found.
    pub fn finish(
        &mut self,
        cx: &mut dyn ConfigContext,
        resolver: (Option<&Arc<NameServers>>, u64),
    ) -> Result<(), ConfError> {
        for group in &mut self.list {
            look_up_host(cx, group)?;
            // A file may have no servers yet.
            let may_be_empty = group.state.is_some();
            if !may_be_empty && group.servers.iter().all(|server| server.is_backup) {
                let name = String::from_utf8_lossy(&group.name);
                return Err(group.error(format!("no servers in upstream \"{name}\"")));
            }
            if let Some(method) = &group.method {
                method.prepare(&group.servers);
            }
            let has_resolve = |server: &Server| {
                let host = server.unresolved.as_ref();
                host.is_some_and(|host| host.has_resolve)
            };
            if group.zone.is_none() && group.servers.iter().any(has_resolve) {
                let name = String::from_utf8_lossy(&group.name);
                return Err(group.error(format!(
                    "resolving names at run time requires upstream \"{name}\" to be in shared memory"
                )));
            }
            let addresses = group.servers.iter().map(|server| server.addresses.len());
            if addresses.sum::<usize>() > PEERS_MAX {
                let name = String::from_utf8_lossy(&group.name);
                let text = format!("more than {PEERS_MAX} servers in upstream \"{name}\"");
                return Err(group.error(text));
            }
            group.resolver = group.resolver.take().or_else(|| resolver.0.cloned());
            group.resolver_timeout_ms.get_or_insert(resolver.1);
            let unresolved = group.servers.iter().filter_map(|s| s.unresolved.as_ref());
            for error in unresolved.filter_map(|host| host.error.as_ref()) {
                if self.unresolved_is_error == Some(true) {
                    return Err(error.clone());
                }
                let warning = error.clone().with_more(" (down until it resolves)");
                cx.warn(warning.with_hint(UNRESOLVED_HINT));
            }
        }
        Ok(())
    }

    fn push(&mut self, d: &Directive, name: &str, port: u16, has_no_port: bool) -> GroupId {
        self.list.push(Group {
            name: Arc::from(name.as_bytes()),
            is_defined: false,
            port,
            servers: Vec::new(),
            method: None,
            zone: None,
            state: None,
            keepalive: None,
            queue: None,
            is_sticky: false,
            is_ntlm: false,
            resolver: None,
            resolver_timeout_ms: None,
            checks: Arc::default(),
            counts: Arc::default(),
            has_no_port,
            at: d.owned_head(),
        });
        let id = self.list.len() - 1;
        let name = name.to_ascii_lowercase().into_bytes();
        self.by_name.entry(name).or_default().push(id);
        GroupId(id)
    }

    /// Returns the groups of a name, which differ in their ports, in order.
    fn groups_named(&self, host: &str) -> impl Iterator<Item = (usize, &Group)> {
        let ids = self.by_name.get(host.to_ascii_lowercase().as_bytes());
        let ids = ids.map_or(&[][..], Vec::as_slice);
        ids.iter().map(|id| (*id, &self.list[*id]))
    }
}

impl Group {
    /// Returns the peers shared by all threads, if the group has a zone.
    pub fn shared_peers(&self) -> Option<&Arc<SharedPeers>> {
        let zone = self.zone.as_ref()?;
        Some(zone.peers(&self.peer_settings()))
    }

    /// Returns the settings that its shared peers take over.
    pub(crate) fn peer_settings(&self) -> PeerSettings<'_> {
        PeerSettings {
            servers: &self.servers,
            method: self.method.as_deref(),
            checks: Arc::clone(&self.checks),
        }
    }

    /// An error about the group, at its first use.
    fn error(&self, text: String) -> ConfError {
        ConfError::word(&self.at, self.at.word(0), text)
    }
}

fn look_up_host(cx: &mut dyn ConfigContext, group: &mut Group) -> Result<(), ConfError> {
    if group.is_defined || !group.servers.is_empty() {
        return Ok(());
    }
    let name = String::from_utf8_lossy(&group.name).into_owned();
    if group.port == 0 {
        return Err(group.error(format!("no port in upstream \"{name}\"")));
    }
    let mut server = Server::implicit(&name);
    match host_addresses(&name, &mut |host| cx.look_up(host)) {
        Ok(found) => {
            let socket = |ip| UpstreamAddr::Inet(SocketAddr::new(ip, group.port));
            server.addresses = found.into_iter().map(socket).collect();
        }
        Err(why) => {
            let error = group.error(format!("{why} in upstream \"{name}\""));
            if name.is_empty() {
                return Err(error);
            }
            server.unresolved = Some(UnresolvedHost {
                error: Some(error),
                ..UnresolvedHost::new(&name, group.port)
            });
        }
    }
    group.servers.push(server);
    Ok(())
}

/// Returns the address if the host of a URL is one, and no name to resolve.
fn literal(host: &str, port: u16) -> Option<UpstreamAddr> {
    if let Some(path) = host.strip_prefix("unix:") {
        return Some(UpstreamAddr::Unix(Arc::from(path.as_bytes())));
    }
    let ip: IpAddr = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(v6) => v6.parse::<Ipv6Addr>().ok()?.into(),
        None => host.parse::<Ipv4Addr>().ok()?.into(),
    };
    Some(UpstreamAddr::Inet(SocketAddr::new(ip, port)))
}

/// Hint for a host that is not found.
const UNRESOLVED_HINT: &str = "\"upstream_unresolved error;\" makes this an error";
