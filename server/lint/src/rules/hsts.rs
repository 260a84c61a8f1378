//! FB305 and FB306: Strict-Transport-Security missing from error responses, or ignored by browsers.
//!
//! Source: RFC 6797, sections 7.2 and 8.1; nginx documentation, directive `add_header`.

use std::collections::HashSet;

use conf::Pos;

use crate::Warn;
use crate::listens::{Transport, transport};
use crate::rules::redirect::target;
use crate::tree::{Id, Tree};

fn headers(tree: &Tree) -> impl Iterator<Item = Id> {
    tree.http("add_header")
        .filter(|id| {
            tree.arg(*id, 0)
                .eq_ignore_ascii_case("strict-transport-security")
        })
        // An empty value sends no header.
        .filter(|id| !tree.arg(*id, 1).is_empty())
}

/// FB305: without `always` responses of errors lack the header.
pub(super) fn without_always(tree: &Tree, warn: &mut Warn<'_>) {
    for id in headers(tree) {
        let is_always = tree.args(id).get(2).is_some_and(|word| *word == "always");
        let redirects = tree.parent(id).is_some_and(|block| redirects(tree, block));
        if is_always || redirects {
            continue;
        }
        let message =
            "without \"always\", responses with a status of 400 or above lack this header";
        warn.word(id, 0, message, "write \"always\" after the value");
    }
}

/// Whether a block answers by redirects alone, which have the header also without `always`.
fn redirects(tree: &Tree, block: Id) -> bool {
    tree.name(block) != "http"
        && tree
            .within(block, "return")
            .any(|id| target(tree, id).is_some())
}

/// FB306: a server without TLS sends the header.
pub(super) fn over_plain(tree: &Tree, warn: &mut Warn<'_>) {
    let mut around = None;
    let place = |id: Id| {
        let Pos { file, line, column } = tree.directive(id).pos;
        (file, line, column)
    };
    let server_of = |id: &Id| Some((*id, tree.enclosing(*id, "server")?));
    let all: Vec<(Id, Id)> = headers(tree).filter_map(|id| server_of(&id)).collect();
    // A file of headers that servers with TLS include as well.
    let with_tls = all.iter().filter(|(_, server)| !is_plain(tree, *server));
    let shared: HashSet<_> = with_tls.map(|(id, _)| place(*id)).collect();
    for (id, server) in all {
        // Called last, since it reads all directives.
        let mut is_behind_proxy = || {
            let mut http = tree.parents(server);
            let is_around =
                || http.any(|level| has_sign(tree, level, &|id| tree.name(id) == "server"));
            *around.get_or_insert_with(is_around) || has_sign(tree, server, &|_| false)
        };
        if !is_plain(tree, server) || shared.contains(&place(id)) || is_behind_proxy() {
            continue;
        }
        let message = "this server has no TLS, and browsers ignore this header over plain HTTP";
        let hint = "send it over TLS only, and redirect plain HTTP to \"https://\"";
        warn.word(id, 0, message, hint);
    }
}

/// Whether a server listens on port 80 and has no TLS.
fn is_plain(tree: &Tree, server: Id) -> bool {
    let mut listens = tree.within(server, "listen").peekable();
    let is_port_80 = |listen: Id| {
        transport(tree, listen) == Transport::Plain
            && crate::listens::address(tree.arg(listen, 0)).ends_with(":80")
    };
    listens.peek().is_none() || listens.all(is_port_80)
}

/// Whether words in a block, without the blocks to skip, are signs of a proxy in front that ends TLS.
fn has_sign(tree: &Tree, block: Id, skips: &dyn Fn(Id) -> bool) -> bool {
    tree.node(block).children.iter().any(|id| {
        let directive = tree.directive(*id);
        let words = std::iter::once(&directive.name).chain(&directive.args);
        let mut words = words.map(|word| word.as_str().to_ascii_lowercase());
        let is_sign = words.any(|word| SIGNS.iter().any(|sign| word.contains(sign)));
        !skips(*id) && (is_sign || has_sign(tree, *id, skips))
    })
}

/// Words of configurations behind a proxy that ends TLS.
const SIGNS: [&str; 4] = [
    "x_forwarded_proto",
    "real_ip",
    "proxy_protocol",
    "cf_visitor",
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use conf::Memory;

    use crate::testing::{in_http, in_server};

    const STS: &str = "add_header Strict-Transport-Security max-age=31536000";

    #[test]
    fn a_header_that_errors_lack_is_found() {
        let tls = |text: &str| in_http(&format!("server {{ listen 443 ssl; {text} }}"));
        assert_eq!(tls(&format!("{STS};")), ["FB305"]);
        assert_eq!(tls("add_header strict-transport-SECURITY $a;"), ["FB305"]);
        assert_eq!(
            tls(&format!("{STS}; location / {{ return 301 /a; }}")),
            ["FB305"]
        );
        for text in [
            format!("{STS} always;"),
            format!("{STS}; return 301 https://a.example$request_uri;"),
            "add_header Strict-Transport-Security '';".to_owned(),
            "proxy_set_header Strict-Transport-Security a;".to_owned(),
        ] {
            assert_eq!(tls(&text), [""; 0], "{text}");
        }
        assert_eq!(
            in_http(&format!("{STS}; server {{ return 301 /a; }}")),
            ["FB305"]
        );
    }

    #[test]
    fn a_header_over_plain_http_is_found() {
        assert_eq!(in_server(&format!("{STS} always;")), ["FB306"]);
        let in_location = format!("location / {{ {STS} always; }}");
        assert_eq!(in_server(&in_location), ["FB306"]);
        assert_eq!(in_http(&format!("server {{ {STS} always; }}")), ["FB306"]);
        for listens in [
            "listen 443 ssl;",
            "listen 80; listen 443 ssl;",
            "listen 80; ssl on;",
            "listen 8080;",
        ] {
            let text = format!("server {{ {listens} {STS} always; }}");
            assert_eq!(in_http(&text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_file_that_servers_with_tls_include_is_not_judged() {
        let found = |other: &str| {
            let text =
                format!("http {{ server {{ include h; }} server {{ {other} include h; }} }}");
            let source = Memory::default()
                .with_file("/c", text)
                .with_file("/h", format!("{STS} always;"));
            let report = crate::check(source, Path::new("/c"), None).expect("it is whole");
            report.findings.iter().any(|one| one.rule.code == "FB306")
        };
        assert!(!found("listen 443 ssl;"));
        assert!(found("listen 80;"));
    }

    #[test]
    fn servers_behind_a_proxy_are_not_judged() {
        for sign in [
            "if ($http_x_forwarded_proto = http) { return 301 https://a$request_uri; }",
            "set_real_ip_from 10.0.0.0/8;",
            "location / { proxy_set_header X-Forwarded-Proto $http_x_forwarded_proto; }",
        ] {
            assert_eq!(
                in_server(&format!("{STS} always; {sign}")),
                [""; 0],
                "{sign}"
            );
        }
        let around = format!("real_ip_header X-Real-IP; server {{ {STS} always; }}");
        assert_eq!(in_http(&around), [""; 0]);
        // As in the format of logs that nginx is installed with.
        let logged = format!("log_format a $http_x_forwarded_for; server {{ {STS} always; }}");
        assert_eq!(in_http(&logged), ["FB306"]);
        let other =
            format!("server {{ {STS} always; }} server {{ set_real_ip_from ::1; listen 81; }}");
        assert_eq!(in_http(&other), ["FB306"]);
    }
}
