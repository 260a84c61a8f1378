//! Errors of `-t` for a wrong configuration: nginx's words, the file and the line.
//!
//! Every wording is that of nginx's own output. Additions of firstbyte (the line itself, a caret, a suggestion, the
//! name of a directive that is not built yet) are checked only for firstbyte.

use firstbyte_tests::{Outcome, Server, peer, run};

/// Runs `-t` on a file with three valid lines first; the text under test starts in line 4.
fn test(text: &str) -> (Server, Outcome) {
    let conf = format!("error_log %%DIR%%/error.log;\npid %%DIR%%/nginx.pid;\n\n{text}\n");
    let server = Server::whole(&conf)
        .allow("[emerg]")
        .allow("[alert]")
        .file("logs/unused", "")
        .written();
    let mut arguments = server.arguments();
    arguments.push("-t".to_owned());
    let outcome = run(&arguments);
    (server, outcome)
}

/// `text` is refused with `message`, which ends in the file's name and `line` unless that is 0.
#[track_caller]
fn assert_refused(text: &str, line: u32, message: &str) -> String {
    let (server, outcome) = test(text);
    let file = server.path("nginx.conf");
    let place = if line == 0 {
        String::new()
    } else {
        format!(" in {}:{line}", file.display())
    };
    let wanted = format!("[emerg] {message}{place}");
    let received = &outcome.stderr;
    assert!(
        received.lines().any(|l| l.ends_with(&wanted)),
        "{text}\nwanted: {wanted}\nheard: {received}"
    );
    assert!(
        received.contains(&format!(
            "configuration file {} test failed",
            file.display()
        )),
        "{received}"
    );
    assert_eq!(outcome.code, 1, "{text}");
    outcome.stderr
}

#[track_caller]
fn assert_all_refused(cases: &[(&str, u32, &str)]) {
    for (text, line, message) in cases {
        assert_refused(text, *line, message);
    }
}

#[test]
fn syntax() {
    assert_all_refused(&[
        (
            "worker_processes 1",
            5,
            "unexpected end of file, expecting \";\" or \"}\"",
        ),
        (
            "events {} http { server {",
            5,
            "unexpected end of file, expecting \"}\"",
        ),
        ("events {} }", 4, "unexpected \"}\""),
        (
            "events {} http;",
            4,
            "directive \"http\" has no opening \"{\"",
        ),
        (
            "events {} http {\nroot \"a; }",
            6,
            "unexpected end of file, expecting \";\" or \"}\"",
        ),
        ("events {} http { root \"a\"b; }", 4, "unexpected \"b\""),
        ("events {} http {\n\n  root a }", 6, "unexpected \"}\""),
        ("events {} ; http {}", 4, "unexpected \";\""),
        ("events {} http { { } }", 4, "unexpected \"{\""),
        (
            "worker_processes 1 { }",
            4,
            "directive \"worker_processes\" is not terminated by \";\"",
        ),
    ]);
}

#[test]
fn names_places_and_counts() {
    assert_all_refused(&[
        (
            "events {} http { no_such_thing x; }",
            4,
            "unknown directive \"no_such_thing\"",
        ),
        (
            "events {} listen 80;",
            4,
            "\"listen\" directive is not allowed here",
        ),
        (
            "events {} http { worker_processes 1; }",
            4,
            "\"worker_processes\" directive is not allowed here",
        ),
        (
            "events {} http { server { server { } } }",
            4,
            "\"server\" directive is not allowed here",
        ),
        (
            "events {} http { root a b; }",
            4,
            "invalid number of arguments in \"root\" directive",
        ),
        (
            "events {} http {\n\n\nserver { listen; }\n}",
            7,
            "invalid number of arguments in \"listen\" directive",
        ),
        (
            "events {} http { server { location / { try_files a; } } }",
            4,
            "invalid number of arguments in \"try_files\" directive",
        ),
        (
            "events {} http { server { if ($a ) { return; } } }",
            4,
            "invalid number of arguments in \"return\" directive",
        ),
        (
            "events {} events {}",
            4,
            "\"events\" directive is duplicate",
        ),
        (
            "events {} http { root a; root b; }",
            4,
            "\"root\" directive is duplicate",
        ),
        (
            "events {} http { expires 1h; expires 2h; }",
            4,
            "\"expires\" directive is duplicate",
        ),
        ("http { }", 0, "no \"events\" section in configuration"),
    ]);
}

#[test]
fn values() {
    assert_all_refused(&[
        (
            "events {} http { sendfile maybe; }",
            4,
            "invalid value \"maybe\" in \"sendfile\" directive, it must be \"on\" or \"off\"",
        ),
        (
            "daemon perhaps;",
            4,
            "invalid value \"perhaps\" in \"daemon\" directive, it must be \"on\" or \"off\"",
        ),
        (
            "events {} http { client_max_body_size x; }",
            4,
            "\"client_max_body_size\" directive invalid value",
        ),
        (
            "events {} http { keepalive_timeout x; }",
            4,
            "\"keepalive_timeout\" directive invalid value",
        ),
        (
            "worker_processes many;",
            4,
            "\"worker_processes\" directive invalid value",
        ),
        (
            "events { worker_connections x; }",
            4,
            "invalid number \"x\"",
        ),
        (
            "events {} http { satisfy some; }",
            4,
            "invalid value \"some\"",
        ),
        (
            "events {} http { error_log x nolevel; }",
            4,
            "invalid log level \"nolevel\"",
        ),
    ]);
    if peer::is_root() {
        // Others may not change users: there the directive is only warned of.
        let text = "user no-such-user-here; events {}";
        assert_refused(text, 4, "getpwnam(\"no-such-user-here\") failed");
    }
}

#[test]
fn servers_and_listeners() {
    let twice = "events {} http { server { listen 127.0.0.1:8999 default_server; }\nserver { listen 127.0.0.1:8999 default_server; } }";
    assert_all_refused(&[
        (
            "events {} http { server { listen 1.1.1.1:99999; } }",
            4,
            "invalid port in \"1.1.1.1:99999\" of the \"listen\" directive",
        ),
        (
            "events {} http { server { listen 80 nonsense; } }",
            4,
            "invalid parameter \"nonsense\"",
        ),
        (
            "events {} http { server { listen 127.0.0.1:8999; listen 127.0.0.1:8999; } }",
            4,
            "a duplicate listen 127.0.0.1:8999",
        ),
        (twice, 5, "a duplicate default server for 127.0.0.1:8999"),
    ]);
    if peer::builds("deny all;") {
        let text = "events {} http { server { deny 300.1.1.1; } }";
        assert_refused(text, 4, "invalid parameter \"300.1.1.1\"");
    }
}

#[test]
fn locations_and_rewrites() {
    let in_server = |text: &str| format!("events {{}} http {{ server {{ {text} }} }}");
    for (text, message) in [
        ("location /a {} location /a {}", "duplicate location \"/a\""),
        (
            "location /a { location /b {} }",
            "location \"/b\" is outside location \"/a\"",
        ),
        (
            "location ~ \"(\" {}",
            "pcre2_compile() failed: missing closing parenthesis in \"(\"",
        ),
        (
            "location @n { alias /x; }",
            "the \"alias\" directive cannot be used inside the named location",
        ),
        ("return 99999;", "invalid return code \"99999\""),
        ("rewrite ^ /x nonsense;", "invalid parameter \"nonsense\""),
        ("set a b;", "invalid variable name \"a\""),
        (
            "error_page 99 /x;",
            "value \"99\" must be between 300 and 599",
        ),
        (
            "location /a { limit_except NOPE { deny all; } }",
            "invalid method \"NOPE\"",
        ),
    ] {
        assert_refused(&in_server(text), 4, message);
    }
    // nginx does not name the line that uses the variable.
    let line = if peer::is_firstbyte() { 4 } else { 0 };
    assert_refused(
        &in_server("return 200 $no_such_one;"),
        line,
        "unknown \"no_such_one\" variable",
    );
}

#[test]
fn logs_and_includes() {
    let (server, outcome) = test("events {} http { include none.conf; }");
    let dir = server.dir().path().display();
    let wanted = format!(
        "open() \"{dir}/none.conf\" failed (2: No such file or directory) in {dir}/nginx.conf:4"
    );
    assert!(outcome.stderr.contains(&wanted), "{}", outcome.stderr);
    assert_all_refused(&[
        (
            "events {} http { access_log x nosuch; }",
            4,
            "unknown log format \"nosuch\"",
        ),
        (
            "events {} http { log_format a b;\nlog_format a c; }",
            5,
            "duplicate \"log_format\" name \"a\"",
        ),
    ]);
}

#[test]
fn an_error_in_an_included_file_names_that_file() {
    let server = Server::whole("events {}\nhttp {\n include parts/*.conf;\n}\n")
        .file("parts/a.conf", "root a;\n")
        .file("parts/b.conf", "# first\n\nsendfile perhaps;\n")
        .file("logs/unused", "")
        .allow("[emerg]")
        .written();
    let mut arguments = server.arguments();
    arguments.push("-t".to_owned());
    let outcome = run(&arguments);
    let place = format!(" in {}:3", server.path("parts/b.conf").display());
    assert!(
        outcome.stderr.contains(&place) && outcome.code == 1,
        "{}",
        outcome.stderr
    );
}

#[test]
fn warnings_do_not_fail_the_test() {
    let logs = "access_log %%DIR%%/a.log; client_body_temp_path %%DIR%%/t;";
    for (text, warning) in [
        (
            "types { text/html html; text/plain html; }",
            "duplicate extension \"html\", content type: \"text/plain\", previous content type: \"text/html\"",
        ),
        (
            "server { listen 127.0.0.1:%%PORT%%; server_name a; } server { listen 127.0.0.1:%%PORT%%; server_name a; }",
            "conflicting server name \"a\" on 127.0.0.1:",
        ),
    ] {
        let (_server, outcome) = test(&format!("events {{}} http {{ {logs} {text} }}"));
        assert!(
            outcome.stderr.contains("[warn]") && outcome.stderr.contains(warning),
            "{}",
            outcome.stderr
        );
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    }
}

#[test]
fn the_line_a_caret_and_a_suggestion_follow_the_message() {
    if !peer::is_firstbyte() {
        return;
    }
    let received = assert_refused(
        "events {}\nhttp {\n    servr_name example.org;\n}",
        6,
        "unknown directive \"servr_name\"",
    );
    assert!(
        received.contains("servr_name example.org;"),
        "the line itself: {received}"
    );
    assert!(
        received.lines().any(|line| line.contains('^')),
        "a caret: {received}"
    );
    assert!(received.contains("server_name"), "a suggestion: {received}");
    let received = assert_refused(
        "events {} http { zzqqxxyy; }",
        4,
        "unknown directive \"zzqqxxyy\"",
    );
    assert!(
        !received.contains("did you mean"),
        "nothing is close enough: {received}"
    );
}

#[test]
fn a_directive_of_nginx_that_is_not_built_is_named_as_such() {
    if !peer::is_firstbyte() {
        return;
    }
    for (name, text) in [
        ("js_content", "server { location / { js_content a; } }"),
        (
            "grpc_pass",
            "server { location / { grpc_pass 127.0.0.1:1; } }",
        ),
    ] {
        let (server, outcome) = test(&format!("events {{}} http {{\n{text}\n}}"));
        let received = &outcome.stderr;
        assert_eq!(outcome.code, 1, "{received}");
        let place = format!("{}:5", server.path("nginx.conf").display());
        assert!(
            received.contains(&format!("\"{name}\"")) && received.contains(&place),
            "{received}"
        );
        assert!(
            !received.contains("unknown directive"),
            "it is known, only not built: {received}"
        );
    }
    let (_server, outcome) = test("load_module modules/ngx_no_such_module.so; events {}");
    assert!(
        outcome.code == 1 && outcome.stderr.contains("ngx_no_such_module"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn directives_without_a_meaning_here_are_accepted() {
    let (_server, outcome) = test(
        "events { accept_mutex off; multi_accept on; use epoll; }
         http { types_hash_max_size 2048; types_hash_bucket_size 64; server_names_hash_bucket_size 64;
                server_names_hash_max_size 1024; variables_hash_max_size 2048; variables_hash_bucket_size 128;
                access_log %%DIR%%/a.log; client_body_temp_path %%DIR%%/t; }",
    );
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
}
