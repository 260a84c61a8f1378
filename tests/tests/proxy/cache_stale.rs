//! Stale responses: served if the server fails, during an update, and validated with 304.
//!
//! Each response is fresh for a second, the shortest time. Sources: nginx documentation, `proxy_cache_use_stale`,
//! `proxy_cache_background_update`, `proxy_cache_revalidate`; RFC 5861; RFC 9111 sections 4.2.4 and 4.3.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use firstbyte_tests::backend::{Backend, Gate, Step, answer};
use firstbyte_tests::received::Request;
use firstbyte_tests::{peer, wait_until};

use crate::cache_server::{
    SECOND, cached, fill, get, get_until, sent_on, status_of, wait_for_stored,
};

/// A failure of a server, with its word in `proxy_cache_use_stale`.
const FAILURES: [&str; 8] = [
    "off",
    "error",
    "timeout",
    "invalid_header",
    "http_500",
    "http_503",
    "http_404",
    "http_429",
];

/// A server behind that fails on request.
struct Failing {
    backend: Backend,
    /// Index in [`FAILURES`].
    failure: Arc<AtomicUsize>,
}

impl Failing {
    /// `lines` are those of its responses.
    fn new(lines: &'static [&'static str]) -> Self {
        let failure = Arc::new(AtomicUsize::new(0));
        let (of_script, count) = (Arc::clone(&failure), AtomicUsize::new(0));
        let backend = Backend::answering(move |r| {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            let body = format!("<{} {number}>", r.target());
            match FAILURES[of_script.load(Ordering::SeqCst)] {
                "off" => answer("200 OK", lines, body),
                "error" => vec![Step::Close],
                "timeout" => vec![Step::Hold],
                "invalid_header" => {
                    let head = b"HTTP/1.1 200 OK\r\nA\0: b\r\n\r\n";
                    vec![Step::Send(head.into()), Step::Close]
                }
                status => answer(&format!("{} Failed", &status[5..]), &[], "failed"),
            }
        });
        Self { backend, failure }
    }

    fn fail(&self, failure: &str) {
        let index = FAILURES.iter().position(|one| *one == failure);
        let index = index.expect("it is in the list");
        self.failure.store(index, Ordering::SeqCst);
    }
}

#[test]
fn a_stale_response_is_served_if_the_server_fails() {
    for failure in &FAILURES[1..] {
        let failing = Failing::new(SECOND);
        let directives = format!(
            "proxy_read_timeout 300ms; proxy_http_version 1.1; proxy_cache_use_stale {failure};"
        );
        let server = cached(&failing.backend, &directives).start();
        let first = fill(&server, "/a").text();
        failing.fail(failure);
        let stale = get_until(&server, "/a", "STALE");
        assert_eq!((stale.status, stale.text()), (200, first), "{failure}");
        failing.fail("off");
        let fresh = get_until(&server, "/a", "EXPIRED");
        assert_ne!(fresh.text(), stale.text());
        wait_for_stored(&server, &fresh.text());
    }
}

#[test]
fn failures_are_not_hidden_by_default() {
    for (failure, status) in [("error", 502), ("http_500", 500), ("http_404", 404)] {
        let failing = Failing::new(SECOND);
        let server = cached(&failing.backend, "").start();
        fill(&server, "/a");
        failing.fail(failure);
        assert_eq!(get_until(&server, "/a", "EXPIRED").status, status);
        // It has replaced nothing, and is not stored.
        assert_eq!(get(&server, "/a", "EXPIRED").status, status);
        failing.fail("off");
        assert_eq!(get(&server, "/a", "EXPIRED").status, 200);
    }
}

/// RFC 5861 section 4.
#[test]
fn a_response_itself_permits_its_use_after_an_error() {
    let failing = Failing::new(&["Cache-Control: max-age=1, stale-if-error=60"]);
    let server = cached(&failing.backend, "").start();
    let first = fill(&server, "/a").text();
    failing.fail("error");
    assert_eq!(get_until(&server, "/a", "STALE").text(), first);
    // An error is also a response with 500, 502, 503 or 504, except for nginx.
    failing.fail("http_500");
    let status = if peer::is_firstbyte() { 200 } else { 500 };
    assert_eq!(server.get("/a").status, status);
}

/// RFC 9111 section 5.2.2.2; nginx does not know the directive.
#[test]
fn a_response_with_must_revalidate_is_never_served_stale() {
    if !peer::is_firstbyte() {
        return;
    }
    let failing = Failing::new(&["Cache-Control: max-age=1, must-revalidate"]);
    let directives = "proxy_cache_use_stale error http_500 updating;";
    let server = cached(&failing.backend, directives).start();
    fill(&server, "/a");
    for failure in ["error", "http_500"] {
        failing.fail(failure);
        let answer = get_until(&server, "/a", "EXPIRED");
        assert!((500..600).contains(&answer.status), "{failure}: {answer:?}");
    }
}

/// A backend with a gate in front of its second and later responses.
fn gated(lines: &'static [&'static str]) -> (Backend, Gate) {
    let gate = Gate::default();
    let (of_script, count) = (gate.clone(), AtomicUsize::new(0));
    let backend = Backend::answering(move |r| {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        let mut steps = match number {
            1 => Vec::new(),
            _ => vec![Step::Gate(of_script.clone())],
        };
        steps.extend(answer(
            "200 OK",
            lines,
            format!("<{} {number}>", r.target()),
        ));
        steps
    });
    (backend, gate)
}

#[test]
fn a_stale_response_is_served_during_its_update() {
    let (backend, gate) = gated(SECOND);
    let server = cached(&backend, "proxy_cache_use_stale updating;").start();
    let first = fill(&server, "/a").text();
    let mut updating = sent_on(&server, &backend, "/a", 2);
    for _ in 0..3 {
        assert_eq!(get(&server, "/a", "UPDATING").text(), first);
    }
    assert_eq!(backend.request_count(), 2);
    gate.open();
    let answer = updating.response();
    assert_eq!(
        (status_of(&answer), answer.text().as_str()),
        ("EXPIRED", "</a 2>")
    );
    wait_for_stored(&server, "</a 2>");
}

/// With `updating`, or RFC 5861 section 3.
#[test]
fn an_update_in_the_background_delays_no_client() {
    let permitted = &["Cache-Control: max-age=1, stale-while-revalidate=60"];
    let cases: [(&'static [&'static str], &str); 2] =
        [(SECOND, "proxy_cache_use_stale updating;"), (permitted, "")];
    for (lines, directives) in cases {
        let (backend, gate) = gated(lines);
        let directives = format!("proxy_cache_background_update on; {directives}");
        let server = cached(&backend, &directives).start();
        let first = fill(&server, "/a").text();
        assert_eq!(get_until(&server, "/a", "STALE").text(), first);
        for _ in 0..3 {
            assert_eq!(get(&server, "/a", "UPDATING").text(), first);
        }
        wait_until("it is sent on", || backend.request_count() == 2);
        gate.open();
        wait_for_stored(&server, "</a 2>");
        assert_eq!(backend.request_count(), 2);
    }
}

/// A client that leaves does not end an update in the background.
#[test]
fn an_update_in_the_background_outlives_its_client() {
    let (backend, gate) = gated(SECOND);
    let directives = "proxy_cache_background_update on; proxy_cache_use_stale updating;";
    let server = cached(&backend, directives).start();
    fill(&server, "/a");
    // The connection of each request is closed behind its response.
    get_until(&server, "/a", "STALE");
    gate.open();
    wait_for_stored(&server, "</a 2>");
    assert_eq!(backend.request_count(), 2);
}

const VALIDATED: [&str; 3] = [
    "Cache-Control: max-age=1",
    "ETag: \"one\"",
    "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT",
];

/// A backend that answers conditional requests with 304.
fn validating() -> Backend {
    Backend::answering(|r| match r.header("If-None-Match") {
        Some("\"one\"") => {
            let head = "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\n\
                        ETag: \"one\"\r\nX-New: yes\r\n\r\n";
            vec![Step::Send(head.into())]
        }
        _ => answer("200 OK", &VALIDATED, format!("<{}>", r.target())),
    })
}

/// RFC 9111 section 4.3.4: the fields of the 304 replace those stored. nginx replaces times alone.
#[test]
fn a_stale_response_is_validated() {
    let backend = validating();
    let server = cached(&backend, "proxy_cache_revalidate on;").start();
    fill(&server, "/a");
    let validated = get_until(&server, "/a", "REVALIDATED");
    assert_eq!((validated.status, validated.text().as_str()), (200, "</a>"));
    let sent = backend.latest();
    assert_eq!(sent.header("If-None-Match"), Some("\"one\""));
    let date = "Mon, 01 Jan 2024 00:00:00 GMT";
    assert_eq!(sent.header("If-Modified-Since"), Some(date));
    let hit = get(&server, "/a", "HIT");
    assert_eq!((hit.status, hit.text().as_str()), (200, "</a>"));
    assert_eq!(hit.header("ETag"), Some("\"one\""));
    if peer::is_firstbyte() {
        assert_eq!(hit.header("X-New"), Some("yes"));
        assert_eq!(hit.header("Cache-Control"), Some("max-age=60"));
    }
    let count = backend.request_count();
    get(&server, "/a", "HIT");
    assert_eq!(backend.request_count(), count);
}

/// Fields of the client's own condition are not sent: the answer to them would be stored.
#[test]
fn conditions_of_a_client_are_answered_after_a_validation() {
    let backend = validating();
    let server = cached(&backend, "proxy_cache_revalidate on;").start();
    fill(&server, "/a");
    get_until(&server, "/a", "REVALIDATED");
    let lines = [
        "If-None-Match: \"other\"",
        "If-Modified-Since: Tue, 01 Jan 2030 00:00:00 GMT",
    ];
    let answer = server.client().get_with("/a", &lines);
    assert_eq!((answer.status, answer.text().as_str()), (200, "</a>"));
    let known = server.client().get_with("/a", &["If-None-Match: \"one\""]);
    assert_eq!((known.status, known.text().as_str()), (304, ""));
    let sent = backend.requests();
    let condition = |request: &Request| request.header("If-None-Match").map(str::to_owned);
    let conditions: Vec<_> = sent.iter().map(condition).collect();
    assert_eq!(conditions, [None, Some("\"one\"".to_owned())]);
}

/// RFC 9111 section 4.3.4: a 304 with another entity tag is not about the stored response. nginx takes it for that.
#[test]
fn a_304_of_another_response_confirms_nothing() {
    if !peer::is_firstbyte() {
        return;
    }
    for (tag, status, count) in [("\"two\"", "EXPIRED", 3), ("W/\"one\"", "REVALIDATED", 2)] {
        let backend = Backend::answering(move |r| match r.header("If-None-Match") {
            Some(_) => {
                let head = format!("HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n\r\n");
                vec![Step::Send(head.into_bytes())]
            }
            None => answer("200 OK", &VALIDATED, format!("<{}>", r.target())),
        });
        let server = cached(&backend, "proxy_http_version 1.1;").start();
        fill(&server, "/a");
        let answer = get_until(&server, "/a", status);
        assert_eq!((answer.status, answer.text().as_str()), (200, "</a>"));
        assert_eq!(backend.request_count(), count, "{tag}");
        let sent = backend.latest();
        let is_conditional = sent.header("If-Modified-Since").is_some();
        assert_eq!(is_conditional, count == 2, "{tag}");
    }
}

/// Each 304 is about another response: the client gets the one that was requested without conditions.
#[test]
fn a_server_that_always_sends_304_is_asked_twice() {
    if !peer::is_firstbyte() {
        return;
    }
    let count = AtomicUsize::new(0);
    let backend = Backend::answering(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 => answer("200 OK", &VALIDATED, "<a>"),
        _ => vec![Step::Send(
            b"HTTP/1.1 304 Not Modified\r\nETag: \"two\"\r\n\r\n".into(),
        )],
    });
    let server = cached(&backend, "proxy_http_version 1.1;").start();
    fill(&server, "/a");
    let answer = get_until(&server, "/a", "EXPIRED");
    assert_eq!((answer.status, backend.request_count()), (304, 3));
}
