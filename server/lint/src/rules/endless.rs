//! FB107: an expression with catastrophic backtracking on text that a client controls.

use crate::Warn;
use crate::regex::Loop;
use crate::tree::Tree;
use crate::uses;

pub(super) fn check(tree: &Tree, warn: &mut Warn<'_>) {
    for id in 0..tree.len() {
        for found in uses::of(tree, id) {
            let endless = found.regex().and_then(|regex| Loop::find(&regex));
            if endless.is_none() {
                continue;
            }
            let message = format!(
                "the expression \"{}\" can backtrack exponentially on text that does not match",
                String::from_utf8_lossy(&found.pattern)
            );
            let hint =
                "separate the repeated parts by a character they cannot match, as in (?:[^/]+/)*";
            match found.argument {
                Some(argument) => warn.word(id, argument, message, hint),
                None => warn.name(id, message, hint),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::in_http;

    #[test]
    fn expressions_are_judged_wherever_they_stand() {
        for text in [
            r"server { location ~ ^/(\w+\s?)*$ { root /a; } }",
            "server { rewrite ^/(a+)+$ /b last; }",
            "server { if ($http_user_agent ~* (x+x+)+y) { return 403; } }",
            "map $uri $a { default 0; ~^/(.*,)*x$ 1; }",
            "server { server_name ~^(a*)*$; }",
        ] {
            assert_eq!(in_http(text), ["FB107"], "{text}");
        }
        assert_eq!(
            in_http(r"server { location ~ ^/(?:[^/]+/)*$ { root /a; } }"),
            [""; 0]
        );
    }
}
