//! `firstbyte doctor`: planted faults are named with their sizes, healthy servers have no finding, and bad input ends with
//! a message.
//!
//! Tests that need delayed acknowledgements are skipped with a message if links are not possible. Own executable:
//! milliseconds are measured.

#[path = "common/lab.rs"]
mod lab;
#[path = "common/planted/mod.rs"]
mod planted;
#[path = "common/tls_client.rs"]
mod tls_client;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use firstbyte_tests::busy;
use firstbyte_tests::via::possible;
use firstbyte_tests::{Outcome, Server, Signal, TempDir, peer, process, run, wait_until};
use planted::{Fault, Planted, Protocol};
use serde_json::{Value, json};

const OVER_ALL: [Protocol; 3] = [Protocol::Http1, Protocol::Http2, Protocol::Spdy];

fn doctor(words: &[&str]) -> Outcome {
    run(["doctor"].iter().chain(words))
}

/// The diagnosis of a run; its exit status must agree.
#[track_caller]
fn diagnosis(words: &[&str]) -> Value {
    let outcome = doctor(&[words, &["--json"]].concat());
    let found: Value = serde_json::from_str(&outcome.stdout)
        .unwrap_or_else(|error| panic!("{words:?}: {error}: {outcome:?}"));
    assert_eq!(found["format"], "firstbyte-doctor/1");
    let is_bad = codes(&found, "bad").next().is_some();
    assert_eq!(outcome.code, if is_bad { 2 } else { 0 }, "{outcome:?}");
    found
}

/// Judges a diagnosis that depends on time.
fn check(words: &[&str], judge: impl Fn(&Value)) {
    busy::check_timing(&format!("{words:?}"), BUSY, || diagnosis(words), judge);
}

/// Runs a test of each case on a thread of its own: a run mostly waits for round trips.
fn side_by_side<T: Send>(cases: impl IntoIterator<Item = T>, test: impl Fn(T) + Sync) {
    let test = &test;
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || test(case));
        }
    });
}

/// A thread that is kept from running for so long makes responses as late as a stall does.
const BUSY: Duration = Duration::from_millis(30);

fn codes<'a>(found: &'a Value, severity: &'a str) -> impl Iterator<Item = &'a str> {
    let findings = found["findings"].as_array().expect("a list").iter();
    let own = findings.filter(move |one| one["severity"] == severity);
    own.filter_map(|one| one["code"].as_str())
}

/// The finding that comes first.
#[track_caller]
fn first<'a>(found: &'a Value, code: &str) -> &'a Value {
    let first = &found["findings"][0];
    assert_eq!(first["code"], code, "{found:#}");
    first
}

fn asked(planted: &Planted, paths: &[&str]) -> Vec<String> {
    let urls = paths
        .iter()
        .flat_map(|path| ["--url".to_owned(), planted.url(path)]);
    std::iter::once(planted.url("/")).chain(urls).collect()
}

/// The words of a run against a planted server.
fn words(urls: &[String], protocol: Protocol) -> Vec<&str> {
    let urls = urls.iter().map(String::as_str);
    urls.chain(["-k", "--protocol", protocol.name()]).collect()
}

#[test]
fn withheld_ends_are_named_at_the_sizes_that_stall_and_at_no_others() {
    if !possible() {
        return;
    }
    side_by_side(OVER_ALL, |protocol| {
        let planted = Planted::serve(protocol, Fault::Withholds(1600));
        let urls = asked(&planted, &["/100", "/1600", "/1700", "/3000"]);
        check(&words(&urls, protocol), |found| {
            let stall = first(found, "delayed-ack-stall");
            stalls_below(1600, protocol, &stall["evidence"]);
            let mends = stall["mend"].as_array().expect("a list").iter();
            let mut mends = mends.filter_map(Value::as_str);
            assert!(
                mends.any(|one| one.contains("tcp_nodelay on;")),
                "{stall:#}"
            );
        });
    });
}

/// Bodies up to this one of 1600 bytes stall at both holds, and larger ones do not.
fn stalls_below(most: u64, protocol: Protocol, evidence: &Value) {
    assert_eq!(
        evidence["bytes_that_stall_identity"],
        json!([100, 800, most]),
        "{protocol:?}: {evidence:#}"
    );
    assert_eq!(
        evidence["bytes_that_do_not_identity"],
        json!([1700, 3000]),
        "{protocol:?}"
    );
    assert!(
        evidence["bytes_that_wait_the_whole_hold"]
            .as_array()
            .is_some_and(|all| all.contains(&json!(100)))
    );
    // An HTTP/2 client acknowledges SETTINGS during the first response, and earlier bytes with it.
    let first = if protocol == Protocol::Http2 { 2 } else { 1 };
    let places: Vec<u32> = (first..=4).collect();
    assert_eq!(
        evidence["requests_that_stall"],
        json!(places),
        "{protocol:?}"
    );
    for (held, least, most) in [("held_200_ms", 45.0, 260.0), ("held_40_ms", 35.0, 90.0)] {
        let late = &evidence[held];
        let value = lab::number(&late["value"]);
        assert!(
            (least..most).contains(&value),
            "{protocol:?} {held}: {late}"
        );
        let most_are = lab::number(&late["late"]) * 2.0 > lab::number(&late["of"]);
        assert!(most_are, "{protocol:?} {held}: {late}");
    }
}

#[test]
fn each_planted_fault_is_the_first_finding() {
    if !possible() {
        return;
    }
    let all = [
        (
            Protocol::Http1,
            Fault::SlowBelow(5000),
            "small-slower-than-large",
        ),
        (Protocol::Http1, Fault::Chops, "write-size"),
        (Protocol::Http1, Fault::Buffers, "held-first-byte"),
        // Its records are as long as TLS allows, and it answers in the order of requests.
        (Protocol::Http1Tls, Fault::None, "tls-record-size"),
        (Protocol::Http2, Fault::None, "head-of-line"),
    ];
    side_by_side(all, |(protocol, fault, code)| {
        let planted = Planted::serve(protocol, fault);
        let mut urls = asked(&planted, &["/400", "/12000", "/200000"]);
        if fault == Fault::Buffers {
            urls.extend(["--flush".to_owned(), planted.url("/flush")]);
        }
        check(&words(&urls, protocol), |found| {
            first(found, code);
        });
    });
}

#[test]
fn servers_of_the_same_make_without_a_fault_have_no_finding_of_it() {
    if !possible() {
        return;
    }
    let planted = Planted::serve(Protocol::Http1, Fault::None);
    let mut urls = asked(&planted, &["/400", "/1600", "/12000", "/200000"]);
    urls.extend(["--flush".to_owned(), planted.url("/flush")]);
    check(&words(&urls, Protocol::Http1), |found| {
        for code in [
            "delayed-ack-stall",
            "small-slower-than-large",
            "write-size",
            "held-first-byte",
        ] {
            let findings = found["findings"].as_array().expect("a list");
            assert!(findings.iter().all(|one| one["code"] != code), "{found:#}");
        }
    });
}

/// No finding above a note on this server with its default configuration, over each protocol.
#[test]
fn this_server_is_healthy_over_every_protocol() {
    if !possible() {
        return;
    }
    let server = healthy();
    let docroot = server.path("html");
    let docroot = docroot.to_str().expect("a path in UTF-8");
    let before = fs::read_dir(docroot).expect("a directory").count();
    let all = [(1, "h1"), (1, "h2"), (3, "h1"), (3, "h2"), (3, "spdy")];
    side_by_side(all, |(port, protocol)| {
        let url = lab::url(&server, port, "/");
        let words = [&url, "-k", "--protocol", protocol, "--docroot", docroot];
        check(&words, |found| {
            let bodies = &found["measured"]["delayed_ack_sweep"]["bodies"];
            let what = format!("{protocol} at {port}");
            assert!(
                bodies.as_u64() > Some(10),
                "{what}: {}",
                found["conditions"]
            );
            let above = ["bad", "warn"].map(|severity| codes(found, severity).next());
            assert_eq!(above, [None, None], "{what}: {found:#}");
        });
    });
    let left = fs::read_dir(docroot).expect("a directory").count();
    assert_eq!(left, before, "files are left behind");
}

fn healthy() -> Server {
    let server = lab::server();
    fs::write(server.path("html/index.html"), "<p>it is well").expect("it is written");
    server
}

#[test]
fn an_error_page_is_said_to_be_one() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = healthy();
    let notes = |path: &str| {
        let url = lab::url(&server, 1, path);
        diagnosis(&[&url, "--max-requests", "5"])["conditions"]["notes"].to_string()
    };
    assert!(notes("/missing").contains("the page's status is 404"));
    assert!(!notes("/").contains("status is"));
}

#[test]
fn a_small_budget_is_kept_to() {
    let planted = Planted::serve(Protocol::Http1, Fault::None);
    let url = planted.url("/");
    let found = diagnosis(&[&url, "--max-requests", "7"]);
    assert!(
        found["conditions"]["requests"].as_u64() <= Some(7),
        "{found:#}"
    );
    let notes = found["conditions"]["notes"].to_string();
    assert!(notes.contains("was not analyzed"), "{notes}");
    let unjudged = found["coverage"]["unjudged"].as_array().map_or(0, Vec::len);
    assert!(unjudged > 0, "{found:#}");
    assert_eq!(found["coverage"]["is_interrupted"], false);
    let shown = doctor(&[&url, "--max-requests", "7"]).stdout;
    let checks = &found["coverage"]["checks"];
    let headline = format!("{unjudged} of {checks} checks have no verdict");
    assert!(
        shown.lines().any(|line| line.starts_with(&headline)),
        "{headline}: {shown}"
    );
}

#[test]
fn files_are_removed_when_it_is_interrupted() {
    let server = healthy();
    let docroot = server.path("html");
    let count = || fs::read_dir(&docroot).expect("a directory").count();
    let before = count();
    let examination = Command::new(peer::binary())
        .args(["doctor", &lab::url(&server, 1, "/"), "--docroot"])
        .arg(&docroot)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    wait_until("files are written", || count() > before);
    assert!(process::signal(examination.id(), Signal::INT));
    let ended = examination.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(130));
    assert_eq!(count(), before);
    let shown = String::from_utf8_lossy(&ended.stdout);
    let headline = shown.lines().nth(2).unwrap_or_default();
    assert!(headline.starts_with("Interrupted: "), "{shown}");
}

#[test]
fn what_cannot_be_measured_is_said_in_a_sentence() {
    // A free port: its listener is closed again.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let free = listener.local_addr().expect("it is bound").port();
    drop(listener);
    let dir = TempDir::new();
    dir.write("none.pem", "no certificate");
    let file = dir.path().join("none.pem");
    let file = file.to_str().expect("a path in UTF-8");
    let refused = format!("http://127.0.0.1:{free}/");
    for (words, why) in [
        (&[refused.as_str()][..], "refused"),
        (&["http://a.invalid/"][..], "no address of the host"),
        (&["ftp://h/"][..], "unknown scheme"),
        (&[&refused, "--url", "http://h/"][..], "another server"),
        (&[&refused, "--docroot", file][..], "is not a directory"),
        (&["https://h/", "--cacert", file][..], "has no certificate"),
    ] {
        let outcome = doctor(words);
        assert_eq!(outcome.code, 1, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(why), "{words:?}: {outcome:?}");
        assert_eq!(outcome.stdout, "");
    }
}

/// Servers with malformed, missing or endless responses.
#[test]
fn servers_that_make_no_sense_end_with_status_one() {
    for (answer, is_endless, why) in [
        (&b"SSH-2.0-OpenSSH_9.2\r\n"[..], false, ""),
        (b"", false, ""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", false, ""),
        (b"HTTP/1.1 200 OK\r\n\r\n", true, ""),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
        let server = std::thread::spawn(move || {
            // The first connection may only test whether the port is open.
            for _ in 0..2 {
                let Ok((mut stream, _)) = listener.accept() else {
                    return;
                };
                let mut request = [0; 1024];
                if !matches!(stream.read(&mut request), Ok(1..)) {
                    continue;
                }
                let _ = stream.write_all(answer);
                while is_endless && stream.write_all(&[b'x'; 65_536]).is_ok() {}
                return;
            }
        });
        let outcome = doctor(&[&url, "--timeout", "2"]);
        assert_eq!(outcome.code, 1, "{outcome:?}");
        assert!(
            outcome.stderr.contains(why) && outcome.stderr.contains("doctor: "),
            "{outcome:?}"
        );
        server.join().expect("the server ends");
    }
}
