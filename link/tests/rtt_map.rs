//! The map of round-trip times beside links of known delay: five countries, half of their clients with delayed acknowledgements.
//!
//! The server records its connections and writes logs. Its store and the log with `$tcpinfo_min_rtt` must give the delay of each
//! link. The log with `$tcpinfo_rtt` alone must give the warning. A link that was late makes the test inconclusive.

mod support;

use std::path::Path;
use std::thread;
use std::time::Duration;

use firstbyte_tests::{Client, Server, run, wait_until};
use link::{Link, Options};
use serde_json::Value;
use support::{available, inconclusive};

/// Countries and their round-trip times, milliseconds.
const COUNTRIES: [(&str, u64); 5] = [("DE", 5), ("FR", 20), ("SE", 50), ("US", 100), ("AU", 200)];
/// Time for which acknowledgements of every second link are held.
const HOLD: Duration = Duration::from_millis(40);
/// Connections of a link, and requests of each.
const CONNECTIONS: usize = 24;
const REQUESTS: usize = 6;
/// Connections at a time.
const AT_ONCE: usize = 4;
/// Lateness of the link in the median beyond which nothing is judged.
const LATENESS_MAX: Duration = Duration::from_micros(100);

/// Lateness of a single packet beyond which nothing is judged.
const WORST: Duration = Duration::from_millis(500);

/// Two links of a country: without and with delayed acknowledgements.
struct Country {
    code: &'static str,
    links: Vec<Link>,
}

fn countries() -> Option<Vec<Country>> {
    let mut all = Vec::new();
    for (code, rtt_ms) in COUNTRIES {
        let mut links = Vec::new();
        for client_ack_hold in [None, Some(HOLD)] {
            let options = Options {
                one_way: Duration::from_micros(rtt_ms * 500),
                client_ack_hold,
                ..Options::default()
            };
            links.push(available(Link::to_here(options))?);
        }
        all.push(Country { code, links });
    }
    Some(all)
}

/// Ranges of addresses as Tor has them: the first and the last address as numbers, and the country.
fn database(countries: &[Country]) -> String {
    let of_link = |country: &Country, link: &Link| {
        let number = u32::from(link.client_address());
        format!("{number},{number},{}\n", country.code)
    };
    let mut lines: Vec<_> = countries
        .iter()
        .flat_map(|country| country.links.iter().map(|link| of_link(country, link)))
        .collect();
    lines.sort();
    lines.concat()
}

fn server(countries: &[Country]) -> Server {
    let text = "rtt_map on; lab_store sqlite:%%DIR%%/lab/store.db; geoip_database %%DIR%%/geoip;
         log_format minimum '$remote_addr [$time_local] \"$request\" $status $connection_requests $tcpinfo_min_rtt';
         log_format smoothed '$remote_addr [$time_local] \"$request\" $status $connection_requests $tcpinfo_rtt';
         access_log %%DIR%%/minimum.log minimum; access_log %%DIR%%/smoothed.log smoothed;
         server { listen 0.0.0.0:%%PORT%%; root %%DIR%%/html; }";
    Server::http(text)
        .file("html/f.txt", &"x".repeat(2000))
        .file("geoip", &database(countries))
        .start()
}

/// Visits of all clients of a link.
fn visit(link: &Link, port: u16) {
    let address = link.server_address().to_string();
    for _ in 0..CONNECTIONS / AT_ONCE {
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    link.in_client(|| {
                        let mut client = Client::connect_to(&address, port);
                        for _ in 0..REQUESTS {
                            assert_eq!(client.get("/f.txt").body.len(), 2000);
                        }
                    });
                });
            }
        });
    }
}

/// The map as JSON, and the messages.
fn map(arguments: &[&str]) -> (Value, String) {
    let output = run([&["map"], arguments, &["--json"]].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    let json = serde_json::from_str(&output.stdout).expect("JSON");
    (json, output.stderr)
}

/// Each median is within 2 % or 0.3 ms of the delay of its links.
#[track_caller]
fn agrees(map: &Value, countries: &[Country]) {
    for country in countries {
        let all = map["countries"].as_array().expect("countries");
        let found = all.iter().find(|found| found["country"] == country.code);
        let found = found.unwrap_or_else(|| panic!("no {} in {map}", country.code));
        let lateness = country
            .links
            .iter()
            .map(|link| link.lateness().median)
            .max();
        let delay = country.links[0].round_trip() + 2 * lateness.unwrap_or_default();
        let delay_ms = delay.as_secs_f64() * 1e3;
        let median_ms = found["median_ms"].as_f64().expect("a median");
        let off_ms = (median_ms - delay_ms).abs();
        println!(
            "{}: {median_ms:.2} ms over a link of {delay_ms:.2} ms",
            country.code
        );
        assert!(
            off_ms <= (0.02 * delay_ms).max(0.3),
            "{}: {median_ms} for {delay_ms}",
            country.code
        );
        // The first time of a connection is unknown if its SYN-ACK was sent again (Karn's algorithm).
        let samples = found["samples"].as_u64().expect("a number");
        let all = 2 * CONNECTIONS as u64;
        assert!(
            (all - 4..=all).contains(&samples),
            "{}: {samples}",
            country.code
        );
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn medians_of_countries_are_the_delays_of_their_links() {
    let Some(countries) = countries() else {
        return;
    };
    let server = server(&countries);
    let port = server.port();
    thread::scope(|scope| {
        for link in countries.iter().flat_map(|country| &country.links) {
            scope.spawn(move || visit(link, port));
        }
    });
    let all = countries.iter().flat_map(|country| &country.links);
    if let Some(late) = all
        .into_iter()
        .find(|link| link.lateness().median > LATENESS_MAX || link.lateness().worst > WORST)
    {
        return inconclusive("medians of countries", late);
    }
    let store = format!("sqlite:{}", shown(&server.path("lab/store.db")));
    let total = (2 * COUNTRIES.len() * CONNECTIONS) as u64;
    let from_store = || run(["map", "--store", &store, "--json"]).stdout;
    wait_until("all connections are stored", || {
        let map: Value = serde_json::from_str(&from_store()).unwrap_or_default();
        map["requests"] == total * REQUESTS as u64
    });
    agrees(&map(&["--store", &store]).0, &countries);
    let geoip = shown(&server.path("geoip"));
    let log = |name: &str| {
        let (conf, log) = (shown(&server.path("nginx.conf")), shown(&server.path(name)));
        map(&["-c", &conf, "--geoip", &geoip, &log])
    };
    let (from_log, messages) = log("minimum.log");
    assert!(!messages.contains("tcpinfo_min_rtt"), "{messages}");
    agrees(&from_log, &countries);
    let (_, messages) = log("smoothed.log");
    assert!(messages.contains("$tcpinfo_min_rtt"), "{messages}");
    assert!(messages.contains("biased"), "{messages}");
}
