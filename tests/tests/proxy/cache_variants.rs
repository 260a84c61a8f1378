//! Variants of one URI: selecting fields of the same meaning share a stored response.
//!
//! Source: RFC 9111 section 4.1. nginx compares the text, but for spaces in lists.

use firstbyte_tests::backend::{Backend, answer};
use firstbyte_tests::{Server, peer, wait_until};

use crate::cache_server::{cached, fill_with, get_with, wait_for_stored};

/// A backend. Its responses vary by a field, have its value, and are fresh for this many seconds.
fn backend(field: &'static str, seconds: u32) -> Backend {
    Backend::answering(move |r| {
        let lines = [
            format!("Vary: {field}"),
            format!("Cache-Control: max-age={seconds}, stale-while-revalidate=60"),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        answer(
            "200 OK",
            &lines,
            format!("<{}>", r.header(field).unwrap_or_default()),
        )
    })
}

/// Sends a request with a value of the field, and asserts the status of the cache and the response.
#[track_caller]
fn assert_response(server: &Server, line: &str, status: &str, body: &str) {
    let answer = get_with(server, "/a", &[line], status);
    assert_eq!(answer.text(), body, "{line}");
}

#[test]
fn fields_of_one_meaning_select_one_response() {
    if !peer::is_firstbyte() {
        return;
    }
    for (field, one, same, other) in [
        ("Accept-Language", "en, de", "EN,de;q=1.0", "de, en"),
        ("Accept-Encoding", "gzip, br", "br;q=0.5, gzip", "gzip"),
        ("X-Foo", "1,2", " 1, 2 ", "1"),
    ] {
        let backend = backend(field, 60);
        let server = cached(&backend, "").start();
        let line = |value: &str| format!("{field}: {value}");
        // The second variant has a file of its own name, the first one that of the key.
        for (stored, same) in [("first", "first"), (one, same)] {
            let body = fill_with(&server, "/a", &[&line(stored)]).text();
            assert_response(&server, &line(stored), "HIT", &body);
            assert_response(&server, &line(same), "HIT", &body);
        }
        let count = backend.request_count();
        assert_eq!(count, 2, "{field}");
        let body = fill_with(&server, "/a", &[&line(other)]).text();
        assert_eq!(body, format!("<{other}>"));
    }
}

/// The first variant has the file of the key.
#[test]
fn the_first_variant_is_found_by_its_meaning() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = backend("Accept-Language", 60);
    let server = cached(&backend, "").start();
    let body = fill_with(&server, "/a", &["Accept-Language: en"]).text();
    assert_response(&server, "Accept-Language: EN", "HIT", &body);
    // The text counts if it has a response of its own.
    let own = "Accept-Language: EN;q=0.5";
    let body = fill_with(&server, "/a", &[own]).text();
    assert_response(&server, own, "HIT", &body);
}

#[test]
fn a_response_of_the_same_meaning_is_updated_in_the_background() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = backend("Accept-Language", 1);
    let server = cached(&backend, "").start();
    fill_with(&server, "/a", &["Accept-Language: fr"]);
    let body = fill_with(&server, "/a", &["Accept-Language: en"]).text();
    wait_until("it is stale", || {
        let answer = server.client().get_with("/a", &["Accept-Language: EN"]);
        assert_eq!(answer.text(), body);
        answer.header("X-Cache") == Some("STALE")
    });
    wait_for_stored(&server, "<EN>");
    assert!(!server.error_log().contains("another variant"));
}

#[test]
fn the_rules_of_nginx_compare_text() {
    let rfc = if peer::is_firstbyte() {
        "proxy_cache_rfc off;"
    } else {
        ""
    };
    let backend = backend("Accept-Language", 60);
    let server = cached(&backend, rfc).start();
    fill_with(&server, "/a", &["Accept-Language: en"]);
    let answer = get_with(&server, "/a", &["Accept-Language: EN"], "MISS");
    assert_eq!(answer.text(), "<EN>");
}
