//! Shared by the modules for applications with CGI parameters: FastCGI, SCGI and uwsgi.
//!
//! ```text
//! pass           *_pass: an address, a group, or an address made of variables
//! params         *_param, and the parameters of a request
//! client_fields  the client's fields as parameters HTTP_*
//! ```
//!
//! Source: RFC 3875 section 4.1; nginx documentation, `ngx_http_fastcgi_module` and those like it.

mod client_fields;
pub(crate) mod params;
pub(crate) mod pass;

use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use engines::http::{FieldId, Fields};
use server_http::cache::HeadFormat;
use server_http::exchange::{Ctx, Exchange};
use server_http::handler::Content;
use server_http::http::Http;
use server_http::upstream::{
    self, Gateway, Note, Outgoing, PassesOn, Target, UpstreamConf, UpstreamSettings, Verdict,
};
use server_upstream::protocol::ProtocolSpec;
use server_upstream::request::RequestSpec;
use server_upstream::route::ServerTls;

use params::{Encoding, ParamSet, Params};
use pass::{Pass, Way};

use crate::ssl::upstream::{ServerPolicy, connect};

/// Access to the settings that these modules share; implemented by [`application!`].
pub(crate) trait ApplicationSettings: PassesOn {
    /// The settings that these modules share.
    fn common(&self) -> &Common;

    /// The settings of [`Self::common`], to be changed.
    fn common_mut(&mut self) -> &mut Common;

    /// `*_param`.
    fn params(&self) -> &Params;
}

/// A protocol of applications: the settings of its module, and how it differs from the others.
pub(crate) trait Application: ApplicationSettings {
    /// The encoding of parameters.
    const ENCODING: Encoding;
    /// The form of response heads in files of a cache.
    const HEAD_FORMAT: HeadFormat = HeadFormat::Cgi;
    /// The protocol.
    const PROTOCOL: &'static ProtocolSpec;
    /// Whether a request body of unknown length can be sent.
    const SENDS_UNKNOWN_LENGTH: bool = false;
    /// Whether an application may turn a connection into a tunnel.
    const UPGRADES: bool = true;

    /// Whether an application keeps the connection open after a response.
    fn keeps(&self) -> bool {
        false
    }

    /// Two bytes in the head of a packet, for protocols that have them.
    fn modifiers(&self) -> [u8; 2] {
        [0; 2]
    }

    /// Strips an optional scheme from an address.
    fn address(text: &[u8]) -> (Transport, &[u8]) {
        (Transport::Plain, text)
    }

    /// The policy of connections with TLS, for protocols that can use it.
    fn server_policy(&self) -> Option<&ServerPolicy> {
        None
    }

    /// Appends the parameters of a request.
    ///
    /// # Errors
    /// As [`params::push`].
    fn push_params(
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        outgoing: &Outgoing,
        fields: &mut Fields,
    ) -> Result<(), u16> {
        params::push::<Self>(x, cx, outgoing, fields, 0)
    }

    /// Handles text from the error stream of an application.
    fn note(_: &Exchange, _: &Note<'_>) -> Verdict {
        Verdict::Pass
    }
}

/// The transport of connections to applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// The socket alone.
    Plain,
    /// TLS; the start of servers' URLs in variables and logs.
    Tls(&'static str),
}

/// The content handler of locations with `*_pass`.
pub(crate) fn handle<C: Application>(x: &mut Exchange, cx: &mut Ctx<'_>) -> Content {
    upstream::handle(x, cx, &ApplicationGateway::<C>(PhantomData))
}

/// The gateway of a protocol of applications.
struct ApplicationGateway<C>(PhantomData<fn() -> C>);

impl<C: Application> Gateway for ApplicationGateway<C> {
    fn conf<'h>(&self, x: &Exchange, http: &'h Http) -> &'h UpstreamConf {
        x.loc::<C>(http).common().conf()
    }

    fn target(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Target, u16> {
        pass::target::<C>(x, cx)
    }

    fn request(
        &self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        outgoing: &Outgoing,
    ) -> Result<RequestSpec, u16> {
        let mut fields = cx.connector.fields();
        C::push_params(x, cx, outgoing, &mut fields)?;
        let conf: &C = x.loc(&x.route.http);
        Ok(RequestSpec {
            fields,
            body: outgoing.body,
            upgrade: C::UPGRADES && may_upgrade(x, conf.common().conf()),
            keep: conf.keeps(),
            modifiers: conf.modifiers(),
            ..RequestSpec::default()
        })
    }

    fn sends_unknown_length(&self, _: &Exchange, _: &Http) -> bool {
        C::SENDS_UNKNOWN_LENGTH
    }

    fn head_format(&self) -> HeadFormat {
        C::HEAD_FORMAT
    }

    fn protocol(&self) -> &'static ProtocolSpec {
        C::PROTOCOL
    }

    fn scheme(&self, x: &Exchange) -> &'static str {
        match pass::way::<C>(x, &x.route.http) {
            Some(Way {
                transport: Transport::Tls(scheme),
                ..
            }) => scheme,
            _ => C::PROTOCOL.scheme,
        }
    }

    fn tls(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Result<Option<Arc<ServerTls>>, u16> {
        let http = Rc::clone(&x.route.http);
        let Some(policy) = x.loc::<C>(&http).server_policy() else {
            return Ok(None);
        };
        let host = match pass::way::<C>(x, &http) {
            Some(way) if way.transport != Transport::Plain => way.host.clone(),
            _ => return Ok(None),
        };
        connect(policy, x, cx, &host).map(Some)
    }

    fn note(&self, x: &Exchange, note: &Note<'_>) -> Verdict {
        C::note(x, note)
    }
}

/// Inherits unset settings from the enclosing level.
pub(crate) fn inherit<C: Application>(own: &mut C, parent: Option<&C>) {
    let params = own.params().clone();
    let parent = parent.map(|parent| (parent.common(), parent.params()));
    own.common_mut().inherit(&params, parent);
}

/// Settings of one location that the modules have in common.
#[derive(Default)]
pub(crate) struct Common {
    /// Settings for upstream servers.
    pub(crate) upstream: UpstreamSettings,
    /// `*_pass`.
    pass: Option<Arc<Pass>>,
    /// The parameters that follow from `*_param`.
    params: Option<Arc<ParamSet>>,
}

impl Common {
    /// Inherits unset settings from the enclosing level. `params` are the merged `*_param` of this level; the parent
    /// comes with its own.
    fn inherit(&mut self, params: &Params, parent: Option<(&Self, &Params)>) {
        self.upstream.merge(parent.map(|(own, _)| &own.upstream));
        let same = parent.filter(|(_, theirs)| params.is_shared_with(theirs));
        self.params = match same {
            Some((parent, _)) => parent.params.clone(),
            None => Some(Arc::new(ParamSet::new(params))),
        };
        // A block within a location uses the handler of that location and needs its target. Nested locations get it
        // too, without using it.
        if self.pass.is_none() {
            self.pass = parent.and_then(|(own, _)| own.pass.clone());
        }
    }

    /// Whether requests of this location may use TLS to the application.
    pub(crate) fn may_use_tls(&self) -> bool {
        self.pass.as_deref().is_some_and(Pass::may_use_tls)
    }

    /// Whether this location has a target.
    pub(crate) fn passes_on(&self) -> bool {
        self.pass.is_some()
    }

    /// The effective settings for upstream servers.
    pub(crate) fn conf(&self) -> &UpstreamConf {
        self.upstream.conf()
    }
}

/// Whether the application may upgrade the connection, as requested by a field of the client. HTTP/2 is excluded, since
/// its requests would bypass the configuration.
fn may_upgrade(x: &Exchange, conf: &UpstreamConf) -> bool {
    let wanted = x.head.fields_by_id(FieldId::Upgrade);
    let mut protocols = wanted.flat_map(|value| value.split(|byte| *byte == b','));
    conf.request.fields
        && x.head.field(FieldId::Upgrade).is_some()
        && !protocols.any(|name| name.trim_ascii().eq_ignore_ascii_case(b"h2c"))
}

/// Defines the `MODULE` of an application protocol, with `*_pass` and the shared directives, and its defaults. The
/// settings are an [`Application`] with the fields `common` and `param`; `PLAIN` has the plain directives.
macro_rules! application {
    (
        $name:literal, $prefix:literal $conf:ident, $doc:literal,
        temp_path $temp:literal at $built:literal, hidden [$($hidden:literal),*],
        $(rows $rows:expr,)* $(variables $variables:expr,)? $(finish $finish:path,)?
    ) => {
        /// The module.
        pub(crate) const MODULE: server_http::module::Module = server_http::module::Module {
            name: $name,
            directives: &[
                &[::conf::DirectiveDef {
                    name: concat!($prefix, "pass"),
                    contexts: ::conf::Contexts::LOCATION.or(::conf::Contexts::IF_IN_LOCATION),
                    arity: ::conf::Arity::TAKE1,
                    block: false,
                    default: "",
                    doc: $doc,
                    syntax: "address",
                    apply: $crate::gateways::pass::set::<$conf>,
                }],
                PLAIN,
                server_http::upstream_rows!(basic $prefix $conf),
                server_http::upstream_rows!(
                    connection $prefix $conf,
                    next_upstream server_http::upstream::directives::APPLICATION_NEXT_UPSTREAM
                ),
                server_http::upstream_rows!(headers $prefix $conf),
                server_http::upstream_rows!(buffered $prefix $conf, temp_path $temp),
                server_http::upstream_rows!(
                    cache $prefix $conf,
                    use_stale server_http::upstream::directives::APPLICATION_NEXT_UPSTREAM,
                    key ""
                ),
                $($rows,)*
            ],
            settings: &[<$conf as server_http::settings_set::Conf>::def],
            $(variables: $variables,)?
            finish: Some(|b| {
                $($finish(b)?;)?
                server_http::upstream::settings::finish::<$conf>(b)
            }),
            inherits: &[(concat!($prefix, "pass"), server_http::module::Inherit::Blocks)],
            ..server_http::module::Module::EMPTY
        };

        impl $crate::gateways::ApplicationSettings for $conf {
            fn common(&self) -> &$crate::gateways::Common {
                &self.common
            }

            fn common_mut(&mut self) -> &mut $crate::gateways::Common {
                &mut self.common
            }

            fn params(&self) -> &$crate::gateways::params::Params {
                &self.param
            }
        }

        impl server_http::upstream::PassesOn for $conf {
            const DEFAULTS: server_http::upstream::Defaults = server_http::upstream::Defaults {
                prefix: $prefix,
                // Can be set at build time.
                temp_path: match option_env!($built) {
                    Some(path) => path,
                    None => concat!($prefix, "temp"),
                },
                hidden: &[
                    $($hidden,)*
                    "x-accel-expires",
                    "x-accel-redirect",
                    "x-accel-limit-rate",
                    "x-accel-buffering",
                    "x-accel-charset",
                ],
            };

            fn upstream(&mut self) -> &mut server_http::upstream::UpstreamSettings {
                &mut self.common.upstream
            }

            fn passes_on(&self) -> bool {
                self.common.passes_on()
            }
        }
    };
}
pub(crate) use application;
