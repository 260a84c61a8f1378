//! The example site in a browser and in curl: over TLS by HTTP/2, and by HTTP/1.1 on the same port.
//!
//! `.ci/setup` installs both. Without Chromium its tests are skipped with a message, and fail with `CI=true`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::tls_client::site;
use firstbyte_tests::skip::skip_outside_ci;
use firstbyte_tests::wait::holds_within;
use firstbyte_tests::{Server, peer};

/// `examples/site`, unchanged except for its ports, its error log and the paths that lead out of it.
fn example() -> Server {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let from = root.join("examples/site");
    let mut conf = fs::read_to_string(from.join("nginx.conf")).expect("the example is there");
    for (old, new) in [
        ("127.0.0.1:8080", "127.0.0.1:%%PORT%%"),
        ("stderr notice", "error.log info"),
        (
            "../../conf/mime.types",
            &root.join("conf/mime.types").display().to_string(),
        ),
    ] {
        assert!(conf.contains(old), "the example has {old}");
        conf = conf.replace(old, new);
    }
    let leaf = site("localhost");
    let mut builder = Server::whole(&format!("%%USER%%\n{conf}"))
        .file(
            "run/tls.conf",
            "listen 127.0.0.1:%%PORT2%% ssl;
             ssl_certificate run/localhost.pem; ssl_certificate_key run/localhost.key;",
        )
        .bytes("run/localhost.pem", leaf.certificate.as_bytes())
        .bytes("run/localhost.key", leaf.key.as_bytes());
    for name in FILES {
        let bytes = fs::read(from.join("html").join(name)).expect("the example has its files");
        builder = builder.bytes(&format!("html/{name}"), &bytes);
    }
    builder.start()
}

/// Output of a program, which must have ended with success and in time.
#[track_caller]
fn output(command: &mut Command) -> Output {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    // A page is far smaller than a pipe, so the process ends before its output is read.
    let ended = holds_within(PATIENCE, || {
        child.try_wait().is_ok_and(|status| status.is_some())
    });
    if !ended {
        let _ = child.kill();
    }
    let output = child.wait_with_output().expect("it has ended");
    assert!(ended && output.status.success(), "{command:?}: {output:?}");
    output
}

/// Chromium, if there is one.
fn chromium() -> Option<PathBuf> {
    let places = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&places)
        .flat_map(|place| names.map(|name| place.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        skip_outside_ci("Chromium is not installed");
    }
    found
}

/// Result of a page in the browser.
#[track_caller]
fn page(browser: &Path, server: &Server, options: &[&str], path: &str) -> String {
    let profile = server.path("profile");
    let output = output(
        Command::new(browser)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .args(["--no-first-run", "--ignore-certificate-errors"])
            .arg("--host-resolver-rules=MAP * ~NOTFOUND,EXCLUDE 127.0.0.1")
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(options)
            .arg("--dump-dom")
            .arg(format!("https://127.0.0.1:{}{path}", server.port_number(2))),
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn browser_loads_the_site_by_http2() {
    let Some(browser) = chromium() else { return };
    let server = example();
    let front = page(&browser, &server, &[], "/");
    assert!(
        front.contains("<title>firstbyte: an example site</title>"),
        "{front}"
    );
    let missing = page(&browser, &server, &[], "/nothing-here");
    assert!(missing.contains("<title>Not here</title>"), "{missing}");
    for line in [
        "\"GET / HTTP/2.0\" 200",
        "\"GET /style.css HTTP/2.0\" 200",
        "\"GET /mark.svg HTTP/2.0\" 200",
        "\"GET /nothing-here HTTP/2.0\" 404",
    ] {
        server.wait_for_text("run/access.log", line);
    }
    let log = server.path("run/access.log");
    let log = fs::read_to_string(log).expect("it was read before");
    assert!(!log.contains("HTTP/1.1"), "{log}");
}

#[test]
fn browser_without_http2_loads_the_site_by_http1() {
    let Some(browser) = chromium() else { return };
    let server = example();
    let front = page(&browser, &server, &["--disable-http2"], "/");
    assert!(
        front.contains("<title>firstbyte: an example site</title>"),
        "{front}"
    );
    server.wait_for_text("run/access.log", "\"GET / HTTP/1.1\" 200");
    server.wait_for_text("run/access.log", "\"GET /style.css HTTP/1.1\" 200");
}

#[test]
fn curl_gets_every_file_by_both_protocols() {
    let server = example();
    let port = server.port_number(2);
    for (option, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--insecure", option]);
        curl.args(["--write-out", "%{http_version}"]);
        for name in FILES {
            let at = server.path(&format!("got/{version}/{name}"));
            curl.arg("--create-dirs").arg("--output").arg(at);
            curl.arg(format!("https://127.0.0.1:{port}/{name}"));
        }
        let versions = output(&mut curl).stdout;
        let expected = version.repeat(FILES.len());
        assert_eq!(String::from_utf8_lossy(&versions), expected);
        for name in FILES {
            let got = fs::read(server.path(&format!("got/{version}/{name}")));
            let there = fs::read(server.path(&format!("html/{name}")));
            assert_eq!(
                got.expect("curl wrote it"),
                there.expect("it is served"),
                "{name}"
            );
        }
    }
    for line in [
        "\"GET /mark.svg HTTP/2.0\" 200",
        "\"GET /mark.svg HTTP/1.1\" 200",
    ] {
        server.wait_for_text("run/access.log", line);
    }
}

/// By prior knowledge on the port without TLS, too.
#[test]
fn curl_gets_the_site_without_tls() {
    if !peer::is_firstbyte() {
        // Many nginx releases do not serve both protocols on one port.
        return;
    }
    let server = example();
    let url = format!("http://127.0.0.1:{}/status", server.port());
    for (option, protocol) in [
        ("--http2-prior-knowledge", "HTTP/2.0"),
        ("--http1.1", "HTTP/1.1"),
    ] {
        let status = output(Command::new("curl").args(["--silent", option, &url])).stdout;
        let status = String::from_utf8_lossy(&status).into_owned();
        assert!(
            status.starts_with(&format!("GET /status over {protocol}\n")),
            "{status}"
        );
    }
}

/// Files of the example.
const FILES: [&str; 5] = [
    "index.html",
    "404.html",
    "style.css",
    "mark.svg",
    "notes/reload.html",
];
/// Timeout of a browser's start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
