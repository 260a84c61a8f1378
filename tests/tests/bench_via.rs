//! `firstbyte bench --via` with a link that is late: measurements of that time are excluded, counted, and reported as a
//! warning.
//!
//! Skipped with a message if links are not possible: see `firstbyte_tests::via`. Own executable: a link must be on time by
//! default.

#[path = "common/lab.rs"]
mod lab;
#[path = "common/tls_client.rs"]
mod tls_client;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use firstbyte_tests::via::possible;
use firstbyte_tests::{Signal, peer, process, run, wait_until};
use lab::{number, server, url};
use serde_json::Value;

/// Requests in all, and their rate per second: at a round trip of 40 ms ten are in progress, evenly spread.
const REQUESTS: u64 = 500;
const RATE: u64 = 250;

/// For how long the link does nothing; half a round trip is less than a tenth of it.
const STOPPED: Duration = Duration::from_millis(300);

/// A stopped process that is resumed when dropped, even if the test fails.
struct ResumeOnDrop(u32);

impl Drop for ResumeOnDrop {
    fn drop(&mut self) {
        process::signal(self.0, Signal::CONT);
    }
}

/// The process with link and client is stopped for 300 ms. Packets on the link become due meanwhile, and are late by
/// most of that time. So the requests due meanwhile, 75 of 500, waited for up to 300 ms, but not for the server.
#[test]
fn samples_during_which_the_link_was_late_are_void() {
    if !possible() {
        return;
    }
    let server = server();
    let bench = Command::new(peer::binary())
        .args(["bench", &url(&server, 1, "/100.txt"), "--json"])
        .args(["--via", "40ms", "--requests", &REQUESTS.to_string()])
        .args(["--rate", &RATE.to_string(), "--connections", "100"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let log = server.path("access.log");
    wait_until("responses come", || {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.lines().count() > 100
    });
    let [inside] = process::children(bench.id())[..] else {
        panic!("one process has the link");
    };
    let _goes_on = ResumeOnDrop(inside);
    assert!(process::signal(inside, Signal::STOP));
    let stopped = Instant::now();
    wait_until("time passes", || stopped.elapsed() >= STOPPED);
    assert!(process::signal(inside, Signal::CONT));
    let output = bench.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let found = &report["servers"][0];
    assert_eq!(found["done"], REQUESTS, "each response counts: {found}");
    let void = |kind: &str| {
        let (voided, n) = (&found["voided"][kind], &found["times"][kind]["n"]);
        assert_eq!(voided["of"], REQUESTS, "{kind}");
        let void = voided["void"].as_u64().expect("a number");
        assert_eq!(n.as_u64(), Some(REQUESTS - void), "{kind}");
        void
    };
    let (waited, under_way) = (void("response"), void("service"));
    assert!(waited >= 50 && under_way >= 3, "{found}");
    // With those 75 requests it would be above 250 ms.
    let p99 = number(&found["times"]["response"]["percentiles"]["p99"]["value"]);
    assert!((40.0..200.0).contains(&p99), "{p99} ms: {found}");
    let warning = report["warnings"][0].as_str().unwrap_or_default();
    let expected = format!("because the link was late (response {waited} of {REQUESTS}");
    assert!(warning.contains(&expected), "{report}");
}

/// It fails before a link is made, so that every user gets the same message.
#[test]
fn a_url_of_ipv6_is_refused_with_what_a_link_carries() {
    if !peer::is_firstbyte() {
        return;
    }
    let url = "http://[::1]:8080/";
    let told = "an emulated link carries IPv4 alone, and [::1]:8080 has ::1";
    for words in [
        &["bench", "--via", "5ms", url][..],
        &[
            "bench",
            "--via",
            "5ms",
            "http://127.0.0.1:1/",
            "--against",
            url,
        ],
        &[
            "bench",
            "--via",
            "5ms",
            "--table",
            "a=http://127.0.0.1:1/,http://[::1]:8080/",
        ],
        &["waterfall", "--wire", "--via", "5ms", url],
        &["waterfall", "--wire", "--pcap", "/none/at/all", url],
    ] {
        let outcome = run(words);
        assert_eq!(outcome.code, 1, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(told), "{words:?}: {outcome:?}");
    }
}

#[test]
fn a_command_with_a_url_of_ipv6_is_remarked() {
    if !possible() {
        return;
    }
    let remark =
        "firstbyte via: an emulated link carries IPv4 alone: [::1] cannot be reached over it\n";
    for (url, is_told) in [("http://[::1]:8080/", true), ("http://127.0.0.1/", false)] {
        let outcome = run(["via", "0ms", "--quiet", "--", "true", url]);
        assert_eq!(
            (outcome.code, outcome.stderr == remark),
            (0, is_told),
            "{outcome:?}"
        );
    }
}

/// Ports above those of every link are carried for rows with names, too.
#[test]
fn rows_of_a_table_are_reached_over_the_link() {
    if !possible() {
        return;
    }
    let server = server();
    let rows = format!("name={}", url(&server, 1, "/100.txt"));
    let words = [
        "bench",
        "--via",
        "1ms",
        "--table",
        &rows,
        "--requests",
        "10",
        "--blocks",
        "1",
    ];
    let outcome = run(words);
    assert_eq!(outcome.code, 0, "{outcome:?}");
}
