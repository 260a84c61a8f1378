//! `listen`: from directives to sockets and the servers behind each.
//!
//! A wildcard address and specific addresses of the same port share the wildcard's socket (unless they ask for one of
//! their own with `bind` or a socket option); which server is meant is then decided by the local address.
//!
//! Source: nginx documentation, directive `listen`.

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
        add(&mut http.listens, new)?;
    }
    for warning in redefined {
        b.warn(warning);
    }
    Ok(())
}

fn add(listens: &mut Vec<ListenDraft>, new: ListenDraft) -> Result<(), ConfError> {
    for old in listens.iter_mut().filter(|old| old.addr == new.addr) {
        if old.server == new.server {
            return Err(new.error(format!("a duplicate listen {}", new.addr)));
        }
        if old.default && new.default {
            return Err(new.error(format!("a duplicate default server for {}", new.addr)));
        }
        if old.options.is_some() && new.options.is_some() {
            return Err(new.error(format!("duplicate listen options for {}", new.addr)));
        }
    }
    listens.push(new);
    Ok(())
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
    let mut seen: Vec<&ListenAddr> = Vec::new();
    for l in listens {
        if seen.contains(&&l.addr) {
            continue;
        }
        seen.push(&l.addr);
        let same: Vec<&ListenDraft> = listens.iter().filter(|o| o.addr == l.addr).collect();
        let options = same
            .iter()
            .find_map(|l| l.options.clone())
            .unwrap_or_default();
        let bind = same.iter().any(|l| l.bind);
        let entry = port_addr(&same, servers, &mut warnings)?;
        ports.push(Port {
            listen: Listen {
                addr: l.addr.clone(),
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
    let mut i = 0;
    while i < ports.len() {
        let owner = (0..ports.len()).find(|&w| w != i && ports[i].yields_to(&ports[w]));
        let Some(owner) = owner else {
            i += 1;
            continue;
        };
        let moved = ports.remove(i);
        let owner = if owner > i { owner - 1 } else { owner };
        if let ListenAddr::Inet(addr) = moved.listen.addr {
            for mut entry in moved.addrs {
                entry.addr = Some(addr);
                let at = ports[owner].addrs.len() - 1;
                ports[owner].addrs.insert(at, entry);
            }
        }
    }
}

impl Port {
    /// Whether this port's address is served by the wildcard socket of `other`.
    fn yields_to(&self, other: &Self) -> bool {
        let (ListenAddr::Inet(mine), ListenAddr::Inet(theirs)) =
            (&self.listen.addr, &other.listen.addr)
        else {
            return false;
        };
        !self.needs_local_addr
            && other.listen.addr.is_wildcard()
            && !self.listen.addr.is_wildcard()
            && mine.port() == theirs.port()
            && mine.is_ipv4() == theirs.is_ipv4()
    }
}
