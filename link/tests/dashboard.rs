//! The dashboard over recorded traffic of five countries behind links, in Chromium.
//!
//! `FIRSTBYTE_UPDATE=1 cargo test -p firstbyte-link --test dashboard` records for eleven minutes and draws the pictures of
//! docs/dashboard.md.

mod support;

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use firstbyte_tests::judge::{browser, judged_by};
use firstbyte_tests::{Server, TempDir, wait_until};
use link::{Link, Options};
use serde_json::Value;
use support::available;

/// Countries and their round-trip times, milliseconds.
const COUNTRIES: [(&str, u64); 5] = [("DE", 5), ("FR", 20), ("SE", 50), ("US", 100), ("AU", 200)];
/// Recording time before the pictures: two periods of whole minutes, and the rest of the first minute.
const RECORDED: Duration = Duration::from_secs(2 * HALF_S + 60);
/// Length of each of the two periods that a picture compares, seconds.
const HALF_S: u64 = 300;
/// Time between two visits of a link while pictures are recorded.
const PACE: Duration = Duration::from_millis(250);

fn links() -> Option<Vec<(&'static str, Link)>> {
    let link = |(code, rtt_ms)| {
        let options = Options {
            one_way: Duration::from_micros(rtt_ms * 500),
            ..Options::default()
        };
        Some((code, available(Link::to_here(options))?))
    };
    COUNTRIES.into_iter().map(link).collect()
}

/// Ranges of addresses as Tor has them: the first and the last address as numbers, and the country.
fn database(links: &[(&str, Link)]) -> String {
    let mut lines: Vec<_> = links
        .iter()
        .map(|(code, link)| {
            let number = u32::from(link.client_address());
            format!("{number},{number},{code}\n")
        })
        .collect();
    lines.sort();
    lines.concat()
}

fn server(links: &[(&str, Link)]) -> Server {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
    Server::http(CONF)
        .file("html/f.txt", &"x".repeat(20_000))
        .file("html/g.txt", "a small file")
        .file("geoip", &database(links))
        .bytes("run/leaf.pem", key.cert.pem().as_bytes())
        .bytes("run/leaf.key", key.signing_key.serialize_pem().as_bytes())
        .start()
}

/// A visit by curl: one connection, four requests, one of them for a missing file.
fn visit(link: &Link, port: u16, protocol: &str) {
    let base = format!("https://{}:{port}", link.server_address());
    let status = link.in_client(|| {
        Command::new("curl")
            .args(["--silent", "--insecure", "--output", "/dev/null", protocol])
            .args(["f.txt", "g.txt", "f.txt", "none"].map(|name| format!("{base}/{name}")))
            .stdout(Stdio::null())
            .status()
            .expect("curl is there; .ci/setup installs it")
    });
    assert!(status.success(), "{status}");
}

/// Visits over all links at the same time: at least six on each, and until a time.
fn visits(links: &[(&str, Link)], port: u16, until: Instant) -> u64 {
    let of_link = |link: &Link| {
        let mut count = 0;
        while count < VISITS_LEAST || Instant::now() < until {
            visit(
                link,
                port,
                ["--http2", "--http1.1"][usize::from(count % 4 == 3)],
            );
            count += 1;
            if Instant::now() < until {
                thread::park_timeout(PACE);
            }
        }
        count
    };
    thread::scope(|scope| {
        let all: Vec<_> = links
            .iter()
            .map(|(_, link)| scope.spawn(|| of_link(link)))
            .collect();
        all.into_iter().map(|one| one.join().expect("visits")).sum()
    })
}

/// Figures of a view.
fn figures(server: &Server, page: &str) -> Value {
    let reply =
        firstbyte_tests::Client::connect(server.port_number(2)).get(&format!("/lab/{page}"));
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_str(&reply.text()).expect("JSON")
}

fn base(server: &Server) -> String {
    format!("http://127.0.0.1:{}/lab/", server.port_number(2))
}

#[test]
fn pages_over_traffic_of_five_countries_have_no_fault() {
    let (Some(browser), Some(links)) = (browser(), links()) else {
        return;
    };
    let is_update = std::env::var_os("FIRSTBYTE_UPDATE").is_some();
    let server = server(&links);
    let begin_s = unix_s();
    let until = Instant::now() + if is_update { RECORDED } else { Duration::ZERO };
    let count = visits(&links, server.port(), until);
    // Connections of this test to the pages are recorded too; they have no country.
    let countries = || {
        let found = figures(&server, "map.json?period=1h");
        let all = found["tables"]["countries"]
            .as_array()
            .expect("countries")
            .clone();
        all.into_iter()
            .filter(|row| row["country"] != "unknown")
            .collect::<Vec<_>>()
    };
    let sum = |rows: &[Value]| {
        rows.iter()
            .filter_map(|row| row["connections"].as_u64())
            .sum::<u64>()
    };
    wait_until("all visits are stored", || sum(&countries()) == count);
    let countries = countries();
    for (code, rtt_ms) in COUNTRIES {
        let row = countries
            .iter()
            .find(|row| row["country"] == code)
            .expect(code);
        let median = row["median_ms"].as_f64().expect("a median");
        // The kernel's least time is never below the delay of the link; above it on a busy machine.
        assert!(median > rtt_ms as f64 * 0.98, "{code}: {median}");
        println!("{code}: {median:.2} ms over a link of {rtt_ms} ms");
    }
    let statuses = figures(&server, "requests.json?period=1h");
    assert_eq!(
        statuses["tables"]["statuses"][2]["responses"], count,
        "one of each visit"
    );
    let dir = TempDir::new();
    let pages = [
        "overview?period=1h",
        "map?period=1h",
        "times?period=1h",
        "compare?period=1h",
        "use",
    ];
    let arguments = [base(&server)].into_iter().chain(pages.map(str::to_owned));
    let found = judged_by(
        "dashboard.js",
        &browser,
        &dir,
        arguments.map(OsString::from),
    );
    assert_eq!(found, format!("judged {}\n", pages.len()));
    if is_update {
        draw(&server, &browser, begin_s);
    }
}

/// Draws the pictures of the document.
fn draw(server: &Server, browser: &Path, begin_s: u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures");
    let time = |at: u64| lab_time(begin_s.next_multiple_of(60) + at);
    let compare = format!(
        "compare?from={}&to={}&before={}",
        time(HALF_S),
        time(2 * HALF_S),
        time(0)
    );
    let period = format!("from={}&to={}", time(0), time(2 * HALF_S));
    let mut arguments = vec![OsString::from(base(server))];
    for (page, file) in [
        (format!("overview?{period}"), "dashboard.png"),
        (format!("map?{period}"), "dashboard-map.png"),
        (format!("times?{period}"), "dashboard-times.png"),
        (compare, "dashboard-compare.png"),
    ] {
        arguments.extend([OsString::from(page), folder.join(file).into_os_string()]);
    }
    let found = judged_by("dashboard_pictures.js", browser, &TempDir::new(), arguments);
    assert_eq!(found, "drawn 4\n");
}

fn unix_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("the clock is after 1970").as_secs()
}

/// A time in ISO 8601.
fn lab_time(unix_s: u64) -> String {
    let date = engines::http::civil(i64::try_from(unix_s).expect("a time of this century"));
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}",
        date.year, date.month, date.day, date.hour, date.minute
    )
}

/// Visits of a link.
const VISITS_LEAST: u64 = 8;

const CONF: &str = "
    rtt_map on; lab_store sqlite:%%DIR%%/lab/store.db server=web-1; geoip_database %%DIR%%/geoip;
    http2 on; access_log off;
    server {
        listen 0.0.0.0:%%PORT%% ssl;
        ssl_certificate %%DIR%%/run/leaf.pem;
        ssl_certificate_key %%DIR%%/run/leaf.key;
        root %%DIR%%/html;
    }
    server {
        listen 127.0.0.1:%%PORT2%%;
        location /lab/ { lab_dashboard; allow 127.0.0.1; deny all; }
    }";
