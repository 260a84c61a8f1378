//! FB301 to FB304: headers that are lost, broken or better not sent.

use crate::Warn;
use crate::rules::lost::losses;
use crate::tree::{Id, Tree};

/// FB301: one `add_header` in a block undoes all of the blocks around it.
pub(super) fn lost_fields(tree: &Tree, warn: &mut Warn<'_>) {
    for (name, inherit) in LISTS {
        for loss in losses(tree, name) {
            let chosen = tree.inherited(loss.block, inherit);
            if chosen.is_some_and(|chosen| tree.is_value(chosen, &["merge", "off"])) {
                continue;
            }
            let message = format!(
                "this \"{name}\" stops the inheritance of \"{}\" from {}",
                loss.names.join("\", \""),
                tree.place(loss.outer)
            );
            let merge = if inherit.is_empty() {
                String::new()
            } else {
                format!(", or write \"{inherit} merge;\"")
            };
            let hint = format!("repeat the directives here{merge}");
            warn.name(loss.at, message, hint);
        }
    }
}

/// FB302: a value with a line end in it.
pub(super) fn several_lines(tree: &Tree, warn: &mut Warn<'_>) {
    let names = [
        "add_header",
        "add_trailer",
        "proxy_set_header",
        "grpc_set_header",
        "more_set_headers",
        "more_set_input_headers",
    ];
    for id in tree.http_all(&names) {
        let broken = |index: &usize| tree.arg(id, *index).contains(['\n', '\r']);
        let Some(index) = values(tree, id).into_iter().find(broken) else {
            continue;
        };
        let message = "the header value contains a line end: it is sent broken or cut";
        warn.word(
            id,
            index,
            message,
            "write it on one line; \"set\" can build a long value from parts",
        );
    }
}

/// The arguments that have the values of headers.
fn values(tree: &Tree, id: Id) -> Vec<usize> {
    let count = tree.args(id).len();
    if !tree.name(id).starts_with("more_") {
        return (1..count.min(2)).collect();
    }
    // `-s 404 -t 'text/html text/plain'` have a list behind them, other options nothing.
    let lists = |index: usize| index > 0 && ["-s", "-t"].contains(&tree.arg(id, index - 1));
    (0..count)
        .filter(|index| !lists(*index) && !tree.arg(id, *index).starts_with('-'))
        .collect()
}

/// FB303: a second Content-Type in the response.
pub(super) fn content_type(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree.http("add_header") {
        if tree.arg(id, 0).eq_ignore_ascii_case("content-type") && !is_empty(tree, id) {
            let message = "\"add_header\" adds a second Content-Type to the response";
            warn.word(
                id,
                0,
                message,
                "set the type with \"types\" and \"default_type\"",
            );
        }
    }
}

/// Whether the block of a directive answers with 204, a response without content or type.
fn is_empty(tree: &Tree, id: Id) -> bool {
    let block = tree.parent(id);
    block.is_some_and(|block| {
        tree.within(block, "return")
            .any(|answer| tree.arg(answer, 0) == "204")
    })
}

/// FB304: `server_tokens on`.
pub(super) fn version(tree: &Tree, warn: &mut Warn<'_>) {
    for id in tree.http("server_tokens") {
        if tree.is_value(id, &["on", "build"]) {
            let message =
                "every response shows the server version, and so its known vulnerabilities";
            warn.word(id, 0, message, "write \"server_tokens off;\"");
        }
    }
}

/// Directives that are inherited only by levels without their own, and the directives that change this.
const LISTS: [(&str, &str); 4] = [
    ("add_header", "add_header_inherit"),
    ("add_trailer", "add_trailer_inherit"),
    ("proxy_set_header", ""),
    ("grpc_set_header", ""),
];

#[cfg(test)]
mod tests {
    use crate::testing::in_http;

    #[test]
    fn a_header_of_a_block_undoes_those_around_it() {
        for text in [
            "add_header A 1; server { location / { add_header B 1; } }",
            "server { add_header A 1; location / { location /b { add_header B 1; } } }",
            "add_header A 1; add_header B 1; server { add_header A 2; }",
            "proxy_set_header Host a; server { proxy_set_header X b; }",
        ] {
            assert_eq!(in_http(text), ["FB301"], "{text}");
        }
        for text in [
            "add_header A 1; server { location / { add_header a 1; add_header B 1; } }",
            "add_header A 1; server { location / { expires 1d; } }",
            "add_header A 1; add_header_inherit merge; server { add_header B 1; }",
            "add_header A 1; server { add_header B 1; add_header_inherit off; }",
            "server { add_header A 1; } server { add_header B 1; server_name b; }",
        ] {
            assert_eq!(in_http(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_line_end_in_a_value_is_found() {
        for text in [
            "add_header A 'b\n c';",
            r#"add_header A "b\nc";"#,
            "more_set_headers -t 'text/a text/b' 'A: b\n c';",
        ] {
            assert_eq!(in_http(text), ["FB302"], "{text}");
        }
        for text in [
            "add_header A\n b;",
            "more_set_headers -t 'text/a\n text/b' 'A: b';",
            "log_format a 'b\n c';",
        ] {
            assert_eq!(in_http(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_second_type_and_the_version_are_found() {
        assert_eq!(in_http("add_header content-TYPE a;"), ["FB303"]);
        let preflight = |status: &str| {
            in_http(&format!(
                "server {{ if ($a) {{ add_header Content-Type a; return {status}; }} }}"
            ))
        };
        assert_eq!(preflight("204"), [""; 0]);
        assert_eq!(preflight("200"), ["FB303"]);
        assert_eq!(in_http("server_tokens on;"), ["FB304"]);
        assert_eq!(in_http("server_tokens build;"), ["FB304"]);
        assert_eq!(in_http("server_tokens ON;"), ["FB304"]);
        assert_eq!(in_http("server_tokens off;"), [""; 0]);
    }
}
