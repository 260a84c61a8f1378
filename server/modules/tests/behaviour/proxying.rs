//! Requests as upstream servers get them: each directive about them, at its default and set.

use crate::servers::Sent;
use crate::site::Site;

const PASS: &str = "proxy_pass http://127.0.0.1:8081;";

/// Returns the request that the server receives, with these directives in its location.
fn sent(directives: &str, request: &str) -> Sent {
    sent_by(&format!("location / {{ {PASS} {directives} }}"), request)
}

fn sent_by(server: &str, request: &str) -> Sent {
    let mut site = Site::server(server);
    site.send(request);
    let mut all = site.servers.sent();
    assert_eq!(all.len(), 1, "one request");
    all.remove(0)
}

const GET: &str = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A `GET` with more fields, each with its line end.
fn get(fields: &str) -> String {
    format!("GET /a HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
}

#[test]
fn a_plain_request_has_the_host_of_the_url_and_nothing_else() {
    let sent = sent("", GET);
    assert_eq!(sent.text(), "GET /a\nHost: 127.0.0.1:8081\n");
    assert!(!sent.request.http10 && !sent.request.upgrade);
}

#[test]
fn fields_of_the_client_pass_as_they_are_but_those_of_its_connection() {
    let fields = "Accept: */*\r\nX-One: 1\r\nx-ONE: 2\r\nCookie: a=b\r\nEmpty:\r\nVia: 1.1 x\r\nConnection: X-One\r\n\
                  Keep-Alive: timeout=5\r\nTE: trailers\r\nProxy-Connection: keep-alive\r\nUpgrade: websocket\r\n\
                  Trailer: X\r\nIf-None-Match: \"e\"\r\nRange: bytes=0-\r\nProxy-Authorization: Basic eA==\r\n";
    let sent = sent("", &get(fields));
    assert_eq!(
        sent.text(),
        "GET /a\nHost: 127.0.0.1:8081\nAccept: */*\nX-One: 1\nx-ONE: 2\nCookie: a=b\nEmpty: \nVia: 1.1 x\nTrailer: X\n\
         If-None-Match: \"e\"\nRange: bytes=0-\nProxy-Authorization: Basic eA==\n"
    );
    assert!(!sent.request.upgrade);
}

#[test]
fn fields_that_are_set_come_first_and_replace_those_of_the_client() {
    let set = "proxy_set_header X-Two $arg_none; proxy_set_header X-One set; proxy_set_header x-new \"$http_x_one!\"; \
               proxy_set_header Accept \"\";";
    let sent = sent(
        set,
        &get("X-One: 1\r\nAccept: */*\r\nX-Two: 2\r\nX-Three: 3\r\n"),
    );
    assert_eq!(
        sent.text(),
        "GET /a\nHost: 127.0.0.1:8081\nX-One: set\nx-new: 1!\nX-Three: 3\n"
    );
}

#[test]
fn the_host_is_the_last_that_is_set_or_that_of_the_url() {
    let host = |directives: &str| sent(directives, &get("")).field("Host");
    assert_eq!(host("proxy_set_header Host $http_host;"), "localhost");
    assert_eq!(
        host("proxy_set_header Host a; proxy_set_header host b;"),
        "b"
    );
    assert_eq!(host("proxy_set_header Host $arg_none;"), "127.0.0.1:8081");
    assert_eq!(
        host("proxy_set_header Host $proxy_host:$proxy_port;"),
        "127.0.0.1:8081:8081"
    );
    let old = "proxy_http_version 1.0; proxy_set_header Host $arg_none;";
    assert_eq!(sent(old, GET).text(), "GET /a\n", "HTTP/1.0 needs none");
}

#[test]
fn proxy_host_and_proxy_port_are_those_of_the_url() {
    for (url, host, port) in [
        ("http://127.0.0.1", "127.0.0.1", "80"),
        ("http://127.0.0.1:80/x", "127.0.0.1", "80"),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", "8080"),
        ("http://[::1]:81", "[::1]:81", "81"),
        ("http://[::1]/", "[::1]", "80"),
        ("http://unix:/run/a.sock", "localhost", ""),
        ("http://unix:/run/a.sock:/x/", "localhost", ""),
        ("http://$server_addr:82", "192.0.2.2:82", "82"),
        ("HTTP://group", "group", "80"),
    ] {
        let conf = format!(
            "upstream group {{ server 127.0.0.1; }} server {{ location / {{ proxy_pass {url}; \
             proxy_set_header X-Host $proxy_host; proxy_set_header X-Port =$proxy_port; }} }}"
        );
        let mut site = Site::http(&conf);
        site.get("/a");
        let sent = site.servers.sent().remove(0);
        assert_eq!(sent.field("Host"), host, "{url}");
        assert_eq!(sent.field("X-Host"), host, "{url}");
        assert_eq!(sent.field("X-Port"), format!("={port}"), "{url}");
    }
}

#[test]
fn fields_of_a_level_replace_those_of_the_level_around_it() {
    let server = "proxy_set_header A 1; proxy_set_header B 2;
        location / { proxy_pass http://127.0.0.1:8081; }
        location /own { proxy_pass http://127.0.0.1:8081; proxy_set_header C 3; }";
    assert_eq!(
        sent_by(server, &get("A: x\r\n")).text(),
        "GET /a\nHost: 127.0.0.1:8081\nA: 1\nB: 2\n"
    );
    let own = sent_by(server, "GET /own HTTP/1.1\r\nHost: h\r\nA: x\r\n\r\n");
    assert_eq!(own.text(), "GET /own\nHost: 127.0.0.1:8081\nC: 3\nA: x\n");
}

#[test]
fn nothing_can_end_a_field_or_the_request_line() {
    let uri = "GET /a%0d%0aX:%20y HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let set = sent(
        "proxy_set_header X-Uri $uri; proxy_set_header Host $uri;",
        uri,
    );
    assert_eq!(set.field("X-Uri"), "/a%0D%0AX: y");
    assert_eq!(set.field("Host"), "/a%0D%0AX: y");
    let target = sent_by("location / { proxy_pass http://127.0.0.1:8081$uri; }", uri);
    assert_eq!(target.line(), "GET /a%0D%0AX:%20y");
    let rewritten = "location / { rewrite ^ /b?$uri break; proxy_pass http://127.0.0.1:8081; }";
    assert_eq!(sent_by(rewritten, uri).line(), "GET /b?/a%0D%0AX:%20y");
    let method = "location / { proxy_pass http://127.0.0.1:8081; proxy_method \"$arg_m\"; }";
    let mut site = Site::server(method);
    assert_eq!(site.get("/a?m=A(B").status, 500);
    assert_eq!(site.get("/a?m=").status, 500);
    assert!(site.servers.sent().is_empty());
}

#[test]
fn a_name_that_is_none_is_warned_of_and_left_out() {
    let conf = format!("server {{ location / {{ {PASS} proxy_set_header \"Host:\" x; }} }}");
    let warnings = Site::warnings_with(&conf, &[]);
    assert!(
        warnings[0].contains("invalid header name \"Host:\", ignored"),
        "{warnings:?}"
    );
    assert_eq!(
        sent("proxy_set_header \"Host:\" x;", GET).text(),
        "GET /a\nHost: 127.0.0.1:8081\n"
    );
}

#[test]
fn version_and_method_are_those_that_are_written() {
    let old = sent("proxy_http_version 1.0;", GET);
    assert!(old.request.http10);
    assert_eq!(old.text(), "GET /a\nHost: 127.0.0.1:8081\n");
    assert_eq!(
        sent(
            "proxy_method $arg_m;",
            "GET /a?m=FOO HTTP/1.1\r\nHost: h\r\n\r\n"
        )
        .line(),
        "FOO /a?m=FOO"
    );
    assert_eq!(
        sent("", "PURGE /a HTTP/1.1\r\nHost: h\r\n\r\n").line(),
        "PURGE /a"
    );
    assert_eq!(
        sent("", "HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n").line(),
        "HEAD /a"
    );
    let error = "error_page 404 /b; location / { return 404; } location /b { proxy_pass http://127.0.0.1:8081; }";
    let post = "DELETE /a HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(sent_by(error, post).line(), "GET /b");
}

#[test]
fn fields_of_the_request_can_be_kept_back() {
    let set = "proxy_pass_request_headers off; proxy_set_header X-One $http_x_one;";
    assert_eq!(
        sent(set, &get("X-One: 1\r\nX-Two: 2\r\n")).text(),
        "GET /a\nHost: 127.0.0.1:8081\nX-One: 1\n"
    );
}

#[test]
fn a_body_is_framed_by_its_length() {
    let post = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Type: t/t\r\n\r\nabc";
    let plain = sent("", post);
    assert_eq!(
        plain.text(),
        "POST /a\nHost: 127.0.0.1:8081\nContent-Length: 3\nContent-Type: t/t\n"
    );
    assert_eq!(plain.body(), "abc");
    let chunked =
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    assert_eq!(
        sent("", chunked).text(),
        "POST /a\nHost: 127.0.0.1:8081\nContent-Length: 3\n",
        "it was collected"
    );
    let empty = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(sent("", empty).field("Content-Length"), "0");
    // Set fields never contradict the sent body.
    for set in ["\"\"", "99", "0"] {
        let set = format!(
            "proxy_set_header Content-Length {set}; proxy_set_header Transfer-Encoding chunked;"
        );
        let sent = sent(&set, post);
        assert_eq!(sent.field("Content-Length"), "3");
        assert_eq!(sent.field("Transfer-Encoding"), "");
    }
    assert_eq!(
        sent("proxy_set_header Content-Length \"\";", empty).text(),
        "POST /a\nHost: 127.0.0.1:8081\n"
    );
    assert_eq!(
        sent("proxy_set_header Content-Length 7;", GET).field("Content-Length"),
        ""
    );
}

#[test]
fn a_body_can_be_kept_back_or_replaced() {
    let post = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    let none = sent("proxy_pass_request_body off;", post);
    assert_eq!(none.text(), "POST /a\nHost: 127.0.0.1:8081\n");
    assert_eq!(none.body(), "");
    let own = sent("proxy_set_body \"<$request_body|$arg_x>\";", post);
    assert_eq!(own.field("Content-Length"), "6");
    assert_eq!(own.body(), "<abc|>");
    let of_get = sent("proxy_set_body body; proxy_pass_request_body off;", GET);
    assert_eq!(of_get.field("Content-Length"), "4");
    assert_eq!(of_get.body(), "body");
    assert_eq!(
        sent("proxy_set_body \"\";", GET).field("Content-Length"),
        "0"
    );
}

#[test]
fn upgrades_pass_where_they_are_set_and_h2c_never() {
    let set = "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;";
    let asks = |directives: &str, value: &str| {
        let sent = sent(
            directives,
            &get(&format!("Upgrade: {value}\r\nConnection: Upgrade\r\n")),
        );
        (sent.field("Upgrade"), sent.request.upgrade)
    };
    assert_eq!(asks(set, "websocket"), ("websocket".to_owned(), true));
    assert_eq!(asks(set, "h2c"), (String::new(), false));
    assert_eq!(asks(set, "H2C/1"), (String::new(), false));
    assert_eq!(
        asks(set, "foo/2, h2c,websocket"),
        ("foo/2, websocket".to_owned(), true)
    );
    let narrow = format!("{set} proxy_upgrade WebSocket chat/1;");
    assert_eq!(
        asks(&narrow, "foo, websocket"),
        ("websocket".to_owned(), true)
    );
    assert_eq!(asks(&narrow, "chat/1"), ("chat/1".to_owned(), true));
    assert_eq!(asks(&narrow, "chat/2"), (String::new(), false));
    assert_eq!(
        asks("", "websocket"),
        (String::new(), false),
        "it is not set"
    );
    let sent = sent(set, GET);
    assert_eq!(
        sent.text(),
        "GET /a\nHost: 127.0.0.1:8081\nConnection: upgrade\n"
    );
    assert!(!sent.request.upgrade);
}

#[test]
fn subrequests_have_no_body_and_no_length() {
    let server = "location / { auth_request /auth; empty_gif; }
        location /auth { proxy_pass http://127.0.0.1:8081; proxy_pass_request_body off; }";
    let get = "GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nX: 1\r\n\r\nabc";
    assert_eq!(
        sent_by(server, get).text(),
        "GET /auth\nHost: 127.0.0.1:8081\nX: 1\n"
    );
}

#[test]
fn variables_append_to_what_the_request_says_of_its_way() {
    let set = "server_name front; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; \
               proxy_set_header Via $proxy_add_via;";
    let server = format!("{set} location / {{ {PASS} }}");
    let plain = sent_by(&server, GET);
    assert_eq!(plain.field("X-Forwarded-For"), "192.0.2.1");
    assert_eq!(plain.field("Via"), "1.1 localhost");
    let more = sent_by(
        &server,
        &get("X-Forwarded-For: a, b\r\nVia: 1.0 x\r\nx-forwarded-for: c\r\nVia: 2 y\r\n"),
    );
    assert_eq!(more.field("X-Forwarded-For"), "a, b, c, 192.0.2.1");
    assert_eq!(more.field("Via"), "1.0 x, 2 y, 1.1 localhost");
}

#[test]
fn a_url_of_variables_that_is_none_is_an_error() {
    let server = "location / { proxy_pass $arg_u; }";
    for (url, said) in [
        ("ftp://x", "invalid URL prefix in \"ftp://x\""),
        ("", "invalid URL prefix in \"\""),
        ("http://", "invalid URL prefix in \"http://\""),
        ("http://:80", "no host in upstream \":80\""),
        ("http://x:0", "invalid port in upstream \"x:0\""),
        ("http://[::1", "invalid host in upstream \"[::1\""),
        ("http://[x]", "invalid IPv6 address in upstream \"[x]\""),
        (
            "http://unix:",
            "no path in the unix domain socket in upstream \"unix:\"",
        ),
        ("https://", "invalid URL prefix in \"https://\""),
        ("https://:443", "no host in upstream \":443\""),
    ] {
        let mut site = Site::server(server);
        let log = site.logged(|site| assert_eq!(site.get(&format!("/?u={url}")).status, 500));
        assert!(log.contains(said), "{url}: {log}");
    }
}

#[test]
fn the_fields_of_proxy_params_are_those_that_applications_know() {
    let params = include_str!("../../../../conf/proxy_params");
    let get = "GET /a HTTP/1.1\r\nHost: one:8080\r\nX-Forwarded-For: a\r\n\r\n";
    assert_eq!(
        sent(params, get).text(),
        "GET /a\nHost: one:8080\nX-Real-IP: 192.0.2.1\nX-Forwarded-For: a, 192.0.2.1\nX-Forwarded-Proto: http\n"
    );
}

#[test]
fn timeouts_and_sockets_are_those_that_are_written() {
    let usual = sent("", GET).route;
    let timeouts = usual.timeouts;
    assert_eq!(
        (timeouts.connect_ms, timeouts.send_ms, timeouts.read_ms),
        (60_000, 60_000, 60_000)
    );
    assert!(!usual.options.keepalive && usual.options.bind.is_none());
    let set = "proxy_connect_timeout 1s; proxy_send_timeout 2s; proxy_read_timeout 3s; proxy_socket_keepalive on; \
               proxy_bind 127.0.0.9 transparent; proxy_socket_rcvbuf 4k; proxy_socket_sndbuf 8k;";
    let route = sent(set, GET).route;
    let timeouts = route.timeouts;
    assert_eq!(
        (timeouts.connect_ms, timeouts.send_ms, timeouts.read_ms),
        (1000, 2000, 3000)
    );
    assert!(route.options.keepalive && route.options.transparent);
    assert_eq!(route.options.bind, "127.0.0.9:0".parse().ok());
    assert_eq!(route.options.receive_buffer, Some(4096));
    assert_eq!(route.options.send_buffer, Some(8192));
}
