//! `listen`: from directives to sockets and the servers behind each.
//!
//! A wildcard address and specific addresses of the same port share the wildcard's socket; the local address then
//! selects the server. An address with `bind` or a socket option has a socket of its own.
//!
//! Source: nginx documentation, directive `listen`.

use std::collections::{HashMap, HashSet};

use conf::{ConfError, Directive, Pos, WordSpan};
use engines::http::Protocols;
use server_base::listen::{Listen, ListenAddr, SocketOptions, parse_address};

use super::ConfigBuilder;
use super::listen_params::ListenParams;
use crate::conf_core::CoreSrv;
use crate::http::{Port, PortAddr, Server};
use crate::names::{NameKind, ServerNames};

/// One address of one `listen` directive.
#[derive(Clone, Debug)]
pub struct ListenDraft {
    /// The address.
    pub addr: ListenAddr,
    /// The server it was written in.
    pub server: usize,
    /// Socket options, if any was written.
    pub options: Option<SocketOptions>,
    /// It has a socket of its own (`bind`).
    pub bind: bool,
    /// `default_server`.
    pub default: bool,
    /// `proxy_protocol`.
    pub proxy_protocol: bool,
    /// Protocols besides HTTP/1.
    pub protocols: Protocols,
    /// `ssl`.
    pub ssl: bool,
    /// The position of the directive, and its address for messages; `None` for the default listen of a server.
    pub at: Option<(Pos, WordSpan)>,
}

impl ListenDraft {
    /// The listen of a server without `listen`.
    pub fn default_for(server: usize) -> Self {
        // An unprivileged server may not bind port 80; nginx uses 8000 then.
        let port = if conf::is_root() { 80 } else { 8000 };
        let addr = ListenAddr::Inet(std::net::SocketAddr::from(([0, 0, 0, 0], port)));
        Self {
            addr,
            server,
            options: None,
            bind: false,
            default: false,
            proxy_protocol: false,
            protocols: Protocols::default(),
            ssl: false,
            at: None,
        }
    }

    fn error(&self, text: String) -> ConfError {
        match &self.at {
            Some((_, address)) => address.error(text),
            None => ConfError::new(text),
        }
    }
}

/// Applies `listen`.
pub fn listen(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let addrs = parse_address(d.arg_str(0), &mut |host| b.look_up(host)).map_err(|e| {
        ConfError::word(
            d,
            d.word(0),
            format!("{e} in \"{}\" of the \"listen\" directive", d.arg_str(0)),
        )
    })?;
    let params = ListenParams::parse(d, !matches!(addrs[0], ListenAddr::Unix(_)))?;
    let http = b.http.as_mut().expect("listen lies inside server");
    let server = http.server.expect("listen lies inside server");
    let mut warnings = params.warnings;
    for addr in addrs {
        let new = ListenDraft {
            addr,
            server,
            options: params.own_socket.then(|| params.options.clone()),
            bind: params.own_socket,
            default: params.default,
            proxy_protocol: params.proxy_protocol,
            protocols: params.protocols,
            ssl: params.ssl,
            at: Some((d.pos, WordSpan::new(d, d.word(0)))),
        };
        if http.protocols.add(&new) {
            warnings.push(new.error(format!("protocol options redefined for {}", new.addr)));
        }
        http.listens.add(new)?;
    }
    for warning in warnings {
        b.warn(warning);
    }
    Ok(())
}

/// The listens of all servers, in the order of the servers.
#[derive(Default)]
pub(super) struct Listens {
    all: Vec<ListenDraft>,
    known: HashMap<ListenAddr, AddrServers>,
}

/// Facts about the servers of one address.
#[derive(Default)]
struct AddrServers {
    /// The last of them.
    server: Option<usize>,
    default: bool,
    options: bool,
}

impl Listens {
    /// An empty list with room for `most`.
    pub(super) fn with_capacity(most: usize) -> Self {
        Self {
            all: Vec::with_capacity(most),
            ..Self::default()
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> &[ListenDraft] {
        &self.all
    }

    /// Adds a listen.
    pub(super) fn push(&mut self, new: ListenDraft) {
        let known = self.known.entry(new.addr.clone()).or_default();
        known.server = Some(new.server);
        known.default |= new.default;
        known.options |= new.options.is_some();
        self.all.push(new);
    }

    /// Adds one that was written.
    fn add(&mut self, new: ListenDraft) -> Result<(), ConfError> {
        if let Some(old) = self.known.get(&new.addr) {
            if old.server == Some(new.server) {
                return Err(new.error(format!("a duplicate listen {}", new.addr)));
            }
            if old.default && new.default {
                return Err(new.error(format!("a duplicate default server for {}", new.addr)));
            }
            if old.options && new.options.is_some() {
                return Err(new.error(format!("duplicate listen options for {}", new.addr)));
            }
        }
        self.push(new);
        Ok(())
    }
}

/// Listens by their addresses, both in the order in which they are written.
pub(super) fn by_address(listens: &[ListenDraft]) -> Vec<Vec<&ListenDraft>> {
    let mut addresses: Vec<Vec<&ListenDraft>> = Vec::new();
    let mut known: HashMap<&ListenAddr, usize> = HashMap::new();
    for listen in listens {
        let index = *known.entry(&listen.addr).or_insert(addresses.len());
        match addresses.get_mut(index) {
            Some(same) => same.push(listen),
            None => addresses.push(vec![listen]),
        }
    }
    addresses
}

/// Makes sockets of the listens; names that two servers of one address share become warnings.
///
/// # Errors
/// An invalid name, if an address has several servers.
pub(super) fn ports(
    listens: &[ListenDraft],
    servers: &[Server],
    needs_local: bool,
) -> Result<(Vec<Port>, Vec<String>), ConfError> {
    let mut warnings = Vec::new();
    let mut ports: Vec<Port> = Vec::new();
    for same in by_address(listens) {
        let options = same
            .iter()
            .find_map(|l| l.options.clone())
            .unwrap_or_default();
        let bind = same.iter().any(|l| l.bind);
        let entry = port_addr(&same, servers, &mut warnings)?;
        ports.push(Port {
            listen: Listen {
                addr: same[0].addr.clone(),
                options,
            },
            needs_local_addr: bind,
            is_listening: true,
            addrs: vec![entry],
        });
    }
    share_wildcards(&mut ports);
    for port in &mut ports {
        port.needs_local_addr =
            port.listen.addr.is_wildcard() && (needs_local || port.addrs.len() > 1);
    }
    Ok((ports, warnings))
}

fn port_addr(
    same: &[&ListenDraft],
    servers: &[Server],
    warnings: &mut Vec<String>,
) -> Result<PortAddr, ConfError> {
    let default_server = same.iter().find(|l| l.default).unwrap_or(&same[0]).server;
    let mut names = ServerNames::default();
    let only = same.len() == 1;
    for l in same {
        let srv: &CoreSrv = servers[l.server].confs.get();
        if only && !srv.has_regex_name() {
            continue;
        }
        if let Some(name) = srv
            .names
            .iter()
            .find(|n| matches!(n.kind, NameKind::Invalid))
        {
            let name = String::from_utf8_lossy(&name.text);
            return Err(ConfError::new(format!(
                "invalid server name or wildcard \"{name}\" on {}",
                l.addr
            )));
        }
        for name in names.add(l.server, &srv.names) {
            warnings.push(format!(
                "conflicting server name \"{name}\" on {}, ignored",
                l.addr
            ));
        }
    }
    names.shrink();
    Ok(PortAddr {
        addr: None,
        default_server,
        names,
        protocols: same
            .iter()
            .fold(Protocols::default(), |all, l| all.union(l.protocols)),
        ssl: same.iter().any(|l| l.ssl),
        proxy_protocol: same.iter().any(|l| l.proxy_protocol),
        listens: same
            .iter()
            .map(|l| (l.server, l.at.as_ref().map(|(pos, _)| *pos)))
            .collect(),
    })
}

/// Moves addresses that need no socket of their own under the wildcard of their port.
fn share_wildcards(ports: &mut Vec<Port>) {
    let wildcards = ports.iter().filter(|port| port.listen.addr.is_wildcard());
    let shared: HashSet<(u16, bool)> = wildcards.filter_map(socket_of).collect();
    let (moved, kept) = std::mem::take(ports).into_iter().partition(|port| {
        let own = port.needs_local_addr || port.listen.addr.is_wildcard();
        !own && socket_of(port).is_some_and(|socket| shared.contains(&socket))
    });
    *ports = kept;
    let owners = ports.iter_mut();
    let owners = owners.filter(|port| port.listen.addr.is_wildcard());
    let mut owners: HashMap<_, _> = owners
        .filter_map(|port| Some((socket_of(port)?, &mut port.addrs)))
        .collect();
    let moved: Vec<Port> = moved;
    for port in moved {
        let owner = socket_of(&port).and_then(|socket| owners.get_mut(&socket));
        let (Some(owner), ListenAddr::Inet(addr)) = (owner, port.listen.addr) else {
            continue;
        };
        for mut entry in port.addrs {
            entry.addr = Some(addr);
            // The entry of the wildcard itself stays the last.
            owner.insert(owner.len() - 1, entry);
        }
    }
}

/// The port and the family of addresses that a wildcard has to have to serve a port's address, too.
fn socket_of(port: &Port) -> Option<(u16, bool)> {
    match &port.listen.addr {
        ListenAddr::Inet(addr) => Some((addr.port(), addr.is_ipv4())),
        ListenAddr::Unix(_) => None,
    }
}
