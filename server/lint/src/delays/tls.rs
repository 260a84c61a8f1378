//! Settings of TLS, and redirects to it.

use std::collections::HashMap;

use super::contexts::{Server, list};
use super::delay::{Report, Rule, Weight};
use super::responses::is_passed;
use crate::rules::redirect;
use crate::tree::{Id, Tree, is_one_of};

pub(super) fn check(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    if !server.has_tls() {
        return;
    }
    versions(tree, server, report);
    resumption(tree, server, report);
    records(tree, server, report);
    for id in list(tree, server.id, "ssl_certificate") {
        let path = tree.arg(id, 0);
        let is_file = !path.is_empty() && !path.contains('$') && !path.starts_with("data:");
        if is_file && !path.starts_with("engine:") && !path.starts_with("store:") {
            report.certificate(path, id);
        }
    }
}

fn versions(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    let protocols = list(tree, server.id, "ssl_protocols");
    let has_13 = |id: &Id| {
        tree.args(*id)
            .iter()
            .any(|word| is_one_of(word.as_str(), &["TLSv1.3"]))
    };
    // nginx's default has it.
    let has_13 = protocols.is_empty() || protocols.iter().any(has_13);
    if let (Some(id), false) = (protocols.first(), has_13) {
        let title =
            "ssl_protocols without TLSv1.3: a handshake takes two round trips instead of one";
        report.add(VERSIONS, title, *id);
    }
    if has_13 && !is_one_of(server.value(tree, "ssl_early_data", "off"), &["on"]) {
        let title = "ssl_early_data is off: a returning client's request waits for the handshake";
        report.add(EARLY_DATA, title, server.place(tree, "ssl_early_data"));
    }
}

fn resumption(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    let tickets = server.value(tree, "ssl_session_tickets", "on");
    // `builtin` and `shared:` may be combined; `none` and `off` may not.
    let cache = server.value(tree, "ssl_session_cache", "none");
    if is_one_of(tickets, &["off"]) && matches!(cache, "none" | "off") {
        let title =
            "ssl_session_tickets off without an ssl_session_cache: no session can be resumed";
        report.add(RESUMPTION, title, server.place(tree, "ssl_session_tickets"));
    }
}

fn records(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    let Some((id, value)) = Server::setting(tree, server.id, "ssl_buffer_size") else {
        let title = "ssl_buffer_size has nginx's default of 16k: a client cannot decrypt a record before its \
                     last byte arrives; firstbyte starts with small records";
        report.add(RECORDS, title, server.id);
        return;
    };
    if conf::parse_size(value.as_bytes()).is_some_and(|bytes| bytes >= RECORD_BYTES) {
        let title = "ssl_buffer_size of 16k or more: a client cannot decrypt a record before its last byte arrives";
        report.add(RECORDS, title, id);
    }
}

/// Reports servers without TLS that redirect to servers without HSTS.
pub(super) fn check_redirects(tree: &Tree, servers: &[Server], report: &mut Report<'_>) {
    let sites = Sites::new(tree, servers);
    for server in servers.iter().filter(|server| server.is_plain) {
        let late = redirects(tree, server).find_map(|(id, address)| {
            let reached = sites.reached(server, address);
            let sends_hsts = reached.iter().any(|site| site.sends_hsts);
            (!reached.is_empty() && !sends_hsts).then_some((id, reached))
        });
        let Some((id, reached)) = late else { continue };
        let title = match reached.iter().any(|site| site.is_passed) {
            true => {
                "a redirect to https without Strict-Transport-Security, unless the upstream server adds it: \
                 every visit over http is redirected again"
            }
            false => {
                "a redirect to https without Strict-Transport-Security: every visit over http is redirected again"
            }
        };
        report.add(REDIRECT, title, id);
    }
}

/// The directives by which a server or its locations redirect to https, and the address after the scheme.
fn redirects<'t>(tree: &'t Tree, server: &'t Server) -> impl Iterator<Item = (Id, &'t str)> {
    let all = server.blocks.iter().flat_map(move |block| {
        let returns = tree.within(*block, "return");
        returns.chain(tree.within(*block, "rewrite"))
    });
    all.filter_map(move |id| {
        let target = tree.arg(id, redirect::target(tree, id)?);
        Some((id, target.strip_prefix("https://")?))
    })
}

/// A server with TLS that a redirect may reach.
struct Site {
    /// It sends Strict-Transport-Security somewhere.
    sends_hsts: bool,
    /// It passes requests to other servers, which may send HSTS.
    is_passed: bool,
}

/// The servers with TLS, by their names.
struct Sites<'t> {
    all: Vec<Site>,
    by_name: HashMap<&'t str, Vec<usize>>,
}

impl<'t> Sites<'t> {
    fn new(tree: &Tree, servers: &'t [Server]) -> Self {
        let mut all = Vec::new();
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for server in servers.iter().filter(|server| server.has_tls()) {
            for name in &server.names {
                by_name.entry(name).or_default().push(all.len());
            }
            all.push(Site {
                sends_hsts: server.blocks.iter().any(|block| has_hsts(tree, *block)),
                is_passed: server.content.iter().any(|block| is_passed(tree, *block)),
            });
        }
        Self { all, by_name }
    }

    /// The servers that a redirect of `from` may reach; empty if it leads elsewhere.
    fn reached(&self, from: &Server, address: &str) -> Vec<&Site> {
        let named = |names: &[String]| -> Vec<&Site> {
            let known = names
                .iter()
                .filter_map(|name| self.by_name.get(name.as_str()));
            known.flatten().map(|n| &self.all[*n]).collect()
        };
        if let Some(host) = literal_host(address) {
            return named(&names_of(host));
        }
        // The host is unchanged or similar. Without a server of the same names, any server may be reached.
        let same = named(&from.names);
        match same.is_empty() {
            true => self.all.iter().collect(),
            false => same,
        }
    }
}

/// The names by which a server can have a host.
fn names_of(host: &str) -> Vec<String> {
    let host = host.to_ascii_lowercase();
    let mut names = vec![format!(".{host}")];
    for (dot, _) in host.match_indices('.') {
        names.extend([host[dot..].to_owned(), format!("*{}", &host[dot..])]);
    }
    names.push(host);
    names
}

/// The host of an address without its scheme; `None` if it contains a variable.
fn literal_host(address: &str) -> Option<&str> {
    let end = address.find(['/', ':', '?', '#', '$']);
    let (host, rest) = address.split_at(end.unwrap_or(address.len()));
    let is_path = ["$request_uri", "$uri", "$document_uri"];
    let is_whole = !rest.starts_with('$') || is_path.iter().any(|path| rest.starts_with(path));
    (is_whole && !host.is_empty() && !host.ends_with('.')).then_some(host)
}

/// Returns whether a block sends HSTS; `more_set_headers` is of the module headers-more.
fn has_hsts(tree: &Tree, block: Id) -> bool {
    let begins = |text: &str| {
        let begin = text.as_bytes().get(..HSTS.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(HSTS.as_bytes()))
    };
    ["add_header", "more_set_headers"]
        .iter()
        .flat_map(|name| list(tree, block, name))
        .flat_map(|id| tree.args(id))
        .any(|word| begins(word.as_str()))
}

/// The field that makes clients use https at once (RFC 6797).
const HSTS: &str = "strict-transport-security";
/// Largest size of a TLS record.
const RECORD_BYTES: usize = 16 << 10;

const VERSIONS: Rule = Rule {
    code: "handshake-round-trips",
    // As by URL and by capture: docs/doctor.md.
    weight: Weight::Warn,
    fix: "ssl_protocols TLSv1.2 TLSv1.3; (the default)",
    round_trips: 1,
};
const EARLY_DATA: Rule = Rule {
    code: "no-early-data",
    weight: Weight::Note,
    fix: "ssl_early_data on; if requests may be replayed (RFC 8470)",
    round_trips: 1,
};
const RESUMPTION: Rule = Rule {
    code: "no-resumption",
    weight: Weight::Warn,
    fix: "ssl_session_cache shared:SSL:10m; or ssl_session_tickets on;",
    round_trips: 0,
};
const RECORDS: Rule = Rule {
    code: "tls-record-size",
    weight: Weight::Note,
    fix: "nginx: ssl_buffer_size 4k; firstbyte: no ssl_buffer_size",
    round_trips: 0,
};
const REDIRECT: Rule = Rule {
    code: "redirect-to-https-late",
    weight: Weight::Warn,
    fix: "add_header Strict-Transport-Security \"max-age=31536000\" always; in the server with TLS",
    round_trips: 1,
};
