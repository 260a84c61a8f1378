//! Directives of the core with a shape of their own.
//!
//! Source: nginx documentation, `ngx_http_core_module`.

mod loc;
mod srv;

use conf::Contexts;

use super::ConfigBuilder;
use super::module::Inherit;

/// Directives of the core that reach inner levels in another way than most.
pub const INHERITS: &[(&str, Inherit)] = &[
    ("alias", Inherit::With("root")),
    ("internal", Inherit::Around),
];

const HSL: Contexts = Contexts::HTTP_SERVER_LOCATION;
const HSLI: Contexts = Contexts::HTTP_TO_IF;

conf::directives! {
    /// Rows with a shape of their own.
    pub(super) const ROWS: ConfigBuilder;

    /// An address to listen on and its socket options.
    directive "listen": Contexts::SERVER, ONE_MORE, "*:80", "address[:port] [parameter ...]"
        => super::listen;

    /// Names of the virtual server.
    directive "server_name": Contexts::SERVER, ONE_MORE, "\"\"", "name ..." => srv::server_name;

    /// Directory that URIs are mapped into.
    directive "root": HSLI, TAKE1, "html", "path" => loc::root;

    /// Replaces the location's part of the URI.
    directive "alias": Contexts::LOCATION, TAKE1, "", "path" => loc::alias;

    /// Maps file name extensions to media types.
    block "types": HSL, NOARGS, "text/html html; image/gif gif; image/jpeg jpg", "{ ... }" => loc::types;

    /// The page shown for errors.
    directive "error_page": HSLI, TWO_MORE, "", "code ... [=[response]] uri" => loc::error_page;

    /// An error log and its level.
    directive "error_log": HSL, ONE_MORE, "logs/error.log error",
        "file | stderr | syslog:server=address[,parameter=value] | memory:size [level] [json]" => loc::error_log;

    /// How long an idle connection is kept.
    directive "keepalive_timeout": HSL, TAKE12, "75s", "timeout [header_timeout]"
        => loc::keepalive_timeout;

    /// Browsers without kept connections.
    directive "keepalive_disable": HSL, TAKE12, "msie6", "none | browser ..." => loc::keepalive_disable;

    /// Only internal requests may use the location.
    directive "internal": Contexts::LOCATION, NOARGS, "", "" => loc::internal;

    /// Cache of descriptors and metadata that is not checked at each request.
    directive "open_file_cache": HSL, TAKE12, "off", "off | max=N [inactive=time]"
        => loc::open_file_cache;

    /// The reader of files outside the page cache: the serving thread, or the threads of a pool.
    directive "aio": HSL, TAKE1, "threads", "off | on | threads[=pool]" => loc::aio;

    /// Whether symbolic links are followed.
    directive "disable_symlinks": HSL, TAKE12, "off", "off | on | if_not_owner [from=part]"
        => loc::disable_symlinks;

    /// Directory for request bodies in files.
    directive "client_body_temp_path": HSL, TAKE1234, "client_body_temp", "path [level ...]"
        => loc::client_body_temp_path;

    /// Name servers for names that are resolved at run time: those of OCSP responders.
    directive "resolver": HSL, ONE_MORE, "", "address ... [valid=time] [ipv4=on|off] [ipv6=on|off]"
        => loc::resolver;
}
