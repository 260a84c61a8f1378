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

use conf::{Contexts, DirectiveDef};

use crate::assemble::ConfigBuilder;
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
    spdy::UNNEEDED,
    resolver::PLAIN,
    files::PLAIN,
];

/// Modules of nginx that are protocols of the core here.
pub const PROTOCOL_MODULES: [&str; 2] = ["v2", "spdy"];

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;
const HSLI: Contexts = Contexts::HTTP_TO_IF;

conf::directives! {
    /// Rows with a shape of their own.
    pub const ROWS: ConfigBuilder;

    /// An address to listen on and its socket options.
    directive "listen": Contexts::SERVER, ONE_MORE, "*:80", "address[:port] [parameter ...]"
        => crate::assemble::listen;

    /// Names of the virtual server.
    directive "server_name": Contexts::SERVER, ONE_MORE, "\"\"", "name ..." => srv_rows::server_name;

    /// Directory that URIs are mapped into.
    directive "root": HSLI, TAKE1, "html", "path" => loc_rows::root;

    /// Replaces the location's part of the URI.
    directive "alias": Contexts::LOCATION, TAKE1, "", "path" => loc_rows::alias;

    /// Maps file name extensions to media types.
    block "types": HSL, NOARGS, "text/html html; image/gif gif; image/jpeg jpg", "{ ... }" => loc_rows::types;

    /// The page shown for errors.
    directive "error_page": HSLI, TWO_MORE, "", "code ... [=[response]] uri" => loc_rows::error_page;

    /// An error log and its level.
    directive "error_log": HSL, ONE_MORE, "logs/error.log error",
        "file | stderr | syslog:server=address[,parameter=value] | memory:size [level] [json]" => loc_rows::error_log;

    /// How long an idle connection is kept.
    directive "keepalive_timeout": HSL, TAKE12, "75s", "timeout [header_timeout]"
        => loc_rows::keepalive_timeout;

    /// Browsers whose connections are not kept.
    directive "keepalive_disable": HSL, TAKE12, "msie6", "none | browser ..." => loc_rows::keepalive_disable;

    /// Only internal requests may use the location.
    directive "internal": Contexts::LOCATION, NOARGS, "", "" => loc_rows::internal;

    /// Cache of descriptors and metadata that is not checked at each request.
    directive "open_file_cache": HSL, TAKE12, "off", "off | max=N [inactive=time]"
        => loc_rows::open_file_cache;

    /// Who reads files that are not in the page cache: the thread that serves, or the threads of a pool.
    directive "aio": HSL, TAKE1, "threads", "off | on | threads[=pool]" => loc_rows::aio;

    /// Whether symbolic links are followed.
    directive "disable_symlinks": HSL, TAKE12, "off", "off | on | if_not_owner [from=part]"
        => loc_rows::disable_symlinks;

    /// Directory for request bodies in files.
    directive "client_body_temp_path": HSL, TAKE1234, "client_body_temp", "path [level ...]"
        => loc_rows::client_body_temp_path;

    /// Name servers for names that are resolved at run time: those of OCSP responders.
    directive "resolver": HSL, ONE_MORE, "", "address ... [valid=time] [ipv4=on|off] [ipv6=on|off]"
        => resolver::resolver;
}
