//! `metrics`: the counters, their formats, and their acceptance by Prometheus.
//!
//! The two tests that need promtool or prometheus are skipped with a message without it.

use std::io::{ErrorKind, Write};
use std::process::{Child, Command, Stdio};

use crate::tls_client::{self, Tls};
use firstbyte_tests::port::Port;
use firstbyte_tests::skip::skip_outside_ci;
use firstbyte_tests::{Builder, Client, H2Client, Server, Signal, wait_until};

const SITE: &str = "access_log off;
    server { listen 127.0.0.1:%%PORT%%; http2 on; root %%DIR%%/html;
      location = /metrics { metrics; }
      location = /times { return 200 \"$request_wait_time $handshake_time.\"; } }";

fn site() -> Builder {
    Server::http(SITE).file("html/f.txt", "0123456789")
}

/// The value of a sample with this name and labels.
fn value(page: &str, sample: &str) -> f64 {
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    let line = line.unwrap_or_else(|| panic!("no {sample} in\n{page}"));
    line.parse()
        .unwrap_or_else(|_| panic!("{sample} is {line}"))
}

fn page(server: &Server) -> String {
    server.get("/metrics").text()
}

fn open_metrics(server: &Server) -> String {
    let accept = "Accept: application/openmetrics-text; version=1.0.0";
    let answer = server.client().get_with("/metrics", &[accept]);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.header("Content-Type"), Some(kind));
    answer.text()
}

#[test]
fn requests_are_counted_by_protocol_and_class() {
    let server = site().start();
    let mut client = server.client();
    assert_eq!(client.get("/f.txt").status, 200);
    assert_eq!(client.get("/none").status, 404);
    let mut h2 = H2Client::connect(server.port());
    assert_eq!(h2.fetch("/f.txt").text(), "0123456789");
    let answer = client.get("/metrics");
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    assert_eq!(answer.header("Content-Type"), Some(kind));
    let page = answer.text();
    for (sample, expected) in [
        (
            "firstbyte_requests_total{protocol=\"HTTP/1.1\",class=\"2xx\"}",
            1.0,
        ),
        (
            "firstbyte_requests_total{protocol=\"HTTP/1.1\",class=\"4xx\"}",
            1.0,
        ),
        (
            "firstbyte_requests_total{protocol=\"HTTP/2.0\",class=\"2xx\"}",
            1.0,
        ),
        (
            "firstbyte_requests_total{protocol=\"HTTP/1.0\",class=\"2xx\"}",
            0.0,
        ),
        (
            "firstbyte_connections{protocol=\"http/1\",state=\"writing\"}",
            1.0,
        ),
        (
            "firstbyte_connections{protocol=\"http/2\",state=\"waiting\"}",
            1.0,
        ),
        ("firstbyte_request_duration_seconds_count", 3.0),
        ("firstbyte_first_byte_seconds_bucket{le=\"+Inf\"}", 3.0),
        ("firstbyte_reloads_total{result=\"taken\"}", 0.0),
    ] {
        assert_eq!(value(&page, sample), expected, "{sample}");
    }
    assert!(value(&page, "firstbyte_accepted_connections_total") >= 2.0);
    assert!(value(&page, "firstbyte_first_byte_seconds_sum") > 0.0);
    assert!(value(&page, "firstbyte_sent_bytes_total{protocol=\"HTTP/1.1\"}") > 300.0);
    assert!(
        value(
            &page,
            "firstbyte_received_bytes_total{protocol=\"HTTP/1.1\"}"
        ) > 50.0
    );
    assert!(value(&page, "process_resident_memory_bytes") > 100_000.0);
    assert_eq!(
        client
            .send("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
            .response()
            .status,
        405
    );
}

#[test]
fn the_two_formats_say_the_same() {
    let server = site().start();
    let open = open_metrics(&server);
    assert!(open.ends_with("# EOF\n"));
    assert!(open.contains("# TYPE firstbyte_requests counter\n"));
    assert!(open.contains("# UNIT firstbyte_first_byte_seconds seconds\n"));
    assert!(open.contains("# TYPE firstbyte_build info\n"));
    let text = page(&server);
    assert!(text.contains("# TYPE firstbyte_requests_total counter\n"));
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"));
    let names = |page: &str| -> Vec<String> {
        let samples = page.lines().filter(|line| !line.starts_with('#'));
        let name = |line: &str| line.rsplit_once(' ').map(|(name, _)| name.to_owned());
        samples.filter_map(name).collect()
    };
    assert_eq!(names(&open), names(&text));
    assert_eq!(
        value(
            &text,
            "firstbyte_requests_total{protocol=\"HTTP/1.1\",class=\"2xx\"}"
        ),
        1.0
    );
}

#[test]
fn reloads_and_open_files_are_counted() {
    let server = site().start();
    let mut client = server.client();
    for _ in 0..3 {
        assert_eq!(client.get("/f.txt").status, 200);
    }
    wait_until("lookups are told", || {
        value(
            &page(&server),
            "firstbyte_file_lookups_total{result=\"hit\"}",
        ) == 2.0
    });
    assert_eq!(
        value(
            &page(&server),
            "firstbyte_file_lookups_total{result=\"miss\"}"
        ),
        1.0
    );
    assert_eq!(value(&page(&server), "firstbyte_open_files"), 1.0);
    server.signal(Signal::HUP);
    wait_until("the reload is counted", || {
        value(&page(&server), "firstbyte_reloads_total{result=\"taken\"}") == 1.0
    });
}

#[test]
fn handshakes_are_counted_by_how_they_went() {
    let leaf = tls_client::site("localhost");
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; location = /metrics { metrics; } }
         server { listen 127.0.0.1:%%PORT2%% ssl; server_name localhost; client_header_timeout 1s;
           ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
           return 200 \"$handshake_time\"; }",
    )
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .start();
    let tls = Tls::of(&rustls::version::TLS12);
    let port = server.port_number(2);
    let took: f64 = tls
        .get(port, "localhost", "/")
        .body
        .parse()
        .expect("seconds");
    assert!(took > 0.0 && took < 60.0);
    assert!(tls.get(port, "localhost", "/").resumed);
    Client::connect(port)
        .send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .response();
    // A message of the handshake that stays incomplete.
    Client::connect(port).send([22, 3, 1, 0, 1, 255]).closed();
    wait_until("all are counted", || {
        let page = page(&server);
        [
            ("firstbyte_tls_handshakes_total{kind=\"full\"}", 1.0),
            ("firstbyte_tls_handshakes_total{kind=\"resumed\"}", 1.0),
            (
                "firstbyte_tls_handshake_failures_total{reason=\"plain_http\"}",
                1.0,
            ),
        ]
        .iter()
        .all(|(sample, expected)| value(&page, sample) == *expected)
    });
    let failed = |page: &str| {
        let samples = page
            .lines()
            .filter(|line| line.starts_with("firstbyte_tls_handshake_failures_total{"));
        let values = samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
        values.sum::<u64>()
    };
    assert_eq!(failed(&page(&server)), 2);
}

#[test]
fn times_are_shown_to_the_microsecond() {
    let server = site().start();
    let text = server.get("/times").text();
    let (waited, handshake) = text.split_once(' ').expect("two values");
    assert_eq!(handshake, ".");
    let (seconds, micros) = waited.split_once('.').expect("a fraction");
    assert_eq!((seconds, micros.len()), ("0", 6), "{waited}");
}

#[test]
fn the_time_of_the_first_byte_is_logged_for_each_protocol() {
    let server = Server::http(
        "log_format t '$server_protocol $first_byte_time $request_time';
         server { listen 127.0.0.1:%%PORT%%; http2 on; access_log %%DIR%%/t.log t;
           location / { return 200 text; } location = /slow { limit_rate 20000; root %%DIR%%/html; } }",
    )
    .zeros("html/slow", 30_000)
    .start();
    server.get("/");
    H2Client::connect(server.port()).fetch("/");
    assert_eq!(server.get("/slow").body.len(), 30_000);
    wait_until("three lines", || {
        server.dir().read("t.log").lines().count() == 3
    });
    let log = server.dir().read("t.log");
    for (line, protocol) in log.lines().zip(["HTTP/1.1", "HTTP/2.0", "HTTP/1.1"]) {
        let parts: Vec<&str> = line.split(' ').collect();
        assert_eq!(parts[0], protocol);
        let first: f64 = parts[1].parse().expect("seconds");
        assert!(first > 0.0 && first < 0.5, "{line}");
    }
    let slow = log.lines().last().and_then(|line| line.rsplit_once(' '));
    let took: f64 = slow
        .and_then(|(_, took)| took.parse().ok())
        .expect("seconds");
    assert!(took >= 0.4, "{log}");
}

/// The parts of a `Server-Timing` field, which are milliseconds.
fn parts(field: Option<&str>) -> Vec<String> {
    let parts = field.expect("it is sent").split(", ");
    let name = |part: &str| {
        let (name, value) = part.split_once(";dur=").expect("a part has a duration");
        let ms: f64 = value.parse().expect("a number");
        assert!((0.0..10_000.0).contains(&ms), "{part}");
        name.to_owned()
    };
    parts.map(name).collect()
}

#[test]
fn clients_are_told_how_long_the_parts_took() {
    let server = Server::http(
        "server_timing on; gzip on; gzip_min_length 1; gzip_types *;
         server { listen 127.0.0.1:%%PORT%%; http2 on; root %%DIR%%/html; add_trailer X-Own own;
           location /off/ { server_timing off; }}",
    )
    .file("html/f.txt", &"0123456789".repeat(100))
    .file("html/off/f.txt", "off")
    .start();
    let mut client = server.client();
    let plain = client.get("/f.txt");
    assert_eq!(parts(plain.header("Server-Timing")), ["wait", "head"]);
    let fields = ["Accept-Encoding: gzip", "TE: gzip;q=0.5, Trailers"];
    let packed = client.get_with("/f.txt", &fields);
    assert_eq!(packed.header("Content-Length"), None);
    let trailers: Vec<_> = packed
        .trailers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(trailers, ["X-Own", "Server-Timing"]);
    assert_eq!(parts(Some(&packed.trailers[1].1)), ["total"]);
    let silent = client.get_with("/f.txt", &fields[..1]);
    assert_eq!(silent.trailers.len(), 1);
    assert_eq!(client.get("/off/f.txt").header("Server-Timing"), None);
    let mut h2 = H2Client::connect(server.port());
    let stream = h2.request("GET", "/f.txt", &[("accept-encoding", "gzip")], true);
    let reply = h2.reply(stream);
    assert_eq!(parts(reply.header("server-timing")), ["wait", "head"]);
    assert!(
        reply
            .trailers
            .iter()
            .any(|(name, _)| name == "server-timing")
    );
}

/// Kills a process when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program. If it is not installed, the test is reported as skipped.
fn spawned(command: &mut Command) -> Option<Ended> {
    match command.spawn() {
        Ok(child) => Some(Ended(child)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let program = command.get_program().to_string_lossy();
            skip_outside_ci(&format!("{program} is not installed"));
            None
        }
        Err(error) => panic!("it cannot be started: {error}"),
    }
}

#[test]
fn promtool_finds_nothing_to_say() {
    let mut command = Command::new("promtool");
    command
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let Some(mut promtool) = spawned(&mut command) else {
        return;
    };
    let text = page(&site().start());
    let mut input = promtool.0.stdin.take().expect("it is piped");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    let status = promtool.0.wait().expect("it ends");
    let mut said = String::new();
    for pipe in [
        promtool
            .0
            .stdout
            .take()
            .map(|p| Box::new(p) as Box<dyn std::io::Read>),
        promtool
            .0
            .stderr
            .take()
            .map(|p| Box::new(p) as Box<dyn std::io::Read>),
    ] {
        pipe.expect("it is piped")
            .read_to_string(&mut said)
            .expect("text");
    }
    assert!(status.success() && said.is_empty(), "{said}\n{text}");
}

#[test]
fn prometheus_scrapes_it() {
    let server = site().start();
    let port = Port::reserve();
    let (dir, address) = (server.dir(), format!("127.0.0.1:{}", port.number()));
    dir.write(
        "prometheus.yml",
        server.expand(
            "global: { scrape_interval: 200ms, scrape_timeout: 200ms }
scrape_configs: [{ job_name: firstbyte, static_configs: [{ targets: ['127.0.0.1:%%PORT%%'] }] }]\n",
        ),
    );
    let mut command = Command::new("prometheus");
    command
        .arg(format!(
            "--config.file={}",
            server.path("prometheus.yml").display()
        ))
        .arg(format!(
            "--storage.tsdb.path={}",
            server.path("tsdb").display()
        ))
        .arg(format!("--web.listen-address={address}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Some(_prometheus) = spawned(&mut command) else {
        return;
    };
    let asked = |query: &str| {
        let mut client = Client::try_connect_to("127.0.0.1", port.number()).ok()?;
        Some(client.get(&format!("/api/v1/query?query={query}")).text())
    };
    wait_until("prometheus has scraped more than once", || {
        let query = "increase(firstbyte_requests_total%7Bprotocol=%22HTTP/1.1%22,class=%222xx%22%7D%5B1m%5D)%3E0";
        asked(query).is_some_and(|answer| answer.contains("\"value\""))
    });
    let up = asked("up").expect("it answers");
    assert!(up.contains(",\"1\"]"), "{up}");
    let quantile =
        asked("histogram_quantile(0.5,firstbyte_first_byte_seconds_bucket)").expect("it answers");
    assert!(
        quantile.contains("\"value\"") && !quantile.contains("NaN"),
        "{quantile}"
    );
}
