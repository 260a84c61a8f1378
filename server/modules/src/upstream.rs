//! `upstream`: a named group of servers, and the idle connections that it keeps.
//!
//! Groups and the choice of a server are in [`server_upstream`]; here are the directives. Methods of
//! choosing a server, and zones, are refused as directives that are not built.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`.

use std::sync::Arc;

use conf::{ConfError, Contexts, Directive, Word};
use server_base::listen::MAX_UNIX_PATH;
use server_base::name_servers::{NameServers, name_servers};
use server_http::assemble::ConfigBuilder;
use server_http::module::Module;
use server_http::settings_set::{Conf, Scope, SettingsDef};
use server_http::upstream::group;
use server_upstream::group::{Groups, Keepalive, Server};
use server_upstream::route::UpstreamAddr;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "upstream",
    directives: &[ROWS],
    settings: &[<Block as Conf>::def, <Groups as Conf>::def],
    finish: Some(group::finish),
    variables: server_http::upstream::VARIABLES,
    ..Module::EMPTY
};

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Defines a group of upstream servers.
    block "upstream": Contexts::HTTP, TAKE1, "", "name { ... }" => upstream;

    /// Whether a server with an unresolvable host is down until its name resolves, or an error as in nginx.
    directive "upstream_unresolved": Contexts::HTTP, TAKE1, "down", "down | error" => unresolved;

    /// A server of the group; parameters are weight, max_conns, max_fails, fail_timeout, backup and down.
    directive "server": Contexts::UPSTREAM, ONE_MORE, "", "address [parameters]" => server;

    /// Idle connections to the group's servers that a worker thread keeps, 0 for none; with local each location has its own.
    directive "keepalive": Contexts::UPSTREAM, TAKE12, "32 local", "connections [local]" => keepalive;

    /// Largest number of requests of one connection to a server.
    directive "keepalive_requests": Contexts::UPSTREAM, TAKE1, "1000", "number"
        => |b, d| set(b, d, |block| &mut block.requests, conf::number);

    /// Time after which a connection to a server is closed, with its next response.
    directive "keepalive_time": Contexts::UPSTREAM, TAKE1, "1h", "time"
        => |b, d| set(b, d, |block| &mut block.time_ms, conf::time_ms);

    /// How long an idle connection to a server is kept.
    directive "keepalive_timeout": Contexts::UPSTREAM, TAKE1, "60s", "timeout"
        => |b, d| set(b, d, |block| &mut block.timeout_ms, conf::time_ms);

    /// Name servers for the names of the group's servers that were not found when the configuration was read.
    directive "resolver": Contexts::UPSTREAM, ONE_MORE, "",
        "address ... [valid=time] [ipv4=on|off] [ipv6=on|off]" => resolver;

    /// Time limit for resolving such a name.
    directive "resolver_timeout": Contexts::UPSTREAM, TAKE1, "30s", "time"
        => |b, d| set(b, d, |block| &mut block.resolver_timeout_ms, conf::time_ms);
}

/// The directives of the current `upstream` block.
#[derive(Default)]
struct Block {
    servers: Vec<Server>,
    /// Number of connections, and whether locations keep pools of their own.
    keepalive: Option<(usize, bool)>,
    requests: Option<u64>,
    time_ms: Option<u64>,
    timeout_ms: Option<u64>,
    resolver: Option<Arc<NameServers>>,
    resolver_timeout_ms: Option<u64>,
}

impl Conf for Block {
    fn def() -> &'static SettingsDef {
        static UNIT: SettingsDef = SettingsDef::new(Scope::Main, || Arc::new(Block::default()));
        &UNIT
    }

    fn merge(&mut self, _: Option<&Self>) {}
}

fn upstream(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let id = b.conf_mut::<Groups>().define(d)?;
    *b.conf_mut() = Block::default();
    conf::walk(b, d.items(), Contexts::UPSTREAM)?;
    let block = std::mem::take(b.conf_mut::<Block>());
    if block.servers.is_empty() {
        return Err(ConfError::at_close(d, "no servers are inside upstream"));
    }
    let group = b.conf_mut::<Groups>().get_mut(id);
    group.keepalive = block.kept();
    group.servers = block.servers;
    group.resolver = block.resolver;
    group.resolver_timeout_ms = block.resolver_timeout_ms;
    Ok(())
}

impl Block {
    /// `keepalive`: connections, and whether each location has its own.
    fn kept(&self) -> Option<Keepalive> {
        let (connections, is_local) = self.keepalive.unwrap_or(KEPT);
        (connections > 0).then_some(Keepalive {
            connections,
            is_local,
            requests: self.requests.unwrap_or(REQUESTS),
            time_ms: self.time_ms.unwrap_or(TIME_MS),
            timeout_ms: self.timeout_ms.unwrap_or(TIMEOUT_MS),
        })
    }
}

fn unresolved(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let is_error = match d.arg(0) {
        b"down" => false,
        b"error" => true,
        _ => return Err(ConfError::invalid(d, d.word(0))),
    };
    let groups = b.conf_mut::<Groups>();
    match groups.unresolved_is_error.replace(is_error) {
        Some(_) => Err(ConfError::directive(d, "is duplicate")),
        None => Ok(()),
    }
}

/// Sets a value that may be written once.
fn set<T>(
    b: &mut ConfigBuilder,
    d: &Directive,
    place: fn(&mut Block) -> &mut Option<T>,
    parse: fn(&Directive) -> Result<T, ConfError>,
) -> Result<(), ConfError> {
    let place = place(b.conf_mut());
    conf::once(d, place.is_some())?;
    *place = Some(parse(d)?);
    Ok(())
}

fn keepalive(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let parse = |d: &Directive| {
        let connections = conf::parse_number(d.arg(0)).and_then(|n| usize::try_from(n).ok());
        let connections = connections.ok_or_else(|| {
            let text = format!(
                "invalid value \"{}\" in \"keepalive\" directive",
                d.arg_str(0)
            );
            ConfError::word(d, d.word(0), text)
        })?;
        match d.args.get(1) {
            None => Ok((connections, false)),
            Some(word) if word.text == b"local" => Ok((connections, true)),
            Some(word) => Err(ConfError::parameter(d, word)),
        }
    };
    set(b, d, |block| &mut block.keepalive, parse)
}

fn resolver(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.conf_mut::<Block>().resolver.is_some())?;
    let servers = name_servers(b, d)?;
    b.conf_mut::<Block>().resolver = Some(Arc::new(servers));
    Ok(())
}

/// One `server`.
fn server(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let mut server = Server::new();
    for word in &d.args[1..] {
        parameter(&mut server, d, word)?;
    }
    let text = d.arg_str(0);
    let wrong = |why: &str| {
        let text = format!("{why} in upstream \"{text}\"");
        Err(ConfError::word(d, d.word(0), text))
    };
    match d.arg(0).strip_prefix(b"unix:") {
        Some(b"") => return wrong("no path in the unix domain socket"),
        Some(path) if path.len() > MAX_UNIX_PATH => {
            return wrong("too long path in the unix domain socket");
        }
        Some(path) => {
            server.name = Arc::from(d.arg(0));
            server.addresses = vec![UpstreamAddr::Unix(Arc::from(path))];
        }
        None => server.read_address(b, d)?,
    }
    b.conf_mut::<Block>().servers.push(server);
    Ok(())
}

fn parameter(server: &mut Server, d: &Directive, word: &Word) -> Result<(), ConfError> {
    let text = word.text.as_slice();
    let at = text.iter().position(|byte| *byte == b'=');
    let (key, value) = match at {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let read = match (key, value) {
        (b"weight", Some(value)) => conf::parse_number(value)
            .filter(|weight| *weight > 0)
            .map(|weight| server.weight = i64::try_from(weight).unwrap_or(i64::MAX)),
        (b"max_conns", Some(value)) => conf::parse_number(value).map(|n| server.max_conns = n),
        (b"max_fails", Some(value)) => conf::parse_number(value).map(|n| server.max_fails = n),
        (b"fail_timeout", Some(value)) => {
            conf::parse_time_s(value).map(|seconds| server.fail_timeout_s = seconds)
        }
        (b"backup", None) => {
            server.is_backup = true;
            Some(())
        }
        (b"down", None) => {
            server.is_down = true;
            Some(())
        }
        (b"resolve" | b"drain", None) | (b"service" | b"slow_start" | b"route", Some(_)) => {
            let name = String::from_utf8_lossy(key);
            let text = format!(
                "the \"{name}\" parameter is not built yet: it belongs to ngx_http_upstream_module"
            );
            return Err(ConfError::word(d, word, text));
        }
        _ => None,
    };
    read.ok_or_else(|| ConfError::parameter(d, word))
}

/// Default of `keepalive`: connections, and whether each location has its own.
const KEPT: (usize, bool) = (32, true);
/// Defaults of the `keepalive_*` directives.
const REQUESTS: u64 = 1000;
const TIME_MS: u64 = 3_600_000;
const TIMEOUT_MS: u64 = 60_000;
