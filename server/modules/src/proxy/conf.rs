//! Settings of a location, and the directives that take a plain value.

use std::sync::Arc;

use conf::{Arity, ConfError, Contexts, Directive};
use server_base::config::ConfigContext;
use server_base::from_args::FromArgs;
use server_http::assemble::ConfigBuilder;
use server_http::module::Inherit;
use server_http::settings;
use server_http::upstream::{Defaults, PassesOn, UpstreamSettings};
use server_http::value::Value;

use super::cookies::{CookieDomains, CookieFlags, CookiePaths};
use super::fields::{SetFields, SetHeaders};
use super::pass::{self, Pass};
use super::redirect::{self, Redirects};
use crate::ssl::upstream::{SecuresServers, ServerTlsSettings};

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;

settings! {
    /// Settings of the module.
    pub(crate) struct ProxyLoc: Location / PLAIN {
        /// Version of HTTP in requests to servers.
        http_version "proxy_http_version": HttpVersion = HttpVersion::V11, "1.1", HSL;
        /// Method of requests to servers in place of the client's.
        method "proxy_method": Value = Value::default(), "", HSL;
        /// A field of requests to servers, set or, by an empty value, left out.
        set_header "proxy_set_header": SetHeaders = SetHeaders::default(), "Host $proxy_host", HSL;
        /// Body of requests to servers in place of the client's.
        set_body "proxy_set_body": SetBody = SetBody(None), "", HSL;
        /// Protocols allowed in an Upgrade field of proxy_set_header; h2c never is.
        upgrade "proxy_upgrade": Protocols = Protocols::default(), "", HSL;
        /// Changes the domain of cookies that servers set.
        cookie_domains "proxy_cookie_domain": CookieDomains = CookieDomains::default(), "off", HSL;
        /// Changes the path of cookies that servers set.
        cookie_paths "proxy_cookie_path": CookiePaths = CookiePaths::default(), "off", HSL;
        /// Sets or takes away flags of cookies that servers set.
        cookie_flags "proxy_cookie_flags": CookieFlags = CookieFlags::default(), "off", HSL;
    }
    extra {
        /// Settings that proxying shares with other modules.
        upstream: UpstreamSettings = UpstreamSettings::merge,
        /// TLS to servers.
        tls: ServerTlsSettings = ServerTlsSettings::merge,
        /// `proxy_pass`.
        pass: Option<Arc<Pass>>,
        /// `proxy_redirect`.
        redirects: Redirects,
        /// The fields of `proxy_set_header` and the default fields.
        fields: Option<Arc<SetFields>>
    }
    merge inherit;
}

conf::directives! {
    /// The directives that are no plain settings.
    pub(super) const ROWS: ConfigBuilder;

    /// Passes requests on to a server or a group of servers.
    directive "proxy_pass": Contexts::LOCATION.or(Contexts::IF_IN_LOCATION).or(Contexts::LIMIT_EXCEPT), TAKE1, "",
        "URL" => pass::proxy_pass;

    /// Changes the fields Location and Refresh of responses.
    directive "proxy_redirect": HSL, TAKE12, "default", "default | off | redirect replacement"
        => redirect::proxy_redirect;
}

/// Inheritance of directives that are not allowed in `http`.
pub(super) const INHERITS: &[(&str, Inherit)] = &[("proxy_pass", Inherit::Blocks)];

impl PassesOn for ProxyLoc {
    const DEFAULTS: Defaults = Defaults {
        prefix: "proxy_",
        temp_path: TEMP_PATH,
        hidden: &[
            "date",
            "server",
            "x-pad",
            "x-accel-expires",
            "x-accel-redirect",
            "x-accel-limit-rate",
            "x-accel-buffering",
            "x-accel-charset",
        ],
    };

    const IS_HTTP: bool = true;

    fn upstream(&mut self) -> &mut UpstreamSettings {
        &mut self.upstream
    }

    fn passes_on(&self) -> bool {
        self.pass.is_some()
    }
}

impl SecuresServers for ProxyLoc {
    fn server_tls(&mut self) -> &mut ServerTlsSettings {
        &mut self.tls
    }

    fn may_use_tls(&self) -> bool {
        self.pass.as_deref().is_some_and(Pass::may_use_tls)
    }
}

fn inherit(own: &mut ProxyLoc, parent: Option<&ProxyLoc>) {
    let inherited = parent.filter(|parent| own.set_header.is_shared_with(&parent.set_header));
    own.fields = match inherited {
        Some(parent) => parent.fields.clone(),
        None => Some(Arc::new(SetFields::new(&own.set_header))),
    };
    own.redirects
        .inherit(parent.map(|parent| &parent.redirects), own.pass.as_deref());
    // A block within a location uses the handler of that location and needs its target. Nested locations get it too,
    // without using it.
    if own.pass.is_none() {
        own.pass = parent.and_then(|parent| parent.pass.clone());
    }
}

/// `proxy_http_version`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    V10,
    V11,
}

impl FromArgs for HttpVersion {
    const SYNTAX: &'static str = "1.0 | 1.1";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        match d.arg(0) {
            b"1.0" => Ok(Self::V10),
            b"1.1" => Ok(Self::V11),
            b"2" | b"3" => {
                let text = format!(
                    "\"{}\" of \"{}\" directive is not built yet",
                    d.arg_str(0),
                    d.name()
                );
                Err(ConfError::word(d, d.word(0), text))
            }
            _ => Err(ConfError::invalid(d, d.word(0))),
        }
    }
}

/// `proxy_set_body`.
#[derive(Clone, Debug)]
pub(crate) struct SetBody(pub(super) Option<Value>);

impl FromArgs for SetBody {
    const SYNTAX: &'static str = "string";

    fn parse(cx: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        Value::parse(cx, d).map(|value| Self(Some(value)))
    }
}

/// `proxy_upgrade`: names of protocols; none: all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Protocols(pub(super) Vec<Box<[u8]>>);

impl FromArgs for Protocols {
    const ARITY: Arity = Arity::ONE_MORE;
    const SYNTAX: &'static str = "protocol ...";

    fn parse(_: &mut dyn ConfigContext, d: &Directive) -> Result<Self, ConfError> {
        let never = d
            .args
            .iter()
            .find(|word| word.text.eq_ignore_ascii_case(b"h2c"));
        if let Some(word) = never {
            let text = format!("protocol \"{}\" cannot be passed on", word.as_str());
            return Err(ConfError::word(d, word, text));
        }
        Ok(Self(
            d.args
                .iter()
                .map(|word| word.text.to_vec().into())
                .collect(),
        ))
    }
}

impl Protocols {
    /// Whether a client may request a protocol, with or without its version.
    pub(super) fn allow(&self, protocol: &[u8]) -> bool {
        let name = protocol.split(|byte| *byte == b'/').next();
        let name = name.unwrap_or_default().trim_ascii();
        let written =
            |own: &[u8]| own.eq_ignore_ascii_case(name) || own.eq_ignore_ascii_case(protocol);
        !name.eq_ignore_ascii_case(b"h2c")
            && (self.0.is_empty() || self.0.iter().any(|own| written(own)))
    }
}

/// Default of `proxy_temp_path`, which can be set at build time.
const TEMP_PATH: &str = match option_env!("FIRSTBYTE_PROXY_TEMP_PATH") {
    Some(path) => path,
    None => "proxy_temp",
};
