//! FB405: status pages that every client may read.
//!
//! Numbers of connections, hosts and upstream servers help to plan an attack and to see its effect. Not analyzed: servers that
//! only this machine or a private network reaches.

use crate::Warn;
use crate::listens::address;
use crate::rules::resolver::{ip, is_near};
use crate::tree::{Id, PASSES, Tree};

pub(super) fn check(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree.http_all(&PAGES) {
        let Some(block) = tree.parent(id) else {
            continue;
        };
        let is_guarded = std::iter::once(block)
            .chain(tree.parents(block))
            .any(|level| guards(tree, level));
        // The directives of a gateway take the place of the page.
        if is_guarded || tree.has(block, &PASSES) || !is_reachable(tree, id) {
            continue;
        }
        let message = format!(
            "every client can read the page of \"{}\": no access rule applies here",
            tree.name(id)
        );
        let hint =
            "add \"allow\" for the monitoring and \"deny all;\", or \"listen\" on 127.0.0.1 only";
        warn.name(id, message, hint);
    }
}

/// Whether a block has directives that refuse some clients.
fn guards(tree: &Tree, level: Id) -> bool {
    // By name, since `http` may also have thousands of servers.
    GUARDS.iter().any(|name| {
        tree.within(level, name).any(|id| match *name {
            "allow" => tree.arg(id, 0) != "all",
            "ssl_verify_client" => tree.is_value(id, &["on"]),
            // A condition that sends clients away.
            "if" => tree.has(id, &["return", "rewrite"]),
            _ => tree.arg(id, 0) != "off",
        })
    })
}

/// Whether other machines than those of a private network reach the server of a directive.
fn is_reachable(tree: &Tree, id: Id) -> bool {
    let Some(server) = tree.enclosing(id, "server") else {
        return true;
    };
    let mut listens = tree.within(server, "listen").peekable();
    let is_far = |listen: Id| {
        let address = address(tree.arg(listen, 0));
        let is_near = ip(&address).is_some_and(is_near);
        !is_near && !address.starts_with("unix:") && !address.starts_with("localhost:")
    };
    listens.peek().is_none() || listens.any(is_far)
}

/// Directives that answer with numbers about the server.
const PAGES: [&str; 5] = [
    "stub_status",
    "metrics",
    "api",
    "vhost_traffic_status_display",
    "check_status",
];
/// Directives that may refuse clients.
const GUARDS: [&str; 9] = [
    "allow",
    "deny",
    "internal",
    "auth_basic",
    "auth_digest",
    "auth_jwt",
    "auth_request",
    "ssl_verify_client",
    "if",
];

#[cfg(test)]
mod tests {
    use crate::testing::{in_http, in_server};

    #[test]
    fn pages_without_rules_are_found() {
        for text in [
            "location = /status { stub_status; }",
            "location = /status { stub_status on; access_log off; }",
            "location = /metrics { metrics; }",
            "location /api { api write=on; }",
            "location /vts { vhost_traffic_status_display; allow all; }",
            "location /s { stub_status; auth_basic off; if ($a) { set $b 1; } }",
        ] {
            assert_eq!(in_server(text), ["FB405"], "{text}");
        }
    }

    #[test]
    fn pages_that_some_clients_are_refused_are_not() {
        for text in [
            "location /s { stub_status; allow 127.0.0.1; deny all; }",
            "deny all; location /s { stub_status; }",
            "location /s { location /s/t { stub_status; } auth_basic a; }",
            "location /s { stub_status; internal; }",
            "location /s { stub_status; auth_request /a; }",
            "ssl_verify_client on; location /s { stub_status; }",
            "ssl_verify_client ON; location /s { stub_status; }",
            "location /s { stub_status; if ($remote_addr != 10.0.0.1) { return 403; } }",
            "location /s { stub_status; proxy_pass http://127.0.0.1:81; }",
        ] {
            assert_eq!(in_server(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn servers_that_nobody_else_reaches_are_not_judged() {
        let on = |listens: &str| {
            in_http(&format!(
                "server {{ {listens} location /s {{ stub_status; }} }}"
            ))
        };
        for near in [
            "listen 127.0.0.1:80;",
            "listen [::1]:80; listen unix:/run/s;",
            "listen 10.0.0.1:8080;",
            "listen localhost:81;",
        ] {
            assert_eq!(on(near), [""; 0], "{near}");
        }
        for far in [
            "",
            "listen 80;",
            "listen 127.0.0.1:80; listen [::]:80;",
            "listen 192.0.2.1;",
        ] {
            assert_eq!(on(far), ["FB405"], "{far}");
        }
    }
}
