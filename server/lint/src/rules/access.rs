//! FB401 to FB404: access rules that admit clients they seem to refuse.
//!
//! The rules of a level apply in order; the first match decides, and without a match access is granted. Rules of a
//! block replace those around it.

use std::collections::BTreeSet;

use crate::Warn;
use crate::tree::{Id, Tree};
use crate::value::from_client;

/// The blocks that have rules of their own.
fn blocks(tree: &Tree) -> BTreeSet<Id> {
    let rules = tree
        .everywhere("allow")
        .iter()
        .chain(tree.everywhere("deny"));
    rules.filter_map(|id| tree.parent(*id)).collect()
}

/// The rules of a block in their order.
fn rules(tree: &Tree, block: Id) -> Vec<Id> {
    let children = tree.node(block).children.iter().copied();
    children
        .filter(|id| ["allow", "deny"].contains(&tree.name(*id)))
        .collect()
}

fn is_all(tree: &Tree, id: Id) -> bool {
    tree.arg(id, 0) == "all"
}

/// FB401: `allow` without a `deny` after it refuses no client.
pub(super) fn allow_alone(tree: &Tree, warn: &mut Warn<'_>) {
    for block in blocks(tree) {
        let rules = rules(tree, block);
        let Some(last) = rules.last().copied() else {
            continue;
        };
        let decided = rules.iter().any(|id| is_all(tree, *id));
        if tree.name(last) == "allow" && !decided {
            let message = format!(
                "\"allow {}\" without \"deny all\" in the same block restricts nothing",
                tree.arg(last, 0)
            );
            warn.name(last, message, "write \"deny all;\" after it");
        }
    }
}

/// FB402: a rule after one that matches every client.
pub(super) fn unreachable(tree: &Tree, warn: &mut Warn<'_>) {
    for block in blocks(tree) {
        let rules = rules(tree, block);
        let decides = rules.iter().position(|id| is_all(tree, *id));
        let Some((first, behind)) = decides.and_then(|at| rules[at..].split_first()) else {
            continue;
        };
        for id in behind {
            let message = format!(
                "this rule is never reached: \"{} all\" in {} matches first",
                tree.name(*first),
                tree.place(*first)
            );
            warn.name(
                *id,
                message,
                "the first matching rule decides: put \"all\" last",
            );
        }
    }
}

/// Directives that act on a request only after `return` has answered it.
const CHECKS: [&str; 7] = [
    "allow",
    "deny",
    "auth_basic",
    "auth_request",
    "auth_jwt",
    "limit_req",
    "limit_conn",
];

/// FB403: `return` belongs to rewriting, which comes before access.
pub(super) fn return_first(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree.http("return") {
        let Some(block) = tree.parent(id) else {
            continue;
        };
        let code = tree.arg(id, 0);
        let refuses = code.len() == 3 && (code.starts_with('4') || code.starts_with('5'));
        if refuses || tree.name(block) == "if" {
            continue;
        }
        let children = tree.node(block).children.iter().copied();
        let mut checks = children.filter(|check| CHECKS.contains(&tree.name(*check)));
        if let Some(check) = checks.find(|check| {
            !["off", "all"].contains(&tree.arg(*check, 0)) || tree.name(*check) == "deny"
        }) {
            let message = format!(
                "\"return\" answers before \"{}\" in {} is checked",
                tree.name(check),
                tree.place(check)
            );
            warn.name(
                id,
                message,
                "serve a file with \"try_files\", or proxy to a server that returns this",
            );
        }
    }
}

/// FB404: if the client controls the name of the password file, a password of any file is accepted.
pub(super) fn user_file(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree.http("auth_basic_user_file") {
        let Some((name, _)) = from_client(tree, id, tree.arg(id, 0)) else {
            continue;
        };
        let message = format!("the client chooses the password file through \"{name}\"");
        let hint = "use \"$server_name\", which comes from the configuration";
        warn.word(id, 0, message, hint);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::in_server;

    #[test]
    fn rules_that_let_everybody_in_are_found() {
        for text in [
            "allow 10.0.0.0/8;",
            "deny 10.0.0.1; allow 10.0.0.0/8;",
            "deny all; location / { allow 10.0.0.1; }",
        ] {
            assert_eq!(in_server(text), ["FB401"], "{text}");
        }
        for text in [
            "allow 10.0.0.0/8; deny all;",
            "allow all;",
            "deny 10.0.0.1;",
            "deny 10.0.0.1; allow all;",
            "allow 10.0.0.1; deny 10.0.0.0/8;",
        ] {
            assert_eq!(in_server(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn rules_that_are_never_asked_are_found() {
        assert_eq!(in_server("deny all; allow 10.0.0.1;"), ["FB402"]);
        assert_eq!(
            in_server("allow all; deny 10.0.0.1; deny 10.0.0.2;"),
            ["FB402", "FB402"]
        );
    }

    #[test]
    fn a_return_that_comes_first_is_found() {
        for text in [
            "location / { allow 10.0.0.1; deny all; return 200 secret; }",
            "location / { deny all; return 200 secret; }",
            "location / { auth_basic a; return 301 /b; }",
            "location / { limit_req zone=a; return 204; }",
        ] {
            assert_eq!(in_server(text), ["FB403"], "{text}");
        }
        for text in [
            "location / { deny all; return 404; }",
            "location / { allow all; auth_basic off; return 200 a; }",
            "location / { deny 10.0.0.1; if ($a) { return 200 b; } }",
            "deny 10.0.0.1; location / { return 200 a; }",
        ] {
            assert_eq!(in_server(text), [""; 0], "{text}");
        }
    }
}
