//! Reports of `firstbyte bench` are true: coordinated omission, a server against itself, and the page in a browser.
//!
//! Long parts need `LAB_LONG`, as set by `make test-all`. Own executable: response times are compared.

#[path = "common/lab.rs"]
mod lab;
#[path = "common/tls_client.rs"]
mod tls_client;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use firstbyte_tests::skip::{skip, skip_outside_ci};
use firstbyte_tests::{Signal, TempDir, peer, process, wait_until};
use lab::{bench, number, report, server, url};
use serde_json::Value;

/// Returns whether the long parts run.
fn is_long() -> bool {
    let long = std::env::var_os("LAB_LONG").is_some();
    if !long {
        skip("LAB_LONG is not set");
    }
    long
}

/// Waits until this many milliseconds have passed.
fn passes(began: Instant, ms: u64) {
    wait_until("time passes", || {
        began.elapsed() >= Duration::from_millis(ms)
    });
}

/// A server that is frozen for 1 s in 6 s at 500 requests a second makes 500 of 3,000 requests wait, evenly from 0 to 1 s.
#[test]
fn requests_that_a_frozen_server_keeps_waiting_are_not_left_out() {
    if !is_long() {
        return;
    }
    let server = server();
    let url = url(&server, 1, "/100.txt");
    let words = ["bench", &url, "--rate", "500", "--duration", "6", "--json"];
    let bench = Command::new(peer::binary())
        .args(words)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let began = Instant::now();
    let workers = server.workers();
    passes(began, 2500);
    workers
        .iter()
        .for_each(|worker| assert!(process::signal(*worker, Signal::STOP)));
    passes(began, 3500);
    workers
        .iter()
        .for_each(|worker| assert!(process::signal(*worker, Signal::CONT)));
    let output = bench.wait_with_output().expect("it ends");
    assert!(began.elapsed() > Duration::from_secs(5));
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let found = &report["servers"][0];
    let response = &found["times"]["response"];
    for (what, found, expected) in [
        ("p90", &response["percentiles"]["p90"]["value"], 400.0),
        ("p99", &response["percentiles"]["p99"]["value"], 940.0),
        ("mean", &response["mean_ms"], 83.3),
    ] {
        let found = number(found);
        let off = (found - expected).abs() / expected;
        println!("a server frozen for 1 s in 6 s: {what} {found} ms, {expected} ms are due");
        assert!(
            off < 0.1,
            "{what} is {found} ms where {expected} ms are due"
        );
    }
    assert_eq!(found["done"], 3000);
    let service = &found["times"]["service"]["percentiles"]["p90"]["value"];
    assert!(
        number(service) < 100.0,
        "what a client that waits would have told: {service} ms"
    );
}

/// A server compared with itself 200 times.
#[test]
fn one_server_against_itself_is_seldom_called_different() {
    if !is_long() {
        return;
    }
    let server = server();
    let url = url(&server, 1, "/100.txt");
    let mut winners = 0;
    for seed in 0..200 {
        let seed = seed.to_string();
        let words = [
            &url,
            "--against",
            &url,
            "--requests",
            "300",
            "--blocks",
            "8",
            "--seed",
            &seed,
        ];
        let report = report(&words);
        winners += u32::from(report["comparison"][0]["verdict"] != "no difference seen");
    }
    println!("one server against itself: called different {winners} times of 200");
    assert!(winners <= 10, "{winners} of 200");
}

/// The page in Chromium: at the width of a telephone, light and dark, without a word on the console.
#[test]
fn page_is_readable_in_a_browser() {
    let found = Command::new("chromium").arg("--version").output();
    if found.is_err() {
        return skip_outside_ci("Chromium is not installed");
    }
    let server = server();
    let dir = TempDir::new();
    let path = dir.path().join("report.html").display().to_string();
    let (one, other) = (url(&server, 1, "/100.txt"), url(&server, 3, "/100.txt"));
    let words = [
        &one,
        "-k",
        "--against",
        &other,
        "--duration",
        "0.3",
        "--blocks",
        "2",
    ];
    let outcome = bench(&[&words[..], &["--html", &path]].concat());
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let page = fs::read_to_string(&path).expect("it was written");
    assert!(!page.contains("<script"), "it needs nothing else");
    let policy = "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';";
    assert!(page.contains(policy), "nothing else can be loaded");
    assert_eq!(page.matches("http-equiv").count(), 1);
    let framed = page.replace('&', "&amp;").replace('"', "&quot;");
    dir.write("frame.html", format!("{FRAME_BEFORE}{framed}{FRAME_AFTER}"));
    for (scheme, ground) in [("1", "rgb(255, 255, 255)"), ("0", "rgb(15, 20, 25)")] {
        let output = Command::new("chromium")
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .args(["--no-first-run", "--enable-logging=stderr", "--dump-dom"])
            .arg("--host-resolver-rules=MAP * ~NOTFOUND")
            .arg(format!(
                "--user-data-dir={}",
                dir.path().join("profile").display()
            ))
            .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
            .arg(format!(
                "file://{}",
                dir.path().join("frame.html").display()
            ))
            .output()
            .expect("Chromium starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains(":CONSOLE"), "{said}");
        let dom = String::from_utf8_lossy(&output.stdout).into_owned();
        let result = dom
            .split("data-result=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        let result = result.unwrap_or_else(|| panic!("the frame was not measured: {said}"));
        let parts: Vec<&str> = result.split('|').collect();
        assert_eq!(parts[0], "fits", "{result}");
        assert_eq!(parts[1], ground, "{result}");
        assert_ne!(parts[1], parts[2], "text and ground differ: {result}");
        assert!(
            parts[3].parse::<u32>().is_ok_and(|drawings| drawings >= 3),
            "{result}"
        );
    }
}

const FRAME_BEFORE: &str = "<!DOCTYPE html><meta charset=utf-8><title>frame</title><body>\
    <iframe id=frame width=360 height=640 style=\"border:0\" srcdoc=\"";

const FRAME_AFTER: &str = "\"></iframe><script>
    const frame = document.getElementById('frame');
    const measure = () => {
        const page = frame.contentDocument, style = frame.contentWindow.getComputedStyle(page.body);
        const fits = page.documentElement.scrollWidth <= 360 && parseFloat(style.fontSize) >= 14;
        document.body.dataset.result = [fits ? 'fits' : 'wide ' + page.documentElement.scrollWidth,
            style.backgroundColor, style.color, page.querySelectorAll('svg').length].join('|');
    };
    frame.addEventListener('load', measure);
    if (frame.contentDocument.readyState === 'complete' && frame.contentDocument.body.childElementCount) measure();
    </script>";
