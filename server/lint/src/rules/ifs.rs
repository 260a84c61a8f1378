//! FB501 and FB502: `if` in a location is a location of its own, with settings of its own.
//!
//! If several conditions hold, the settings of the last one count. Settings that a location does not inherit are lost.

use crate::Warn;
use crate::tree::{Id, Tree};

fn in_location(tree: &Tree, id: Id) -> Option<Id> {
    tree.parent(id)
        .filter(|parent| tree.name(*parent) == "location")
}

/// FB501
pub(super) fn settings(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree
        .http("if")
        .filter(|id| in_location(tree, *id).is_some())
    {
        if answers(tree, id) {
            continue;
        }
        let mut children = tree.node(id).children.iter().copied();
        let Some(setting) = children.find(|child| !REWRITING.contains(&tree.name(*child))) else {
            continue;
        };
        let message = format!(
            "\"{}\" in \"if\": if several conditions hold, only the settings of the last \"if\" apply",
            tree.name(setting)
        );
        let hint = "choose the value with a \"map\", or rewrite to another location";
        warn.name(setting, message, hint);
    }
}

/// FB502
pub(super) fn try_files(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree.http("if") {
        let Some(location) = in_location(tree, id) else {
            continue;
        };
        if tree.has(location, &["try_files"]) && !leaves(tree, id) {
            let message = "if this condition holds, \"try_files\" of the location has no effect";
            let hint = "set the variable with a \"map\", or end the \"if\" with \"return\" or \"rewrite ... last\"";
            warn.name(id, message, hint);
        }
    }
}

/// Whether the block sends the request elsewhere in any case.
fn leaves(tree: &Tree, block: Id) -> bool {
    let children = tree.node(block).children.iter().copied();
    children.into_iter().any(|id| match tree.name(id) {
        "return" => true,
        "rewrite" => {
            let elsewhere = ["last", "redirect", "permanent"].contains(&tree.arg(id, 2));
            elsewhere || super::redirect::target(tree, id).is_some()
        }
        _ => false,
    })
}

/// Whether the block answers the request itself, as for the preflight of CORS. No later condition is tested then, so the
/// settings of this block count.
fn answers(tree: &Tree, block: Id) -> bool {
    tree.has(block, &["return"])
}

/// Directives that only change the request, and so work in `if` as outside of it.
const REWRITING: [&str; 7] = [
    "return",
    "rewrite",
    "set",
    "break",
    "rewrite_log",
    "uninitialized_variable_warn",
    "include",
];

#[cfg(test)]
mod tests {
    use crate::testing::in_server;

    #[test]
    fn settings_in_an_if_are_found() {
        let text = "location / { if ($a) { add_header A 1; } if ($b) { set $c 1; expires 1d; } }";
        assert_eq!(in_server(text), ["FB501", "FB501"]);
        for text in [
            "location / { if ($a) { set $b 1; break; } if ($c) { return 403; } if ($d) { rewrite ^ /e last; } }",
            "if ($a) { return 403; }",
        ] {
            assert_eq!(in_server(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn settings_of_an_if_that_answers_count() {
        for body in [
            "add_header Access-Control-Allow-Origin *; return 204;",
            "access_log off; return 444;",
            "return 204; add_header A 1;",
        ] {
            let text = format!("location / {{ if ($request_method = OPTIONS) {{ {body} }} }}");
            assert_eq!(in_server(&text), [""; 0], "{body}");
        }
        for body in [
            "add_header A 1; rewrite ^ /b permanent;",
            "add_header A 1; break;",
        ] {
            let text = format!("location / {{ if ($request_method = OPTIONS) {{ {body} }} }}");
            assert_eq!(in_server(&text), ["FB501"], "{body}");
        }
    }

    #[test]
    fn an_if_beside_try_files_is_found() {
        for body in ["set $b 1;", "", "rewrite ^ /b break;"] {
            let text = format!("location / {{ if ($a) {{ {body} }} try_files $uri =404; }}");
            assert_eq!(in_server(&text), ["FB502"], "{text}");
        }
        for body in [
            "return 403;",
            "rewrite ^ /b last;",
            "rewrite ^ https://a.example/;",
        ] {
            let text = format!("location / {{ if ($a) {{ {body} }} try_files $uri =404; }}");
            assert_eq!(in_server(&text), [""; 0], "{text}");
        }
    }
}
