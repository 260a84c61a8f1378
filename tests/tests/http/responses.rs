//! Additions to answers and their replacement: `error_page`, `add_header`, `add_trailer`,
//! `expires`, `server_tokens`, the built-in error pages.
//!
//! Source: nginx's documentation of ngx_http_core_module and ngx_http_headers_module.

use firstbyte_tests::{Builder, Server};

fn site(locations: &str) -> Builder {
    let http = format!(
        "types {{ text/html html; text/plain txt; }}
         server {{ listen 127.0.0.1:%%PORT%%; server_name localhost; root %%DIR%%/html; {locations} }}"
    );
    Server::http(&http)
        .file("html/index.html", "welcome")
        .file("html/404.html", "our 404")
        .file("html/t.txt", "text")
}

#[test]
fn error_page_replaces_body_and_perhaps_status() {
    let server = site(
        "error_page 404 /404.html;
         location /eq200/ { error_page 404 =200 /t.txt; }
         location /eq/ { error_page 404 = /ok; }
         location /ok { return 202 ok; }
         location /away/ { error_page 404 http://example.org/x?from=$uri; }
         location /away301/ { error_page 404 =301 http://example.org/; }
         location /named/ { error_page 404 @named; }
         location /named200/ { error_page 404 = @named; }
         location @named { return 203 \"named $uri\"; }
         location /several/ { error_page 403 404 405 /t.txt; }
         location /gone { error_page 410 /404.html; return 410; }
         location /own { return 404 \"own text\"; }",
    )
    .start();
    let mut client = server.client();
    for (path, status, body) in [
        ("/missing", 404, "our 404"),
        ("/eq200/x", 200, "text"),
        ("/eq/x", 202, "ok"),
        ("/named/x", 404, "named /named/x"),
        ("/named200/x", 203, "named /named200/x"),
        ("/several/x", 404, "text"),
        ("/gone", 410, "our 404"),
        ("/own", 404, "own text"),
    ] {
        let answer = client.get(path);
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (status, body),
            "{path}"
        );
    }
    let away = client.get("/away/x");
    assert_eq!(
        (away.status, away.header("Location")),
        (302, Some("http://example.org/x?from=/away/x"))
    );
    let away = client.get("/away301/x");
    assert_eq!(
        (away.status, away.header("Location")),
        (301, Some("http://example.org/"))
    );
}

#[test]
fn error_page_is_asked_with_get_and_may_be_internal() {
    let server = site(
        "error_page 405 = /method;
         location = /method { internal; return 200 \"$request_method $uri $request_uri\"; }",
    )
    .start();
    let mut client = server.client();
    let post = "POST /t.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx";
    let answer = client.send(post).response();
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (200, "GET /method /t.txt")
    );
    assert_eq!(
        client.get("/method").status,
        404,
        "from outside it does not exist"
    );
}

#[test]
fn error_page_of_an_error_page_needs_recursion() {
    let server = site(
        "error_page 404 /nothing.html; error_page 403 /t.txt;
         location /deep/ { recursive_error_pages on; error_page 404 /deeper/x; }
         location /deeper/ { recursive_error_pages on; error_page 404 =200 /t.txt; }",
    )
    .start();
    let mut client = server.client();
    let answer = client.get("/missing");
    assert!(
        answer.status == 404 && answer.text().contains("<title>404 Not Found</title>"),
        "{}",
        answer.text()
    );
    assert_eq!(client.get("/deep/x").text(), "text");
}

#[test]
fn built_in_pages_tell_the_status_and_the_server() {
    let server = site(
        "location /400 { return 400; } location /403 { return 403; } location /500 { return 500; }
         location /503 { return 503; } location /429 { return 429; } location /301 { return 301 /x; }
         location /799 { return 799; } location /444 { return 444; }
         location /quiet { server_tokens off; return 404; }",
    )
    .start();
    for (path, title) in [
        ("/400", "400 Bad Request"),
        ("/403", "403 Forbidden"),
        ("/429", "429 Too Many Requests"),
        ("/500", "500 Internal Server Error"),
        ("/503", "503 Service Temporarily Unavailable"),
        ("/301", "301 Moved Permanently"),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status_line, format!("HTTP/1.1 {title}"), "{path}");
        assert!(
            answer
                .text()
                .contains(&format!("<head><title>{title}</title></head>")),
            "{path}"
        );
        assert_eq!(answer.header("Content-Type"), Some("text/html"), "{path}");
    }
    let answer = server.get("/799");
    assert_eq!(
        (answer.status, answer.body.len()),
        (799, 0),
        "an unknown status has no page"
    );
    assert!(
        server
            .client()
            .send("GET /444 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .closed(),
        "444 says nothing"
    );
    let loud = server.get("/403");
    let (name, version) = loud
        .header("Server")
        .and_then(|s| s.split_once('/'))
        .expect("name and version");
    assert!(
        version.starts_with(|c: char| c.is_ascii_digit()),
        "{version}"
    );
    assert!(
        loud.text()
            .contains(&format!("<center>{name}/{version}</center>")),
        "{}",
        loud.text()
    );
    let quiet = server.get("/quiet");
    assert_eq!(
        quiet.header("Server"),
        Some(name),
        "server_tokens off leaves the name alone"
    );
    assert!(
        quiet.text().contains(&format!("<center>{name}</center>")),
        "{}",
        quiet.text()
    );
}

#[test]
fn add_header_covers_some_statuses_or_all() {
    let server = site(
        "add_header X-Outer outer; add_header X-Always $status always;
         location /own { add_header X-Own own; return 200 ok; }
         location /inherit { return 200 ok; }
         location /empty { add_header X-Empty $arg_none; return 200 ok; }
         location /404 { return 404; } location /302 { return 302 /x; } location /204 { return 204; }
         location /twice { add_header X-Two 1; add_header X-Two 2; return 200 ok; }
         location /special { add_header Cache-Control no-store; add_header Last-Modified \"\"; }
         location /alter { add_header ETag '\"own\"'; alias %%DIR%%/html/t.txt; }",
    )
    .file("html/special", "x")
    .start();
    let mut client = server.client();
    let answer = client.get("/inherit");
    assert_eq!(
        (answer.header("X-Outer"), answer.header("X-Always")),
        (Some("outer"), Some("200"))
    );
    let answer = client.get("/own");
    assert_eq!(
        (answer.header("X-Own"), answer.header("X-Outer")),
        (Some("own"), None),
        "any of its own hides the outer"
    );
    let answer = client.get("/404");
    assert_eq!(
        (answer.header("X-Outer"), answer.header("X-Always")),
        (None, Some("404"))
    );
    assert_eq!(client.get("/302").header("X-Outer"), Some("outer"));
    assert_eq!(client.get("/204").header("X-Outer"), Some("outer"));
    assert_eq!(
        client.get("/empty").header("X-Empty"),
        None,
        "an empty value adds nothing"
    );
    assert_eq!(client.get("/twice").header_values("X-Two"), ["1", "2"]);
    let answer = client.get("/special");
    assert_eq!(
        (
            answer.header("Cache-Control"),
            answer.header("Last-Modified")
        ),
        (Some("no-store"), None)
    );
}

#[test]
fn expires_sets_both_headers() {
    let server = site(
        "location /hour { expires 1h; return 200 ok; }
         location /past { expires -1; return 200 ok; }
         location /epoch { expires epoch; return 200 ok; }
         location /max { expires max; return 200 ok; }
         location /off { expires off; return 200 ok; }
         location /zero { expires 0; return 200 ok; }
         location /var { set $age 2m; expires $age; return 200 ok; }
         location /404 { expires 1h; return 404; }
         location /file { alias %%DIR%%/html/t.txt; expires modified +24h; }
         location /daily { expires @15h30m; return 200 ok; }",
    )
    .start();
    let mut client = server.client();
    for (path, control, expires) in [
        ("/hour", Some("max-age=3600"), None),
        ("/past", Some("no-cache"), None),
        (
            "/epoch",
            Some("no-cache"),
            Some("Thu, 01 Jan 1970 00:00:01 GMT"),
        ),
        (
            "/max",
            Some("max-age=315360000"),
            Some("Thu, 31 Dec 2037 23:55:55 GMT"),
        ),
        ("/zero", Some("max-age=0"), None),
        ("/var", Some("max-age=120"), None),
    ] {
        let answer = client.get(path);
        assert_eq!(answer.header("Cache-Control"), control, "{path}");
        assert!(answer.header("Expires").is_some(), "{path}");
        assert!(
            expires.is_none() || answer.header("Expires") == expires,
            "{path}"
        );
    }
    for path in ["/off", "/404"] {
        let answer = client.get(path);
        assert_eq!(
            (answer.header("Expires"), answer.header("Cache-Control")),
            (None, None),
            "{path}"
        );
    }
    let answer = client.get("/zero");
    assert_eq!(answer.header("Expires"), answer.header("Date"));
    let age = |path: &str, client: &mut firstbyte_tests::Client| {
        let answer = client.get(path);
        let control = answer
            .header("Cache-Control")
            .unwrap_or_default()
            .to_owned();
        control
            .strip_prefix("max-age=")
            .and_then(|n| n.parse::<u32>().ok())
            .unwrap_or_else(|| panic!("{control:?}"))
    };
    assert!(
        (86_300..=86_400).contains(&age("/file", &mut client)),
        "from the file's time"
    );
    assert!(
        age("/daily", &mut client) <= 86_400,
        "the next half past three"
    );
}

#[test]
fn add_trailer_follows_a_chunked_body() {
    let server = site(
        "location /t.txt { add_trailer X-After $sent_http_content_type; add_trailer X-Empty $arg_none; }
         location /return { add_trailer X-After value; return 200 ok; }",
    )
    .start();
    let mut client = server.client();
    let answer = client.get_with("/t.txt", &["TE: trailers"]);
    assert_eq!(
        (
            answer.header("Transfer-Encoding"),
            answer.header("Content-Length")
        ),
        (Some("chunked"), None)
    );
    assert_eq!(answer.text(), "text");
    assert_eq!(
        answer.trailers,
        [("X-After".to_owned(), "text/plain".to_owned())]
    );
    let answer = client.send("GET /t.txt HTTP/1.0\r\n\r\n").response();
    assert_eq!(
        (answer.header("Content-Length"), answer.trailers.len()),
        (Some("4"), 0),
        "1.0 has no trailers"
    );
}

#[test]
fn chunked_transfer_encoding_off_closes_instead() {
    let server =
        site("chunked_transfer_encoding off; location /t.txt { add_trailer X-After value; }")
            .start();
    let mut client = server.client();
    let answer = client.get("/t.txt");
    assert_eq!(answer.header("Transfer-Encoding"), None);
    assert_eq!(answer.text(), "text");
}
