//! Stored responses removed by successful requests with unsafe methods: of the same URI, and of URIs that the response names.
//!
//! Source: RFC 9111 section 4.4. nginx removes none.

use firstbyte_tests::Server;
use firstbyte_tests::backend::{Backend, answer};
use firstbyte_tests::client::request;
use firstbyte_tests::peer;

use crate::cache_server::{MINUTE, cached, cached_with, fill, get};

/// A backend. `X-Lines` of a POST has the lines of its response, separated by '|'.
fn backend() -> Backend {
    Backend::answering(|r| match r.method() {
        "GET" => answer("200 OK", MINUTE, format!("<{}>", r.target())),
        _ => {
            let lines = r.header("X-Lines").unwrap_or_default().split('|');
            let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
            let status = r.header("X-Status").unwrap_or("201 Created");
            answer(status, &lines, "done")
        }
    })
}

#[track_caller]
fn post(server: &Server, path: &str, lines: &str, status: &str) {
    let fields = [format!("X-Lines: {lines}"), format!("X-Status: {status}")];
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let mut client = server.client();
    client.send(request("POST", path, &fields));
    assert_eq!(client.response().text(), "done");
}

/// Posts to `/dir/a` with these lines, and returns the status of the cache for another path afterwards.
#[track_caller]
fn after_post(server: &Server, path: &str, lines: &str, status: &str) -> &'static str {
    if server.get(path).header("X-Cache") != Some("HIT") {
        crate::cache_server::wait_for_stored(server, &format!("<{path}>"));
    }
    get(server, path, "HIT");
    post(server, "/dir/a", lines, status);
    match server.get(path).header("X-Cache") {
        Some("HIT") => "HIT",
        _ => "MISS",
    }
}

#[test]
fn an_unsafe_request_removes_the_response_of_its_uri() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = backend();
    let server = cached(&backend, "").start();
    fill(&server, "/dir/a");
    post(&server, "/dir/a", "", "500 Failed");
    get(&server, "/dir/a", "HIT");
    post(&server, "/dir/a", "", "200 OK");
    get(&server, "/dir/a", "MISS");
}

#[test]
fn an_unsafe_request_removes_responses_of_uris_that_it_names() {
    if !peer::is_firstbyte() {
        return;
    }
    for key in [
        "",
        "proxy_cache_key $scheme$proxy_host$request_uri;",
        "proxy_cache_key \"${host}$uri$is_args$args\";",
    ] {
        let backend = backend();
        let server = cached(&backend, key).start();
        for (path, lines) in [
            ("/b", "Location: /b"),
            ("/dir/c?d=e", "Content-Location: c?d=e"),
            ("/f", "Content-Location: http://localhost/f#g"),
            ("/h", "Location: /other|Content-Location: /h"),
            ("/%7Ei", "Location: /%7Ei"),
        ] {
            let found = after_post(&server, path, lines, "201 Created");
            assert_eq!(found, "MISS", "{key} {path}");
        }
        for (path, lines, status) in [
            ("/j", "Location: http://other.example/j", "201 Created"),
            ("/k", "Location: https://localhost/k", "201 Created"),
            ("/l", "Location: /l", "500 Failed"),
            ("/m", "Location: //localhost:8/m", "201 Created"),
            ("/n", "Location: /../n", "201 Created"),
            ("/o", "Link: </o>", "201 Created"),
        ] {
            let found = after_post(&server, path, lines, status);
            // Dots are resolved by the rules of references.
            let expected = if path == "/n" { "MISS" } else { "HIT" };
            assert_eq!(found, expected, "{key} {path}");
        }
    }
}

/// `proxy_redirect` makes the location of the server behind that of the client.
#[test]
fn a_location_counts_as_the_client_sees_it() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = backend();
    let server = cached(&backend, "").start();
    let location = format!("Location: http://{}/b", backend.name());
    let found = after_post(&server, "/b", &location, "201 Created");
    assert_eq!(found, "MISS");
    let content = format!("Content-Location: http://{}/c", backend.name());
    let found = after_post(&server, "/c", &content, "201 Created");
    // It is of another origin, and no directive rewrites it.
    assert_eq!(found, "HIT");
}

/// A key with other variables cannot be made for another URI.
#[test]
fn keys_of_other_variables_are_left_alone() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = backend();
    let http = "map $http_x_user $user { default $http_x_user; }";
    let server = cached_with(http, &backend, "proxy_cache_key $uri$user;").start();
    let found = after_post(&server, "/b", "Location: /b", "201 Created");
    assert_eq!(found, "HIT");
}

#[test]
fn the_rules_of_nginx_remove_nothing() {
    let rfc = if peer::is_firstbyte() {
        "proxy_cache_rfc off;"
    } else {
        ""
    };
    let backend = backend();
    let server = cached(&backend, rfc).start();
    fill(&server, "/dir/a");
    assert_eq!(
        after_post(&server, "/b", "Location: /b", "201 Created"),
        "HIT"
    );
    get(&server, "/dir/a", "HIT");
}
