//! `firstbyte explain`: the handling of a request, and the lines that decide it.
//!
//! The output is compared with the lines of the configuration here, and with the running server in `explain_agrees.rs`.
//! The command line is in `explain_usage.rs`. nginx has no such command.

use firstbyte_tests::explain::{explain_report, line_of};
use firstbyte_tests::{Builder, Server, peer};
use serde_json::Value;

/// The steps as `step: text`, each with its line if it has one.
fn steps(report: &Value) -> Vec<(String, Option<u64>)> {
    let text = |step: &Value| {
        let (kind, text) = (step["step"].as_str(), step["text"].as_str());
        format!("{}: {}", kind.unwrap_or_default(), text.unwrap_or_default())
    };
    let all = report["steps"].as_array().expect("steps are a list");
    all.iter()
        .map(|step| (text(step), step["at"]["line"].as_u64()))
        .collect()
}

/// Checks that these steps are among those reported, in this order, each with the line that holds its second text ("" for
/// none).
#[track_caller]
fn assert_steps(server: &Server, report: &Value, expected: &[(&str, &str)]) {
    let told = steps(report);
    let mut rest = told.iter();
    for (text, line) in expected {
        let line = (!line.is_empty()).then(|| line_of(server, line));
        let text = server.expand(text);
        assert!(
            rest.any(|step| *step == (text.clone(), line)),
            "no step {text:?} at {line:?}, or not in this place: {told:#?}"
        );
    }
}

#[track_caller]
fn assert_status(report: &Value, status: u64) {
    assert_eq!(report["answer"]["status"], status, "{report:#}");
}

/// A server with these locations, on lines of their own.
fn site(locations: &str) -> Builder {
    let http = format!(
        "types {{ text/html html; image/png png; }}\n\
         server {{\nlisten 127.0.0.1:%%PORT%%;\nserver_name localhost;\nroot %%DIR%%/html;\n{locations}\n}}"
    );
    Server::http(&http)
        .file("html/index.html", "welcome")
        .file("html/img/a.png", "picture")
        .file("html/404.html", "no such page")
}

const ROOT: &str = "http://localhost:%%PORT%%/";

#[test]
fn the_server_is_told_with_the_name_that_chose_it() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; server_name first.test; return 200 first; }
         server { listen 127.0.0.1:%%PORT%%;
           server_name www.test
             exact.test; return 200 exact; }
         server { listen 127.0.0.1:%%PORT%% default_server; return 200 default; }
         server { listen 127.0.0.1:%%PORT%%; server_name *.wild.test; return 200 head; }
         server { listen 127.0.0.1:%%PORT%%; server_name .dot.test; return 200 dot; }
         server { listen 127.0.0.1:%%PORT%%; server_name tail.*; return 200 tail; }
         server { listen 127.0.0.1:%%PORT%%; server_name ~^re\\d+\\.test$; return 200 regex; }
         server { listen 127.0.0.1:%%PORT2%%; server_name only.test; return 200 only; }",
    )
    .written();
    for (host, kind, text, name_line) in [
        ("exact.test", "exact", "exact", "server_name www.test"),
        ("EXACT.test", "exact", "exact", "server_name www.test"),
        ("a.wild.test", "wildcard", "head", "*.wild.test"),
        ("dot.test", "exact", "dot", ".dot.test"),
        ("a.dot.test", "wildcard", "dot", ".dot.test"),
        ("tail.test", "wildcard", "tail", "tail.*"),
        ("re12.test", "regex", "regex", "~^re"),
        ("re.test", "default", "default", ""),
    ] {
        let report = explain_report(&server, &[&format!("http://{host}:%%PORT%%/")]);
        assert_eq!(report["answer"]["text"], text, "{host}");
        let chosen = &report["server"];
        assert_eq!(chosen["match"], kind, "{host}");
        let line = chosen["name_at"]["line"].as_u64();
        let wanted = (!name_line.is_empty()).then(|| line_of(&server, name_line));
        assert_eq!(line, wanted, "{host}: {chosen}");
    }
    let report = explain_report(&server, &["http://other.test:%%PORT%%/"]);
    let why = report["server"]["why"].as_str().unwrap_or_default();
    assert_eq!(
        why,
        "no server has the name \"other.test\"; it is the default_server"
    );
    assert_eq!(
        report["listener"]["at"]["line"],
        line_of(&server, "default_server")
    );
    let report = explain_report(&server, &["http://other.test:%%PORT2%%/"]);
    assert_eq!(report["server"]["match"], "only");
    assert_eq!(report["server"]["name"], "only.test");
}

#[test]
fn the_search_for_a_location_is_told_candidate_by_candidate() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site(
        "location / { }
location /img/ {
    location ~ \\.gif$ { return 200 gif; }
    location ~ \\.(png|jpg)$ {
        expires 1h;
    }
}
location ~ ^/img/never { return 200 never; }
location ^~ /fixed/ { return 200 fixed; }
location ~ fixed { return 200 never; }
location = /one { return 200 one; }",
    )
    .written();
    let report = explain_report(&server, &[&format!("{ROOT}img/a.png")]);
    assert_steps(
        &server,
        &report,
        &[
            ("search: a location for \"/img/a.png\"", ""),
            ("prefix: location /img/: is the longest", "location /img/ {"),
            ("regex: location ~ \\.gif$: does not match", "\\.gif$"),
            ("regex: location ~ \\.(png|jpg)$: matches", "png|jpg"),
            ("found: location ~ \\.(png|jpg)$", "png|jpg"),
            ("file: open %%DIR%%/html/img/a.png: a file of 7 bytes", ""),
            ("content: by the module static", ""),
        ],
    );
    assert_status(&report, 200);
    assert_eq!(
        report["answer"]["file"],
        server.expand("%%DIR%%/html/img/a.png")
    );
    assert_eq!(
        report["location"]["at"]["line"],
        line_of(&server, "png|jpg")
    );
    let report = explain_report(&server, &[&format!("{ROOT}fixed/x")]);
    let found =
        "prefix: location ^~ /fixed/: is the longest match; no regular expressions are tried";
    assert_steps(&server, &report, &[(found, "^~ /fixed/")]);
    assert_eq!(report["answer"]["text"], "fixed");
    let report = explain_report(&server, &[&format!("{ROOT}one")]);
    let found = "exact: location = /one: equals the URI: the search ends";
    assert_steps(&server, &report, &[(found, "= /one")]);
    let report = explain_report(&server, &[&format!("{ROOT}img/a.none")]);
    assert_steps(
        &server,
        &report,
        &[("regex: location ~ ^/img/never: does not match", "never {")],
    );
    assert_status(&report, 404);
    assert_eq!(report["answer"]["own_page"], true);
}

#[test]
fn rewrites_are_told_one_by_one() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site(
        "rewrite ^/a/(.*)$ /b/$1?from=a;
rewrite ^/other$ /never;
if ($arg_go = away) {
    return 302 http://other.test$request_uri;
}
set $kind plain;
location /b/ {
    rewrite ^/b/(.*)$ /c/$1 last;
    return 500;
}
location /c/ {
    if ($kind = plain) {
        return 200 \"$kind $uri $args\";
    }
}
location /loop { rewrite ^ /loop last; }",
    )
    .written();
    let report = explain_report(&server, &[&format!("{ROOT}a/x?y=1")]);
    assert_steps(
        &server,
        &report,
        &[
            (
                "rewrite: ^/a/(.*)$ /b/$1?from=a: the URI is \"/b/x\", arguments \"from=a&y=1\"",
                "^/a/",
            ),
            (
                "rewrite: ^/other$ /never: does not match \"/b/x\"",
                "^/other$",
            ),
            ("if: ($arg_go = away): does not hold", "$arg_go"),
            ("set: $kind plain: value \"plain\"", "set $kind"),
            ("found: location /b/", "location /b/"),
            (
                "rewrite: ^/b/(.*)$ /c/$1 last: the URI is \"/c/x\", arguments \"from=a&y=1\"",
                "^/b/",
            ),
            ("search: a location for \"/c/x\"", ""),
            ("found: location /c/", "location /c/"),
            ("if: ($kind = plain): holds", "$kind = plain"),
            ("return: 200 \"$kind $uri $args\": answers", "return 200"),
        ],
    );
    assert_eq!(report["answer"]["text"], "plain /c/x from=a&y=1");
    assert_eq!(report["location"]["text"], "if ($kind = plain)");
    let report = explain_report(&server, &[&format!("{ROOT}x?go=away")]);
    assert_status(&report, 302);
    assert_eq!(report["answer"]["location"], "http://other.test/x?go=away");
    let report = explain_report(&server, &[&format!("{ROOT}loop")]);
    let text = "log: [error] rewrite or internal redirection cycle while processing \"/loop\"";
    assert_steps(
        &server,
        &report,
        &[(text, ""), ("status: 500 Internal Server Error", "")],
    );
    assert_status(&report, 500);
}

#[test]
fn internal_redirections_are_followed() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site(
        "error_page 404 /404.html;
index home.html index.html;
location /app/ {
    try_files $uri $uri/ @app;
}
location @app {
    return 200 \"app $uri\";
}
location /gone/ {
    error_page 403 =410 @app;
    deny all;
}
location /none/ { try_files /x =418; }
location = /404.html { internal; }
location /files/ {
    alias %%DIR%%/html/img/;
}",
    )
    .written();
    let report = explain_report(&server, &[&format!("{ROOT}app/x")]);
    assert_steps(
        &server,
        &report,
        &[
            (
                "file: stat %%DIR%%/html/app/x: 2: No such file or directory",
                "",
            ),
            (
                "try_files: $uri $uri/ @app: falls back to \"@app\"",
                "try_files $uri",
            ),
            ("named: location @app", "location @app"),
            ("return: 200 \"app $uri\": answers", "app $uri"),
        ],
    );
    assert_eq!(report["answer"]["text"], "app /app/x");
    let report = explain_report(&server, &[ROOT]);
    assert_steps(
        &server,
        &report,
        &[
            (
                "file: stat %%DIR%%/html/home.html: 2: No such file or directory",
                "",
            ),
            (
                "index: home.html index.html: is \"/index.html\"",
                "index home",
            ),
            ("redirect: inside the server to \"/index.html\"", ""),
        ],
    );
    assert_eq!(
        report["answer"]["file"],
        server.expand("%%DIR%%/html/index.html")
    );
    let report = explain_report(&server, &[&format!("{ROOT}missing")]);
    assert_steps(
        &server,
        &report,
        &[
            ("content: by the module static", ""),
            ("status: 404 Not Found", ""),
            (
                "error_page: 404 /404.html: leads to \"/404.html\"",
                "error_page 404",
            ),
            ("found: location = /404.html", "internal;"),
        ],
    );
    assert_status(&report, 404);
    assert_eq!(
        report["answer"]["file"],
        server.expand("%%DIR%%/html/404.html")
    );
    let report = explain_report(&server, &[&format!("{ROOT}gone/x")]);
    assert_steps(
        &server,
        &report,
        &[
            ("deny: all: denies", "deny all"),
            ("status: 403 Forbidden, by the module access", ""),
            ("error_page: 403 =410 @app: leads to \"@app\"", "=410 @app"),
            ("named: location @app", "location @app"),
        ],
    );
    assert_status(&report, 410);
    let report = explain_report(&server, &[&format!("{ROOT}none/")]);
    assert_steps(
        &server,
        &report,
        &[("status: 418, by the module try_files", "")],
    );
    let report = explain_report(&server, &[&format!("{ROOT}files/a.png")]);
    assert_eq!(
        report["answer"]["file"],
        server.expand("%%DIR%%/html/img/a.png")
    );
}

#[test]
fn variables_of_the_request_decide() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(
        "map $http_x_kind $backend { default one; two 2; }
         geo $near { default far; 192.0.2.0/24 near; }
         server { listen 127.0.0.1:%%PORT%%;
           location / { return 301 $scheme://$host/$backend/$near; }
           location /post { limit_except GET { deny all; } return 200 got; }
           location /hang { return 444; }
           location /addr { allow 192.0.2.0/24;
             deny all; } }",
    )
    .file("html/addr", "x")
    .written();
    let location = |words: &[&str]| {
        let mut all = vec!["http://a.test:%%PORT%%/"];
        all.extend(words);
        let report = explain_report(&server, &all);
        assert_status(&report, 301);
        report["answer"]["location"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(location(&[]), "http://a.test/one/far");
    assert_eq!(location(&["-H", "X-Kind: two"]), "http://a.test/2/far");
    assert_eq!(location(&["--from", "192.0.2.9"]), "http://a.test/one/near");
    assert_eq!(location(&["-HHost: b.test"]), "http://b.test/one/far");
    let report = explain_report(&server, &["http://a.test:%%PORT%%/hang"]);
    assert_eq!(report["answer"]["status"], Value::Null);
    assert_eq!(report["answer"]["reason"], "the connection is closed (444)");
    let report = explain_report(&server, &["--method=POST", "http://a.test:%%PORT%%/addr"]);
    assert_steps(&server, &report, &[("deny: all: denies", "deny all; } }")]);
    let report = explain_report(
        &server,
        &["--from=192.0.2.9", "http://a.test:%%PORT%%/addr"],
    );
    assert_steps(
        &server,
        &report,
        &[("allow: 192.0.2.0/24: allows", "allow 192")],
    );
    let report = explain_report(&server, &["--method=PUT", "http://a.test:%%PORT%%/post"]);
    assert_steps(
        &server,
        &report,
        &[("except: limit_except GET", "limit_except")],
    );
}

#[test]
fn settings_in_effect_name_the_line_they_come_from() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(
        "sendfile on;
         add_header X-Outer 1;
         server { listen 127.0.0.1:%%PORT%%;
           root %%DIR%%/html;
           include extra.conf;
           location /a { add_header X-Inner 2;
             return 204; } }",
    )
    .file("extra.conf", "# a comment\n\nkeepalive_requests 7;\n")
    .written();
    let report = explain_report(&server, &["http://localhost:%%PORT%%/a"]);
    let find = |report: &Value, name: &str| {
        let all = report["settings"].as_array().expect("a list").clone();
        all.into_iter()
            .filter(|s| s["name"] == name)
            .collect::<Vec<_>>()
    };
    for (name, value, from, line) in [
        ("sendfile", "on", "http", "sendfile on"),
        ("root", "%%DIR%%/html", "server", "root"),
        ("add_header", "X-Inner 2", "location /a", "X-Inner"),
        ("error_log", "%%DIR%%/error.log info", "main", "error_log"),
    ] {
        let found = find(&report, name);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert_eq!(found[0]["value"], server.expand(value));
        assert_eq!(found[0]["from"], from);
        assert_eq!(found[0]["at"]["line"], line_of(&server, line), "{name}");
    }
    let included = &find(&report, "keepalive_requests")[0]["at"];
    assert_eq!(included["file"], server.expand("%%DIR%%/extra.conf"));
    assert_eq!(included["line"], 3);
    assert!(find(&report, "etag").is_empty(), "it is at its default");
    let report = explain_report(&server, &["--all", "http://localhost:%%PORT%%/a"]);
    let etag = &find(&report, "etag")[0];
    assert_eq!(
        (&etag["value"], &etag["from"]),
        (&"on".into(), &"default".into())
    );
    assert_eq!(etag["at"], Value::Null);
}

#[test]
fn who_refuses_is_told() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site(
        "location /deny { deny all; }\n\
         location /ask { auth_basic x; auth_basic_user_file users; auth_delay 2s; }",
    )
    .written();
    let report = explain_report(&server, &[&format!("{ROOT}deny")]);
    assert_status(&report, 403);
    assert_steps(
        &server,
        &report,
        &[("status: 403 Forbidden, by the module access", "")],
    );
    let report = explain_report(&server, &[&format!("{ROOT}ask")]);
    assert_status(&report, 401);
    assert_steps(
        &server,
        &report,
        &[
            ("status: 401 Unauthorized, by the module auth_basic", ""),
            ("wait: 2000 ms", ""),
        ],
    );
}
