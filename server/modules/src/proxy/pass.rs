//! `proxy_pass`: parses its URL, and computes the servers for a request.
//!
//! Source: nginx documentation, directive `proxy_pass`; nginx's rules for URLs.

use std::rc::Rc;
use std::sync::Arc;

use conf::{ConfError, Directive};
use server_base::errlog::{Level, Printable, Shown};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::http::Http;
use server_http::location::LocationKind;
use server_http::upstream::Target;
use server_http::value::Value;
use server_upstream::group::{GroupId, Groups};
use server_upstream::protocol::HTTP1;

use super::conf::ProxyLoc;
use super::handle;
use crate::pass_address::{self, Address, UNIX};

/// The target of a location.
#[derive(Debug)]
pub(crate) enum Pass {
    /// A URL without variables.
    Fixed(Fixed),
    /// A URL with variables, computed for each request.
    Computed(Value),
}

/// A URL without variables, and the name of its location.
#[derive(Debug)]
pub(crate) struct Fixed {
    /// The URL as written.
    pub(super) url: Box<[u8]>,
    /// The parts of the URL.
    pub(super) parts: UrlParts,
    group: GroupId,
    /// The prefix of request URIs that the URI of the URL replaces: the name of the location, empty for a regular
    /// expression.
    pub(super) location: Box<[u8]>,
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Schema {
    #[default]
    Http,
    /// Over TLS.
    Https,
}

/// The parts of a URL besides its server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UrlParts {
    /// Its scheme.
    pub(super) schema: Schema,
    /// `$proxy_host`: the host, with the port unless it is the default.
    pub(super) host: Box<[u8]>,
    /// `$proxy_port`; empty for a UNIX-domain socket.
    pub(super) port: Box<[u8]>,
    /// The URI; empty if there is none.
    pub(super) uri: Box<[u8]>,
    /// The path of a UNIX-domain socket; empty for an address.
    pub(super) socket: Box<[u8]>,
}

/// The parts of a URL with variables, for one request; kept with the exchange.
struct ComputedParts(UrlParts);

pub(super) fn proxy_pass(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    conf::once(d, b.conf_mut::<ProxyLoc>().pass.is_some())?;
    b.set_handler(handle);
    let location = b.location();
    let draft = b.draft(location);
    draft.auto_redirect = draft.name.ends_with(b"/");
    let word = d.word(0);
    let value = Value::compile(b, d, word)?;
    let pass = match value.constant() {
        None => Pass::Computed(value),
        Some(url) => Pass::Fixed(fixed(b, d, url)?),
    };
    b.conf_mut::<ProxyLoc>().pass = Some(Arc::new(pass));
    Ok(())
}

/// A URL without variables.
fn fixed(b: &mut ConfigBuilder, d: &Directive, url: &[u8]) -> Result<Fixed, ConfError> {
    let wrong = |text: String| ConfError::word(d, d.word(0), text);
    let Some((schema, rest)) = Schema::split(url) else {
        return Err(wrong("invalid URL prefix".to_owned()));
    };
    let (address, parts) = parse(schema, rest)
        .map_err(|why| wrong(format!("{why} in upstream \"{}\"", Shown(rest))))?;
    let group =
        b.conf_mut::<Groups>()
            .add(d, &address.host, address.port, schema.default_port())?;
    let location = b.location();
    let draft = b.draft(location);
    draft.passes_to = Some(group);
    let prefix = matches!(
        draft.kind,
        LocationKind::Exact | LocationKind::Prefix | LocationKind::PrefixOnly
    );
    if !prefix && !parts.uri.is_empty() {
        let text = "\"proxy_pass\" cannot have URI part in location given by regular expression, or inside named \
                    location, or inside \"if\" statement, or inside \"limit_except\" block";
        return Err(ConfError::at(d, text));
    }
    let location = match prefix {
        true => draft.name.as_slice().into(),
        false => Box::default(),
    };
    Ok(Fixed {
        url: url.into(),
        parts,
        group,
        location,
    })
}

impl Schema {
    /// Splits the scheme from a URL; `None` if it is another one.
    fn split(url: &[u8]) -> Option<(Self, &[u8])> {
        [Self::Http, Self::Https].into_iter().find_map(|schema| {
            let (begin, rest) = url.split_at_checked(schema.text().len())?;
            let is_same = begin.eq_ignore_ascii_case(schema.text().as_bytes());
            is_same.then_some((schema, rest))
        })
    }

    /// The scheme as variables and logs show it.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Http => HTTP1.scheme,
            Self::Https => "https://",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Http => HTTP1.default_port,
            Self::Https => HTTPS_PORT,
        }
    }
}

impl Pass {
    /// Whether requests may use TLS to the server: a URL with variables may have either scheme.
    pub(super) fn may_use_tls(&self) -> bool {
        match self {
            Self::Fixed(fixed) => fixed.parts.schema == Schema::Https,
            Self::Computed(_) => true,
        }
    }
}

/// Parses a URL behind its scheme: `host[:port][/uri]`, `[address][:port][/uri]` or `unix:path[:uri]`.
fn parse(schema: Schema, rest: &[u8]) -> Result<(Address, UrlParts), &'static str> {
    if let Some((begin, rest)) = rest.split_at_checked(UNIX.len())
        && begin.eq_ignore_ascii_case(UNIX)
    {
        return parse_unix(schema, rest);
    }
    let uri_at = |from: usize, marks: &[u8]| {
        let at = rest[from..].iter().position(|byte| marks.contains(byte));
        at.map_or(rest.len(), |at| from + at)
    };
    let end = match rest.first() {
        Some(b'[') => uri_at(memchr::memchr(b']', rest).ok_or("invalid host")? + 1, b"/"),
        _ => uri_at(0, b"/?"),
    };
    let address = pass_address::parse_inet(&rest[..end])?;
    let usual = schema.default_port();
    let usual_port = address.port.is_none_or(|port| port == usual);
    let (host, port_text) = rest[..end].split_at(address.host.len());
    let usual = usual.to_string();
    let parts = UrlParts {
        schema,
        host: (if usual_port { host } else { &rest[..end] }).into(),
        port: match usual_port {
            true => usual.as_bytes().into(),
            false => port_text[1..].into(),
        },
        uri: with_slash(&rest[end..]),
        socket: Box::default(),
    };
    Ok((address, parts))
}

fn parse_unix(schema: Schema, rest: &[u8]) -> Result<(Address, UrlParts), &'static str> {
    let (path, uri) = match memchr::memchr(b':', rest) {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, &[][..]),
    };
    let host = pass_address::unix_host(path)?;
    let parts = UrlParts {
        schema,
        host: b"localhost".as_slice().into(),
        port: Box::default(),
        uri: with_slash(uri),
        socket: path.into(),
    };
    Ok((Address { host, port: None }, parts))
}

/// Prepends the path "/" to a query without a path.
fn with_slash(uri: &[u8]) -> Box<[u8]> {
    match uri {
        [b'?', ..] => [b"/", uri].concat().into(),
        _ => uri.into(),
    }
}

/// Returns the servers for a request.
///
/// # Errors
/// 500 if the computed URL is invalid, which is logged.
pub(super) fn target(x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Target, u16> {
    let http = Rc::clone(&x.route.http);
    let value = match x.loc::<ProxyLoc>(&http).pass.as_deref() {
        Some(Pass::Fixed(fixed)) => return Ok(Target::Group(fixed.group)),
        Some(Pass::Computed(value)) => value,
        None => return Err(500),
    };
    let url = value.to_vec(x, cx);
    let refuse = |x: &Exchange, text: &str| {
        x.log(Level::Error, format_args!("{text}"));
        500
    };
    let (schema, rest) = match Schema::split(&url) {
        // A scheme alone is no URL, as in nginx.
        Some((schema, rest)) if !rest.is_empty() => (schema, rest),
        _ => {
            let text = format!("invalid URL prefix in \"{}\"", Printable(&url));
            return Err(refuse(x, &text));
        }
    };
    let (address, parts) = parse(schema, rest)
        .map_err(|why| refuse(x, &format!("{why} in upstream \"{}\"", Printable(rest))))?;
    let target = http
        .main::<Groups>()
        .target(&address.host, address.port, schema.default_port())
        .map_err(|text| refuse(x, &text))?;
    x.extensions.set(ComputedParts(parts));
    Ok(target)
}

/// Returns the parts of the URL of the exchange's location. A URL with variables has none before [`target`] has run.
pub(super) fn parts<'x>(x: &'x Exchange, http: &'x Http) -> Option<&'x UrlParts> {
    match x.loc::<ProxyLoc>(http).pass.as_deref()? {
        Pass::Fixed(fixed) => Some(&fixed.parts),
        Pass::Computed(_) => x.extensions.get::<ComputedParts>().map(|made| &made.0),
    }
}

/// RFC 9110 section 4.2.2.
const HTTPS_PORT: u16 = 443;
