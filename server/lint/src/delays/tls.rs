//! Settings of TLS, and redirects to it.

use super::contexts::{Server, list};
use super::delay::{Report, Rule, Weight};
use crate::tree::{Id, Tree};

pub(super) fn judge(tree: &Tree, server: &Server, report: &mut Report<'_>) {
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
    let protocols = tree.inherited(server.id, "ssl_protocols");
    let words = protocols.map(|id| tree.args(id));
    // nginx's default has it.
    let has_13 = words.is_none_or(|words| words.iter().any(|word| word.as_str() == "TLSv1.3"));
    if let (Some(id), false) = (protocols, has_13) {
        let title =
            "ssl_protocols without TLSv1.3: a handshake takes two round trips instead of one";
        report.add(VERSIONS, title, id);
    }
    if has_13 && server.value(tree, "ssl_early_data", "off") != "on" {
        let title = "ssl_early_data is off: a returning client's request waits for the handshake";
        report.add(EARLY_DATA, title, server.place(tree, "ssl_early_data"));
    }
}

fn resumption(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    let tickets = server.value(tree, "ssl_session_tickets", "on");
    // `builtin` and `shared:` may stand beside each other; `none` and `off` stand alone.
    let cache = server.value(tree, "ssl_session_cache", "none");
    if tickets == "off" && matches!(cache, "none" | "off") {
        let title =
            "ssl_session_tickets off without an ssl_session_cache: each handshake is a full one";
        report.add(RESUMPTION, title, server.place(tree, "ssl_session_tickets"));
    }
}

fn records(tree: &Tree, server: &Server, report: &mut Report<'_>) {
    let Some((id, value)) = Server::setting(tree, server.id, "ssl_buffer_size") else {
        let title = "ssl_buffer_size is nginx's default of 16k: nothing of a record can be read before its last byte; firstbyte's records are small at first";
        report.add(RECORDS, title, server.id);
        return;
    };
    if bytes(value).is_some_and(|bytes| bytes >= RECORD_BYTES) {
        let title =
            "ssl_buffer_size of 16k or more: nothing of a record can be read before its last byte";
        report.add(RECORDS, title, id);
    }
}

/// A size such as `16k`, bytes.
fn bytes(size: &str) -> Option<u64> {
    let (digits, factor) = match size.as_bytes().last()? {
        b'k' | b'K' => (&size[..size.len() - 1], 1 << 10),
        b'm' | b'M' => (&size[..size.len() - 1], 1 << 20),
        _ => (size, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Servers without TLS that redirect to ones that do not ask clients to come by https at once.
pub(super) fn judge_redirects(tree: &Tree, servers: &[Server], report: &mut Report<'_>) {
    let asks = |server: &Server| {
        let fields = list(tree, server.id, "add_header");
        fields.iter().any(|id| {
            tree.arg(*id, 0)
                .eq_ignore_ascii_case("strict-transport-security")
        })
    };
    let with_tls: Vec<&Server> = servers.iter().filter(|server| server.has_tls()).collect();
    for server in servers {
        let Some(redirect) = redirect(tree, server) else {
            continue;
        };
        // The server of the same name is the one that is reached; without names any may be.
        let same = |other: &&&Server| other.names.iter().any(|name| server.names.contains(name));
        let named: Vec<&&Server> = with_tls.iter().filter(same).collect();
        let reached = if named.is_empty() {
            with_tls.iter().collect()
        } else {
            named
        };
        if !reached.is_empty() && !reached.iter().any(|other| asks(other)) {
            let title = "a redirect to https without Strict-Transport-Security there: each visit by http takes it again";
            report.add(REDIRECT, title, redirect);
        }
    }
}

/// The directive with which a server, or a location of it, redirects to https.
fn redirect(tree: &Tree, server: &Server) -> Option<Id> {
    if server.has_tls() && tree.within(server.id, "listen").count() == server.tls_listens.len() {
        return None;
    }
    server.blocks.iter().find_map(|block| {
        let returns = tree.within(*block, "return").filter(|id| {
            let args = tree.args(*id);
            let target = args.last().map_or("", |word| word.as_str());
            target.starts_with("https://")
        });
        let rewrites = tree
            .within(*block, "rewrite")
            .filter(|id| tree.arg(*id, 1).starts_with("https://"));
        returns.chain(rewrites).next()
    })
}

/// The most that a record holds.
const RECORD_BYTES: u64 = 16 << 10;

const VERSIONS: Rule = Rule {
    code: "handshake-round-trips",
    weight: Weight::Bad,
    mend: "ssl_protocols TLSv1.2 TLSv1.3; (the default)",
    round_trips: 1,
};
const EARLY_DATA: Rule = Rule {
    code: "no-early-data",
    weight: Weight::Note,
    mend: "ssl_early_data on; where requests may be replayed (RFC 8470)",
    round_trips: 1,
};
const RESUMPTION: Rule = Rule {
    code: "no-resumption",
    weight: Weight::Warn,
    mend: "ssl_session_cache shared:SSL:10m; or ssl_session_tickets on;",
    round_trips: 0,
};
const RECORDS: Rule = Rule {
    code: "tls-record-size",
    weight: Weight::Note,
    mend: "nginx: ssl_buffer_size 4k; firstbyte: no ssl_buffer_size",
    round_trips: 0,
};
const REDIRECT: Rule = Rule {
    code: "redirect-to-https-late",
    weight: Weight::Warn,
    mend: "add_header Strict-Transport-Security \"max-age=31536000\" always; in the server with TLS",
    round_trips: 1,
};
