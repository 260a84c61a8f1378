//! Parts of the address that a request is passed to: `proxy_pass` and similar directives.

use crate::tree::{Id, Tree};

/// Host and port of an address; `None` for the path of a socket.
pub(crate) fn host<'a>(address: &'a str, default: &str) -> Option<(&'a str, String)> {
    let (default, rest) = match address.split_once("://") {
        Some(("https" | "grpcs", rest)) => ("443", rest),
        Some((_, rest)) => ("80", rest),
        None => (default, address),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority == "unix:" || authority.starts_with("unix:") {
        return None;
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(inside) => inside.split_once(']')?,
        None => match authority.find(':') {
            Some(at) => authority.split_at(at),
            None => (authority, ""),
        },
    };
    let port = port.strip_prefix(':').unwrap_or(default);
    Some((host, port.to_owned()))
}

/// Whether an address names its port.
pub(crate) fn has_port(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.contains(':')
}

/// The port of an address without scheme and port.
pub(crate) fn default_port(tree: &Tree, pass: Id) -> &'static str {
    match tree.name(pass) {
        "proxy_pass" | "grpc_pass" => "80",
        "memcached_pass" => "11211",
        _ => "",
    }
}
