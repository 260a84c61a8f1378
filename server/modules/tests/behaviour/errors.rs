//! `error_page`, `recursive_error_pages`, named locations, `internal`, `limit_except`.

use crate::site::Site;

#[test]
fn an_error_page_keeps_the_status_unless_told_otherwise() {
    let mut site = Site::server(
        "error_page 404 /e.html;
         error_page 403 =200 /e.html;
         error_page 405 = /e.html;
         location /forbidden { return 403; }
         location /method { return 405; }",
    )
    .file("/www/e.html", "page");
    assert_eq!(site.get("/nothing").status, 404);
    assert_eq!(site.get("/nothing").body, "page");
    assert_eq!(site.get("/forbidden").status, 200);
    assert_eq!(site.get("/method").status, 200);
}

#[test]
fn an_error_page_elsewhere_is_a_redirect() {
    let mut site = Site::server(
        "error_page 404 http://example.com/e;
         error_page 403 =301 http://example.com/f?$args;
         location /forbidden { return 403; }",
    );
    let answer = site.get("/nothing");
    assert_eq!(
        (answer.status, answer.field("Location")),
        (302, "http://example.com/e")
    );
    let answer = site.get("/forbidden?a=1");
    assert_eq!(
        (answer.status, answer.field("Location")),
        (301, "http://example.com/f?a=1")
    );
}

#[test]
fn an_error_page_is_fetched_with_get_but_head_stays_head() {
    let mut site = Site::server(
        "error_page 405 =200 /e;
         location /e { return 200 \"$request_method $uri $request_uri\"; }
         location /x { return 405; }",
    );
    let post = site.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(post.body, "GET /e /x");
    let head = site.send("HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(
        (
            head.status,
            head.field("Content-Length"),
            head.body.as_str()
        ),
        (200, "10", "")
    );
}

#[test]
fn a_named_location_keeps_method_uri_and_arguments() {
    let mut site = Site::server(
        "error_page 404 = @other;
         location @other { return 200 \"$request_method $uri?$args\"; }",
    );
    assert_eq!(site.get("/a?b=1").body, "GET /a?b=1");
}

#[test]
fn a_named_location_that_is_missing_is_an_error_with_its_own_page() {
    let mut site = Site::server(
        "error_page 500 /e.html;
         location /x { try_files /none @nowhere; }",
    )
    .file("/www/e.html", "page");
    let answer = site.get("/x");
    assert_eq!((answer.status, answer.body.as_str()), (500, "page"));
}

#[test]
fn an_error_of_an_error_page_is_shown_plain() {
    let inner = "error_page 404 /e; error_page 403 /f; location /e { return 403; } location /f { return 200 f; }";
    let answer = Site::server(inner).get("/nothing");
    assert_eq!(answer.status, 403);
    assert!(answer.body.contains("403 Forbidden"));
    let recursive = format!("recursive_error_pages on; {inner}");
    let answer = Site::server(&recursive).get("/nothing");
    assert_eq!((answer.status, answer.body.as_str()), (403, "f"));
}

#[test]
fn error_pages_that_lead_to_each_other_end() {
    let inner = "recursive_error_pages on; error_page 404 /e; location /e { return 404; }";
    assert_eq!(Site::server(inner).get("/nothing").status, 500);
}

#[test]
fn a_malformed_request_gets_its_error_page() {
    let mut site = Site::server("error_page 400 /e.html; error_page 505 =200 /e.html;")
        .file("/www/e.html", "page");
    let answer = site.send("GET / HTTP/1.1\r\nHost: a b\r\n\r\n");
    assert_eq!((answer.status, answer.body.as_str()), (400, "page"));
    let answer = site.send("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((answer.status, answer.body.as_str()), (400, "page"));
    let answer = site.send("GET / HTTP/2.0\r\nHost: a\r\n\r\n");
    assert_eq!((answer.status, answer.body.as_str()), (200, "page"));
}

#[test]
fn a_body_that_is_too_large_gets_its_error_page() {
    let mut site =
        Site::server("client_max_body_size 1; error_page 413 /e.html;").file("/www/e.html", "page");
    let answer = site.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n");
    assert_eq!((answer.status, answer.body.as_str()), (413, "page"));
}

#[test]
fn statuses_without_a_page_of_their_own_are_empty() {
    let mut site = Site::server("location / { return 422; }");
    let answer = site.get("/");
    assert_eq!((answer.status, answer.field("Content-Length")), (422, "0"));
}

#[test]
fn statuses_that_close_send_nothing() {
    for status in [444, 408, 499] {
        let mut site = Site::server(&format!("location / {{ return {status}; }}"));
        assert_eq!(site.get("/").status, 0, "return {status}");
    }
    assert_eq!(Site::server("return 408 late;").get("/").status, 408);
}

#[test]
fn internal_holds_for_what_is_inside() {
    let mut site = Site::server(
        "location /a/ { internal; location /a/b/ { return 200 b; } }
         error_page 418 =200 /a/b/;
         location /via { return 418; }",
    );
    assert_eq!(site.get("/a/b/").status, 404);
    assert_eq!(site.get("/via").body, "b");
}

#[test]
fn limit_except_takes_other_methods_elsewhere() {
    let mut site = Site::server(
        "location / { add_header X-In outer always; limit_except get { access_log off; } return 200 $request_method; }",
    )
    .dir("/www");
    assert_eq!(site.get("/").body, "GET");
    let post = site.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    // The rewrite directives of the location around are not those of the block.
    assert_eq!(post.status, 403);
    assert_eq!(post.field("X-In"), "outer");
}

#[test]
fn a_redirect_does_not_bring_a_connection_back() {
    let mut site = Site::server(
        "error_page 404 /e;
         location /a { keepalive_timeout 0; return 404; }
         location /e { return 200 e; }",
    );
    assert!(site.get("/e").keep_alive);
    assert!(!site.get("/a").keep_alive);
    let mut site = Site::server(
        "keepalive_timeout 0;
         error_page 404 /e;
         location / { keepalive_timeout 9s; return 404; }
         location /e { keepalive_timeout 9s; return 200 e; }",
    );
    assert!(site.get("/e").keep_alive);
    assert!(!site.get("/a").keep_alive);
}
