//! `If-Modified-Since`, `If-Unmodified-Since`, `If-Match`, `If-None-Match`, `If-Range`, ETags.
//!
//! Sources: RFC 9110 section 13, nginx's documentation of `if_modified_since` and `etag`.

use std::fs::File;
use std::time::{Duration, UNIX_EPOCH};

use firstbyte_tests::{Client, H2Client, Response, Server, peer};

/// Sun, 06 Nov 1994 08:49:37 GMT: the file's time in every test here.
const MODIFIED_S: u64 = 784_111_777;
const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
const ETAG: &str = "\"2ebc98a1-a\"";

fn server() -> Server {
    Server::http(
        "types { text/plain txt; }
         server {
            listen 127.0.0.1:%%PORT%%; http2 on; root %%DIR%%/html;
            location /before/ { alias %%DIR%%/html/; if_modified_since before; }
            location /off/ { alias %%DIR%%/html/; if_modified_since off; }
            location /noetag/ { alias %%DIR%%/html/; etag off; }
            location /return { return 200 0123456789; }
         }",
    )
    .file("html/t.txt", "0123456789")
    .prepare(|dir| {
        let file = File::options()
            .write(true)
            .open(dir.join("html/t.txt"))
            .expect("the file was just written");
        file.set_modified(UNIX_EPOCH + Duration::from_secs(MODIFIED_S))
            .expect("its time can be set");
    })
    .start()
}

fn ask(client: &mut Client, path: &str, lines: &[&str]) -> Response {
    client.get_with(path, lines)
}

#[track_caller]
fn assert_statuses(server: &Server, cases: &[(&str, &[&str], u16)]) {
    for (path, lines, status) in cases {
        // nginx ends the connection after a 412, so each has one of its own.
        let answer = ask(&mut server.client(), path, lines);
        assert_eq!(answer.status, *status, "{path} {lines:?}");
        match answer.status {
            304 => assert!(answer.body.is_empty()),
            200 => assert_eq!(answer.text(), "0123456789"),
            _ => {}
        }
    }
}

#[test]
fn not_modified_has_validators_and_no_body() {
    let server = server();
    let mut client = server.client();
    let answer = ask(
        &mut client,
        "/t.txt",
        &[&format!("If-Modified-Since: {MODIFIED}")],
    );
    assert_eq!(answer.status_line, "HTTP/1.1 304 Not Modified");
    assert_eq!(answer.header("Last-Modified"), Some(MODIFIED));
    assert_eq!(answer.header("ETag"), Some(ETAG));
    assert_eq!(answer.header("Content-Length"), None);
    assert_eq!(answer.header("Content-Type"), None);
    assert_eq!(
        ask(&mut client, "/t.txt", &[]).text(),
        "0123456789",
        "the connection goes on"
    );
}

#[test]
fn if_modified_since_compares_as_configured() {
    let (same, earlier, later) = (
        format!("If-Modified-Since: {MODIFIED}"),
        format!("If-Modified-Since: {EARLIER}"),
        format!("If-Modified-Since: {LATER}"),
    );
    assert_statuses(
        &server(),
        &[
            ("/t.txt", &[&same], 304),
            ("/t.txt", &[&earlier], 200),
            ("/t.txt", &[&later], 200),
            ("/t.txt", &["If-Modified-Since: nonsense"], 200),
            (
                "/t.txt",
                &["If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT"],
                304,
            ),
            (
                "/t.txt",
                &["If-Modified-Since: Sun Nov  6 08:49:37 1994"],
                304,
            ),
            ("/before/t.txt", &[&later], 304),
            ("/before/t.txt", &[&same], 304),
            ("/before/t.txt", &[&earlier], 200),
            ("/off/t.txt", &[&same], 200),
            ("/return", &[&same], 200),
        ],
    );
}

#[test]
fn if_none_match_compares_weakly_and_wins_over_the_date() {
    let same_date = format!("If-Modified-Since: {MODIFIED}");
    let none = |value: &str| format!("If-None-Match: {value}");
    assert_statuses(
        &server(),
        &[
            ("/t.txt", &[&none(ETAG)], 304),
            ("/t.txt", &[&none(&format!("W/{ETAG}"))], 304),
            ("/t.txt", &[&none("*")], 304),
            ("/t.txt", &[&none(&format!("\"a\", \"b\" ,{ETAG}"))], 304),
            ("/t.txt", &[&none("\"other\"")], 200),
            ("/t.txt", &[&none("\"other\""), &same_date], 200),
            ("/t.txt", &[&none(ETAG), &same_date], 304),
            ("/t.txt", &[&none(ETAG.trim_matches('"'))], 200),
            ("/noetag/t.txt", &[&none(ETAG)], 200),
        ],
    );
}

#[test]
fn if_match_and_if_unmodified_since_guard_with_412() {
    let unmodified = |date: &str| format!("If-Unmodified-Since: {date}");
    let matches = |value: &str| format!("If-Match: {value}");
    assert_statuses(
        &server(),
        &[
            ("/t.txt", &[&matches(ETAG)], 200),
            ("/t.txt", &[&matches("*")], 200),
            ("/t.txt", &[&matches(&format!("\"x\", {ETAG}"))], 200),
            ("/t.txt", &[&matches("\"x\"")], 412),
            ("/t.txt", &[&matches(&format!("W/{ETAG}"))], 412),
            ("/noetag/t.txt", &[&matches(ETAG)], 412),
            ("/t.txt", &[&unmodified(MODIFIED)], 200),
            ("/t.txt", &[&unmodified(LATER)], 200),
            ("/t.txt", &[&unmodified(EARLIER)], 412),
        ],
    );
}

/// RFC 9110 sections 5.3, 13.1.1 and 13.1.2: several fields are one list.
#[test]
fn lists_of_tags_may_come_in_several_fields() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = server();
    let other = |name: &str| format!("{name}: \"x\"");
    let ours = |name: &str| format!("{name}: , {ETAG},");
    let (none_match, matching) = ("If-None-Match", "If-Match");
    for (name, fields, status) in [
        (none_match, [other(none_match), ours(none_match)], 304),
        (none_match, [ours(none_match), other(none_match)], 304),
        (none_match, [other(none_match), other(none_match)], 200),
        (matching, [other(matching), ours(matching)], 200),
        (matching, [other(matching), other(matching)], 412),
    ] {
        let lines = fields.each_ref().map(String::as_str);
        assert_statuses(&server, &[("/t.txt", &lines, status)]);
        let mut http2 = H2Client::connect(server.port());
        let lower = name.to_ascii_lowercase();
        let values = fields.each_ref().map(|line| &line[name.len() + 2..]);
        let more = values.map(|value| (lower.as_str(), value));
        let stream = http2.request("GET", "/t.txt", &more, true);
        assert_eq!(http2.reply(stream).status, status, "{fields:?} over HTTP/2");
    }
}

#[test]
fn if_range_serves_the_part_only_of_the_same_file() {
    let server = server();
    let mut client = server.client();
    for (value, status) in [
        (ETAG, 206),
        ("\"other\"", 200),
        (MODIFIED, 206),
        (EARLIER, 200),
        (LATER, 200),
        ("W/\"2ebc98a1-a\"", 200),
        ("nonsense", 200),
    ] {
        let answer = ask(
            &mut client,
            "/t.txt",
            &["Range: bytes=0-1", &format!("If-Range: {value}")],
        );
        assert_eq!(answer.status, status, "{value}");
        assert_eq!(
            answer.body.len(),
            if status == 206 { 2 } else { 10 },
            "{value}"
        );
    }
}

#[test]
fn etag_off_sends_none() {
    let server = server();
    let mut client = server.client();
    assert_eq!(ask(&mut client, "/noetag/t.txt", &[]).header("ETag"), None);
    assert_eq!(ask(&mut client, "/t.txt", &[]).header("ETag"), Some(ETAG));
}

#[test]
fn the_condition_comes_before_the_range() {
    let server = server();
    let mut client = server.client();
    let none = format!("If-None-Match: {ETAG}");
    assert_eq!(
        ask(&mut client, "/t.txt", &["Range: bytes=0-1", &none]).status,
        304
    );
    assert_eq!(
        ask(&mut client, "/t.txt", &["Range: bytes=50-", &none]).status,
        304
    );
}
