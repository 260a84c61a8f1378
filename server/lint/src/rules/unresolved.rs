//! FB904: a name that is looked up at each request, without a `resolver`.
//!
//! An address with variables is not looked up when the configuration loads. Names of `upstream` groups and of addresses without
//! variables are known; any other name needs a `resolver`, or the request fails with 502. Not checked: variables that the
//! configuration does not define. Source: nginx documentation, directive `proxy_pass`.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::Warn;
use crate::pass_address::{default_port, has_port, host};
use crate::tree::{Id, PASSES, Tree};
use crate::value::{Piece, variables, ways};

pub(super) fn check(tree: &Tree, warn: &mut Warn<'_>) {
    let ids = tree.http_all(&PASSES);
    let known = KnownHosts::of(tree, &ids);
    for id in ids {
        let address = tree.arg(id, 0);
        let block = tree.parent(id);
        let resolver = block.and_then(|block| tree.inherited(block, "resolver"));
        if resolver.is_some() || variables(address).next().is_none() {
            continue;
        }
        let all = ways(tree, id, address);
        let default = default_port(tree, id);
        let Some(name) = all.iter().find_map(|way| known.missing(way, default)) else {
            continue;
        };
        let message = format!(
            "no resolver defined to resolve \"{name}\" at each request, as the address has variables"
        );
        let hint = "write \"resolver\" with the address of a name server, or name the servers in an \"upstream\"";
        warn.word(id, 0, message, hint);
    }
}

/// Hosts with addresses known when the configuration is loaded.
struct KnownHosts {
    /// Names of `upstream`, which a port makes another host.
    groups: HashSet<String>,
    /// Hosts with ports of addresses without variables.
    hosts: HashSet<(String, String)>,
}

impl KnownHosts {
    fn of(tree: &Tree, passes: &[Id]) -> Self {
        let groups = tree.http("upstream");
        let literal = passes.iter().filter_map(|id| {
            let address = tree.arg(*id, 0);
            let (host, port) = host(address, default_port(tree, *id))?;
            (variables(address).next().is_none()).then(|| (host.to_ascii_lowercase(), port))
        });
        Self {
            groups: groups
                .map(|id| tree.arg(id, 0).to_ascii_lowercase())
                .collect(),
            hosts: literal.collect(),
        }
    }

    /// The name that a way leads to, if it has to be looked up.
    fn missing(&self, way: &[Piece], default: &str) -> Option<String> {
        let mut address = String::new();
        for piece in way {
            match piece {
                Piece::Text(text) => address.push_str(text),
                Piece::Runtime(_, contents) if contents.slash => address.push('/'),
                Piece::Runtime(name, contents) => {
                    let inside = address
                        .split_once("://")
                        .map_or(&*address, |(_, rest)| rest);
                    if inside.contains(['/', '?', ':', '[']) {
                        break;
                    }
                    // A client may choose among groups, or among a few names that an expression lists.
                    let is_free = contents.client && contents.bytes.has(b'.');
                    let has_known = !self.groups.is_empty() || !self.hosts.is_empty();
                    return (is_free && !has_known).then(|| name.clone());
                }
            }
        }
        let (host, port) = host(&address, default)?;
        let lower = host.to_ascii_lowercase();
        let is_group = !has_port(&address) && self.groups.contains(&lower);
        let is_ip = host.parse::<Ipv4Addr>().is_ok() || host.parse::<Ipv6Addr>().is_ok();
        let is_known = is_group || is_ip || self.hosts.contains(&(lower, port));
        // A name that begins or ends with a dot is a part of one.
        let is_whole = !host.is_empty() && !host.starts_with('.') && !host.ends_with('.');
        (is_whole && !is_known).then(|| host.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{in_http, in_server};

    /// The warnings of this rule alone about the content of `http`.
    fn warnings(text: &str) -> Vec<&'static str> {
        let mut codes = in_http(text);
        codes.retain(|code| *code == "FB904");
        codes
    }

    #[test]
    fn names_without_a_resolver_are_found() {
        for text in [
            "set $to http://app.example:8080; location / { proxy_pass $to; }",
            "location / { set $to app; proxy_pass http://$to; }",
            "location / { proxy_pass http://localhost:8080$request_uri; }",
            "location / { set $to app:9000; fastcgi_param A 1; fastcgi_pass $to; }",
            "location / { proxy_pass https://app.example/$arg_a; }",
        ] {
            assert_eq!(in_server(text), ["FB904"], "{text}");
        }
        let mapped = "map $arg_a $to { default app.example; b 127.0.0.1; }
            server { location / { proxy_pass http://$to; } }";
        assert_eq!(warnings(mapped), ["FB904"]);
        let client = "server { location / { proxy_pass http://$host$request_uri; } }";
        assert_eq!(warnings(client), ["FB904"]);
        // A name with a port is no group.
        let port = "upstream app { server 127.0.0.1; }
            server { location / { set $to app:81; proxy_pass http://$to; } }";
        assert_eq!(warnings(port), ["FB904"]);
    }

    #[test]
    fn names_that_are_known_are_not() {
        for text in [
            "location / { set $to app; proxy_pass http://$to; resolver 127.0.0.1; }",
            "resolver 127.0.0.1; location / { proxy_pass http://app.example$request_uri; }",
            "location / { proxy_pass http://127.0.0.1:81$request_uri; }",
            "location / { proxy_pass http://[::1]:81$request_uri; }",
            "location / { proxy_pass http://unix:/run/app:$request_uri; }",
            "location / { set $to unix:/run/app; fastcgi_param A 1; fastcgi_pass $to; }",
            "location / { proxy_pass http://app.example/; }",
            "location / { proxy_pass http://App.example/$arg_a; } location /b { proxy_pass http://app.example; }",
            "location / { proxy_pass http://$unknown; }",
            "location / { proxy_pass http://$unknown.example; }",
            "location / { proxy_pass http://app.$unknown; }",
            "location ~ ^/(a|b)/ { proxy_pass http://$1; }",
        ] {
            assert_eq!(in_server(text), [""; 0], "{text}");
        }
        let chosen = "upstream app { server 127.0.0.1; }
            server { location ~ ^/to/(.*)$ { proxy_pass http://$1; } }";
        assert_eq!(warnings(chosen), [""; 0]);
        let group = "upstream App { server 127.0.0.1; }
            server { location / { set $to app; proxy_pass http://$to/$arg_a; } }";
        assert_eq!(warnings(group), [""; 0]);
    }
}
