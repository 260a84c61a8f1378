//! An experiment with visitors in Chromium behind a link: the browser's own times, from the page to the report.
//!
//! A file of the second arm comes later, so that its pages load 5 % later. Each visitor has a new profile. `make test` has a few
//! visitors; `LAB_LONG=1` has fifty, and finds the effect in the interval of the mean.

mod support;

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use firstbyte_tests::backend::Step;
use firstbyte_tests::experiment::{comparison, holds, report};
use firstbyte_tests::judge::{browser, judged_by};
use firstbyte_tests::{Backend, Server, TempDir, backend};
use link::{LOCALHOST_PORTS, Link, Options};
use serde_json::Value;
use support::available;

/// Visitors with `LAB_LONG`, and without.
const VISITORS: usize = 50;
const VISITORS_SHORT: usize = 2;
/// Visitors at a time.
const AT_ONCE: usize = 2;
const ROUND_TRIP: Duration = Duration::from_millis(50);
/// Time after which the server of an application sends its file, by arm, milliseconds. A page of the first arm loads in 1.8 s: 0.7 s
/// for round trips, and 1.1 s for this file. So 90 ms more are 5 % of the page.
const WAITS_MS: [u64; 2] = [1100, 1190];
const EFFECT_PERCENT: f64 = 5.0;

/// A picture of a length.
fn svg(bytes: usize) -> String {
    let begin = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"><!--";
    let end = "--></svg>";
    format!(
        "{begin}{}{end}",
        "x".repeat(bytes - begin.len() - end.len())
    )
}

/// An application that sends its file after a time.
fn slow(wait_ms: u64) -> Backend {
    Backend::answering(move |_| {
        let mut steps = vec![Step::Wait(wait_ms)];
        let answer = backend::answer("200 OK", &["Content-Type: image/svg+xml"], svg(20_000));
        steps.extend(answer);
        steps
    })
}

fn server(applications: &[Backend; 2]) -> Server {
    let names = ["www", "s0", "s1", "s2"].map(|name| format!("{name}.localhost"));
    let key = rcgen::generate_simple_self_signed(names).expect("a key");
    let small: String = (0..6)
        .map(|number| format!("<img src=\"//HOST:%%PORT%%/small.svg?{number}\">"))
        .collect();
    let page = format!(
        "<!doctype html><html><head><title>A page</title></head><body>{small}\
         <img src=\"//HOST:%%PORT%%/late.svg\"></body></html>"
    );
    let conf = CONF
        .replace("APPLICATION1", &applications[0].name())
        .replace("APPLICATION2", &applications[1].name());
    Server::http(&conf)
        .file("run/key", "00112233445566778899aabbccddeeff")
        .bytes("run/leaf.pem", key.cert.pem().as_bytes())
        .bytes("run/leaf.key", key.signing_key.serialize_pem().as_bytes())
        .file("html/index.html", &page)
        .file(
            "html/after.html",
            "<!doctype html><title>Another page</title>",
        )
        .file("html/small.svg", &svg(3000))
        .start()
}

/// A visit: the page, and another page, so that the beacon is sent. Returns the browser's own load time, milliseconds.
fn visit(link: &Link, browser: &Path, port: u16) -> f64 {
    let base = format!("https://www.localhost:{port}");
    let steps = [
        format!("load={base}/"),
        "value=performance.getEntriesByType('navigation')[0].loadEventEnd".to_owned(),
        format!("load={base}/after.html"),
    ];
    let printed = link.in_client(|| {
        let dir = TempDir::new();
        judged_by("visit.js", browser, &dir, steps.map(OsString::from))
    });
    assert!(printed.ends_with("done\n"), "{printed}");
    let value = printed.lines().nth(1).and_then(|line| line.parse().ok());
    value.unwrap_or_else(|| panic!("no time in {printed}"))
}

/// Visits, two at a time. Returns the load times, milliseconds.
fn visits(link: &Link, browser: &Path, port: u16, visitors: usize) -> Vec<f64> {
    let next = AtomicUsize::new(0);
    let visits = || {
        let mut times = Vec::new();
        while next.fetch_add(1, Ordering::Relaxed) < visitors {
            times.push(visit(link, browser, port));
        }
        times
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(visits)).collect();
        let joined = all.into_iter().map(|one| one.join().expect("visits"));
        joined.flatten().collect()
    })
}

/// Standard error of the change of the mean, percent of the first arm's mean.
fn error_percent(values: &[Value]) -> f64 {
    let number = |arm: &Value, name: &str| arm[name].as_f64().expect("a number");
    let square = |arm| number(arm, "deviation").powi(2) / number(arm, "users");
    let squares: f64 = values.iter().map(square).sum();
    100.0 * squares.sqrt() / number(&values[0], "mean")
}

#[test]
fn visitors_in_chromium_are_measured_by_arm() {
    let Some(browser) = browser() else {
        return;
    };
    let options = Options {
        one_way: ROUND_TRIP / 2,
        localhost: vec![LOCALHOST_PORTS],
        ..Options::default()
    };
    let Some(link) = available(Link::to_here(options)) else {
        return;
    };
    let is_long = std::env::var_os("LAB_LONG").is_some();
    let visitors = if is_long { VISITORS } else { VISITORS_SHORT };
    let applications = WAITS_MS.map(slow);
    let server = server(&applications);
    let port = server.port();
    let times = visits(&link, &browser, port, visitors);
    let report = report(&server.path("lab/store.db"), "speed", visitors);
    println!("{}", report["metrics"][0]["values"]);
    println!("lateness of the link: {:?}", link.lateness());
    let arms = report["arms"].as_array().expect("arms");
    let sum = |name: &str| {
        arms.iter()
            .filter_map(|arm| arm[name].as_u64())
            .sum::<u64>()
    };
    // Seven files of each page are from the arm. The icon of the site is not.
    assert_eq!(sum("views"), visitors as u64);
    assert_eq!(
        (sum("files"), sum("files_failed"), sum("files_truncated")),
        (7 * visitors as u64, 0, 0)
    );
    assert_eq!(sum("failed_views"), 0);
    // The mean over all visitors is that of the browsers.
    let values = report["metrics"][0]["values"].as_array().expect("values");
    let total: f64 = values
        .iter()
        .filter_map(|arm| Some(arm["mean"].as_f64()? * arm["users"].as_f64()?))
        .sum();
    let expected: f64 = times.iter().sum();
    assert!(
        (total - expected).abs() < visitors as f64,
        "{total} and {expected} ms"
    );
    // Three round trips are the least for the page over TLS, and as many for the file.
    let least = 6.0 * ROUND_TRIP.as_secs_f64() * 1e3 + WAITS_MS[0] as f64;
    assert!(times.iter().all(|ms| *ms > least), "{times:?}");
    if is_long {
        let mean = comparison(&report, "mean");
        println!("{mean}");
        assert!(holds(&report, "mean", EFFECT_PERCENT), "{mean}");
        let change = mean["change_percent"].as_f64().expect("a change");
        let error = error_percent(values);
        println!("standard error {error:.1} %");
        assert!((change - EFFECT_PERCENT).abs() < 4.0 * error, "{mean}");
    }
}

const CONF: &str = r#"
    lab_store sqlite:%%DIR%%/lab/store.db; experiment_key %%DIR%%/run/key;
    access_log off; root %%DIR%%/html; types { text/html html; image/svg+xml svg; }
    ssl_certificate %%DIR%%/run/leaf.pem; ssl_certificate_key %%DIR%%/run/leaf.key;
    experiment speed {
        window 0; metrics load; host s0.localhost;
        arm control host=s1.localhost; arm slow host=s2.localhost;
    }
    server {
        listen 0.0.0.0:%%PORT%% ssl; http2 on; server_name www.localhost;
        location = /beacon { experiment_beacon; }
        location = / {
            try_files /index.html =404; default_type text/html;
            sub_filter_once off;
            sub_filter '<head>' '<head><script async src="/beacon" data-hosts="$experiment_speed_host"></script>';
            sub_filter HOST '$experiment_speed_host';
        }
    }
    server { listen 0.0.0.0:%%PORT%% ssl; server_name s0.localhost; }
    server { listen 0.0.0.0:%%PORT%% ssl; server_name s1.localhost; location = /late.svg { proxy_pass http://APPLICATION1; } }
    server { listen 0.0.0.0:%%PORT%% ssl; server_name s2.localhost; location = /late.svg { proxy_pass http://APPLICATION2; } }"#;
