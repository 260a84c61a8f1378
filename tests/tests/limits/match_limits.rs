//! Regular expressions at their match limit: logged, and never taken for "does not match".
//!
//! Sources: docs/differences.md; nginx's alert `pcre2_match() failed`.

use crate::tls_client::{Tls, site};
use firstbyte_tests::client::request;
use firstbyte_tests::{Builder, Server};

/// A text on which `^(a+)+$` ends at its limit: it backtracks twice as long for each letter.
fn endless() -> String {
    format!("{}b", "a".repeat(40))
}

fn http(template: &str) -> Builder {
    Server::http(template).allow("pcre2_match() failed")
}

fn in_server(inner: &str) -> Server {
    http(&format!(
        "map $arg_x $closed {{ volatile; ~^(a+)+$ 1; default 0; }}
         map $arg_x $root {{ ~^(a+)+$ %%DIR%%/none; default %%DIR%%/html; }}
         server {{ listen 127.0.0.1:%%PORT%%; server_name localhost; root %%DIR%%/html; {inner} }}"
    ))
    .file("html/f", "file")
    .file("html/g", "other")
    .start()
}

#[track_caller]
fn assert_alert(server: &Server, subject: &str) {
    let wanted = format!("[alert] pcre2_match() failed: -47 on \"{subject}\" using \"");
    let log = server.error_log();
    let found = log
        .lines()
        .any(|line| line.contains("[alert]") && line.contains(&wanted["[alert] ".len()..]));
    assert!(found, "{wanted} in {log}");
}

#[test]
fn what_a_map_guards_stays_closed() {
    let text = endless();
    for inner in [
        "if ($closed) { return 403; } return 200 open;",
        "return 200 open$closed;",
        "add_header X $closed always; return 200 open;",
        "set $y $closed; location / { }",
        "location / { root $root; }",
        "location = /f { } location / { try_files $closed /f; }",
        "location = /f { } location / { error_page 404 =200 /f$closed; return 404; }",
        "location / { return 302 /elsewhere$closed; }",
    ] {
        let server = in_server(inner);
        let answer = server.get(&format!("/g?x={text}"));
        assert_eq!(answer.status, 500, "{inner}");
        assert_eq!(answer.header("Location"), None, "{inner}");
        assert_alert(&server, &text);
        let answer = server.get("/g?x=b");
        assert_ne!(
            answer.status, 500,
            "{inner}: what does not match is no error"
        );
    }
}

/// The limit itself: below it an expression does not match, at it and above the match fails.
#[test]
fn the_answer_changes_from_no_to_500_at_one_length() {
    let server = in_server("return 200 $closed;");
    let status = |letters: usize| {
        let answer = server.get(&format!("/?x={}b", "a".repeat(letters)));
        let text = answer.text();
        assert!(
            answer.status == 500 || (answer.status == 200 && text == "0"),
            "{text}"
        );
        answer.status
    };
    let first = (1..40).find(|n| status(*n) == 500).expect("it has a limit");
    assert_eq!(status(first - 1), 200);
    assert_eq!(status(first + 1), 500);
}

#[test]
fn nothing_is_changed_where_a_map_names_it() {
    let server = Server::whole(
        "user root root; daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log info;
         events { }
         http {
             client_body_temp_path %%DIR%%/up; access_log off;
             map $arg_x $root { ~^(a+)+$ %%DIR%%/none; default %%DIR%%/html; }
             server { listen 127.0.0.1:%%PORT%%; root $root; dav_methods DELETE PUT; }
         }",
    )
    .allow("pcre2_match() failed")
    .file("html/f", "file")
    .start();
    let path = format!("/f?x={}", endless());
    for (method, lines) in [("DELETE", &[][..]), ("PUT", &["Content-Length: 0"])] {
        let answer = server
            .client()
            .send(request(method, &path, lines))
            .response();
        assert_eq!(answer.status, 500, "{method}");
    }
    let text = std::fs::read_to_string(server.path("html/f")).expect("it is there");
    assert_eq!(text, "file");
}

#[test]
fn a_referer_that_cannot_be_judged_gets_500() {
    for inner in [
        "valid_referers ~^(a+)+$;",
        "server_name ~^(a+)+$; valid_referers server_names;",
    ] {
        let server = in_server(&format!(
            "{inner} location / {{ if ($invalid_referer) {{ return 403; }} return 200 ok; }}"
        ));
        let referer = |text: &str| format!("Referer: http://{text}");
        let answer = server.client().get_with("/", &[&referer(&endless())]);
        assert_eq!(answer.status, 500, "{inner}");
        assert_alert(&server, &endless());
        let valid = server.client().get_with("/", &[&referer("aaaaaaaaaa")]);
        assert_eq!(valid.status, 200, "{inner}");
        let invalid = server.client().get_with("/", &[&referer("aaaaaaaaab")]);
        assert_eq!(invalid.status, 403, "{inner}");
    }
}

#[test]
fn a_host_that_cannot_be_compared_gets_500() {
    let server = http(
        "server { listen 127.0.0.1:%%PORT%%; server_name first; return 200 first; }
         server { listen 127.0.0.1:%%PORT%%; server_name ~^(a+)+$; return 200 second; }",
    )
    .start();
    let host = |text: &str| {
        let mut client = server.client();
        let answer = client.get_with("/", &[&format!("Host: {text}")]);
        (answer.status, answer.text() == "first", client.closed())
    };
    let (status, first, closed) = host(&endless());
    assert_eq!((status, first, closed), (500, false, true));
    assert_alert(&server, &endless());
    let other = server.client().get_with("/", &["Host: b"]);
    assert_eq!(other.text(), "first");
}

#[test]
fn a_name_of_a_handshake_that_cannot_be_compared_ends_it() {
    let leaf = site("first");
    let server = http(
        "ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
         server { listen 127.0.0.1:%%PORT%% ssl; server_name first; return 200 first; }
         server { listen 127.0.0.1:%%PORT%% ssl; server_name ~^(a+)+$; return 200 second; }",
    )
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .start();
    let client = Tls::new();
    assert_eq!(client.get(server.port(), "b", "/").body, "first");
    assert_eq!(client.get(server.port(), "aaa", "/").body, "second");
    let refused = client.ask(server.port(), &endless(), &endless(), "/");
    let message = refused.expect_err("the handshake ends").to_string();
    assert!(message.contains("InternalError"), "{message}");
    assert_alert(&server, &endless());
}

#[test]
fn locations_and_rewrites_tell_in_the_log() {
    for inner in [
        "location ~ ^/(a+)+$ { return 200 it; } return 200 other;",
        "rewrite ^/(a+)+$ /it; return 200 other;",
        "if ($uri ~ ^/(a+)+$) { return 200 it; } return 200 other;",
    ] {
        // A server-level `return` would respond before the choice of a location.
        let inner = match inner.strip_prefix("location") {
            Some(_) => inner.replace(" return 200 other;", " location / { return 200 other; }"),
            None => inner.to_owned(),
        };
        let server = in_server(&format!("rewrite_log on; {inner}"));
        let path = format!("/{}", endless());
        assert_eq!(server.get(&path).status, 500, "{inner}");
        assert_alert(&server, &path);
    }
}

/// As in nginx, the map affects only the coding.
#[test]
fn a_browser_that_cannot_be_compared_gets_no_gzip() {
    let server = in_server(
        "gzip on; gzip_min_length 1; gzip_types *; gzip_disable ^(a+)+$; location / { return 200 text; }",
    );
    let ask = |agent: &str| {
        let agent = format!("User-Agent: {agent}");
        server
            .client()
            .get_with("/", &["Accept-Encoding: gzip", &agent])
    };
    let answer = ask(&endless());
    assert_eq!((answer.status, answer.text().as_str()), (200, "text"));
    assert_eq!(answer.header("Content-Encoding"), None);
    assert_alert(&server, &endless());
    assert_eq!(ask("b").header("Content-Encoding"), Some("gzip"));
}

/// The condition is evaluated after the response, so its failure does not change the response.
#[test]
fn a_log_whose_condition_cannot_be_judged_costs_no_answer() {
    let server = in_server("access_log %%DIR%%/a.log combined if=$closed; location / { }");
    let answer = server.get(&format!("/f?x={}", endless()));
    assert_eq!((answer.status, answer.text().as_str()), (200, "file"));
    server.wait_for_text("error.log", "pcre2_match() failed");
}
