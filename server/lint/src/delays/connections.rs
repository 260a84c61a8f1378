//! Settings of connections: Nagle's algorithm, keep-alive, HTTP/2.

use std::collections::HashSet;

use super::contexts::Server;
use super::delay::{Report, Rule, Weight};
use crate::listens::address;
use crate::tree::{Tree, is_one_of};

/// Checks a server; `http2` has the [`http2_addresses`].
pub(super) fn check(
    tree: &Tree,
    server: &Server,
    http2: &HashSet<String>,
    report: &mut Report<'_>,
) {
    nagle(tree, server, report);
    keepalive(tree, server, report);
    // Redirects and refusals come one at a time.
    if !server.content.is_empty() {
        multiplexing(tree, server, http2, report);
    }
}

/// Addresses with the parameter `http2`, which holds for all servers there.
pub(super) fn http2_addresses(tree: &Tree) -> HashSet<String> {
    let with_it = tree.http("listen").filter(|listen| {
        let words = tree.args(*listen);
        words.iter().any(|word| word.as_str() == "http2")
    });
    with_it.map(|listen| address(tree.arg(listen, 0))).collect()
}

fn nagle(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    for block in &server.content {
        if let Some((id, value)) = Server::setting(tree, *block, "tcp_nodelay")
            && is_one_of(value, &["off"])
        {
            let title = "tcp_nodelay off: the end of a response waits for the client's acknowledgement, which may be delayed by 40 to 200 ms";
            report.add(STALL, title, id);
        }
    }
}

fn keepalive(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    for block in &server.content {
        if let Some((id, value)) = Server::setting(tree, *block, "keepalive_timeout")
            && conf::parse_time_ms(value.as_bytes()) == Some(0)
        {
            let title = "keepalive_timeout 0: each HTTP/1 request opens a connection";
            report.add(KEEPALIVE, title, id);
        }
        if let Some((id, "0" | "1")) = Server::setting(tree, *block, "keepalive_requests") {
            let title = "keepalive_requests: each request opens a connection";
            report.add(KEEPALIVE, title, id);
        }
    }
}

fn multiplexing(tree: &Tree, server: &Server, http2: &HashSet<String>, report: &mut Report<'_>) {
    if is_one_of(server.value(tree, "http2", "off"), &["on"]) {
        return;
    }
    for listen in &server.tls_listens {
        if !http2.contains(&address(tree.arg(*listen, 0))) {
            let title = "TLS without http2: the requests of a page queue on six connections";
            report.add(HTTP2, title, *listen);
        }
    }
}

const STALL: Rule = Rule {
    code: "delayed-ack-stall",
    weight: Weight::Bad,
    fix: "tcp_nodelay on; (the default of nginx and firstbyte)",
    round_trips: 1,
};
const KEEPALIVE: Rule = Rule {
    code: "no-keepalive",
    weight: Weight::Bad,
    fix: "keepalive_timeout 75s; keepalive_requests 1000; (the defaults)",
    round_trips: 1,
};
const HTTP2: Rule = Rule {
    code: "no-http2",
    weight: Weight::Warn,
    fix: "http2 on; (nginx before 1.25.1: listen 443 ssl http2)",
    round_trips: 0,
};
