//! Servers with the blocks in which their requests are answered.

use crate::listens::{Transport, is_catch_all_name, servers_of_http, transport};
use crate::rules::redirect;
use crate::tree::{Id, Tree, is_one_of};

/// A `server` of `http`.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) id: Id,
    /// The server itself and all locations in it, with their `if`s.
    pub(super) blocks: Vec<Id>,
    /// The blocks that answer with documents, not only with redirects or refusals.
    pub(super) content: Vec<Id>,
    /// Its `listen`s for TLS over TCP; empty if all handshakes are refused.
    pub(super) tls_listens: Vec<Id>,
    /// Whether requests come without TLS.
    pub(super) is_plain: bool,
    /// Its names in lower case, without catch-all names such as `_`.
    pub(super) names: Vec<String>,
}

impl Server {
    pub(super) fn all(tree: &Tree) -> Vec<Self> {
        servers_of_http(tree)
            .map(|id| Self::new(tree, id))
            .collect()
    }

    fn new(tree: &Tree, id: Id) -> Self {
        let mut blocks = vec![id];
        let mut next = 0;
        while let Some(block) = blocks.get(next).copied() {
            for name in ["location", "if", "limit_except"] {
                blocks.extend(tree.within(block, name));
            }
            next += 1;
        }
        let listens: Vec<Id> = tree.within(id, "listen").collect();
        let is = |wanted| move |listen: &Id| transport(tree, *listen) == wanted;
        let rejects = Self::is_set(tree, id, "ssl_reject_handshake", &["on"]);
        // Without a `listen` it is port 80.
        let is_plain = listens.is_empty() || listens.iter().any(is(Transport::Plain));
        let tls_listens = listens.iter().copied().filter(is(Transport::Tls));
        let names = tree
            .within(id, "server_name")
            .flat_map(|names| tree.args(names));
        Self {
            id,
            content: match is_plain || !rejects {
                true => content(tree, id, &blocks),
                false => Vec::new(),
            },
            blocks,
            tls_listens: tls_listens.filter(|_| !rejects).collect(),
            is_plain,
            names: names
                .map(|name| name.as_str().to_ascii_lowercase())
                .filter(|name| !is_catch_all_name(name))
                .collect(),
        }
    }

    pub(super) fn has_tls(&self) -> bool {
        !self.tls_listens.is_empty()
    }

    /// The directive of this name that a block of the server has or inherits, and its first argument.
    pub(super) fn setting<'t>(tree: &'t Tree, block: Id, name: &str) -> Option<(Id, &'t str)> {
        let id = tree.inherited(block, name)?;
        Some((id, tree.arg(id, 0)))
    }

    /// Whether a directive applies to a block with one of these values, in any case.
    pub(super) fn is_set(tree: &Tree, block: Id, name: &str, values: &[&str]) -> bool {
        Self::setting(tree, block, name).is_some_and(|(_, value)| is_one_of(value, values))
    }

    /// The first argument that applies to the server itself, or nginx's default.
    pub(super) fn value<'t>(&self, tree: &'t Tree, name: &str, default: &'t str) -> &'t str {
        Self::setting(tree, self.id, name).map_or(default, |(_, value)| value)
    }

    /// The place of a finding: the directive of this name that applies to the server, else the server.
    pub(super) fn place(&self, tree: &Tree, name: &str) -> Id {
        tree.inherited(self.id, name).unwrap_or(self.id)
    }
}

/// The blocks of a server that answer with documents.
fn content(tree: &Tree, server: Id, blocks: &[Id]) -> Vec<Id> {
    // A server runs its `return` before it looks for a location.
    if is_answered(tree, server) {
        return Vec::new();
    }
    let is_content = |block: &Id| match tree.name(*block) {
        "server" => !tree
            .within(server, "location")
            .any(|id| takes_all(tree, id)),
        "location" => !is_answered(tree, *block) && !is_for_authorities(tree, *block),
        _ => false,
    };
    blocks.iter().copied().filter(is_content).collect()
}

/// Whether a block redirects or refuses each of its requests.
fn is_answered(tree: &Tree, block: Id) -> bool {
    let redirects =
        |id| EVERY_PATH.contains(&tree.arg(id, 0)) && redirect::target(tree, id).is_some();
    let refuses = |id| tree.arg(id, 0) == "all";
    let lets_in = ["allow", "auth_basic", "auth_request"];
    tree.has(block, &["return"])
        || tree.within(block, "rewrite").any(redirects)
        || (tree.within(block, "deny").any(refuses) && !tree.has(block, &lets_in))
}

/// Returns whether a location gets all paths without another location.
fn takes_all(tree: &Tree, location: Id) -> bool {
    matches!(tree.args(location), [.., path] if path.as_str() == "/")
        && tree.arg(location, 0) != "="
}

/// Returns whether a location is for certificate authorities and not for visitors: ACME challenges (RFC 8555 section 8.3).
fn is_for_authorities(tree: &Tree, location: Id) -> bool {
    let path = tree.args(location).last();
    path.is_some_and(|path| path.as_str().contains("well-known/acme-challenge"))
}

/// The directives of a list such as `add_header` that apply to a block: those of the innermost level that has any.
pub(super) fn list(tree: &Tree, block: Id, name: &str) -> Vec<Id> {
    // nginx 1.29.3 and firstbyte can join the lists of all levels, or keep the outer ones away.
    let inherit = format!("{name}_inherit");
    let mut all = Vec::new();
    for level in std::iter::once(block).chain(tree.parents(block)) {
        let before = all.len();
        all.extend(tree.within(level, name));
        let is = |value| Server::is_set(tree, level, &inherit, &[value]);
        let ends = is("off") || (!is("merge") && all.len() > before);
        if ends {
            break;
        }
    }
    all
}

/// Expressions of `rewrite` that every path matches.
const EVERY_PATH: [&str; 9] = [
    "^", "/", ".*", "^.*$", "(.*)", "^(.*)", "^(.*)$", "^/(.*)", "^/(.*)$",
];
