//! `firstbyte doctor` reports each planted fault as its first finding, and nothing above a note on a server without faults.
//!
//! Stalls and writes are planted in `doctor.rs`, name servers and kernel settings in `doctor_networks.rs`. `DOCTOR_RUNS` is
//! the number of examinations of the healthy server, 1 by default. Own executable: milliseconds are measured.

#[path = "common/planted/site.rs"]
mod site;
#[path = "common/tls_client.rs"]
mod tls_client;

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use firstbyte_tests::Server;
use firstbyte_tests::answers::{answer, serve};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::Value;
use site::{above_note, examined, findings, finds, https, mends, pause, planted, with};
use tls_client::{Leaf, authority};

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
    let kernel = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    let kernel = kernel.unwrap_or_default();
    for _ in 0..healthy_runs() {
        examined(&https(&server, "/"), |found| {
            assert!(above_note(found).is_empty(), "{found:#}");
            assert_eq!(found["protocol"], "h2");
            let measured = found["measured"].as_object().expect("there are figures");
            for name in MEASURED {
                assert!(measured.contains_key(name), "{name}: {found:#}");
            }
            let settings = &measured["kernel"];
            assert_eq!(settings["offloads"]["device"], "lo");
            assert_eq!(settings["tcp_congestion_control"], kernel.trim());
        });
    }
}

const MEASURED: [&str; 11] = [
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
];

macro_rules! named {
    ($($test:ident)*) => { [$((stringify!($test), $test as fn()),)*] };
}

/// Several at a time, since a run mostly waits for round trips. The thread's name, shown by a panic, is that of the
/// fault. The longest ones begin first.
#[test]
fn what_was_planted_is_the_first_finding() {
    let all = named! {
        slow_application_is_found
        full_backlog_is_found
        connections_that_are_not_kept_are_found
        sessions_that_are_never_resumed_are_found
        handshake_that_begins_anew_is_found
        server_without_tls_1_2_is_healthy
        long_chain_is_found_with_what_can_be_left_out
        chain_that_fits_compressed_alone_is_warned_of
        uncompressed_certificates_are_a_note
        server_without_tls_1_3_is_found
        missing_early_data_is_a_note
        missing_http2_is_found
        uncompressed_text_is_found
        poor_compression_is_found
        chain_of_redirects_is_found
        redirect_to_a_place_that_does_not_answer_is_found
        redirect_to_https_without_strict_transport_security_is_found
        redirect_to_itself_is_found
        large_heads_are_found
        style_sheet_that_is_not_stored_is_found
        validator_that_the_server_ignores_is_found
        files_of_this_server_are_asked_about_with_success
    };
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let work = || {
            while let Some(&(name, test)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                let named = thread::Builder::new().name(name.to_owned());
                let ran = named.spawn(test).expect("there are threads").join();
                assert!(ran.is_ok(), "{name}");
            }
        };
        for _ in 0..AT_A_TIME {
            scope.spawn(work);
        }
    });
}

/// Servers that are examined at a time, each by one doctor.
const AT_A_TIME: usize = 4;

/// A server with TLS 1.3 alone has no fault.
fn server_without_tls_1_2_is_healthy() {
    let server = with(&[("ssl_protocols TLSv1.2 TLSv1.3;", "ssl_protocols TLSv1.3;")]);
    examined(&https(&server, "/"), |found| {
        assert!(above_note(found).is_empty(), "{found:#}");
        let versions = &found["measured"]["resumption"];
        assert_eq!(versions.as_array().map(Vec::len), Some(1), "{versions}");
        assert_eq!(versions[0]["resumed"], versions[0]["tried"], "{versions}");
    });
}

fn long_chain_is_found_with_what_can_be_left_out() {
    let server = planted(&[("ssl_certificate_compression on;", "")], &long_chain(450));
    let url = https(&server, "/");
    finds(&url, "chain-over-window", "bad", |found, diagnosis| {
        assert_eq!(found["lost_round_trips"], 1.0);
        let certificates = &found["evidence"]["certificates"];
        let needless = |n: usize| certificates[n]["needless"].as_str().unwrap_or_default();
        assert_eq!(needless(0), "", "{certificates}");
        assert!(needless(1).contains("root"), "{certificates}");
        assert!(needless(2).contains("twice"), "{certificates}");
        assert!(mends(found, "Root of this test"), "{found}");
        // Received bytes and certificates differ by the rest of the flight, some hundred bytes.
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let certificates = number(&diagnosis["measured"]["tls"]["certificate_bytes"]);
        for (version, least) in [("tls1.3", 300), ("tls1.2", 200)] {
            let flight = &found["evidence"]["handshakes"][version];
            let bytes = number(&flight["first_flight_bytes"]);
            let rest = bytes - certificates;
            assert!((least..700).contains(&rest), "{rest}: {flight}");
            assert_eq!(number(&flight["over_window_bytes"]), bytes - 14_480);
        }
    });
}

fn chain_that_fits_compressed_alone_is_warned_of() {
    let server = planted(&[], &long_chain(450));
    let url = https(&server, "/");
    finds(&url, "chain-over-window", "warn", |found, _| {
        assert!(!mends(found, "ssl_certificate_compression"), "{found}");
    });
}

fn uncompressed_certificates_are_a_note() {
    let changes = [("ssl_certificate_compression on;", "")];
    let server = planted(&changes, &long_chain(60));
    let url = https(&server, "/");
    finds(&url, "no-certificate-compression", "note", |_, _| {});
}

fn handshake_that_begins_anew_is_found() {
    let server = with(&[("ssl_ecdh_curve auto;", "ssl_ecdh_curve secp384r1;")]);
    let url = https(&server, "/");
    finds(&url, "handshake-round-trips", "bad", |found, _| {
        let handshake = &found["evidence"]["handshake"];
        assert_eq!(handshake["hello_retry_request"], true);
        assert!(mends(found, "ssl_ecdh_curve"), "{found}");
    });
}

fn server_without_tls_1_3_is_found() {
    let server = with(&[("ssl_protocols TLSv1.2 TLSv1.3;", "ssl_protocols TLSv1.2;")]);
    let url = https(&server, "/");
    finds(&url, "handshake-round-trips", "warn", |found, _| {
        assert!(mends(found, "TLSv1.3"), "{found}");
    });
}

fn sessions_that_are_never_resumed_are_found() {
    let changes = [
        ("ssl_session_cache shared:tls:1m;", "ssl_session_cache off;"),
        ("ssl_session_tickets on;", "ssl_session_tickets off;"),
        // It makes the server store sessions, since early data must not be replayed.
        ("ssl_early_data on;", ""),
        ("ssl_protocols TLSv1.2 TLSv1.3;", "ssl_protocols TLSv1.2;"),
    ];
    let (both, old) = (with(&changes[..3]), with(&changes));
    finds(&https(&both, "/"), "no-resumption", "warn", |_, _| {});
    finds(&https(&old, "/"), "no-resumption", "bad", |_, _| {});
}

fn missing_early_data_is_a_note() {
    let server = with(&[("ssl_early_data on;", "")]);
    finds(&https(&server, "/"), "no-early-data", "note", |_, _| {});
}

fn missing_http2_is_found() {
    let server = with(&[("http2 on;", "")]);
    finds(&https(&server, "/"), "no-http2", "warn", |found, _| {
        let alpn = &found["evidence"]["alpn"];
        assert_eq!([&alpn["offered"][0], &alpn["chosen"]], ["h2", "http/1.1"]);
    });
}

fn connections_that_are_not_kept_are_found() {
    let server = with(&[("keepalive_timeout 75s;", "keepalive_timeout 0;")]);
    finds(&https(&server, "/"), "no-keepalive", "bad", |_, _| {});
    let server = with(&[("keepalive_requests 1000;", "keepalive_requests 5;")]);
    finds(&https(&server, "/"), "no-keepalive", "warn", |found, _| {
        assert_eq!(found["evidence"]["connection"]["answered"], 5);
    });
}

fn uncompressed_text_is_found() {
    let server = with(&[("gzip on;", ""), ("brotli on;", "")]);
    finds(&https(&server, "/"), "no-compression", "bad", |found, _| {
        let both = ["gzip on;", "brotli on;"];
        assert!(both.iter().all(|what| mends(found, what)), "{found}");
    });
}

fn poor_compression_is_found() {
    let changes = [
        ("gzip_comp_level 6;", "gzip_comp_level 1;"),
        ("brotli on;", ""),
    ];
    let server = with(&changes);
    let url = https(&server, "/repeated.html");
    finds(&url, "poor-compression", "warn", |found, _| {
        assert_eq!(found["evidence"]["response"]["coding"], "gzip");
    });
}

/// A style sheet with these fields, as the target of an examination.
fn style_sheet(fields: &str) -> Server {
    let location =
        format!("location = /app.css {{ default_type text/css; {fields} return 200 '#a {{}}'; }}");
    with(&[("location /answer { return 200 hello; }", &location)])
}

fn style_sheet_that_is_not_stored_is_found() {
    let server = style_sheet("add_header Cache-Control no-store;");
    let url = https(&server, "/app.css");
    finds(&url, "poor-caching", "warn", |found, _| {
        let again = found["evidence"]["downloaded_again"].to_string();
        assert!(again.contains("no-store"), "{found}");
        assert!(mends(found, "expires 1h;"), "{found}");
    });
}

fn validator_that_the_server_ignores_is_found() {
    let server = style_sheet("add_header Cache-Control no-cache; add_header ETag '\"1\"';");
    let url = https(&server, "/app.css");
    finds(&url, "poor-caching", "warn", |found, _| {
        let ignored = &found["evidence"]["validator_ignored"];
        assert!(ignored.to_string().contains("no-cache"), "{found}");
    });
}

fn files_of_this_server_are_asked_about_with_success() {
    let change = (
        "location /answer { return 200 hello; }",
        "location = /a.css { }",
    );
    let server = with(&[change]);
    std::fs::write(server.path("html/a.css"), "#a {}").expect("it is written");
    examined(&https(&server, "/a.css"), |found| {
        assert!(above_note(found).is_empty(), "{found:#}");
        let file = &found["measured"]["static_files"][0];
        assert_eq!(file["revalidated"], true, "{file}");
        assert_eq!(file["fault"], "no_lifetime", "{file}");
    });
}

fn chain_of_redirects_is_found() {
    let server = with(&[(
        "location /answer { return 200 hello; }",
        "location = /a { return 301 /b; } location = /b { return 302 c; } location = /c { return 307 /; }",
    )]);
    let (url, last) = (https(&server, "/a"), https(&server, "/"));
    finds(&url, "redirect-chain", "bad", |found, _| {
        let hops = &found["evidence"]["redirects"]["hops"];
        assert_eq!(hops.as_array().map(Vec::len), Some(3), "{found}");
        assert!(mends(found, &format!("return 301 {last};")), "{found}");
    });
}

fn redirect_to_itself_is_found() {
    let server = with(&[(
        "location /answer { return 200 hello; }",
        "location = /a { return 301 /a; }",
    )]);
    let url = https(&server, "/a");
    finds(&url, "redirect-chain", "bad", |found, _| {
        let redirects = &found["evidence"]["redirects"];
        assert_eq!(redirects["hops"].as_array().map(Vec::len), Some(1));
        assert_eq!(redirects["stopped"], "they form a loop", "{found}");
    });
}

fn redirect_to_a_place_that_does_not_answer_is_found() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let free = listener.local_addr().expect("it is bound").port();
    drop(listener);
    let location = format!("location = /a {{ return 301 http://127.0.0.1:{free}/; }}");
    let server = with(&[("location /answer { return 200 hello; }", &location)]);
    let url = https(&server, "/a");
    finds(&url, "redirect-chain", "bad", |found, _| {
        let failure = found["evidence"]["redirects"]["failure"].as_str();
        assert!(
            failure.is_some_and(|why| why.contains("refused")),
            "{found}"
        );
    });
}

fn redirect_to_https_without_strict_transport_security_is_found() {
    let server = with(&[("add_header Strict-Transport-Security max-age=31536000;", "")]);
    let url = format!("http://localhost:{}/", server.port_number(2));
    finds(&url, "redirect-to-https-late", "warn", |_, _| {});
    let server = with(&[]);
    let url = format!("http://localhost:{}/", server.port_number(2));
    examined(&url, |found| {
        let mut codes = findings(found).iter().map(|one| &one["code"]);
        assert!(
            codes.all(|code| code != "redirect-to-https-late"),
            "{found}"
        );
    });
}

fn large_heads_are_found() {
    let mut random = fastrand::Rng::with_seed(9);
    let mut text = || (0..2000).map(|_| random.alphanumeric()).collect::<String>();
    let fields = ["X-A", "X-B", "X-C"].map(|name| format!("add_header {name} {}; ", text()));
    let changed = format!(
        "root html; {} add_header Strict-Transport-Security max-age=31536000;",
        fields.concat()
    );
    let server = with(&[("root html;", &changed)]);
    finds(&https(&server, "/"), "header-bloat", "warn", |found, _| {
        assert!(mends(found, "proxy_hide_header x-a"), "{found}");
    });
}

fn slow_application_is_found() {
    let application = serve(|| pause(Duration::from_millis(250)));
    let pass = format!("location /slow {{ proxy_pass http://{application}; }}");
    let server = with(&[("location /answer { return 200 hello; }", &pass)]);
    finds(
        &https(&server, "/slow"),
        "slow-server",
        "warn",
        |found, _| {
            let lost = found["lost_ms"].as_f64().unwrap_or_default();
            assert!(lost >= 250.0, "{found}");
        },
    );
}

/// A server that takes a connection five times a second, and has one wait at most: the kernel drops the first packet of each
/// further one, which is sent again after a second.
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
    let url = format!("http://{address}/");
    finds(&url, "slow-connect", "bad", |found, _| {
        let again = found["evidence"]["connects"]["retransmitted"].as_u64();
        assert!(again.is_some_and(|some| some >= 2), "{found}");
        assert!(mends(found, "backlog"), "{found}");
    });
}

/// Number of examinations of the healthy server.
fn healthy_runs() -> usize {
    let runs = std::env::var("DOCTOR_RUNS").ok();
    runs.map_or(1, |text| text.parse().expect("DOCTOR_RUNS is a number"))
}
