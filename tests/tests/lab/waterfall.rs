//! `firstbyte waterfall` of visited pages: by the built-in clients over each protocol and by Chromium, through a link,
//! with packets, again with warm caches, and without a measurement.
//!
//! Tests that need a link or a browser are skipped with a message without one.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::tls_client::site;
use firstbyte_tests::backend::Backend;
use firstbyte_tests::busy::Waits;
use firstbyte_tests::port::Port;
use firstbyte_tests::wait::holds_within;
use firstbyte_tests::{
    Server, Signal, TempDir, peer, process, programs, report, run, via, wait_until,
};
use serde_json::Value;

/// Images of the page.
const IMAGES: usize = 30;

/// A page with images: port 1 plain HTTP/1.1 and HTTP/2, 2 plain SPDY, 3 TLS.
fn page() -> Server {
    let leaf = site("localhost");
    let images: String = (0..IMAGES)
        .map(|n| format!("<img src=\"{n}.svg\">"))
        .collect();
    let document = format!("<!doctype html><title>t</title><link rel=icon href=0.svg>{images}");
    let picture = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1\" height=\"1\"/>";
    let server = Server::http(
        "server {
            listen 127.0.0.1:%%PORT%%; listen 127.0.0.1:%%PORT2%% spdy; listen 127.0.0.1:%%PORT3%% ssl spdy;
            http2 on; ssl_certificate leaf.pem; ssl_certificate_key leaf.key; root html;
            types { text/html html; image/svg+xml svg; } expires 1h;
         }",
    )
    .bytes("leaf.pem", leaf.certificate.as_bytes())
    .bytes("leaf.key", leaf.key.as_bytes())
    .file("html/index.html", &document);
    let server = (0..IMAGES).fold(server, |server, n| {
        server.file(&format!("html/{n}.svg"), picture)
    });
    server.start()
}

fn url(server: &Server, port: usize) -> String {
    let scheme = if port == 3 { "https" } else { "http" };
    format!("{scheme}://localhost:{}/", server.port_number(port))
}

fn has_browser() -> bool {
    peer::is_firstbyte() && programs::command("chromium").is_some()
}

/// The share of starts that waited for another's end, of a page over a link of 50 ms.
fn score(server: &Server, words: &[&str], port: usize, protocol: &str) -> f64 {
    let url = url(server, port);
    let report = report(
        "waterfall",
        &[&[url.as_str(), "--via", "50ms"], words].concat(),
    );
    let visit = &report["cold"]["visit"];
    let of_page = |one: &&Value| one["kind"] == "image";
    let resources = visit["resources"].as_array().expect("a list");
    let images: Vec<&Value> = resources.iter().filter(of_page).collect();
    assert_eq!(images.len(), IMAGES, "{visit}");
    for image in images {
        assert_eq!(
            (&image["status"], &image["protocol"]),
            (&200.into(), &protocol.into())
        );
    }
    let round_trip_ms = visit["round_trip_ms"].as_f64().unwrap_or_default();
    assert!((49.0..80.0).contains(&round_trip_ms), "{round_trip_ms}");
    visit["staircase"]["score"]
        .as_f64()
        .expect("there were starts")
}

#[test]
fn stairs_go_with_the_protocol_of_the_built_in_clients() {
    if !via::possible() {
        return;
    }
    let server = page();
    let waits = Waits::begin();
    let stairs = score(&server, &["--wire", "--protocol", "h1"], 1, "http/1.1");
    // Of 30 images on six connections 24 wait; a machine with other work starts some late.
    let few = Duration::from_millis(5);
    assert!(
        stairs > 0.5 || waits.explain(few, &format!("a score of {stairs}")),
        "{stairs}"
    );
    for (port, name, protocol) in [
        (3, "h2", "h2"),
        (1, "h2", "h2"),
        (2, "spdy", "spdy/3.1"),
        (3, "spdy", "spdy/3.1"),
    ] {
        let words = ["--wire", "--protocol", name, "-k"];
        assert_eq!(score(&server, &words, port, protocol), 0.0, "{name}");
    }
}

#[test]
fn stairs_go_with_the_protocol_of_a_browser() {
    if !via::possible() || !has_browser() {
        return;
    }
    let server = page();
    let waits = Waits::begin();
    let stairs = score(&server, &[], 1, "http/1.1");
    let few = Duration::from_millis(5);
    assert!(
        stairs > 0.4 || waits.explain(few, &format!("a score of {stairs}")),
        "{stairs}"
    );
    let words = ["-k", "--protocol", "h1"];
    let over_tls = score(&server, &words, 3, "http/1.1");
    assert!(
        over_tls > 0.4 || waits.explain(few, &format!("a score of {over_tls}")),
        "{over_tls}"
    );
    for words in [&["-k"][..], &["-k", "--protocol", "h2"]] {
        assert_eq!(score(&server, words, 3, "h2"), 0.0);
    }
}

#[test]
fn a_warm_view_comes_from_the_cache() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = page();
    let url = url(&server, 1);
    let mut ways = vec![vec![url.as_str(), "--warm", "--runs", "3", "--wire"]];
    if has_browser() {
        ways.push(ways[0][..4].to_vec());
    }
    for words in ways {
        let report = report("waterfall", &words);
        let (cold, warm) = (&report["cold"], &report["warm"]);
        assert_eq!((&cold["runs"], &warm["runs"]), (&3.into(), &3.into()));
        assert_eq!(cold["figures"]["first_byte_ms"]["n"], 3);
        assert_eq!(
            (&cold["visit"]["view"], &warm["visit"]["view"]),
            (&"cold".into(), &"warm".into())
        );
        let cached = |view: &Value| {
            view["visit"]["total"]["from_cache"]
                .as_u64()
                .expect("a number")
        };
        // A browser shows an image that it has shown before as one of the cache.
        assert!(
            cached(cold) < 5 && cached(warm) >= IMAGES as u64 - 5,
            "{words:?}: {} {}",
            cached(cold),
            cached(warm)
        );
    }
}

#[test]
fn an_archive_of_what_was_measured_has_the_same_figures() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = page();
    let dir = TempDir::new();
    let (url, har) = (url(&server, 3), dir.path().join("a.har"));
    let har = har.to_str().expect("text");
    let mut ways = vec![vec![
        url.as_str(),
        "-k",
        "--har",
        har,
        "--warm",
        "--runs",
        "2",
        "--wire",
    ]];
    if has_browser() {
        ways.push(ways[0][..7].to_vec());
    }
    for words in ways {
        let (measured, read) = (report("waterfall", &words), report("waterfall", &[har]));
        assert_eq!(measured, read, "{words:?}");
        fs::remove_file(har).expect("it was written");
    }
}

#[test]
fn packets_and_secrets_are_written() {
    if !via::possible() {
        return;
    }
    let server = page();
    let dir = TempDir::new();
    let (url, pcap) = (url(&server, 3), dir.path().join("a.pcap"));
    let mut ways = vec![vec![
        url.as_str(),
        "-k",
        "--pcap",
        pcap.to_str().expect("text"),
        "--wire",
    ]];
    if has_browser() {
        ways.push(ways[0][..4].to_vec());
    }
    let secrets = dir.path().join("a.pcap.keys");
    for words in ways {
        fs::write(&secrets, "of another run").expect("ours");
        let _ = report("waterfall", &words);
        let packets = fs::read(&pcap).expect("it was written");
        // The magic number of captures with nanoseconds, in either order of bytes.
        let magic = [[0x4d, 0x3c, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d]];
        assert!(
            magic.iter().any(|magic| packets.starts_with(magic)),
            "{words:?}"
        );
        assert!(packets.len() > 10_000, "{words:?}: {}", packets.len());
        let keys = fs::read_to_string(&secrets).expect("it was written");
        assert!(
            keys.contains("CLIENT_TRAFFIC_SECRET_0 "),
            "{words:?}: {keys}"
        );
        assert!(!keys.contains("of another run"), "{words:?}: {keys}");
        let mode = fs::metadata(&secrets)
            .expect("it was written")
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "{words:?}");
        fs::remove_file(&pcap).expect("it was written");
    }
}

#[test]
fn what_cannot_be_measured_says_why() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = page();
    let (closed, open, tls) = (Port::reserve(), url(&server, 1), url(&server, 3));
    let nobody = format!("http://127.0.0.1:{}/", closed.number());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let silent = format!("http://{}/", listener.local_addr().expect("it is bound"));
    let backend = Backend::saying("");
    let closing = format!("http://{}/", backend.name());
    let never = [silent.as_str(), "--timeout", "1"];
    let mut cases = vec![
        (vec![nobody.as_str(), "--wire"], "refused"),
        (vec!["http://none.invalid/", "--wire"], "none.invalid"),
        (vec![closing.as_str(), "--wire"], "closed connection"),
        ([&never[..], &["--wire"]].concat(), "no response within 1 s"),
        (
            vec![tls.as_str(), "--wire"],
            "issuer; --insecure accepts any",
        ),
        (
            vec![tls.as_str(), "--wire", "--cacert", "/nonexistent"],
            "cannot read /nonexistent",
        ),
        (
            vec![open.as_str(), "--browser", "/nonexistent/x"],
            "/nonexistent/x is not an executable file",
        ),
    ];
    if has_browser() {
        cases.push((vec![nobody.as_str()], "ERR_CONNECTION_REFUSED"));
        cases.push((vec!["http://none.invalid/"], "ERR_NAME_NOT_RESOLVED"));
        cases.push((vec![closing.as_str()], "closed the connection"));
        cases.push((never.to_vec(), "no response within 1 s"));
        cases.push((vec![tls.as_str()], "--insecure accepts any"));
    }
    for (words, why) in cases {
        let outcome = run(["waterfall"].iter().chain(&words));
        assert_eq!(
            (outcome.code, outcome.stdout.as_str()),
            (1, ""),
            "{words:?}: {outcome:?}"
        );
        assert!(
            outcome.stderr.contains(why),
            "{words:?}: {}",
            outcome.stderr
        );
        assert_eq!(
            outcome.stderr.lines().count(),
            1,
            "{words:?}: {}",
            outcome.stderr
        );
    }
}

/// A server that accepts connections and sends nothing.
#[test]
fn a_signal_ends_it_and_what_it_started() {
    if !peer::is_firstbyte() {
        return;
    }
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    silent.set_nonblocking(true).expect("it can be");
    let url = format!("http://{}/", silent.local_addr().expect("it is bound"));
    let mut ways = vec![vec!["--wire"]];
    if has_browser() {
        ways.push(Vec::new());
    }
    if via::possible() {
        ways.push(vec!["--wire", "--via", "5ms"]);
    }
    let mut signals = vec![Signal::INT, Signal::TERM];
    // If the tests ignore SIGHUP, as under nohup, it ends no process.
    if !sys::signal::is_ignored(sys::signal::HUP) {
        signals.push(Signal::HUP);
    }
    for (words, signal) in ways
        .iter()
        .flat_map(|way| signals.iter().map(move |signal| (way, *signal)))
    {
        let dir = TempDir::new();
        let mut child = Command::new(peer::binary())
            .args(["waterfall", &url])
            .args(words)
            .env("TMPDIR", dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut connections = Vec::new();
        wait_until("it connects", || {
            connections.extend(silent.accept().ok());
            !connections.is_empty()
        });
        let children = process::children(child.id());
        assert!(process::signal(child.id(), signal));
        let ended = holds_within(Duration::from_secs(20), || {
            child.try_wait().is_ok_and(|status| status.is_some())
        });
        assert!(ended, "{words:?}");
        let status = child.wait().expect("it has ended");
        assert_eq!(status.code(), Some(130), "{words:?}");
        let left: Vec<_> = fs::read_dir(dir.path()).expect("ours").collect();
        assert!(left.is_empty(), "{words:?}: {left:?}");
        wait_until("what it started has ended", || {
            !children.iter().any(|pid| process::is_alive(*pid))
        });
    }
}
