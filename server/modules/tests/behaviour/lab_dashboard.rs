//! `lab_dashboard`: its places and access rules, and the requests that the store process gets.

use server_upstream::request::Failure;

use crate::site::Site;
use crate::tls_settings::pair;

const STORE: &str = "lab_store sqlite:/db;";

/// The text of a server with a dashboard below `/lab/`.
fn server(lines: &str, location: &str) -> String {
    format!("{STORE} server {{ {lines} location /lab/ {{ {location} }} }}")
}

fn is_accepted(http: &str) {
    let warnings = Site::warnings_with(http, &[]);
    assert!(warnings.is_empty(), "{http}: {warnings:?}");
}

fn refused(http: &str, expected: &str) {
    let error = Site::refused(http);
    assert!(error.contains(expected), "{http}: {error}");
}

#[test]
fn location_without_access_rule_is_an_error() {
    let missing = "\"lab_dashboard\" directive shows the store to every client";
    for (lines, location) in [
        ("", "lab_dashboard;"),
        ("", "allow 127.0.0.1; lab_dashboard;"),
        ("", "auth_basic off; auth_basic_user_file f; lab_dashboard;"),
        ("", "auth_basic realm; lab_dashboard;"),
        (
            "auth_basic realm; auth_basic_user_file f;",
            "auth_basic off; lab_dashboard;",
        ),
        ("auth_request /auth;", "auth_request off; lab_dashboard;"),
        ("deny all;", "allow all; lab_dashboard;"),
        ("", "satisfy any; lab_dashboard;"),
        ("", "lab_dashboard; limit_except GET { deny all; }"),
        ("", "lab_dashboard; location /lab/in/ { deny all; }"),
    ] {
        refused(&server(lines, location), missing);
    }
    for (lines, location) in [
        ("", "lab_dashboard public;"),
        ("", "allow 127.0.0.1; deny all; lab_dashboard;"),
        ("", "lab_dashboard; deny 192.0.2.1;"),
        ("deny all;", "lab_dashboard;"),
        (
            "auth_basic realm; auth_basic_user_file f;",
            "lab_dashboard;",
        ),
        (
            "",
            "lab_dashboard; auth_basic $host; auth_basic_user_file f;",
        ),
        ("auth_request /auth;", "lab_dashboard;"),
    ] {
        is_accepted(&server(lines, location));
    }
    is_accepted(&format!("deny all; {}", server("", "lab_dashboard;")));
}

#[test]
fn required_certificates_are_a_rule_if_all_connections_are_by_tls() {
    let (certificate, key) = pair("localhost", &rcgen::PKCS_ECDSA_P256_SHA256);
    let files = [
        ("/etc/nginx/c.pem", certificate.as_bytes()),
        ("/etc/nginx/k.pem", key.as_bytes()),
    ];
    let files_of_tls =
        "ssl_certificate c.pem; ssl_certificate_key k.pem; ssl_client_certificate c.pem;";
    let http = |lines: &str| server(&format!("{files_of_tls} {lines}"), "lab_dashboard;");
    for lines in [
        "listen 1 ssl; listen 2; ssl_verify_client on;",
        "listen 1 ssl; ssl_verify_client optional;",
        "listen 1; ssl_verify_client on;",
    ] {
        let error = Site::refused_with(&http(lines), &files);
        assert!(
            error.contains("shows the store to every client"),
            "{lines}: {error}"
        );
    }
    let guarded = http("listen 1 ssl; listen 2 ssl; ssl_verify_client on;");
    assert!(Site::warnings_with(&guarded, &files).is_empty());
}

#[test]
fn links_need_a_prefix_that_ends_in_a_slash() {
    for location in ["/lab", "= /lab/", "~ /lab/", "@lab"] {
        let http = format!("{STORE} server {{ location {location} {{ lab_dashboard public; }} }}");
        refused(&http, "needs a prefix location that ends with \"/\"");
    }
    for location in ["/", "/lab/", "^~ /lab/"] {
        let http = format!("{STORE} server {{ location {location} {{ lab_dashboard public; }} }}");
        is_accepted(&http);
    }
    refused(
        &format!("{STORE} lab_dashboard public;"),
        "is not allowed here",
    );
    refused(&server("lab_dashboard public;", ""), "is not allowed here");
    refused(
        &server("", "if ($args) { lab_dashboard public; }"),
        "is not allowed here",
    );
    refused(&server("", "lab_dashboard open;"), "invalid value \"open\"");
    refused(
        &server("", "lab_dashboard public public;"),
        "invalid number of arguments",
    );
    refused(
        &server("", "lab_dashboard public; lab_dashboard;"),
        "is duplicate",
    );
}

#[test]
fn dashboard_needs_a_store() {
    for lines in ["", "rtt_map off;"] {
        let http = format!("{lines} server {{ location / {{ lab_dashboard public; }} }}");
        refused(&http, "\"lab_dashboard\" directive needs a \"lab_store\"");
    }
}

#[test]
fn store_process_gets_the_path_below_the_location() {
    let mut site = Site::http(&server("", "lab_dashboard public;"));
    for (target, expected) in [
        ("/lab/", "GET /"),
        ("/lab/map?days=7&x=a%20b", "GET /map?days=7&x=a%20b"),
        ("/lab//a/../b", "GET /b"),
        ("/lab/a%20%25%3F", "GET /a%20%25%3F"),
        ("/lab/a%0d%0aX:y", "GET /a%0D%0AX:y"),
    ] {
        let answer = site.get(target);
        assert_eq!(answer.status, 200, "{target}");
        let sent = site.servers.sent();
        assert_eq!(sent[0].line(), expected, "{target}");
        let socket = "unix:/run/nginx.pid.lab.sock";
        assert_eq!(sent[0].route.addr.to_string(), socket);
    }
    let answer = site.get("/lab?days=7");
    assert_eq!(answer.status, 301);
    assert!(
        answer.field("Location").ends_with("/lab/?days=7"),
        "{answer:?}"
    );
    for other in ["/labx", "/lab/../x"] {
        assert_eq!(site.get(other).status, 404, "{other}");
    }
    assert!(site.servers.sent().is_empty());
}

#[test]
fn arguments_of_a_rewrite_end_no_request_line() {
    let location = "set $nl \"b c\r\nX: y\"; set $args \"x=$nl\"; lab_dashboard public;";
    let mut site = Site::http(&server("", location));
    site.get("/lab/");
    assert_eq!(site.servers.sent()[0].line(), "GET /?x=b%20c%0D%0AX:%20y");
}

#[test]
fn secrets_of_clients_are_not_passed_on() {
    let mut site = Site::http(&server("", "lab_dashboard public;"));
    let fields = "Cookie: a=b\r\nAuthorization: Basic eDp5\r\nX-Forwarded-For: 192.0.2.1\r\nAccept: text/html\r\n\
                  Accept-Encoding: gzip\r\nIf-None-Match: \"1\"\r\nLast-Event-ID: 7\r\nReferer: http://x/\r\n";
    site.get_with("/lab/", fields);
    assert_eq!(
        site.servers.sent()[0].text(),
        "GET /\nHost: localhost\nConnection: close\nAccept: text/html\nIf-None-Match: \"1\"\nLast-Event-ID: 7\n"
    );
}

#[test]
fn other_methods_never_reach_the_store_process() {
    let mut site = Site::http(&server("", "lab_dashboard public;"));
    let mut send = |method: &str| {
        let head = format!("{method} /lab/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        site.send(&head).status
    };
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        assert_eq!(send(method), 405, "{method}");
    }
    assert_eq!(send("HEAD"), 200);
    let lines: Vec<_> = site.servers.sent().iter().map(|it| it.line()).collect();
    assert_eq!(lines, ["HEAD /"]);
}

#[test]
fn denied_clients_get_nothing() {
    let locations = [
        ("deny 192.0.2.1; lab_dashboard;", 403),
        ("allow 127.0.0.1; deny all; lab_dashboard;", 403),
        (
            "auth_basic realm; auth_basic_user_file /users; lab_dashboard;",
            401,
        ),
    ];
    for (location, status) in locations {
        let mut site = Site::http(&server("", location)).file("/users", "a:{PLAIN}b\n");
        for target in [
            "/lab/",
            "/lab/map.csv",
            "/lab/map.json",
            "/lab/events",
            "/lab/x/y",
        ] {
            assert_eq!(site.get(target).status, status, "{location} {target}");
        }
        assert!(site.servers.sent().is_empty(), "{location}");
    }
}

#[test]
fn blocks_inside_keep_the_dashboard() {
    let location =
        "lab_dashboard public; if ($arg_a) { set $b c; } location /lab/own/ { return 204; }";
    let mut site = Site::http(&server("", location));
    assert_eq!(site.get("/lab/x?a=1").status, 200);
    assert_eq!(site.servers.sent()[0].line(), "GET /x?a=1");
    assert_eq!(site.get("/lab/own/").status, 204);
    assert!(site.servers.sent().is_empty());
}

#[test]
fn page_without_the_store_process_has_the_reason() {
    let refused = Failure::Socket {
        call: "connect()",
        errno: 111,
    };
    let mut site = Site::http(&server("error_page 503 /other;", "lab_dashboard public;"));
    for (failure, reason) in [
        (refused, "is not running"),
        (Failure::Closed, "is not running"),
        (Failure::TimedOut, "does not answer"),
        (Failure::NoConnection, "no free connection"),
    ] {
        site.servers.fail(failure.clone());
        let answer = site.get("/lab/");
        assert_eq!(answer.status, 503, "{failure:?}");
        assert!(answer.body.contains(reason), "{failure:?}: {}", answer.body);
        assert_eq!(answer.field("Retry-After"), "5");
        assert_eq!(answer.field("Cache-Control"), "no-store");
        // No other attempt is made.
        assert_eq!(site.servers.sent().len(), 1, "{failure:?}");
    }
    // A page of the store process itself passes as it is.
    site.servers
        .answer("503\nContent-Type: text/html\n\nno store yet");
    let answer = site.get("/lab/");
    assert_eq!((answer.status, answer.body.as_str()), (503, "no store yet"));
}
