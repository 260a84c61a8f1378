//! Purges by `proxy_cache_purge`: of one key, and of all keys with a prefix.
//!
//! nginx has the directive in its commercial version alone. Sources: nginx documentation, `proxy_cache_purge`; docs of
//! directives.

use firstbyte_tests::backend::{Backend, Gate, Step, answer};
use firstbyte_tests::client::request;
use firstbyte_tests::{Response, Server, peer, wait_until};

use crate::cache_server::{
    MINUTE, cached_with, files, fill, fill_with, get, get_with, is_stored, numbered,
    wait_for_stored,
};

/// Whether the server under test has purges.
fn can_purge() -> bool {
    peer::is_firstbyte()
}

/// A server that purges the key of a request with the method PURGE.
fn purging(backend: &Backend, directives: &str) -> Server {
    let method = "map $request_method $purges { PURGE 1; default 0; }";
    let directives =
        format!("proxy_cache_key $uri$is_args$args; proxy_cache_purge $purges; {directives}");
    cached_with(method, backend, &directives).start()
}

fn purge(server: &Server, path: &str) -> Response {
    let mut client = server.client();
    client.send(request("PURGE", path, &[])).response()
}

#[test]
fn a_purged_response_is_requested_again() {
    if !can_purge() {
        return;
    }
    let backend = numbered(MINUTE);
    let server = purging(&backend, "");
    fill(&server, "/a?b");
    fill(&server, "/a");
    assert_eq!(purge(&server, "/a").status, 204);
    wait_until("its file is removed", || !is_stored(&server, "</a 2>"));
    assert_eq!(fill(&server, "/a").text(), "</a 3>");
    assert_eq!(get(&server, "/a?b", "HIT").text(), "</a?b 1>");
    assert_eq!(backend.request_count(), 3, "no purge is sent to the server");
}

/// `memory=`: the file after a purge may have the inode number of the purged one, and be made in the same second.
#[test]
fn a_purged_copy_in_memory_is_not_served() {
    if !can_purge() {
        return;
    }
    let backend = numbered(MINUTE);
    let method = "map $request_method $purges { PURGE 1; default 0; }";
    let directives = "proxy_cache_key $uri; proxy_cache_purge $purges;";
    let mut server = cached_with(method, &backend, directives).written();
    server.rewrite_conf(|conf| conf.replace("keys_zone=one:1m", "keys_zone=one:1m memory=1m"));
    server.launch(false);
    for number in 1..=50 {
        let body = fill(&server, "/a").text();
        assert_eq!(body, format!("</a {number}>"));
        for _ in 0..4 {
            assert_eq!(get(&server, "/a", "HIT").text(), body);
        }
        assert_eq!(purge(&server, "/a").status, 204);
    }
}

#[test]
fn a_purge_reports_the_number_of_responses() {
    if !can_purge() {
        return;
    }
    let backend = numbered(MINUTE);
    let server = purging(&backend, "");
    let count = || {
        let answer = purge(&server, "/a");
        assert_eq!(answer.status, 204);
        answer.header("X-Purged-Entries").map(str::to_owned)
    };
    assert_eq!(count().as_deref(), Some("0"));
    fill(&server, "/a");
    assert_eq!(count().as_deref(), Some("1"));
    assert_eq!(count().as_deref(), Some("0"));
    assert_eq!(backend.request_count(), 1);
}

#[test]
fn a_key_that_ends_with_an_asterisk_is_a_prefix() {
    if !can_purge() {
        return;
    }
    let backend = numbered(MINUTE);
    let server = purging(&backend, "");
    let purged = ["/images/a", "/images/b?c", "/images/"];
    let others = ["/image", "/", "/other/images/a"];
    for path in purged.iter().chain(&others) {
        fill(&server, path);
    }
    assert_eq!(purge(&server, "/images/*").status, 204);
    for path in purged {
        get(&server, path, "MISS");
    }
    for path in others {
        get(&server, path, "HIT");
    }
    assert_eq!(purge(&server, "/*").status, 204);
    for path in others {
        get(&server, path, "MISS");
    }
}

/// A purge of everything also removes files, with the purger.
#[test]
fn the_purger_removes_files() {
    if !can_purge() {
        return;
    }
    let backend = numbered(MINUTE);
    let method = "map $request_method $purges { PURGE 1; default 0; }";
    let directives = "proxy_cache_key $uri; proxy_cache_purge $purges;";
    let server = cached_with(method, &backend, directives).written();
    server.rewrite_conf(|conf| conf.replace("keys_zone=one:1m", "keys_zone=one:1m purger=on"));
    let mut server = server;
    server.launch(false);
    for number in 0..20 {
        fill(&server, &format!("/a/{number}"));
    }
    fill(&server, "/b");
    assert_eq!(purge(&server, "/a/*").status, 204);
    wait_until("files are removed", || files(&server).len() == 1);
    get(&server, "/b", "HIT");
}

#[test]
fn all_variants_of_a_key_are_purged() {
    if !can_purge() {
        return;
    }
    let backend = Backend::answering(|r| {
        let language = r.header("Accept-Language").unwrap_or("none");
        let lines = &["Cache-Control: max-age=60", "Vary: Accept-Language"];
        answer("200 OK", lines, format!("<{language}>"))
    });
    let server = purging(&backend, "");
    let variants = [&["Accept-Language: de"][..], &["Accept-Language: fr"], &[]];
    for lines in variants {
        fill_with(&server, "/a", lines);
    }
    assert_eq!(purge(&server, "/a").status, 204);
    for lines in variants {
        get_with(&server, "/a", lines, "MISS");
    }
}

/// The response may have been changed before the purge.
#[test]
fn a_response_requested_before_a_purge_is_not_used_after_it() {
    if !can_purge() {
        return;
    }
    let gate = Gate::default();
    let of_script = gate.clone();
    let backend = Backend::answering(move |r| {
        let mut steps = match (r.target(), r.connection) {
            ("/a", 1) => vec![Step::Gate(of_script.clone())],
            _ => Vec::new(),
        };
        let body = format!("<{} {}>", r.target(), r.connection);
        steps.extend(answer("200 OK", MINUTE, body));
        steps
    });
    let server = purging(&backend, "");
    let mut first = server.client();
    first.send(request("GET", "/a", &[]));
    wait_until("it is sent", || backend.request_count() == 1);
    // Nothing is stored so far, so it may be found or not.
    assert!([204, 404].contains(&purge(&server, "/a").status));
    gate.open();
    assert_eq!(first.response().text(), "</a 1>");
    fill(&server, "/later");
    let answer = server.get("/a");
    assert_ne!(answer.text(), "</a 1>");
    wait_for_stored(&server, &answer.text());
}

/// A purge is a request like another one for access rules.
#[test]
fn a_purge_can_be_denied() {
    if !can_purge() {
        return;
    }
    let backend = numbered(MINUTE);
    let directives = "limit_except GET { deny all; }";
    let server = purging(&backend, directives);
    fill(&server, "/a");
    assert_eq!(purge(&server, "/a").status, 403);
    get(&server, "/a", "HIT");
}
