//! Parts of stored responses: HEAD, ranges and conditions, answered without the server.
//!
//! Sources: RFC 9110 sections 9.3.2, 13 and 14; RFC 9111 section 4; nginx documentation, `proxy_cache_convert_head`,
//! `proxy_cache_max_range_offset`.

use firstbyte_tests::backend::{Backend, Step, answer};
use firstbyte_tests::client::request;
use firstbyte_tests::{H2Client, Response, Server, peer, wait_until};

use crate::cache_server::{
    MINUTE, cached, files, fill, get, get_with, numbered, status_of, wait_for_stored,
};

const LINES: [&str; 4] = [
    "Cache-Control: max-age=60",
    "ETag: \"one\"",
    "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT",
    "Accept-Ranges: bytes",
];
const BODY: &str = "0123456789";

/// A backend that answers HEAD without a body, and knows no ranges.
fn backend() -> Backend {
    Backend::answering(|r| {
        let mut steps = answer("200 OK", &LINES, BODY);
        if let ("HEAD", [Step::Send(bytes)]) = (r.method(), &mut steps[..]) {
            bytes.truncate(bytes.len() - BODY.len());
        }
        steps
    })
}

#[track_caller]
fn head(server: &Server, path: &str, status: &str) -> Response {
    let answer = server.client().head(path);
    assert_eq!(status_of(&answer), status, "{answer:?}");
    assert_eq!(answer.header("Content-Length"), Some("10"));
    answer
}

/// The server gets a GET, so that the stored response has a body.
#[test]
fn a_head_request_is_sent_as_get() {
    let backend = backend();
    let server = cached(&backend, "").start();
    head(&server, "/a", "MISS");
    assert_eq!(backend.latest().method(), "GET");
    wait_for_stored(&server, BODY);
    head(&server, "/a", "HIT");
    assert_eq!(get(&server, "/a", "HIT").text(), BODY);
    assert_eq!(backend.request_count(), 1);
    let mut client = H2Client::connect(server.port());
    let reply = client.fetch("/a");
    assert_eq!(
        (reply.status, reply.body.as_slice()),
        (200, BODY.as_bytes())
    );
}

/// With the method in the key, as the documentation requires.
#[test]
fn a_head_request_is_sent_as_head_if_configured() {
    let backend = backend();
    let directives = "proxy_cache_convert_head off; proxy_cache_key $request_method$uri;";
    let server = cached(&backend, directives).start();
    head(&server, "/a", "MISS");
    assert_eq!(backend.latest().method(), "HEAD");
    assert_eq!(fill(&server, "/a").text(), BODY);
    assert_eq!(get(&server, "/a", "HIT").text(), BODY);
}

/// RFC 9111 section 3: a response to HEAD has no body to store. nginx needs the method in the key.
#[test]
fn a_response_to_head_never_answers_a_get() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = backend();
    let server = cached(&backend, "proxy_cache_convert_head off;").start();
    head(&server, "/a", "MISS");
    fill(&server, "/later");
    let answer = server.get("/a");
    assert_eq!((answer.status, answer.text().as_str()), (200, BODY));
}

#[test]
fn ranges_are_taken_from_a_stored_response() {
    let backend = backend();
    let server = cached(&backend, "").start();
    // The first request has a range, too: the server gets none, and the whole response is stored.
    let first = server.client().get_with("/a", &["Range: bytes=2-4"]);
    assert_eq!(status_of(&first), "MISS");
    assert_eq!(backend.latest().header("Range"), None);
    wait_for_stored(&server, BODY);
    for (range, part, span) in [
        ("bytes=0-0", "0", "bytes 0-0/10"),
        ("bytes=2-4", "234", "bytes 2-4/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=5-99", "56789", "bytes 5-9/10"),
    ] {
        let line = format!("Range: {range}");
        let hit = get_with(&server, "/a", &[&line], "HIT");
        assert_eq!((hit.status, hit.text().as_str()), (206, part), "{range}");
        assert_eq!(hit.header("Content-Range"), Some(span));
    }
    let parts = get_with(&server, "/a", &["Range: bytes=0-1,8-9"], "HIT");
    assert_eq!(parts.status, 206);
    let kind = parts.header("Content-Type").unwrap_or_default();
    assert!(kind.starts_with("multipart/byteranges"), "{kind}");
    let beyond = get_with(&server, "/a", &["Range: bytes=10-"], "HIT");
    assert_eq!(beyond.status, 416);
    assert_eq!(beyond.header("Content-Range"), Some("bytes */10"));
    for (if_range, status) in [("\"one\"", 206), ("\"two\"", 200)] {
        let line = format!("If-Range: {if_range}");
        let hit = get_with(&server, "/a", &["Range: bytes=0-1", &line], "HIT");
        assert_eq!(hit.status, status, "{if_range}");
    }
    assert_eq!(backend.request_count(), 1);
}

/// A range behind the limit is requested from the server, and its response is not stored.
#[test]
fn a_range_behind_the_limit_is_sent_to_the_server() {
    let backend = backend();
    let server = cached(&backend, "proxy_cache_max_range_offset 5;").start();
    for range in ["bytes=6-7", "bytes=5-7"] {
        server
            .client()
            .get_with("/a", &[&format!("Range: {range}")]);
        assert_eq!(backend.latest().header("Range"), Some(range));
    }
    let lines = ["Range: bytes=4-7"];
    server.client().get_with("/a", &lines);
    assert_eq!(backend.latest().header("Range"), None);
    wait_for_stored(&server, BODY);
    let hit = get_with(&server, "/a", &lines, "HIT");
    assert_eq!((hit.status, hit.text().as_str()), (206, "4567"));
}

/// RFC 9110 section 13.2.2: the entity tag decides alone if there is one.
#[test]
fn conditions_are_answered_from_a_stored_response() {
    let backend = backend();
    let server = cached(&backend, "").start();
    fill(&server, "/a");
    let (same, later, earlier) = (
        "If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT",
        "If-Unmodified-Since: Tue, 02 Jan 2024 00:00:00 GMT",
        "If-Unmodified-Since: Sun, 31 Dec 2023 00:00:00 GMT",
    );
    for (lines, status) in [
        (&["If-None-Match: \"one\""][..], 304),
        (&["If-None-Match: W/\"one\""], 304),
        (&["If-None-Match: \"x\", \"one\""], 304),
        (&["If-None-Match: *"], 304),
        (&["If-None-Match: \"two\""], 200),
        (&[same], 304),
        (&["If-None-Match: \"two\"", same], 200),
        (&["If-Match: \"one\""], 200),
        // Conditions for the server alone are ignored (RFC 9111 section 4.3.2).
        (&["If-Match: \"two\""], 200),
        (&[later], 200),
        (&[earlier], 200),
    ] {
        let hit = get_with(&server, "/a", lines, "HIT");
        assert_eq!(hit.status, status, "{lines:?}");
        if status == 304 {
            assert_eq!(hit.header("ETag"), Some("\"one\""));
            assert_eq!(hit.text(), "");
        }
    }
    assert_eq!(backend.request_count(), 1);
}

/// The condition of the first request is not sent either: the server's 304 could not be stored.
#[test]
fn a_conditional_request_fills_the_cache() {
    let backend = backend();
    let server = cached(&backend, "").start();
    let mut client = server.client();
    client.send(request("GET", "/a", &["If-None-Match: \"one\""]));
    assert_eq!(client.response().status, 304);
    assert_eq!(backend.latest().header("If-None-Match"), None);
    wait_for_stored(&server, BODY);
    assert_eq!(get(&server, "/a", "HIT").text(), BODY);
}

/// `memory=`: the second hit and later ones are copies in memory, which follow the file.
#[test]
fn hits_from_memory_follow_their_file() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = numbered(MINUTE);
    let server = cached(&backend, "proxy_cache_purge $arg_purge;").written();
    server.rewrite_conf(|conf| conf.replace("keys_zone=one:1m", "keys_zone=one:1m memory=1m"));
    let mut server = server;
    server.launch(false);
    let first = fill(&server, "/a").text();
    for _ in 0..5 {
        let hit = get(&server, "/a", "HIT");
        assert_eq!(hit.text(), first);
        assert_eq!(hit.header("Content-Length"), Some("6"));
    }
    let range = get_with(&server, "/a", &["Range: bytes=1-2"], "HIT");
    assert_eq!((range.status, range.text().as_str()), (206, "/a"));
    // A file without its end is not served, nor is its copy after a second.
    let file = &files(&server)[0];
    let whole = std::fs::read(file).expect("it can be read");
    std::fs::write(file, &whole[..whole.len() - 1]).expect("it can be written");
    wait_until("the copy is dropped", || {
        status_of(&server.get("/a")) != "HIT"
    });
    get(&server, "/a", "HIT");
}

/// Conditions of the client are about the page, and not about a stored part of it.
#[test]
fn a_part_of_a_page_is_not_answered_by_conditions() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = backend();
    let pass = backend.name();
    let server = Server::http_with(
        "",
        &format!(
            "proxy_cache_path %%DIR%%/cache keys_zone=one:1m;
             server {{ listen 127.0.0.1:%%PORT%%; ssi on; root html; default_type text/html;
                 location /part {{ proxy_pass http://{pass}; proxy_cache one; }} }}"
        ),
    )
    .file("html/page.html", "(<!--# include virtual=\"/part\" -->)")
    .start();
    for _ in 0..3 {
        let lines = ["If-None-Match: \"one\"", "Range: bytes=1-2"];
        let answer = server.client().get_with("/page.html", &lines);
        assert_eq!((answer.status, answer.text()), (200, format!("({BODY})")));
    }
}
