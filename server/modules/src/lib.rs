//! The HTTP modules of firstbyte: rows of directives, variables, handlers and stages, one file each.
//!
//! To add a module: write its file, add a `mod` line and a line in [`MODULES`]. The order of the list is meaning: it is
//! the order in which handlers of one phase run and header stages are applied, the same as nginx's.
#![forbid(unsafe_code)]

mod charset;
mod empty_gif;
mod headers;
mod index;
mod log;
mod map;
mod not_modified;
mod range;
mod rewrite;
mod static_files;
mod try_files;

use server_core::module::Module;

/// The modules, in order.
pub const MODULES: &[&Module] = &[
    &map::MODULE,
    &rewrite::MODULE,
    &try_files::MODULE,
    &index::MODULE,
    &static_files::MODULE,
    &empty_gif::MODULE,
    &not_modified::MODULE,
    &headers::MODULE,
    &charset::MODULE,
    &range::MODULE,
    &log::MODULE,
];

/// Standard modules of nginx that are not built in, as `configure` would name them.
pub fn without() -> Vec<String> {
    NGINX_STANDARD
        .iter()
        .filter(|name| !MODULES.iter().any(|m| m.name == **name))
        .map(|name| format!("--without-http_{name}_module"))
        .chain([
            "--without-http-cache".to_owned(),
            "--without-http_upstream_sticky_module".to_owned(),
        ])
        .collect()
}

/// Modules that nginx builds unless told otherwise.
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
    "upstream_hash",
    "upstream_ip_hash",
    "upstream_least_conn",
    "upstream_least_time",
    "upstream_random",
    "upstream_keepalive",
    "upstream_zone",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_not_listed_as_missing() {
        let list = without();
        assert!(list.contains(&"--without-http_proxy_module".to_owned()));
        assert!(!list.contains(&"--without-http_rewrite_module".to_owned()));
    }
}
