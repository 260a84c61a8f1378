//! `Cache-Status`: the part of the cache in stored, forwarded and validated responses.
//!
//! Source: RFC 9211.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use firstbyte_tests::backend::{Backend, Gate, Step, answer};
use firstbyte_tests::client::request;
use firstbyte_tests::{Response, Server, peer, wait_until};

use crate::cache_server::{MINUTE, cached, fill, get, get_until, status_of, wait_for_stored};

const ON: &str = "proxy_cache_status on; proxy_http_version 1.1;";

/// Returns the reports in a response, without the seconds of `ttl`.
#[track_caller]
fn report(answer: &Response) -> String {
    let reports = answer.header_values("Cache-Status").join(", ");
    let (before, ttl) = reports.split_once("; ttl=").unwrap_or((&reports, ""));
    let seconds = ttl.bytes().take_while(|byte| b"-0123456789".contains(byte));
    let rest = &ttl[seconds.count()..];
    let mark = if ttl.is_empty() { "" } else { "; ttl" };
    format!("{before}{mark}{rest}")
}

/// Sends a request, and returns the report in its response.
#[track_caller]
fn report_of(server: &Server, method: &str, path: &str, lines: &[&str]) -> String {
    let mut client = server.client();
    client.send(request(method, path, lines));
    report(&client.response())
}

/// nginx has no such directive.
fn is_known() -> bool {
    peer::is_firstbyte()
}

#[test]
fn a_stored_response_is_a_hit() {
    if !is_known() {
        return;
    }
    let backend = Backend::answering(|_| answer("200 OK", MINUTE, "<a>"));
    let server = cached(&backend, ON).start();
    let first = fill(&server, "/a");
    let expected = "firstbyte; fwd=uri-miss; fwd-status=200; stored; ttl";
    assert_eq!(report(&first), expected);
    assert_eq!(report(&get(&server, "/a", "HIT")), "firstbyte; hit; ttl");
}

#[test]
fn a_forwarded_request_has_its_reason() {
    if !is_known() {
        return;
    }
    let backend = Backend::answering(|r| match r.target() {
        "/vary" => answer("200 OK", &["Cache-Control: max-age=60", "Vary: X"], "<v>"),
        "/private" => answer("200 OK", &["Cache-Control: private"], "<p>"),
        "/far" => answer("200 OK", &["Cache-Status: Origin; hit", MINUTE[0]], "<f>"),
        target => answer("200 OK", MINUTE, format!("<{target}>")),
    });
    let directives = format!("{ON} proxy_cache_bypass $arg_pass;");
    let server = cached(&backend, &directives).start();
    fill(&server, "/a");
    let fill_vary = server.client().get_with("/vary", &["X: 1"]);
    assert_eq!(status_of(&fill_vary), "MISS");
    wait_for_stored(&server, "<v>");
    for (method, path, line, expected) in [
        ("OPTIONS", "/a", "A: b", "fwd=method; fwd-status=200"),
        ("POST", "/b", "A: b", "fwd=method; fwd-status=200"),
        (
            "GET",
            "/a?pass=1",
            "A: b",
            "fwd=bypass; fwd-status=200; stored; ttl",
        ),
        (
            "GET",
            "/vary",
            "X: 2",
            "fwd=vary-miss; fwd-status=200; stored; ttl",
        ),
        (
            "GET",
            "/private",
            "A: b",
            "fwd=uri-miss; fwd-status=200; detail=private",
        ),
        (
            "GET",
            "/a",
            "Cache-Control: no-cache",
            "fwd=request; fwd-status=200; stored; ttl",
        ),
    ] {
        let found = report_of(&server, method, path, &[line]);
        assert_eq!(found, format!("firstbyte; {expected}"), "{method} {path}");
    }
    // The report of a cache nearer to the server is the first one.
    let expected = "Origin; hit, firstbyte; fwd=uri-miss; fwd-status=200; stored; ttl";
    assert_eq!(report_of(&server, "GET", "/far", &[]), expected);
}

#[test]
fn a_validation_has_the_status_of_the_server() {
    if !is_known() {
        return;
    }
    let backend = Backend::answering(|r| match r.header("If-None-Match") {
        Some(_) => vec![Step::Send(b"HTTP/1.1 304 Not Modified\r\n\r\n".into())],
        None => answer(
            "200 OK",
            &["Cache-Control: max-age=1", "ETag: \"a\""],
            "<a>",
        ),
    });
    let server = cached(&backend, ON).start();
    fill(&server, "/a");
    let validated = get_until(&server, "/a", "REVALIDATED");
    let expected = "firstbyte; fwd=stale; fwd-status=304; ttl";
    assert_eq!(
        (report(&validated).as_str(), validated.status),
        (expected, 200)
    );
}

#[test]
fn a_stale_response_after_an_error_has_the_status_of_the_error() {
    if !is_known() {
        return;
    }
    let count = AtomicUsize::new(0);
    let backend = Backend::answering(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 => answer("200 OK", &["Cache-Control: max-age=1"], "<a>"),
        _ => answer("503 Unavailable", &[], ""),
    });
    let directives = format!("{ON} proxy_cache_use_stale http_503;");
    let server = cached(&backend, &directives).start();
    fill(&server, "/a");
    let stale = get_until(&server, "/a", "STALE");
    assert_eq!(report(&stale), "firstbyte; fwd=stale; fwd-status=503; ttl");
}

#[test]
fn a_request_that_waits_for_another_one_is_collapsed() {
    if !is_known() {
        return;
    }
    let gate = Gate::default();
    let of_script = gate.clone();
    let backend = Backend::answering(move |_| {
        let mut steps = vec![Step::Gate(of_script.clone())];
        steps.extend(answer("200 OK", MINUTE, "<a>"));
        steps
    });
    let server = cached(&backend, &format!("{ON} proxy_cache_lock on;")).start();
    let mut first = server.client();
    first.send(request("GET", "/a", &[]));
    wait_until("it is sent on", || backend.request_count() == 1);
    let mut second = server.client();
    second.send(request("GET", "/a", &[]));
    assert!(!second.has_bytes_within(Duration::from_millis(50)));
    gate.open();
    let expected = "firstbyte; fwd=uri-miss; fwd-status=200; stored; ttl";
    assert_eq!(report(&first.response()), expected);
    let expected = "firstbyte; fwd=uri-miss; collapsed; ttl";
    assert_eq!(report(&second.response()), expected);
    assert_eq!(backend.request_count(), 1);
}

#[test]
fn reports_are_off_by_default() {
    let backend = Backend::answering(|_| answer("200 OK", MINUTE, "<a>"));
    let server = cached(&backend, "").start();
    assert_eq!(fill(&server, "/a").header("Cache-Status"), None);
    assert_eq!(get(&server, "/a", "HIT").header("Cache-Status"), None);
}
