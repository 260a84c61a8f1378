//! A finished HTTP configuration: ports, servers and locations in flat tables, immutable and shared by all threads.
//!
//! Exchanges refer to a server or location by its index. A [`LocalHttp`] is one thread's counted reference
//! to one configuration, so that nothing shared between threads is touched for each request.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use conf::Pos;
use engines::http::{Protocol, Protocols};
use server_base::background_fetch::BackgroundFetch;
use server_base::errlog::{ErrorLog, Level, Shown};
use server_base::listen::Listen;
use server_base::opened::OpenedLogs;
use server_base::periodic_task::PeriodicTask;
use server_upstream::group::Groups;
use server_upstream::local::LocalGroups;

use crate::arm_meters::Arms;
use crate::cache::zone::Caches;
use crate::conf_core::{CoreLoc, Http2Srv};
use crate::exchange::{Ctx, Exchange};
use crate::experiments::{ArmId, Experiment};
use crate::handler::{Content, DynamicCertificates, Handler, Handlers, HeaderStage};
use crate::key_log::KeyLogFile;
use crate::location::{LocationKind, LocationSet};
use crate::names::ServerNames;
use crate::resource_timing::ResourceTiming;
use crate::settings_set::{Conf, SettingsSet};
use crate::status_zones::StatusZone;
use crate::vars::VarTable;
use crate::wants::Wants;

/// One configuration.
pub struct Http {
    /// Settings that exist once.
    pub main: SettingsSet,
    /// All servers.
    pub servers: Vec<Server>,
    /// How each of them speaks TLS.
    pub tls: Vec<ServerTls>,
    /// All locations; a server, `if` and `limit_except` block has one too.
    pub locations: Vec<Location>,
    /// Locations for which an `error_log` is written in `http` or inside, by index.
    pub with_own_log: Vec<usize>,
    /// The error log of all other locations; it writes nothing before logs are attached.
    pub default_log: ErrorLog,
    /// All listening sockets.
    pub ports: Vec<Port>,
    /// The variables.
    pub vars: VarTable,
    /// The handlers of each module in use, by its name, in order.
    pub module_handlers: Vec<(&'static str, &'static [Handler])>,
    /// The phase handlers, in order.
    pub handlers: Handlers,
    /// The header stages, in order.
    pub header_stages: Vec<HeaderStage>,
    /// Those of them that responses to subrequests go through.
    pub subrequest_stages: Vec<HeaderStage>,
    /// The folder that relative paths made of variables start from.
    pub prefix: PathBuf,
    /// The opened logs; set once, when they have been opened.
    pub logs: OnceLock<OpenedLogs>,
    /// Files for secrets of TLS connections.
    pub key_logs: Vec<Arc<KeyLogFile>>,
    /// The events that modules want.
    pub wants: Wants,
    /// The caches.
    pub caches: Caches,
    /// Tasks of the worker's main thread.
    pub periodic_tasks: Vec<Arc<dyn PeriodicTask>>,
    /// Its requests to other hosts.
    pub background_fetches: Vec<Arc<dyn BackgroundFetch>>,
    /// The experiments.
    pub experiments: Vec<Experiment>,
    /// Their arms.
    pub arms: Arms,
    /// `status_zone` of each server, by its index; empty if no server has one.
    pub status_zones: Vec<Option<Arc<StatusZone>>>,
}

impl Http {
    /// Takes over the opened logs and opens the error log of every location. The cost grows with the number of
    /// locations that have an `error_log` of their own.
    pub fn attach_logs(&self, opened: OpenedLogs, default: &ErrorLog) {
        self.default_log.follow(default);
        for location in self.own_logs() {
            location.core.open_log(&opened);
        }
        for log in &self.key_logs {
            log.attach(&opened);
        }
        let _ = self.logs.set(opened);
    }

    /// Makes the error logs of this configuration follow the levels of the newer one, since requests may still run
    /// under it. Only locations with an unchanged place and the same log targets follow. Locations that share
    /// settings follow the first of them.
    pub fn follow_logs(&self, newer: &Self) {
        self.default_log.follow(&newer.default_log);
        let mut followed: HashSet<*const CoreLoc> = HashSet::new();
        for at in &self.with_own_log {
            let (own, new) = (&self.locations[*at], newer.locations.get(*at));
            let new = new.filter(|new| new.name == own.name);
            if let Some(new) = new.filter(|_| followed.insert(Arc::as_ptr(&own.core))) {
                own.core.follow_log(&new.core);
            }
        }
    }

    /// Whether any location logs debugging messages.
    pub fn debugs(&self) -> bool {
        let mut own = self.own_logs().map(|l| l.core.log());
        self.default_log.enabled(Level::Debug) || own.any(|log| log.enabled(Level::Debug))
    }

    fn own_logs(&self) -> impl Iterator<Item = &Location> {
        self.with_own_log.iter().map(|at| &self.locations[*at])
    }

    /// The error log of a port's default server.
    pub fn port_log(&self, port: usize) -> Option<&ErrorLog> {
        let server = self
            .servers
            .get(self.ports.get(port)?.addr(None).default_server)?;
        Some(self.locations.get(server.location)?.core.log())
    }

    /// Returns the zone that counts requests and handshakes of a server.
    #[inline]
    pub fn status_zone(&self, server: usize) -> Option<&Arc<StatusZone>> {
        self.status_zones.get(server)?.as_ref()
    }

    /// The settings of one module that exist once.
    pub fn main<T: Conf>(&self) -> &T {
        self.main.get()
    }
}

/// One `server` block.
pub struct Server {
    /// Settings at server scope.
    pub confs: SettingsSet,
    /// The server's own location: its location-scope directives outside any `location`.
    pub location: usize,
    /// Named locations.
    pub named: HashMap<Vec<u8>, usize>,
    /// Loads its certificates for each handshake, if their names have variables.
    pub certificates: Option<Arc<dyn DynamicCertificates>>,
    /// The arm that it serves static files of: it has the name of the arm's host.
    pub arm: Option<ArmId>,
    /// Fields for scripts that measure its static files.
    pub timing: ResourceTiming,
}

/// The fields of a server that handshakes read. Those of all servers are stored contiguously: with thousands of
/// servers, each cold page costs a handshake 0.5 to 2 us.
pub struct ServerTls {
    /// TLS settings, if the server has a certificate or refuses handshakes.
    pub config: Option<tls::Config>,
    /// The server speaks HTTP/2, by `http2 on` or as the host of an arm.
    pub http2: bool,
    /// Protocols that handshakes for the host of an arm offer, HTTP/1 among them; empty for those of the address.
    pub own: Protocols,
}

impl ServerTls {
    /// Has handshakes offer these protocols alone.
    pub(crate) fn offer_only(&mut self, protocols: Protocols) {
        self.own = protocols;
        self.http2 |= protocols.has(Protocol::Http2);
    }
}

/// A content handler that a directive installed in a location.
pub type ContentHandler = fn(&mut Exchange, &mut Ctx<'_>) -> Content;

/// One `location`, or another block with settings at location scope.
pub struct Location {
    /// Name or pattern as written.
    pub name: Vec<u8>,
    /// The position of the directive with this block.
    pub at: Pos,
    /// The location, `server` or `http` around it; `None` for that of `http`.
    pub parent: Option<usize>,
    /// The matching rule.
    pub kind: LocationKind,
    /// Settings at location scope.
    pub confs: SettingsSet,
    /// Those of the core, which are read many times a request.
    pub core: Arc<CoreLoc>,
    /// The locations inside it.
    pub inner: LocationSet,
    /// Its own content handler, if a directive set one.
    pub handler: Option<ContentHandler>,
    /// Nearest enclosing `location` that maps URIs (itself, unless it is an `if` or `limit_except` block).
    pub mapped: usize,
    /// The location to use for methods that a `limit_except` inside excludes, with its methods.
    pub except: Option<(u32, usize)>,
}

impl fmt::Display for Location {
    /// The name in nginx's debugging messages: `=/x`, `/x`; `*` for a location without a name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.kind {
            LocationKind::Exact => "=",
            LocationKind::Block => "*",
            _ => "",
        };
        write!(f, "{mark}{}", Shown(&self.name))
    }
}

/// One listening socket.
pub struct Port {
    /// Address and socket options.
    pub listen: Listen,
    /// The addresses that share it, specific ones first; more than one only for a wildcard address.
    pub addrs: Vec<PortAddr>,
    /// Whether an exchange must know the address on which its connection was accepted.
    pub needs_local_addr: bool,
    /// Whether it is listened on; no connection is accepted for the place of a port that is gone ([`crate::port_slots`]).
    pub is_listening: bool,
}

/// The servers of one address.
pub struct PortAddr {
    /// The address; `None` for whatever no other entry names.
    pub addr: Option<SocketAddr>,
    /// The server for names that no server has.
    pub default_server: usize,
    /// The servers by name.
    pub names: ServerNames,
    /// Protocols besides HTTP/1 that every server here speaks: `listen ... http2`.
    pub protocols: Protocols,
    /// TLS is spoken here.
    pub ssl: bool,
    /// A header of the PROXY protocol comes before the first request.
    pub proxy_protocol: bool,
    /// The servers with their `listen`; `None` for a server that has none.
    pub listens: Vec<(usize, Option<Pos>)>,
}

impl Http {
    /// Whether a server speaks HTTP/2 on an address: the server or the address has it enabled. The protocol list of
    /// an arm's host may still exclude it ([`crate::arms`]).
    pub fn speaks_http2(&self, addr: &PortAddr, server: usize) -> bool {
        addr.protocols.has(Protocol::Http2) || self.tls[server].http2
    }

    /// The protocols besides HTTP/1 that a server speaks on an address.
    pub fn protocols(&self, addr: &PortAddr, server: usize) -> Protocols {
        match self.speaks_http2(addr, server) {
            true => addr.protocols.with(Protocol::Http2),
            false => addr.protocols,
        }
    }

    /// Returns the protocols that a handshake offers for a server: those of an arm's host, else those of the address and HTTP/1.
    pub fn offered_protocols(&self, addr: &PortAddr, server: usize) -> Protocols {
        match self.tls[server].own {
            own if !own.is_empty() => own,
            _ => self.protocols(addr, server).with(Protocol::Http1),
        }
    }

    /// Returns the port that takes connections to the address `local`: the one with that address before a wildcard.
    pub fn listening_port(&self, local: SocketAddr) -> Option<usize> {
        let ports = self.ports.iter().enumerate();
        let covering = ports.filter(|(_, port)| port.is_listening && port.listen.covers(local));
        let best = covering.min_by_key(|(_, port)| port.listen.addr.is_wildcard());
        best.map(|(at, _)| at)
    }

    /// The protocols that a connection without TLS may begin with besides HTTP/1: there its default server decides.
    pub fn expected_protocols(&self, addr: &PortAddr) -> Protocols {
        let server = addr.default_server;
        // The list of an arm is about TLS alone.
        let has_own = !self.tls[server].own.is_empty();
        match has_own && !*self.servers[server].confs.get::<Http2Srv>().on {
            true => addr.protocols,
            false => self.protocols(addr, server),
        }
    }
}

impl Port {
    /// The entry for the address on which a connection was accepted.
    pub fn addr(&self, local: Option<SocketAddr>) -> &PortAddr {
        let last = self.addrs.len() - 1;
        self.addrs[..last]
            .iter()
            .find(|a| a.addr.is_some() && a.addr == local)
            .unwrap_or(&self.addrs[last])
    }
}

/// One thread's reference to a configuration, counted by exchanges without atomic instructions.
pub struct LocalHttp {
    /// The configuration.
    pub http: Arc<Http>,
    /// Counts reloads, from 1.
    pub number: u64,
    /// This thread's state of upstream servers, made with the first request that is passed on.
    upstreams: OnceCell<Box<LocalGroups>>,
}

impl LocalHttp {
    /// A thread's reference to a configuration, the `number`th.
    pub fn new(http: Arc<Http>, number: u64) -> Self {
        Self {
            http,
            number,
            upstreams: OnceCell::new(),
        }
    }

    /// Returns this thread's state of upstream servers, and makes it on first use.
    pub fn upstreams(&self) -> &LocalGroups {
        let groups = || self.http.main::<Groups>().iter().count();
        let make = || Box::new(LocalGroups::new(groups(), self.http.locations.len()));
        self.upstreams.get_or_init(make)
    }

    /// Frees this thread's state as far as `steps` go; steps that remain mean that all of it is freed. For the owner
    /// of the last reference.
    pub fn release(&mut self, steps: &mut usize) {
        if let Some(upstreams) = self.upstreams.get_mut() {
            upstreams.release(steps);
        }
    }
}

impl Deref for LocalHttp {
    type Target = Http;

    fn deref(&self) -> &Http {
        &self.http
    }
}
