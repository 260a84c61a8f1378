//! `charset` and its companions.

use crate::site::Site;

const KOI8: &str = "charset_map koi8-r utf-8 { C1 D0B0; C2 D0B1; } charset_map a b { 58 59; }";

#[test]
fn a_charset_is_named_for_its_types_only() {
    let mut site = Site::server(
        "charset utf-8; types { text/html html; text/css css; }
         location /all/ { charset_types *; }
         location /off/ { charset off; }
         location /moved { return 301 /; }",
    )
    .file("/www/a.html", "")
    .file("/www/a.css", "")
    .file("/www/all/a.css", "")
    .file("/www/off/a.html", "");
    assert_eq!(
        site.get("/a.html").field("Content-Type"),
        "text/html; charset=utf-8"
    );
    assert_eq!(site.get("/a.css").field("Content-Type"), "text/css");
    assert_eq!(
        site.get("/all/a.css").field("Content-Type"),
        "text/css; charset=utf-8"
    );
    assert_eq!(site.get("/off/a.html").field("Content-Type"), "text/html");
    assert_eq!(site.get("/moved").field("Content-Type"), "text/html");
}

#[test]
fn a_body_is_changed_from_one_charset_to_the_other() {
    let mut site = Site::http(&format!(
        "{KOI8} server {{ root /www; charset koi8-r; source_charset utf-8; types {{ text/html html; }} }}"
    ))
    .file("/www/a.html", "a\u{431}\u{436}");
    let answer = site.get("/a.html");
    assert_eq!(answer.field("Content-Type"), "text/html; charset=koi8-r");
    assert_eq!(
        (
            answer.field("Content-Length"),
            answer.field("Accept-Ranges")
        ),
        ("", "")
    );
    assert_eq!(answer.body, "a\u{fffd}&#1078;");
}

#[test]
fn a_large_file_is_read_in_pieces() {
    let text = "X".repeat(100_000);
    let mut site = Site::http(&format!(
        "{KOI8} server {{ root /www; charset b; source_charset a; }}"
    ))
    .large_file("/www/a", &text);
    let answer = site.get("/a");
    assert_eq!(
        (answer.field("Content-Length"), answer.body.len()),
        ("100000", 100_000)
    );
    assert!(answer.body.bytes().all(|b| b == b'Y'));
    let part = site.get_with("/a", "Range: bytes=40000-40009\r\n");
    assert_eq!((part.status, part.body.as_str()), (206, "YYYYYYYYYY"));
    let parts = site.get_with("/a", "Range: bytes=50000-50001,1-2\r\n");
    assert_eq!((parts.status, parts.body.matches("YY").count()), (206, 2));
    let head = site.send("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(
        (head.field("Content-Length"), head.body.as_str()),
        ("100000", "")
    );
}

#[test]
fn a_charset_may_be_a_variable() {
    let mut site =
        Site::server("charset $arg_c; types { text/html html; }").file("/www/a.html", "");
    assert_eq!(
        site.get("/a.html?c=utf-8").field("Content-Type"),
        "text/html; charset=utf-8"
    );
    assert_eq!(site.get("/a.html").field("Content-Type"), "text/html");
}
