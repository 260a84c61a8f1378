//! The HTTP modules of firstbyte: rows of directives, variables, handlers and stages, one file each.
//!
//! To add a module: write its file, add a `mod` line and a line in [`MODULES`]. The order of the list is significant:
//! handlers of one phase and header stages run in this order, which is nginx's.
#![forbid(unsafe_code)]

mod access;
mod addition;
mod api;
mod auth_basic;
mod auth_request;
mod autoindex;
mod browser;
mod charset;
mod compress;
mod dav;
mod early_hints;
mod empty_gif;
mod experiment;
mod experiment_beacon;
mod fastcgi;
mod file;
mod first_byte_sampling;
mod flv;
pub mod freeze_manifest;
mod gateways;
mod geo;
mod geoip;
mod geoip2;
mod geoip_database;
mod headers;
mod http2_push;
mod index;
mod lab_dashboard;
mod limit_conn;
mod limit_req;
mod limits;
mod log;
mod map;
mod memcached;
mod metrics;
mod mirror;
mod mp4;
mod networks;
mod not_modified;
mod pass_address;
mod post_action;
mod proxy;
mod random_index;
mod range;
mod realip;
mod referer;
mod rewrite;
mod rtt_map;
mod scgi;
mod secrets;
mod secure_link;
mod server_timing;
mod slice;
mod split_clients;
mod ssi;
mod ssl;
mod static_files;
mod status_zone;
mod stub_status;
mod sub_filter;
mod try_files;
mod upstream;
mod upstream_hc;
mod userid;
mod uwsgi;

use server_http::conf_core::PROTOCOL_MODULES;
use server_http::module::Module;

/// Directives with a row that accepts `off` alone and is an error for any other value, by name.
pub const REFUSED: &[&str] = &["ssl_ech_file", "ssl_ocsp", "ssl_ocsp_responder"];

/// The modules, in order.
pub const MODULES: &[&Module] = &[
    &ssl::MODULE,
    &upstream::MODULE,
    &upstream_hc::MODULE,
    &map::MODULE,
    &geo::MODULE,
    &geoip::MODULE,
    &geoip2::MODULE,
    &geoip_database::MODULE,
    &split_clients::MODULE,
    &referer::MODULE,
    &browser::MODULE,
    &secure_link::MODULE,
    &rewrite::MODULE,
    &realip::MODULE,
    &access::MODULE,
    &auth_basic::MODULE,
    &auth_request::MODULE,
    &early_hints::MODULE,
    &limit_req::MODULE,
    &limit_conn::MODULE,
    &try_files::MODULE,
    &mirror::MODULE,
    &random_index::MODULE,
    &index::MODULE,
    &autoindex::MODULE,
    &dav::MODULE,
    &compress::GZIP_STATIC,
    &static_files::MODULE,
    &proxy::MODULE,
    &fastcgi::MODULE,
    &uwsgi::MODULE,
    &scgi::MODULE,
    &memcached::MODULE,
    &empty_gif::MODULE,
    &flv::MODULE,
    &mp4::MODULE,
    &stub_status::MODULE,
    &metrics::MODULE,
    &api::MODULE,
    &status_zone::MODULE,
    &lab_dashboard::MODULE,
    &slice::MODULE,
    &not_modified::MODULE,
    &headers::MODULE,
    &freeze_manifest::MODULE,
    &userid::MODULE,
    &compress::GUNZIP,
    &addition::MODULE,
    &sub_filter::MODULE,
    &charset::MODULE,
    &ssi::MODULE,
    &compress::MODULE,
    &range::MODULE,
    &server_timing::MODULE,
    &http2_push::MODULE,
    &experiment::MODULE,
    &experiment_beacon::MODULE,
    &log::MODULE,
    &first_byte_sampling::MODULE,
    &rtt_map::MODULE,
    &post_action::MODULE,
];

/// Modules that nginx builds only on request and that are built in, as `configure` names them.
pub fn with() -> Vec<String> {
    let built_in = |names: &'static [&str]| {
        names
            .iter()
            .filter(|name| MODULES.iter().any(|m| m.name == **name))
    };
    built_in(&["ssl"])
        .chain(&PROTOCOL_MODULES)
        .chain(built_in(NGINX_OPTIONAL))
        .map(|name| format!("--with-http_{name}_module"))
        .collect()
}

/// Standard modules of nginx that are not built in, as `configure` would name them.
pub fn without() -> Vec<String> {
    NGINX_STANDARD
        .iter()
        .filter(|name| !MODULES.iter().any(|m| m.name == **name))
        .map(|name| format!("--without-http_{name}_module"))
        .collect()
}

/// Optional modules of nginx, apart from `ssl` and protocols.
const NGINX_OPTIONAL: &[&str] = &[
    "realip",
    "addition",
    "geoip",
    "sub",
    "dav",
    "flv",
    "mp4",
    "gunzip",
    "gzip_static",
    "random_index",
    "secure_link",
    "stub_status",
    "auth_request",
    "slice",
];

/// Modules that nginx builds by default, except those with parts of `upstream` blocks that are in `upstream` here:
/// `upstream_keepalive`, `upstream_zone`, and the methods `hash`, `ip_hash`, `least_conn`, `least_time` and `random`.
const NGINX_STANDARD: &[&str] = &[
    "charset",
    "gzip",
    "ssi",
    "userid",
    "access",
    "auth_basic",
    "mirror",
    "autoindex",
    "geo",
    "map",
    "split_clients",
    "referer",
    "rewrite",
    "proxy",
    "fastcgi",
    "uwsgi",
    "scgi",
    "grpc",
    "memcached",
    "limit_conn",
    "limit_req",
    "empty_gif",
    "browser",
    "tunnel",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_not_listed_as_missing() {
        let list = without();
        assert!(list.contains(&"--without-http_grpc_module".to_owned()));
        assert!(!list.contains(&"--without-http_proxy_module".to_owned()));
        assert!(!list.contains(&"--without-http_rewrite_module".to_owned()));
        assert!(!list.contains(&"--without-http_upstream_keepalive_module".to_owned()));
        assert!(!list.contains(&"--without-http_upstream_hash_module".to_owned()));
    }
}
