//! Fields of the response: `add_header`, `add_trailer`, `expires`, conditions, ranges, redirects.

use crate::site::Site;

const FILE: &str = "/www/f.html";

#[test]
fn add_header_of_a_level_replaces_or_joins_those_around() {
    let levels = |inherit: &str| {
        let inner = format!(
            "add_header X-A server; {inherit}
             location /own {{ add_header X-B own; return 200; }}
             location /none {{ return 200; }}"
        );
        Site::server(&inner)
    };
    for (inherit, own, none) in [
        ("", "", "server"),
        ("add_header_inherit merge;", "server", "server"),
        ("add_header_inherit off;", "", ""),
    ] {
        let mut site = levels(inherit);
        assert_eq!(site.get("/own").field("X-A"), own, "{inherit}");
        assert_eq!(site.get("/own").field("X-B"), "own");
        assert_eq!(site.get("/none").field("X-A"), none, "{inherit}");
    }
}

#[test]
fn add_header_is_for_good_statuses_unless_always() {
    let mut site = Site::server("add_header X-A a; add_header X-B b always; add_header X-C \"\";");
    let answer = site.get("/none");
    assert_eq!((answer.field("X-A"), answer.field("X-B")), ("", "b"));
    assert!(!answer.head.contains("X-C"));
}

#[test]
fn add_header_can_replace_validators() {
    let mut site = Site::server(
        "location /f.html { add_header Last-Modified \"Mon, 28 Sep 1970 06:00:00 GMT\"; add_header ETag '\"x\"'; }
         location /g { add_header Last-Modified \"\"; add_header ETag \"\"; }
         location /h { add_header Last-Modified \"Mon, 28 Sep 1970 06:00:00 GMT\" always; return 404; }",
    )
    .file(FILE, "text")
    .file("/www/g", "text");
    let answer = site.get("/f.html");
    assert_eq!(
        answer.field("Last-Modified"),
        "Mon, 28 Sep 1970 06:00:00 GMT"
    );
    assert_eq!(
        (
            answer.head.matches("Last-Modified").count(),
            answer.field("ETag")
        ),
        (1, "\"x\"")
    );
    let answer = site.get("/g");
    assert_eq!(
        (answer.field("Last-Modified"), answer.field("ETag")),
        ("", "")
    );
    assert_eq!(
        site.get("/h").field("Last-Modified"),
        "Mon, 28 Sep 1970 06:00:00 GMT"
    );
}

#[test]
fn a_range_that_cannot_be_met_gets_fields_once() {
    let mut site =
        Site::server("add_header X-A a; add_header X-B b always; expires 1h;").file(FILE, "text");
    let answer = site.get_with("/f.html", "Range: bytes=10-20\r\n");
    assert_eq!(
        (answer.status, answer.field("Content-Range")),
        (416, "bytes */4")
    );
    assert_eq!(answer.head.matches("X-B: b").count(), 1);
    assert_eq!(
        (answer.field("ETag"), answer.field("Last-Modified")),
        ("", "")
    );
}

#[test]
fn a_condition_that_fails_gets_fields_anew() {
    let mut site = Site::server("add_header X-A a; add_header X-B b always;").file(FILE, "text");
    let answer = site.get_with("/f.html", "If-Match: \"other\"\r\n");
    assert_eq!(
        (answer.status, answer.field("X-A"), answer.field("ETag")),
        (412, "", "")
    );
    assert_eq!(answer.head.matches("X-B: b").count(), 1);
}

#[test]
fn not_modified_has_validators_and_no_content() {
    let mut site = Site::server("expires 1h; add_header X-A a;").file(FILE, "text");
    let etag = site.get("/f.html").field("ETag").to_owned();
    let answer = site.get_with("/f.html", &format!("If-None-Match: {etag}\r\n"));
    assert_eq!(answer.status, 304);
    assert_eq!(
        (answer.field("ETag"), answer.field("X-A")),
        (etag.as_str(), "a")
    );
    assert_eq!(
        answer.field("Last-Modified"),
        "Sun, 06 Nov 1994 08:49:37 GMT"
    );
    for gone in ["Content-Type", "Content-Length", "Accept-Ranges"] {
        assert_eq!(answer.field(gone), "", "{gone}");
    }
    assert_eq!(answer.body, "");
}

#[test]
fn expires_counts_from_access_or_change() {
    let rule = |rule: &str| {
        Site::server(&format!("expires {rule};"))
            .file(FILE, "text")
            .get("/f.html")
    };
    assert_eq!(rule("100").field("Cache-Control"), "max-age=100");
    assert_eq!(
        rule("100").field("Expires"),
        "Sun, 06 Nov 1994 08:52:57 GMT"
    );
    assert_eq!(rule("-1").field("Cache-Control"), "no-cache");
    assert_eq!(rule("0").field("Cache-Control"), "max-age=0");
    assert_eq!(rule("modified 200").field("Cache-Control"), "max-age=100");
    assert_eq!(rule("modified 0").field("Cache-Control"), "max-age=0");
    assert_eq!(rule("modified -1").field("Cache-Control"), "no-cache");
    assert_eq!(
        rule("epoch").field("Expires"),
        "Thu, 01 Jan 1970 00:00:01 GMT"
    );
    assert_eq!(rule("off").field("Expires"), "");
    assert_eq!(rule("modified $arg_none$arg_nor").field("Expires"), "");
}

#[test]
fn trailers_are_sent_in_chunks_and_leave_ranges_alone() {
    let mut site = Site::server("add_trailer X-T $sent_http_accept_ranges; add_trailer X-E \"\";")
        .file(FILE, "text");
    let answer = site.get("/f.html");
    assert_eq!(
        (answer.field("Content-Length"), answer.trailers.as_str()),
        ("", "X-T: bytes\n")
    );
    let part = site.get_with("/f.html", "Range: bytes=1-2\r\n");
    assert_eq!((part.status, part.body.as_str()), (206, "ex"));
    let old = site.send("GET /f.html HTTP/1.0\r\n\r\n");
    assert_eq!(
        (old.field("Content-Length"), old.trailers.as_str()),
        ("4", "")
    );
}

#[test]
fn types_may_be_empty() {
    let mut site =
        Site::server("types { } default_type x/y; location /n.html { default_type \"\"; }")
            .file(FILE, "text")
            .file("/www/n.html", "text");
    assert_eq!(site.get("/f.html").field("Content-Type"), "x/y");
    assert!(!site.get("/n.html").head.contains("Content-Type"));
}

#[test]
fn extensions_count_without_case_and_not_for_hidden_files() {
    let mut site = Site::server("types { text/html html; }")
        .file("/www/A.HTML", "a")
        .file("/www/.html", "b");
    assert_eq!(site.get("/A.HTML").field("Content-Type"), "text/html");
    assert_eq!(site.get("/.html").field("Content-Type"), "text/plain");
}

#[test]
fn redirects_name_the_host_as_told() {
    let host = |inner: &str| {
        let mut site = Site::server(inner).dir("/www/d");
        site.send("GET /d HTTP/1.1\r\nHost: client:81\r\n\r\n")
            .field("Location")
            .to_owned()
    };
    assert_eq!(host(""), "http://client/d/");
    assert_eq!(host("server_name_in_redirect on;"), "http://localhost/d/");
    assert_eq!(host("absolute_redirect off;"), "/d/");
}

#[test]
fn the_keep_alive_field_is_inherited_for_itself() {
    let mut site = Site::server(
        "keepalive_timeout 10s 20s;
         location /a { keepalive_timeout 5s; return 200; }
         location /b { keepalive_timeout 5s 0; return 200; }
         location /c { keepalive_timeout 0; return 200; }",
    );
    let mut hint = |target: &str| site.get(target).keep_alive_hint_s;
    assert_eq!((hint("/a"), hint("/b"), hint("/c")), (Some(20), None, None));
}
