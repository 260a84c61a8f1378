//! FB803 and FB804: TLS to servers in the internet, without a server name in the handshake or without a check of the
//! certificate.
//!
//! Analyzed are addresses with a name that is written down, and the servers of a group. Not analyzed: names of a private
//! network, addresses without a name, names that only a variable has.
//!
//! Source: nginx documentation, `proxy_ssl_server_name`, `proxy_ssl_verify`: both are off by default; RFC 6761 and RFC 9476
//! for names that no public server has.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::Warn;
use crate::pass_address::{has_port, host};
use crate::tree::{Id, Tree};
use crate::value::{Piece, ways};

/// FB803
pub(super) fn no_server_name(tree: &Tree, warn: &mut Warn<'_>) {
    for pass in passes(tree) {
        let Some(setting) = off(tree, &pass, "ssl_server_name") else {
            continue;
        };
        let (name, prefix) = (&pass.name, pass.prefix);
        let message = format!(
            "\"{name}\" gets no server name in the TLS handshake: it may refuse it, or use another certificate"
        );
        let hint = match pass.is_group {
            false => format!("write \"{setting} on;\""),
            true => format!("write \"{setting} on;\" and \"{prefix}ssl_name {name};\""),
        };
        warn.word(pass.id, 0, message, hint);
    }
}

/// FB804
pub(super) fn no_verification(tree: &Tree, warn: &mut Warn<'_>) {
    for pass in passes(tree) {
        let Some(setting) = off(tree, &pass, "ssl_verify") else {
            continue;
        };
        let (name, prefix) = (&pass.name, pass.prefix);
        let message = format!(
            "the certificate of \"{name}\" is not verified: requests can be read and answered by others on the way"
        );
        let hint = format!(
            "write \"{setting} on;\" and \"{prefix}ssl_trusted_certificate\" with the certificates of authorities"
        );
        warn.word(pass.id, 0, message, hint);
    }
}

/// A directive that passes requests on over TLS to a public name.
struct TlsPass {
    id: Id,
    /// The beginning of its settings: `proxy_`.
    prefix: &'static str,
    name: String,
    /// The name is that of a server of a group.
    is_group: bool,
}

fn passes(tree: &Tree) -> impl Iterator<Item = TlsPass> {
    SCHEMES.iter().flat_map(move |(directive, scheme)| {
        let ids = tree.http(directive);
        ids.filter_map(move |id| of_pass(tree, id, scheme, directive.strip_suffix("pass")?))
    })
}

fn of_pass(tree: &Tree, id: Id, scheme: &str, prefix: &'static str) -> Option<TlsPass> {
    ways(tree, id, tree.arg(id, 0)).iter().find_map(|way| {
        let address = address(way)?;
        if !address.to_ascii_lowercase().starts_with(scheme) {
            return None;
        }
        let (host, _) = host(&address, "")?;
        let servers = group(tree, host).filter(|_| !has_port(&address));
        let is_group = servers.is_some();
        let name = match servers {
            Some(servers) => servers.into_iter().find(|name| is_public(name))?,
            None => Some(host.to_owned()).filter(|name| is_public(name))?,
        };
        Some(TlsPass {
            id,
            prefix,
            name,
            is_group,
        })
    })
}

/// The text of an address up to a variable behind its host; `None` if a part of the host is a variable.
fn address(way: &[Piece]) -> Option<String> {
    let mut address = String::new();
    for piece in way {
        match piece {
            Piece::Text(text) => address.push_str(text),
            Piece::Runtime(..) => {
                let (_, rest) = address.split_once("://")?;
                return rest.contains(['/', '?', ':']).then_some(address);
            }
        }
    }
    Some(address)
}

/// The hosts of the group with this name.
fn group(tree: &Tree, name: &str) -> Option<Vec<String>> {
    let mut groups = tree.http("upstream");
    let group = groups.find(|group| tree.arg(*group, 0).eq_ignore_ascii_case(name))?;
    let servers = tree.within(group, "server");
    let hosts = servers.filter_map(|server| host(tree.arg(server, 0), ""));
    Some(hosts.map(|(host, _)| host.to_owned()).collect())
}

/// The name of a setting that is off in the block of the directive.
fn off(tree: &Tree, pass: &TlsPass, setting: &str) -> Option<String> {
    let setting = format!("{}{setting}", pass.prefix);
    let written = tree.inherited(tree.parent(pass.id)?, &setting);
    written
        .is_none_or(|id| !tree.is_value(id, &["on"]))
        .then_some(setting)
}

/// Whether a host is a name of the internet.
fn is_public(host: &str) -> bool {
    let is_ip = host.parse::<Ipv4Addr>().is_ok() || host.parse::<Ipv6Addr>().is_ok();
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    match name.rsplit_once('.') {
        // A name that begins with a dot is a part of one.
        Some((first, last)) => {
            !is_ip && !first.is_empty() && !first.starts_with('.') && !PRIVATE.contains(&last)
        }
        None => false,
    }
}

/// Directives with the beginning of an address over TLS.
const SCHEMES: [(&str, &str); 3] = [
    ("proxy_pass", "https://"),
    ("uwsgi_pass", "suwsgi://"),
    ("grpc_pass", "grpcs://"),
];

/// Last parts of names that no public server has.
const PRIVATE: [&str; 15] = [
    "arpa",
    "cluster",
    "consul",
    "corp",
    "docker",
    "example",
    "home",
    "internal",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "svc",
    "test",
];

#[cfg(test)]
mod tests {
    use crate::testing::{in_http, in_server};

    /// The warnings of these rules alone about the content of `http`.
    fn warnings(text: &str) -> Vec<&'static str> {
        let mut codes = in_http(text);
        codes.retain(|code| ["FB803", "FB804"].contains(code));
        codes
    }

    const NAME: &str = "proxy_ssl_server_name on;";
    const VERIFY: &str = "proxy_ssl_verify on;";

    #[test]
    fn public_servers_without_a_name_or_a_check_are_found() {
        let pass = "location / { proxy_pass https://api.example.com/v1/; }";
        assert_eq!(in_server(pass), ["FB803", "FB804"]);
        assert_eq!(in_server(&format!("{NAME} {pass}")), ["FB804"]);
        assert_eq!(in_server(&format!("{VERIFY} {pass}")), ["FB803"]);
        let upper = "proxy_ssl_server_name ON; proxy_ssl_verify On;";
        assert_eq!(in_server(&format!("{upper} {pass}")), [""; 0]);
        assert_eq!(in_server(&format!("{NAME} {VERIFY} {pass}")), [""; 0]);
        let off = "location / { proxy_pass HTTPS://api.example.com; proxy_ssl_verify off; }";
        assert_eq!(in_server(&format!("{NAME} {VERIFY} {off}")), ["FB804"]);
        for other in [
            "location / { uwsgi_param A 1; uwsgi_pass suwsgi://app.example.com:9000; }",
            "location / { grpc_pass grpcs://api.example.com; }",
            "resolver 127.0.0.1; location / { proxy_pass https://api.example.com/$arg_a; }",
            "resolver 127.0.0.1; set $to https://api.example.com; location / { proxy_pass $to; }",
        ] {
            assert_eq!(in_server(other), ["FB803", "FB804"], "{other}");
        }
    }

    #[test]
    fn servers_of_a_group_count() {
        let group = |servers: &str| {
            let pass = "server { location / { proxy_pass https://app; } }";
            warnings(&format!("upstream App {{ {servers} }} {pass}"))
        };
        assert_eq!(
            group("server 10.0.0.1; server a.example.com:443;"),
            ["FB803", "FB804"]
        );
        assert_eq!(group("server 10.0.0.1:443; server unix:/run/app;"), [""; 0]);
    }

    #[test]
    fn private_servers_and_other_schemes_are_not() {
        for host in [
            "http://api.example.com",
            "https://10.0.0.1",
            "https://203.0.113.1:8443",
            "https://[2001:db8::1]",
            "https://app",
            "https://app:8443/",
            "https://app.internal",
            "https://app.default.svc.cluster.local",
            "https://app.lan.",
            "https://unix:/run/app.sock",
            "https://$server_name.example.com",
        ] {
            let text = format!("resolver 127.0.0.1; location / {{ proxy_pass {host}; }}");
            assert_eq!(in_server(&text), [""; 0], "{host}");
        }
    }
}
