//! Servers with the blocks in which their requests are answered.

use crate::tree::{Id, Tree};

/// A `server` of `http`.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) id: Id,
    /// The server itself and all locations in it, with their `if`s.
    pub(super) blocks: Vec<Id>,
    /// Its `listen`s for TLS over TCP.
    pub(super) tls_listens: Vec<Id>,
    pub(super) names: Vec<String>,
}

impl Server {
    pub(super) fn all(tree: &Tree) -> Vec<Self> {
        let servers = tree.http("server").filter(|id| {
            // A server of an upstream has no block.
            let parent = tree.parent(*id);
            parent.is_some_and(|parent| tree.name(parent) == "http")
        });
        servers.map(|id| Self::new(tree, id)).collect()
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
        let listens = tree.within(id, "listen").filter(|listen| {
            let words = tree.args(*listen);
            words.iter().any(|word| word.as_str() == "ssl")
                && !words.iter().any(|word| word.as_str() == "quic")
        });
        let names = tree
            .within(id, "server_name")
            .flat_map(|names| tree.args(names));
        Self {
            id,
            blocks,
            tls_listens: listens.collect(),
            names: names
                .map(|name| name.as_str().to_ascii_lowercase())
                .collect(),
        }
    }

    pub(super) fn has_tls(&self) -> bool {
        !self.tls_listens.is_empty()
    }

    /// Whether all its answers are made by a `return` of its own: it has no bodies.
    pub(super) fn only_returns(&self, tree: &Tree) -> bool {
        tree.within(self.id, "return").next().is_some()
    }

    /// The directive of this name that a block of the server has or inherits, and its first argument.
    pub(super) fn setting<'t>(tree: &'t Tree, block: Id, name: &str) -> Option<(Id, &'t str)> {
        let id = tree.inherited(block, name)?;
        Some((id, tree.arg(id, 0)))
    }

    /// The first argument that holds for the server itself, or nginx's default.
    pub(super) fn value<'t>(&self, tree: &'t Tree, name: &str, default: &'t str) -> &'t str {
        Self::setting(tree, self.id, name).map_or(default, |(_, value)| value)
    }

    /// The directive of this name for the server itself, else the server: where a finding about it is.
    pub(super) fn place(&self, tree: &Tree, name: &str) -> Id {
        tree.inherited(self.id, name).unwrap_or(self.id)
    }
}

/// The directives of a list such as `add_header` that hold in a block: those of the innermost level that has any.
pub(super) fn list(tree: &Tree, block: Id, name: &str) -> Vec<Id> {
    let levels = std::iter::once(block).chain(tree.parents(block));
    let mut all = Vec::new();
    for level in levels {
        all.extend(tree.within(level, name));
        // nginx 1.29.3 and firstbyte can join the lists of all levels.
        let joins = format!("{name}_inherit");
        let is_joined = Server::setting(tree, block, &joins).is_some_and(|(_, how)| how == "merge");
        if !all.is_empty() && !is_joined {
            break;
        }
    }
    all
}
