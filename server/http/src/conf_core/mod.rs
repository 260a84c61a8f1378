//! The core's own HTTP settings: server scope in `srv`, location scope in `loc`.
//!
//! Plain settings are rows of the tables made by `settings!`; directives with a shape of their own have a row here
//! and a function in `loc_rows` or `srv_rows`.
//!
//! Source: nginx documentation, `ngx_http_core_module`.

mod files;
mod http2;
mod loc;
mod loc_rows;
mod obsolete;
mod resolver;
mod spdy;
mod srv;
mod srv_rows;

pub use files::FilesMain;
pub use http2::{Http2Loc, Http2Srv};
pub use loc::{
    Alias, CoreLoc, ErrorPage, IfModifiedSince, KeepaliveDisable, KeepaliveTimeout, Lingering,
    Root, Satisfy, ServerTokens,
};
pub use resolver::{NameServers, ResolverLoc};
pub use spdy::{SpdyLoc, SpdySrv};
pub use srv::{CoreSrv, NameKind, ServerName};

use conf::{Arity, Contexts, DirectiveDef};

use crate::build::ConfigBuilder;
use crate::module::Inherit;
use crate::settings_set::{Conf, SettingsDef};

/// The core's structs of settings.
pub fn settings_defs() -> Vec<&'static SettingsDef> {
    vec![
        CoreSrv::def(),
        CoreLoc::def(),
        Http2Srv::def(),
        Http2Loc::def(),
        SpdySrv::def(),
        SpdyLoc::def(),
        ResolverLoc::def(),
        FilesMain::def(),
    ]
}

/// Directives of the core that reach inner levels in another way than most.
pub const INHERITS: &[(&str, Inherit)] = &[
    ("alias", Inherit::With("root")),
    ("internal", Inherit::Around),
];

/// Rows of plain settings.
pub const SETTINGS: &[&[DirectiveDef<ConfigBuilder>]] = &[
    srv::PLAIN,
    loc::PLAIN,
    http2::PLAIN,
    http2::LOC_PLAIN,
    obsolete::HTTP2,
    spdy::PLAIN,
    spdy::LOC_PLAIN,
    obsolete::SPDY,
    resolver::PLAIN,
    files::PLAIN,
];

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;
const HSLI: Contexts = Contexts::HTTP_TO_IF;

macro_rules! row {
    ($name:literal, $contexts:expr, $arity:expr, $default:literal, $syntax:literal, $doc:literal, $apply:path) => {
        DirectiveDef {
            name: $name,
            contexts: $contexts,
            arity: $arity,
            block: false,
            default: $default,
            doc: $doc,
            syntax: $syntax,
            apply: $apply,
        }
    };
}

/// Rows with a shape of their own.
pub const ROWS: &[DirectiveDef<ConfigBuilder>] = &[
    row!(
        "listen",
        Contexts::SERVER,
        Arity::ONE_MORE,
        "*:80",
        "address[:port] [parameter ...]",
        "An address to listen on and its socket options.",
        crate::build::listen
    ),
    row!(
        "server_name",
        Contexts::SERVER,
        Arity::ONE_MORE,
        "\"\"",
        "name ...",
        "Names of the virtual server.",
        srv_rows::server_name
    ),
    row!(
        "root",
        HSLI,
        Arity::TAKE1,
        "html",
        "path",
        "Directory that URIs are mapped into.",
        loc_rows::root
    ),
    row!(
        "alias",
        Contexts::LOCATION,
        Arity::TAKE1,
        "",
        "path",
        "Replaces the location's part of the URI.",
        loc_rows::alias
    ),
    DirectiveDef {
        block: true,
        ..row!(
            "types",
            HSL,
            Arity::NOARGS,
            "text/html html; image/gif gif; image/jpeg jpg",
            "{ ... }",
            "Maps file name extensions to media types.",
            loc_rows::types
        )
    },
    row!(
        "error_page",
        HSLI,
        Arity::TWO_MORE,
        "",
        "code ... [=[response]] uri",
        "The page shown for errors.",
        loc_rows::error_page
    ),
    row!(
        "error_log",
        HSL,
        Arity::ONE_MORE,
        "logs/error.log error",
        "file | stderr | syslog:server=address[,parameter=value] | memory:size [level] [json]",
        "An error log and its level.",
        loc_rows::error_log
    ),
    row!(
        "keepalive_timeout",
        HSL,
        Arity::TAKE12,
        "75s",
        "timeout [header_timeout]",
        "How long an idle connection is kept.",
        loc_rows::keepalive_timeout
    ),
    row!(
        "keepalive_disable",
        HSL,
        Arity::TAKE12,
        "msie6",
        "none | browser ...",
        "Browsers whose connections are not kept.",
        loc_rows::keepalive_disable
    ),
    row!(
        "internal",
        Contexts::LOCATION,
        Arity::NOARGS,
        "",
        "",
        "Only internal requests may use the location.",
        loc_rows::internal
    ),
    row!(
        "open_file_cache",
        HSL,
        Arity::TAKE12,
        "off",
        "off | max=N [inactive=time]",
        "Cache of descriptors and metadata that is not checked at each request.",
        loc_rows::open_file_cache
    ),
    row!(
        "aio",
        HSL,
        Arity::TAKE1,
        "threads",
        "off | on | threads[=pool]",
        "Who reads files that are not in the page cache: the thread that serves, or the threads of a pool.",
        loc_rows::aio
    ),
    row!(
        "disable_symlinks",
        HSL,
        Arity::TAKE12,
        "off",
        "off | on | if_not_owner [from=part]",
        "Whether symbolic links are followed.",
        loc_rows::disable_symlinks
    ),
    row!(
        "client_body_temp_path",
        HSL,
        Arity::TAKE1234,
        "client_body_temp",
        "path [level ...]",
        "Directory for request bodies in files.",
        loc_rows::client_body_temp_path
    ),
    row!(
        "resolver",
        HSL,
        Arity::ONE_MORE,
        "",
        "address ... [valid=time] [ipv4=on|off] [ipv6=on|off]",
        "Name servers for names that are resolved at run time: those of OCSP responders.",
        resolver::resolver
    ),
];
