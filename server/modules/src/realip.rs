//! `set_real_ip_from`, `real_ip_header`, `real_ip_recursive`: the client that a trusted proxy names.
//!
//! The address is replaced for the exchange, once: by the settings of the server before any rewriting, else by those
//! of the location before limits are counted.
//!
//! Source: nginx documentation, `ngx_http_realip_module`.

use std::net::IpAddr;

use conf::{ConfError, Contexts, Directive};
use engines::http::FieldId;
use server_base::config::ConfigContext;
use server_base::from_args::FromArgs;
use server_base::shared_list::SharedList;
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange, Peer};
use server_http::module::{Handler, Module, Step};
use server_http::settings;
use server_http::settings_set::inherited;
use server_http::trace::{At, Event};
use server_http::variables;
use server_http::vars::Variable;

use crate::networks::{Network, forwarded};

/// The module.
pub(crate) const MODULE: Module = Module {
    name: "realip",
    directives: &[PLAIN, ROWS],
    settings: &[<RealIpLoc as server_http::settings_set::Conf>::def],
    variables: VARIABLES,
    handlers: &[Handler::PostRead(replace), Handler::PreAccess(replace)],
    on_demand: true,
    ..Module::EMPTY
};

settings! {
    /// Settings of the module.
    pub(crate) struct RealIpLoc: Location / PLAIN {
        /// Header field that names the client.
        header "real_ip_header": Header = Header::RealIp, "X-Real-IP", Contexts::HTTP_SERVER_LOCATION;
        /// Whether the client is the last address that is not trusted, instead of the last one.
        recursive "real_ip_recursive": bool = false, "off", Contexts::HTTP_SERVER_LOCATION;
    }
    extra {
        /// `set_real_ip_from`.
        trusted: SharedList<Network> = inherited
    }
}

/// `real_ip_header`.
#[derive(Clone)]
pub(crate) enum Header {
    /// The first `X-Real-IP`.
    RealIp,
    /// Every `X-Forwarded-For`.
    ForwardedFor,
    /// The header of the PROXY protocol, no field.
    ProxyProtocol,
    /// The first field of this name.
    Field(Vec<u8>),
}

impl FromArgs for Header {
    const SYNTAX: &'static str = "field | X-Real-IP | X-Forwarded-For | proxy_protocol";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        match d.arg(0) {
            b"X-Real-IP" => Ok(Self::RealIp),
            b"X-Forwarded-For" => Ok(Self::ForwardedFor),
            b"proxy_protocol" => Ok(Self::ProxyProtocol),
            name => Ok(Self::Field(name.to_vec())),
        }
    }
}

conf::directives! {
    const ROWS: ConfigBuilder;

    /// Proxies that are trusted to name the client.
    directive "set_real_ip_from": Contexts::HTTP_SERVER_LOCATION, TAKE1, "", "address | CIDR | unix: | host"
        => set_real_ip_from;
}

const VARIABLES: &[Variable] = variables! {
    "realip_remote_addr": "address of the connection's other end" => |x, _, _, out| {
        match x.proxy.unwrap_or(x.client.peer) {
            Peer::Inet(addr) => out.extend_from_slice(addr.ip().to_string().as_bytes()),
            Peer::Unix => out.extend_from_slice(b"unix:"),
        }
        true
    };
    "realip_remote_port": "port of the connection's other end" => |x, _, _, out| {
        if let Peer::Inet(addr) = x.proxy.unwrap_or(x.client.peer)
            && addr.port() != 0
        {
            out.extend_from_slice(addr.port().to_string().as_bytes());
        }
        true
    };
};

fn set_real_ip_from(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let networks = if d.arg(0) == b"unix:" {
        vec![Network::Unix]
    } else if let Some(network) = Network::take(b, d, d.word(0)) {
        vec![network]
    } else {
        resolve(b, d)?
    };
    let trusted = &mut b.conf_mut::<RealIpLoc>().trusted;
    networks
        .into_iter()
        .for_each(|network| trusted.push(network));
    Ok(())
}

/// The addresses of a host.
fn resolve(b: &mut ConfigBuilder, d: &Directive) -> Result<Vec<Network>, ConfError> {
    let found = b.look_up(d.arg_str(0)).ok_or_else(|| {
        let text = format!("host not found in set_real_ip_from \"{}\"", d.arg_str(0));
        ConfError::word(d, d.word(0), text)
    })?;
    let network = |ip| match ip {
        IpAddr::V4(ip) => Network::V4(ip.to_bits(), 32),
        IpAddr::V6(ip) => Network::V6(ip.to_bits(), 128),
    };
    Ok(found.into_iter().map(network).collect())
}

fn replace(x: &mut Exchange, _: &mut Ctx<'_>) -> Step {
    let conf: &RealIpLoc = x.route.loc();
    if conf.trusted.is_empty() || x.proxy.is_some() {
        return Step::Next;
    }
    let fields: Vec<&[u8]> = match &*conf.header {
        Header::ProxyProtocol => return replace_by_header(x),
        Header::RealIp => x.head.field(FieldId::XRealIp).into_iter().collect(),
        Header::ForwardedFor => x.head.fields_by_id(FieldId::XForwardedFor).collect(),
        Header::Field(name) => x.head.named(name).take(1).collect(),
    };
    let named = forwarded(x.client.peer, &fields, &conf.trusted, *conf.recursive);
    if let Some(client) = named {
        x.record_event(|| {
            let text = format!("the client is {client}");
            Event::Ran(At::Argument("set_real_ip_from", 0), text)
        });
        x.proxy = Some(std::mem::replace(&mut x.client.peer, client));
    }
    Step::Next
}

/// Replaces the client by that of the PROXY protocol header, if a trusted proxy sent it.
fn replace_by_header(x: &mut Exchange) -> Step {
    let conf: &RealIpLoc = x.route.loc();
    if let Some(header) = &x.proxied
        && conf
            .trusted
            .iter()
            .any(|network| network.has(x.client.peer))
    {
        let client = Peer::Inet(header.source);
        x.proxy = Some(std::mem::replace(&mut x.client.peer, client));
    }
    Step::Next
}
