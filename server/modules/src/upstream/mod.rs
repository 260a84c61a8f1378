//! `upstream`: a named group of servers, and the idle connections that it keeps.
//!
//! Groups and the choice of a server are in [`server_upstream`]; here are the directives.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`.

mod hash;
mod ip_hash;
mod keepalive;
mod least_conn;
mod least_time;
mod method;
mod ntlm;
mod queue;
mod random;
mod server;
mod state;
mod sticky;
mod zone;

use std::path::PathBuf;
use std::sync::Arc;

use conf::{ConfError, Contexts, Directive};
use server_base::name_servers::{NameServers, name_servers};
use server_http::assemble::ConfigBuilder;
use server_http::module::Module;
use server_http::settings_set::{Conf, Scope, SettingsDef};
use server_http::upstream::group::{self, GroupValues, KeySource};
use server_http::upstream::sticky::{Sticky, StickyGroups};
use server_upstream::balance::Method;
use server_upstream::group::{Groups, QueueLimits, Server};
use server_upstream::shared::Zone;

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "upstream",
    directives: &[
        ROWS,
        server::ROWS,
        keepalive::ROWS,
        hash::ROWS,
        ip_hash::ROWS,
        least_conn::ROWS,
        least_time::ROWS,
        random::ROWS,
        zone::ROWS,
        state::ROWS,
        ntlm::ROWS,
        queue::ROWS,
        sticky::ROWS,
    ],
    settings: &[
        <Block as Conf>::def,
        <Groups as Conf>::def,
        <GroupValues as Conf>::def,
        <StickyGroups as Conf>::def,
    ],
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
    /// The name of the group.
    name: Vec<u8>,
    servers: Vec<Server>,
    zone: Option<Zone>,
    /// The file of `state`.
    state: Option<PathBuf>,
    keepalive: keepalive::KeepaliveDirectives,
    method: Option<Arc<dyn Method>>,
    /// The source of the method's key.
    key: Option<KeySource>,
    resolver: Option<Arc<NameServers>>,
    resolver_timeout_ms: Option<u64>,
    ntlm: Option<()>,
    queue: Option<QueueLimits>,
    sticky: Option<Sticky>,
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
    *b.conf_mut() = Block {
        name: d.arg(0).to_vec(),
        ..Block::default()
    };
    conf::walk(b, d.items(), Contexts::UPSTREAM)?;
    let block = std::mem::take(b.conf_mut::<Block>());
    if block.state.is_some() && block.zone.is_none() {
        return Err(ConfError::at_close(d, "\"state\" requires \"zone\""));
    }
    if block.servers.is_empty() && block.state.is_none() {
        return Err(ConfError::at_close(d, "no servers are inside upstream"));
    }
    // The method may follow its servers.
    let method = block.method.as_ref();
    if method.is_some_and(|method| !method.allows_backup())
        && block.servers.iter().any(|server| server.slow_start_ms > 0)
    {
        let text = "balancing method does not support parameter \"slow_start\"";
        return Err(ConfError::at_close(d, text));
    }
    let group = b.conf_mut::<Groups>().get_mut(id);
    group.is_ntlm = block.ntlm.is_some();
    group.queue = block.queue;
    group.is_sticky = block.sticky.is_some();
    group.keepalive = block.keepalive.resolve();
    group.servers = block.servers;
    group.method = block.method;
    group.zone = block.zone;
    group.state = block.state;
    group.resolver = block.resolver;
    group.resolver_timeout_ms = block.resolver_timeout_ms;
    if block.key.is_some() {
        b.conf_mut::<GroupValues>().entry(id).key = block.key;
    }
    if let Some(sticky) = block.sticky {
        b.conf_mut::<StickyGroups>().add(id, sticky);
    }
    Ok(())
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

fn resolver(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.conf_mut::<Block>().resolver.is_some())?;
    let servers = name_servers(b, d)?;
    b.conf_mut::<Block>().resolver = Some(Arc::new(servers));
    Ok(())
}
