//! FB101: line ends in headers from decoded variables.
//!
//! `%0a` in a URI is a line end in `$uri` and in captures of it. If such a value becomes a header, or the request line for
//! another server, the client can add lines.

use crate::tree::{Id, Tree};
use crate::value::brings;
use crate::{Warn, rules::redirect};

/// The argument that becomes part of a head, and a name for this part.
fn spliced(tree: &Tree, id: Id) -> Option<(usize, &'static str)> {
    match tree.name(id) {
        "return" | "rewrite" => Some((redirect::target(tree, id)?, "this redirect")),
        "proxy_pass" => Some((0, "the proxied request")),
        _ => Some((1, "this header")),
    }
}

pub(super) fn check(tree: &Tree, warn: &mut Warn<'_>) {
    let mut names = vec!["return", "rewrite", "proxy_pass"];
    names.extend(HEADERS);
    for id in tree.http_all(&names) {
        let Some((argument, what)) = spliced(tree, id) else {
            continue;
        };
        let Some(variable) = brings(tree, id, tree.arg(id, argument), LINE_END) else {
            continue;
        };
        let message = format!("a client can insert a line end into {what} through \"{variable}\"");
        let hint = match variable.as_str() {
            "$uri" | "$document_uri" => "use \"$request_uri\", which is not decoded".to_owned(),
            "$request_filename" => "do not send file paths".to_owned(),
            _ => format!(
                "exclude line ends in the expression that captures \"{variable}\": [^/\\s]+ instead of [^/]+"
            ),
        };
        warn.word(id, argument, message, hint);
    }
}

/// A line ends at a line feed, with or without a carriage return before it; `.` lets a carriage return through, which
/// ends no line by itself.
const LINE_END: &[u8] = b"\n";
const HEADERS: [&str; 4] = [
    "add_header",
    "add_trailer",
    "proxy_set_header",
    "grpc_set_header",
];

#[cfg(test)]
mod tests {
    use crate::testing::in_server;

    #[test]
    fn decoded_text_in_a_head_is_found() {
        for text in [
            "return 301 https://a$uri;",
            "return https://a$uri;",
            "rewrite ^ https://a$document_uri;",
            "rewrite ^/(?<p>[^x]*)$ /y/$p redirect;",
            "add_header X $uri;",
            "location ~ ^/a/([^/]+)$ { return 302 /b/$1; }",
            "set $a $uri; proxy_set_header X-A $a;",
        ] {
            assert_eq!(in_server(text), ["FB101"], "{text}");
        }
    }

    #[test]
    fn what_cannot_have_a_line_end_is_not() {
        for text in [
            "return 301 https://a$request_uri;",
            "return 200 $uri;",
            "return 404;",
            "rewrite ^/(.*)$ /b/$1 last;",
            "rewrite ^/([^x]*)$ /y/$1 redirect;",
            "rewrite ^ $uri last;",
            "location ~ ^/a/(.*)$ { return 302 /b/$1; }",
            r"location ~ ^/a/([^/\s]+)$ { return 302 /b/$1; }",
            "add_header X $http_x;",
        ] {
            assert_eq!(in_server(text), [""; 0], "{text}");
        }
    }
}
