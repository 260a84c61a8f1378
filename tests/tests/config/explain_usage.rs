//! The command line of `firstbyte explain`: the listener of a URL, errors, and the files that it leaves unchanged.

use firstbyte_tests::explain::{explain_report, line_of, outcome};
use firstbyte_tests::{Server, peer, run};

const SITE: &str = "server { listen 127.0.0.1:%%PORT%%; location / { } }";
const ROOT: &str = "http://localhost:%%PORT%%/";

#[test]
fn an_address_chooses_the_listener_and_a_name_the_wildcard() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(
        "server { listen %%PORT%%; return 200 wild; }
         server { listen 127.0.0.2:%%PORT%%; return 200 two; }
         server { listen [::1]:%%PORT2%%; return 200 six; }
         server { listen unix:%%DIR%%/s.sock; return 200 socket; }",
    )
    .written();
    let text = |words: &[&str]| explain_report(&server, words)["answer"]["text"].clone();
    assert_eq!(text(&["http://127.0.0.2:%%PORT%%/"]), "two");
    assert_eq!(text(&["http://127.0.0.3:%%PORT%%/"]), "wild");
    assert_eq!(text(&["http://[::1]:%%PORT2%%/"]), "six");
    assert_eq!(text(&["http://a.test:%%PORT2%%/"]), "six");
    assert_eq!(text(&["http://unix:%%DIR%%/s.sock:/x"]), "socket");
    assert_eq!(text(&["--to=127.0.0.2", "http://a.test:%%PORT%%/"]), "two");
    let report = explain_report(&server, &["http://a.test:%%PORT%%/"]);
    assert_eq!(report["answer"]["text"], "wild");
    assert_eq!(
        report["listener"]["others"][0],
        server.expand("127.0.0.2:%%PORT%%")
    );
}

/// The port of `--to` chooses the socket, and that of the URL stays in `Host`.
#[test]
fn a_destination_may_have_a_port() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; return 200 \"one $host:$server_port $http_host\"; }
         server { listen [::1]:%%PORT2%%; return 200 two; }",
    )
    .written();
    let report = |to: &str| explain_report(&server, &["--to", to, "http://a.test/"]);
    let one = report("127.0.0.1:%%PORT%%");
    let text = server.expand("one a.test:%%PORT%% a.test");
    assert_eq!(one["answer"]["text"], text, "{one}");
    assert_eq!(
        one["listener"]["address"],
        server.expand("127.0.0.1:%%PORT%%")
    );
    assert_eq!(report("[::1]:%%PORT2%%")["answer"]["text"], "two");
    let same = explain_report(&server, &["--to", "127.0.0.1", "http://a.test:%%PORT%%/"]);
    let text = server.expand("one a.test:%%PORT%% a.test:%%PORT%%");
    assert_eq!(same["answer"]["text"], text, "{same}");
    for (to, why) in [
        (
            "127.0.0.1:%%PORT2%%",
            "no server listens on 127.0.0.1:%%PORT2%%",
        ),
        ("127.0.0.1:0", "not an address"),
    ] {
        let outcome = outcome(&server, &["--to", to, "http://a.test/"]);
        assert!(outcome.stderr.contains(&server.expand(why)), "{outcome:?}");
        assert_eq!(outcome.code, 1, "{outcome:?}");
    }
}

#[test]
fn the_reason_of_an_answer_is_the_step_that_decided_it() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(
        "server {
             listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
             rewrite ^/old$ /new permanent;
             error_page 410 /page;
             location /denied { deny all; }
             location /text { return 200 ok; }
             location /gone { return 410; }
             location /closed { return 444; }
         }",
    )
    .file("html/file", "x")
    .file("html/page", "x")
    .written();
    for (path, reason) in [
        ("file", "content by the module static"),
        ("none", "status 404 Not Found"),
        ("denied", "deny all: denies"),
        ("text", "return 200 ok: answers"),
        ("old", "rewrite ^/old$ /new permanent: "),
        ("gone", "content by the module static"),
        ("closed", "the connection is closed (444)"),
        ("%00", "status 400 Bad Request"),
    ] {
        let report = explain_report(&server, &[&format!("{ROOT}{path}")]);
        let found = report["answer"]["reason"].as_str().unwrap_or_default();
        assert!(found.starts_with(reason), "{path}: {report}");
    }
}

#[test]
fn what_cannot_be_explained_says_why() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(SITE).allow("[emerg]").written();
    for (words, why) in [
        (&["localhost"][..], "the scheme is missing"),
        (&["gopher://localhost/"], "unknown scheme \"gopher\""),
        (&["http://localhost:99999/"], "the port is not a number"),
        (&[], "<URL>"),
        (
            &["--to", "::1", "http://unix:/s:/"],
            "--to needs a URL with a host",
        ),
        (&[ROOT, "--wrong"], "unexpected argument '--wrong'"),
        (&[ROOT, "-t"], "unexpected argument '-t'"),
        (
            &["http://localhost:1/"],
            "no server listens on 127.0.0.1:1; there is 127.0.0.1:%%PORT%%",
        ),
        (
            &["http://a.test:1/"],
            "no server listens on port 1; there is 127.0.0.1:%%PORT%%",
        ),
    ] {
        let outcome = outcome(&server, words);
        let why = server.expand(why);
        assert!(
            outcome.stderr.contains(&why),
            "{words:?}: {}",
            outcome.stderr
        );
        assert_eq!(
            (outcome.code, outcome.stdout.as_str()),
            (1, ""),
            "{words:?}"
        );
    }
    server.rewrite_conf(|text| text.replace("location / { }", "locatoin / { }"));
    let outcome = outcome(&server, &[ROOT]);
    let wanted = format!(
        "nginx: [emerg] unknown directive \"locatoin\" in {}:{}",
        server.path("nginx.conf").display(),
        line_of(&server, "locatoin")
    );
    assert!(outcome.stderr.contains(&wanted), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("^^^^^^^^"), "{}", outcome.stderr);
    assert_eq!(outcome.code, 1);
}

#[test]
fn nothing_is_written_opened_or_served() {
    if !peer::is_firstbyte() {
        return;
    }
    let server =
        Server::http("server { listen 127.0.0.1:%%PORT%%; location / { return 200 ok; } }")
            .written();
    let outcome = outcome(&server, &[ROOT]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for name in ["error.log", "access.log", "nginx.pid", "client_body_temp"] {
        assert!(!server.path(name).exists(), "{name} was made");
    }
    let text = server.expand("GET / for host localhost:%%PORT%%, from 127.0.0.1\n");
    assert!(outcome.stdout.starts_with(&text), "{}", outcome.stdout);
    let line = line_of(&server, "return 200 ok");
    let step = format!("nginx.conf:{line}");
    let told = |line: &&str| line.starts_with("  return      200 ok: answers ");
    let found = outcome.stdout.lines().find(told).unwrap_or_default();
    assert!(found.ends_with(&step), "{}", outcome.stdout);
}

#[test]
fn help_is_given() {
    if !peer::is_firstbyte() {
        return;
    }
    let outcome = run(["explain", "-h"]);
    assert!(
        outcome
            .stdout
            .contains("Usage: firstbyte explain [OPTIONS] <URL>")
    );
    assert_eq!(outcome.code, 0);
    let outcome = run(["-h"]);
    assert!(
        outcome.stderr.contains("\n  explain "),
        "{}",
        outcome.stderr
    );
    let outcome = run(["nonsense"]);
    assert!(outcome.stderr.contains("invalid option: \"nonsense\""));
}

/// Changes of files by a request are reported, and not made.
#[test]
fn explaining_changes_no_file() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(
        "server {
             listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
             dav_methods PUT DELETE MKCOL COPY MOVE;
         }",
    )
    .file("html/old", "old")
    .written();
    for (method, path, status) in [
        ("PUT", "old", 204),
        ("PUT", "new", 201),
        ("DELETE", "old", 204),
        ("MKCOL", "dir/", 201),
        ("MOVE", "old", 204),
    ] {
        let url = format!("{ROOT}{path}");
        let words = ["--method", method, "-H", "Destination: /moved", &url];
        let report = explain_report(&server, &words);
        assert_eq!(report["answer"]["status"], status, "{method} {path}");
    }
    let html = std::fs::read_dir(server.path("html")).expect("it is there");
    assert_eq!(html.count(), 1, "nothing was made");
    assert_eq!(server.dir().read("html/old"), "old");
    assert!(!server.path("client_body_temp").exists());
}
