//! `firstbyte doctor` finds what was planted: each fault, one at a time, is its first finding, and a server without faults has
//! nothing above a note.
//!
//! Stalls and writes are planted in `doctor.rs`. Not planted are resolvers that are slow (slow-dns) and settings of the kernel,
//! which all tests of a machine share: both are judged by the tests of their figures. `DOCTOR_RUNS` is how often the healthy
//! server is examined (3).

#[path = "tls_client/mod.rs"]
mod tls_client;

use std::fmt::Write as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use firstbyte_tests::answers::{answer, serve};
use firstbyte_tests::{Server, peer};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::Value;
use tls_client::{Leaf, authority};

/// A server in which nothing is to be found. A test changes one line of it.
const HEALTHY: &str = "
    keepalive_timeout 75s; keepalive_requests 1000;
    gzip on; gzip_comp_level 6; brotli on; brotli_comp_level 6; zstd off;
    ssl_protocols TLSv1.2 TLSv1.3; ssl_ecdh_curve auto;
    ssl_certificate site.pem; ssl_certificate_key site.key;
    ssl_certificate_compression on; ssl_early_data on;
    ssl_session_cache shared:tls:1m; ssl_session_tickets on;
    server {
        listen 127.0.0.1:%%PORT%% ssl; http2 on; server_name localhost;
        add_header Strict-Transport-Security max-age=31536000;
        root html;
        location /answer { return 200 hello; }
    }
    server { listen 127.0.0.1:%%PORT2%%; return 301 https://localhost:%%PORT%%$request_uri; }
";

/// A healthy server but for these texts, each of which takes the place of another; and its certificates.
fn planted(changes: &[(&str, &str)], leaf: &Leaf) -> Server {
    let mut text = HEALTHY.to_owned();
    for (before, after) in changes {
        assert!(text.contains(before), "{before}");
        text = text.replace(before, after);
    }
    Server::http(&text)
        .bytes("site.pem", leaf.certificate.as_bytes())
        .bytes("site.key", leaf.key.as_bytes())
        .file("html/index.html", &page())
        .file("html/repeated.html", &page().repeat(3))
        .start()
}

fn with(changes: &[(&str, &str)]) -> Server {
    planted(changes, &tls_client::site("localhost"))
}

/// A page of 46 KB, of words by chance from a list of fixed ones, as text is. Three of them in a row are for gzip three times as
/// much, since it looks back 32 KB, and for Brotli one.
fn page() -> String {
    let mut random = fastrand::Rng::with_seed(20);
    let mut text = "<!doctype html><title>A page</title>\n".to_owned();
    for _ in 0..600 {
        let words: Vec<String> = (0..6)
            .map(|_| format!("{:x}", u64::from(random.u16(..4000)) * 2_654_435))
            .collect();
        let _ = writeln!(text, "<p class=\"line\">{}</p>", words.join(" "));
    }
    text
}

fn https(server: &Server, path: &str) -> String {
    format!("https://localhost:{}{path}", server.port_number(1))
}

/// The doctor's diagnosis of a URL; its status has to fit the findings.
#[track_caller]
fn diagnosis(url: &str) -> Value {
    let output = Command::new(peer::binary())
        .args(["doctor", url, "--insecure", "--json"])
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let found: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(found["format"], "firstbyte-doctor/1");
    let bad = findings(&found).iter().any(|one| one["severity"] == "bad");
    let expected = if bad { 2 } else { 0 };
    assert_eq!(output.status.code(), Some(expected), "{output:?}");
    let notes = &found["conditions"]["notes"];
    println!("{url}: notes {notes}");
    for one in findings(&found) {
        println!("  {} {}: {}", one["severity"], one["code"], one["title"]);
    }
    found
}

fn findings(diagnosis: &Value) -> &[Value] {
    diagnosis["findings"].as_array().map_or(&[], Vec::as_slice)
}

/// The first finding, which has to be of this code and severity, with something that mends it.
#[track_caller]
fn first(diagnosis: &Value, code: &str, severity: &str) -> Value {
    let found = findings(diagnosis).first().cloned().unwrap_or_default();
    assert_eq!(found["code"], code, "{diagnosis:#}");
    assert_eq!(found["severity"], severity, "{found:#}");
    let mend = found["mend"].as_array().map_or(0, Vec::len);
    assert!(
        mend > 0
            && found["evidence"]
                .as_object()
                .is_some_and(|some| !some.is_empty()),
        "{found:#}"
    );
    found
}

fn mends(finding: &Value, what: &str) -> bool {
    let lines = finding["mend"].as_array().into_iter().flatten();
    lines
        .filter_map(Value::as_str)
        .any(|line| line.contains(what))
}

/// A certificate with many further names, and the chain that a careless administrator sends: the authority's own certificate,
/// twice.
fn long_chain(names: usize) -> Leaf {
    let root = authority("Root of this test");
    let mut random = fastrand::Rng::with_seed(7);
    let mut all = vec!["localhost".to_owned()];
    all.extend((0..names).map(|_| format!("{:016x}.example.org", random.u64(..))));
    let mut params = CertificateParams::new(all).expect("host names");
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "localhost");
    let key = KeyPair::generate().expect("there is randomness");
    let leaf = params.signed_by(&key, &root).expect("it can be signed");
    let root = root.as_ref().pem();
    Leaf {
        certificate: format!("{}{root}{root}", leaf.pem()),
        key: key.serialize_pem(),
    }
}

#[test]
fn healthy_server_has_nothing_above_a_note() {
    let server = with(&[]);
    for _ in 0..healthy_runs() {
        let found = diagnosis(&https(&server, "/"));
        let above = findings(&found)
            .iter()
            .filter(|one| one["severity"] != "note");
        assert_eq!(above.count(), 0, "{found:#}");
        assert_eq!(found["protocol"], "h2");
        assert_eq!(found["measured"]["kernel"]["offloads"]["device"], "lo");
        let measured = found["measured"].as_object().expect("there are figures");
        for name in [
            "tls",
            "handshake_round_trips",
            "resumption",
            "alpn",
            "keepalive",
            "compression",
            "head",
            "server",
            "lookup",
            "connect",
            "kernel",
        ] {
            assert!(measured.contains_key(name), "{name}: {found:#}");
        }
        let kernel = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
        assert_eq!(
            measured["kernel"]["tcp_congestion_control"],
            kernel.unwrap_or_default().trim()
        );
    }
}

/// Who speaks TLS 1.3 alone lacks nothing.
#[test]
fn server_without_tls_1_2_is_healthy() {
    let server = with(&[("ssl_protocols TLSv1.2 TLSv1.3;", "ssl_protocols TLSv1.3;")]);
    let found = diagnosis(&https(&server, "/"));
    let above = findings(&found)
        .iter()
        .filter(|one| one["severity"] != "note");
    assert_eq!(above.count(), 0, "{found:#}");
    let versions = &found["measured"]["resumption"];
    assert_eq!(versions.as_array().map(Vec::len), Some(1), "{versions}");
    assert_eq!(versions[0]["resumed"], versions[0]["tried"], "{versions}");
}

#[test]
fn long_chain_is_found_with_what_can_be_left_out() {
    let server = planted(&[("ssl_certificate_compression on;", "")], &long_chain(450));
    let diagnosis = diagnosis(&https(&server, "/"));
    let found = first(&diagnosis, "chain-over-window", "bad");
    assert_eq!(found["lost_round_trips"], 1.0);
    let certificates = &found["evidence"]["certificates"];
    let needless = |place: usize| {
        certificates[place]["needless"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert!(needless(0).is_empty(), "{certificates}");
    assert!(
        needless(1).contains("root") && needless(2).contains("twice"),
        "{certificates}"
    );
    assert!(mends(&found, "Root of this test"), "{found}");
    // What was received and what the certificates have differ by the rest of the flight, some hundred bytes.
    let flight = &found["evidence"]["handshakes"]["tls1.3"];
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let rest = number(&flight["first_flight_bytes"])
        - number(&diagnosis["measured"]["tls"]["certificate_bytes"]);
    assert!((300..700).contains(&rest), "{rest}: {flight}");
    assert_eq!(
        number(&flight["over_window_bytes"]),
        number(&flight["first_flight_bytes"]) - 14_480
    );
    let old = &found["evidence"]["handshakes"]["tls1.2"];
    let rest = number(&old["first_flight_bytes"])
        - number(&diagnosis["measured"]["tls"]["certificate_bytes"]);
    assert!((200..700).contains(&rest), "{rest}: {old}");
}

#[test]
fn chain_that_fits_compressed_alone_is_warned_of() {
    let server = planted(&[], &long_chain(450));
    let found = first(
        &diagnosis(&https(&server, "/")),
        "chain-over-window",
        "warn",
    );
    assert!(!mends(&found, "ssl_certificate_compression"), "{found}");
}

#[test]
fn uncompressed_certificates_are_a_note() {
    let changes = [("ssl_certificate_compression on;", "")];
    let server = planted(&changes, &long_chain(60));
    first(
        &diagnosis(&https(&server, "/")),
        "no-certificate-compression",
        "note",
    );
}

#[test]
fn handshake_that_begins_anew_is_found() {
    let server = with(&[("ssl_ecdh_curve auto;", "ssl_ecdh_curve secp384r1;")]);
    let found = first(
        &diagnosis(&https(&server, "/")),
        "handshake-round-trips",
        "bad",
    );
    assert_eq!(found["evidence"]["handshake"]["hello_retry_request"], true);
    assert!(mends(&found, "ssl_ecdh_curve"), "{found}");
}

#[test]
fn server_without_tls_1_3_is_found() {
    let server = with(&[("ssl_protocols TLSv1.2 TLSv1.3;", "ssl_protocols TLSv1.2;")]);
    let found = first(
        &diagnosis(&https(&server, "/")),
        "handshake-round-trips",
        "warn",
    );
    assert!(mends(&found, "TLSv1.3"), "{found}");
}

#[test]
fn sessions_that_are_never_resumed_are_found() {
    let changes = [
        ("ssl_session_cache shared:tls:1m;", "ssl_session_cache off;"),
        ("ssl_session_tickets on;", "ssl_session_tickets off;"),
        // Which keeps sessions for itself, since what is sent early must not be sent again.
        ("ssl_early_data on;", ""),
    ];
    let server = with(&changes);
    first(&diagnosis(&https(&server, "/")), "no-resumption", "warn");
    let old = [
        &changes[..],
        &[("ssl_protocols TLSv1.2 TLSv1.3;", "ssl_protocols TLSv1.2;")],
    ]
    .concat();
    first(&diagnosis(&https(&with(&old), "/")), "no-resumption", "bad");
}

#[test]
fn missing_early_data_is_a_note() {
    let server = with(&[("ssl_early_data on;", "")]);
    first(&diagnosis(&https(&server, "/")), "no-early-data", "note");
}

#[test]
fn missing_http2_is_found() {
    let server = with(&[("http2 on;", "")]);
    let found = first(&diagnosis(&https(&server, "/")), "no-http2", "warn");
    assert_eq!(found["evidence"]["alpn"]["offered"][0], "h2");
    assert_eq!(found["evidence"]["alpn"]["chosen"], "http/1.1");
}

#[test]
fn connections_that_are_not_kept_are_found() {
    let server = with(&[("keepalive_timeout 75s;", "keepalive_timeout 0;")]);
    first(&diagnosis(&https(&server, "/")), "no-keepalive", "bad");
    let server = with(&[("keepalive_requests 1000;", "keepalive_requests 5;")]);
    let found = first(&diagnosis(&https(&server, "/")), "no-keepalive", "warn");
    assert_eq!(found["evidence"]["connection"]["answered"], 5);
}

#[test]
fn uncompressed_text_is_found() {
    let server = with(&[("gzip on;", ""), ("brotli on;", "")]);
    let found = first(&diagnosis(&https(&server, "/")), "no-compression", "bad");
    assert!(
        mends(&found, "gzip on;") && mends(&found, "brotli on;"),
        "{found}"
    );
}

#[test]
fn poor_compression_is_found() {
    let changes = [
        ("gzip_comp_level 6;", "gzip_comp_level 1;"),
        ("brotli on;", ""),
    ];
    let server = with(&changes);
    let url = https(&server, "/repeated.html");
    let found = first(&diagnosis(&url), "poor-compression", "warn");
    assert_eq!(found["evidence"]["response"]["coding"], "gzip");
}

#[test]
fn chain_of_redirects_is_found() {
    let server = with(&[(
        "location /answer { return 200 hello; }",
        "location = /a { return 301 /b; } location = /b { return 302 c; } location = /c { return 307 /; }",
    )]);
    let found = first(&diagnosis(&https(&server, "/a")), "redirect-chain", "bad");
    let hops = found["evidence"]["redirects"]["hops"]
        .as_array()
        .map_or(0, Vec::len);
    assert_eq!(hops, 3, "{found}");
    assert!(
        mends(&found, &format!("return 301 {};", https(&server, "/"))),
        "{found}"
    );
}

#[test]
fn redirect_to_https_without_strict_transport_security_is_found() {
    let server = with(&[("add_header Strict-Transport-Security max-age=31536000;", "")]);
    let url = format!("http://localhost:{}/", server.port_number(2));
    first(&diagnosis(&url), "redirect-to-https-late", "warn");
    let server = with(&[]);
    let url = format!("http://localhost:{}/", server.port_number(2));
    let codes: Vec<Value> = findings(&diagnosis(&url))
        .iter()
        .map(|one| one["code"].clone())
        .collect();
    assert!(
        !codes.contains(&"redirect-to-https-late".into()),
        "{codes:?}"
    );
}

#[test]
fn large_heads_are_found() {
    let mut random = fastrand::Rng::with_seed(9);
    let mut text = || (0..2000).map(|_| random.alphanumeric()).collect::<String>();
    let fields = format!(
        "add_header X-A {}; add_header X-B {}; add_header X-C {};",
        text(),
        text(),
        text()
    );
    let changed =
        format!("root html; {fields} add_header Strict-Transport-Security max-age=31536000;");
    let server = with(&[("root html;", &changed)]);
    let found = first(&diagnosis(&https(&server, "/")), "header-bloat", "warn");
    assert!(mends(&found, "proxy_hide_header x-a"), "{found}");
}

#[test]
fn slow_application_is_found() {
    let application = serve(|| pause(Duration::from_millis(300)));
    let pass = format!("location /slow {{ proxy_pass http://{application}; }}");
    let server = with(&[("location /answer { return 200 hello; }", &pass)]);
    let found = first(&diagnosis(&https(&server, "/slow")), "slow-server", "warn");
    let lost = found["lost_ms"].as_f64().unwrap_or_default();
    assert!(lost >= 300.0, "{found}");
}

/// A server that takes a connection five times a second, and has one wait at most: the kernel drops the first packet of each
/// further one, which is sent again after a second.
#[test]
fn full_backlog_is_found() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    rustix::net::listen(&listener, 0).expect("it listens");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || answer(stream, || {}));
            pause(Duration::from_millis(200));
        }
    });
    let found = first(
        &diagnosis(&format!("http://{address}/")),
        "slow-connect",
        "bad",
    );
    let again = found["evidence"]["connects"]["retransmitted"].as_u64();
    assert!(again.is_some_and(|some| some >= 2), "{found}");
    assert!(mends(&found, "backlog"), "{found}");
}

/// Lets time pass. Nobody unparks the thread; parking may end early all the same.
fn pause(time: Duration) {
    let from = Instant::now();
    while let Some(left) = time.checked_sub(from.elapsed()) {
        thread::park_timeout(left);
    }
}

/// How often the healthy server is examined.
fn healthy_runs() -> usize {
    let runs = std::env::var("DOCTOR_RUNS").ok();
    runs.map_or(3, |text| text.parse().expect("DOCTOR_RUNS is a number"))
}
