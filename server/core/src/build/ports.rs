//! `listen`: from directives to sockets and the servers behind each.
//!
//! A wildcard address and specific addresses of the same port share the wildcard's socket (unless they ask for one of
//! their own with `bind` or a socket option); which server is meant is then decided by the local address.
//!
//! Source: nginx documentation, directive `listen`.

use std::collections::{HashMap, HashSet};

use conf::{ConfError, Directive};

use super::Build;
use crate::conf_core::{CoreSrv, NameKind};
use crate::http::{Port, PortAddr, Server};
use crate::listen::{KeepAlive, Listen, ListenAddr, SocketOptions, parse_address};
use crate::names::ServerNames;

/// One address of one `listen` directive.
#[derive(Clone, Debug)]
pub struct ListenDraft {
    /// The address.
    pub addr: ListenAddr,
    /// The server it was written in.
    pub server: usize,
    /// Socket options, where any was written.
    pub options: Option<SocketOptions>,
    /// A socket of its own was asked for.
    pub bind: bool,
    /// `default_server`.
    pub default: bool,
    /// `proxy_protocol`.
    pub proxy_protocol: bool,
    /// `http2`.
    pub http2: bool,
    /// `spdy`.
    pub spdy: bool,
    /// `ssl`.
    pub ssl: bool,
    /// For messages; `None` for the listen that a server without one gets.
    pub at: Option<(Directive, usize)>,
}

impl ListenDraft {
    /// What a server without `listen` gets.
    pub fn default_for(server: usize) -> Self {
        // An unprivileged server may not bind port 80; nginx uses 8000 then.
        let port = if running_as_root() { 80 } else { 8000 };
        let addr = ListenAddr::Inet(std::net::SocketAddr::from(([0, 0, 0, 0], port)));
        Self {
            addr,
            server,
            options: None,
            bind: false,
            default: false,
            proxy_protocol: false,
            http2: false,
            spdy: false,
            ssl: false,
            at: None,
        }
    }

    fn error(&self, text: String) -> ConfError {
        match &self.at {
            Some((d, word)) => ConfError::word(d, d.word(*word), text),
            None => ConfError::new(text),
        }
    }
}

fn running_as_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)
}

/// Applies `listen`.
pub fn listen(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    let addrs = parse_address(d.arg_str(0), &mut |host| b.look_up(host)).map_err(|e| {
        ConfError::word(
            d,
            d.word(0),
            format!("{e} in \"{}\" of the \"listen\" directive", d.arg_str(0)),
        )
    })?;
    let mut draft = Draft::default();
    let inet = !matches!(addrs[0], ListenAddr::Unix(_));
    for n in 1..d.args.len() {
        draft.parameter(d, n, inet)?;
    }
    let http = b.http.as_mut().expect("listen lies inside server");
    let server = http.server.expect("listen lies inside server");
    let mut redefined = Vec::new();
    for addr in addrs {
        let new = ListenDraft {
            addr,
            server,
            options: draft.set.then(|| draft.options.clone()),
            bind: draft.bind,
            default: draft.default,
            proxy_protocol: draft.proxy_protocol,
            http2: draft.http2,
            spdy: draft.spdy,
            ssl: draft.ssl,
            at: Some((d.clone(), 0)),
        };
        if http.protocols.add(&new) {
            redefined.push(new.error(format!("protocol options redefined for {}", new.addr)));
        }
        http.listens.add(new)?;
    }
    for warning in redefined {
        b.warn(warning);
    }
    Ok(())
}

/// The listens of all servers, in the order of the servers.
#[derive(Default)]
pub(super) struct Listens {
    all: Vec<ListenDraft>,
    known: HashMap<ListenAddr, Known>,
}

/// What the servers of one address said.
#[derive(Default)]
struct Known {
    /// The last of them.
    server: Option<usize>,
    default: bool,
    options: bool,
}

impl Listens {
    /// All of them.
    pub(super) fn all(&self) -> &[ListenDraft] {
        &self.all
    }

    /// Adds what a server without `listen` gets.
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

#[derive(Default)]
struct Draft {
    options: SocketOptions,
    set: bool,
    bind: bool,
    default: bool,
    proxy_protocol: bool,
    http2: bool,
    spdy: bool,
    ssl: bool,
}

impl Draft {
    fn parameter(&mut self, d: &Directive, n: usize, inet: bool) -> Result<(), ConfError> {
        let text = d.arg_str(n);
        let (key, value) = text
            .split_once('=')
            .map_or((text, None), |(k, v)| (k, Some(v)));
        let invalid = |what: &str, shown: &str| {
            ConfError::word(d, d.word(n), format!("invalid {what} \"{shown}\""))
        };
        let bad = |what: &str| invalid(what, text);
        let size = |v: &str| conf::parse_size(v.as_bytes()).and_then(|n| u32::try_from(n).ok());
        match (key, value) {
            ("default_server" | "default", None) => {
                self.default = true;
                return Ok(());
            }
            ("proxy_protocol", None) => {
                self.proxy_protocol = true;
                return Ok(());
            }
            ("http2", None) => {
                self.http2 = true;
                return Ok(());
            }
            ("spdy", None) => {
                self.spdy = true;
                return Ok(());
            }
            ("ssl", None) => {
                self.ssl = true;
                return Ok(());
            }
            ("bind", None) => {}
            ("deferred", None) => self.options.deferred = true,
            ("reuseport", None) => {
                if !inet {
                    return Err(ConfError::word(
                        d,
                        d.word(n),
                        "reuseport is not supported for UNIX sockets",
                    ));
                }
                self.options.reuseport = true;
            }
            ("backlog", Some(v)) => {
                self.options.backlog = v
                    .parse()
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or_else(|| bad("backlog"))?;
            }
            ("rcvbuf", Some(v)) => {
                self.options.rcvbuf = Some(size(v).ok_or_else(|| bad("rcvbuf"))?)
            }
            ("sndbuf", Some(v)) => {
                self.options.sndbuf = Some(size(v).ok_or_else(|| bad("sndbuf"))?)
            }
            ("fastopen", Some(v)) => {
                self.options.fastopen = Some(
                    v.parse()
                        .ok()
                        .filter(|n| *n >= 0)
                        .ok_or_else(|| bad("fastopen"))?,
                );
            }
            ("ipv6only", Some(v @ ("on" | "off"))) => self.options.ipv6only = v == "on",
            ("ipv6only", Some(v)) if v.starts_with('o') => {
                return Err(invalid("ipv6only flags", v));
            }
            ("so_keepalive", Some(v)) => {
                self.options.keepalive =
                    Some(keepalive(v).ok_or_else(|| invalid("so_keepalive value:", v))?);
            }
            ("quic" | "multipath", None) => {
                return Err(later(d, n, key));
            }
            _ => {
                return Err(ConfError::word(
                    d,
                    d.word(n),
                    format!("invalid parameter \"{text}\""),
                ));
            }
        }
        self.set = true;
        self.bind = true;
        Ok(())
    }
}

/// The error for a parameter whose protocol is not built yet.
fn later(d: &Directive, n: usize, key: &str) -> ConfError {
    let text = format!("the \"{key}\" parameter is not built yet");
    ConfError::word(d, d.word(n), text)
}

/// `on`, `off` or `[idle]:[interval]:[count]`.
fn keepalive(text: &str) -> Option<KeepAlive> {
    let all = |on| {
        Some(KeepAlive {
            on,
            idle_s: None,
            interval_s: None,
            count: None,
        })
    };
    match text {
        "on" => return all(true),
        "off" => return all(false),
        _ => {}
    }
    let mut parts = text.splitn(3, ':');
    let (idle, interval, count) = (
        parts.next()?,
        parts.next().unwrap_or(""),
        parts.next().unwrap_or(""),
    );
    let seconds = |s: &str| match s {
        "" => Some(None),
        _ => conf::parse_time_s(s.as_bytes())
            .and_then(|n| u32::try_from(n).ok())
            .map(Some),
    };
    let count = match count {
        "" => None,
        n => Some(n.parse().ok()?),
    };
    let (idle_s, interval_s) = (seconds(idle)?, seconds(interval)?);
    if idle_s.is_none() && interval_s.is_none() && count.is_none() {
        return None;
    }
    Some(KeepAlive {
        on: true,
        idle_s,
        interval_s,
        count,
    })
}

/// Makes sockets of the listens; gives names that two servers of one address share as warnings.
///
/// # Errors
/// A name that is no name, where there is a choice of servers.
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
    Ok(PortAddr {
        addr: None,
        default_server,
        names,
        http2: same.iter().any(|l| l.http2),
        spdy: same.iter().any(|l| l.spdy),
        ssl: same.iter().any(|l| l.ssl),
        proxy_protocol: same.iter().any(|l| l.proxy_protocol),
        listens: same
            .iter()
            .map(|l| (l.server, l.at.as_ref().map(|(d, _)| d.pos)))
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
