//! HTTPS over sockets: certificates by name, protocols, resumption, reloads, secrecy of keys.
//!
//! Source: nginx documentation, `ngx_http_ssl_module`.

use std::io::Read;
use std::time::Duration;

use crate::tls_client::{Leaf, Tls, site};
use firstbyte_tests::{Builder, Server, Signal, peer, process, run, wait_until};

/// A server with the certificate `c.pem` and the key `k.pem`.
fn with(template: &str, leaf: &Leaf) -> Builder {
    let protocols = match template.contains("ssl_protocols") {
        true => "",
        // Older versions of nginx leave out the newest.
        false => "ssl_protocols TLSv1.2 TLSv1.3;",
    };
    let template = format!(
        "{protocols} ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem; {template}"
    );
    Server::http(&template)
        .bytes("c.pem", leaf.certificate.as_bytes())
        .bytes("k.pem", leaf.key.as_bytes())
}

const SERVER: &str = "server { listen 127.0.0.1:%%PORT%% ssl; server_name localhost;
    location = /v { return 200 \"$scheme $https $ssl_protocol $ssl_cipher $ssl_server_name $ssl_session_reused\"; }
    location = /r { return 301 /there; } }";

#[test]
fn both_versions_are_served() {
    let leaf = site("localhost");
    let server = with(SERVER, &leaf).start();
    for (version, name) in [
        (
            &rustls::version::TLS12,
            "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384",
        ),
        (&rustls::version::TLS13, "TLSv1.3 TLS_AES_256_GCM_SHA384"),
    ] {
        let answer = Tls::of(version).get(server.port(), "localhost", "/v");
        assert_eq!(answer.body, format!("https on {name} localhost ."));
        assert!(answer.is_from(&leaf));
    }
    let answer = Tls::new().get(server.port(), "localhost", "/r");
    let location = format!("Location: https://localhost:{}/there", server.port());
    assert!(answer.head.contains(&location), "{}", answer.head);
}

#[test]
fn plain_http_on_a_port_of_tls_is_told_so() {
    let server = with(SERVER, &site("localhost")).start();
    let answer = server.get("/v");
    assert_eq!(answer.status, 400);
    assert!(
        answer
            .text()
            .contains("The plain HTTP request was sent to HTTPS port")
    );
    server.wait_for_text("error.log", "client sent plain HTTP request to HTTPS port");
}

#[test]
fn a_name_chooses_the_certificate() {
    let (one, two) = (site("one"), site("two"));
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%% ssl; server_name one;
           ssl_certificate %%DIR%%/1.crt; ssl_certificate_key %%DIR%%/1.key; return 200 one; }
         server { listen 127.0.0.1:%%PORT%% ssl; server_name two;
           ssl_certificate %%DIR%%/2.crt; ssl_certificate_key %%DIR%%/2.key; return 200 two; }
         server { listen 127.0.0.1:%%PORT%% ssl; server_name bare; return 200 bare; }
         server { listen 127.0.0.1:%%PORT%% ssl; server_name closed; ssl_reject_handshake on; }",
    )
    .bytes("1.crt", one.certificate.as_bytes())
    .bytes("1.key", one.key.as_bytes())
    .bytes("2.crt", two.certificate.as_bytes())
    .bytes("2.key", two.key.as_bytes())
    .start();
    let client = Tls::new();
    for (name, text, leaf) in [
        ("one", "one", &one),
        ("two", "two", &two),
        ("bare", "bare", &one),
        ("nobody", "one", &one),
    ] {
        let answer = client.get(server.port(), name, "/");
        assert_eq!(answer.body, text);
        assert!(answer.is_from(leaf), "{name}");
    }
    let refused = client.ask(server.port(), "closed", "closed", "/");
    let message = refused.expect_err("the name is refused").to_string();
    assert!(
        message.contains("UnrecognisedName") || message.contains("unrecogni"),
        "{message}"
    );
}

#[test]
fn protocols_are_chosen_by_the_server() {
    let server = with(SERVER, &site("localhost")).start();
    let client = Tls::speaking(&[b"h2", b"http/1.1"]);
    let answer = client.get(server.port(), "localhost", "/v");
    assert_eq!(answer.alpn.as_deref(), Some(&b"http/1.1"[..]));
    let strange = Tls::speaking(&[b"strange"]);
    assert!(
        strange
            .ask(server.port(), "localhost", "localhost", "/v")
            .is_err()
    );
}

#[test]
fn http2_is_offered_by_the_server_of_the_name() {
    if !peer::knows_nginx(26) {
        // The directive is of 1.25.1.
        return;
    }
    let leaf = site("localhost");
    let server = with(
        "server { listen 127.0.0.1:%%PORT%% ssl; server_name default; http2 on; }
         server { listen 127.0.0.1:%%PORT%% ssl; server_name off; http2 off; }
         server { listen 127.0.0.1:%%PORT2%% ssl; server_name default; }
         server { listen 127.0.0.1:%%PORT2%% ssl; server_name on; http2 on; }",
        &leaf,
    )
    .start();
    let client = Tls::speaking(&[b"h2", b"http/1.1"]);
    for (port, name, expected) in [
        (1, "default", "h2"),
        (1, "nobody", "h2"),
        (1, "off", "http/1.1"),
        (2, "default", "http/1.1"),
        (2, "on", "h2"),
    ] {
        let chosen = client.chosen(server.port_number(port), name);
        let chosen = chosen.expect("they agree");
        assert_eq!(
            chosen.as_deref(),
            Some(expected.as_bytes()),
            "{port} {name}"
        );
    }
    let strict = Tls::speaking(&[b"h2"]);
    assert!(strict.chosen(server.port(), "off").is_err());
}

#[test]
fn sessions_are_resumed_by_every_thread() {
    for more in [
        "",
        "ssl_session_tickets off; ssl_session_cache shared:s:1m;",
    ] {
        let leaf = site("localhost");
        let template = format!("{more} {SERVER}");
        let server = with(&template, &leaf).start();
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            if !peer::is_firstbyte() && more.is_empty() {
                // nginx without a shared cache resumes in one process only.
                continue;
            }
            let client = Tls::of(version);
            client.get(server.port(), "localhost", "/v");
            for _ in 0..4 {
                let answer = client.get(server.port(), "localhost", "/v");
                assert!(
                    answer.resumed && answer.body.ends_with(" r"),
                    "{more}: {answer:?}"
                );
            }
        }
    }
}

#[test]
fn tickets_outlive_a_reload_and_certificates_do_not() {
    if !peer::knows_nginx(24) {
        // Keys for tickets are in the cache since 1.23.2.
        return;
    }
    let (old, new) = (site("old"), site("new"));
    let server = with(&format!("ssl_session_cache shared:s:1m; {SERVER}"), &old).start();
    let client = Tls::new();
    assert!(client.get(server.port(), "localhost", "/v").is_from(&old));
    server.rewrite_conf(|text| text.replace("301 /there", "301 /elsewhere"));
    server.signal(Signal::HUP);
    wait_until("the new configuration answers", || {
        let answer = Tls::new().get(server.port(), "localhost", "/r");
        answer.head.contains("/elsewhere")
    });
    assert!(client.get(server.port(), "localhost", "/v").resumed);
    server.dir().write("c.pem", &new.certificate);
    server.dir().write("k.pem", &new.key);
    server.signal(Signal::HUP);
    wait_until("the new certificate is shown", || {
        Tls::new()
            .get(server.port(), "localhost", "/v")
            .is_from(&new)
    });
    // A session of the old certificate is none of the new one's.
    assert!(!client.get(server.port(), "localhost", "/v").resumed);
}

#[test]
fn a_reload_with_a_broken_certificate_changes_nothing() {
    let leaf = site("localhost");
    let server = with(SERVER, &leaf).allow("[emerg]").start();
    server.dir().write("c.pem", "nothing");
    server.signal(Signal::HUP);
    server.wait_for_text("error.log", "PEM_read_bio_X509_AUX() failed");
    assert!(
        Tls::new()
            .get(server.port(), "localhost", "/v")
            .is_from(&leaf)
    );
}

#[test]
fn a_key_that_only_root_may_read_is_served_and_stays_hidden() {
    if !peer::is_root() {
        // Whoever runs the tests could read the key anyway.
        return;
    }
    let leaf = site("localhost");
    let server = with(SERVER, &leaf)
        .prepare(|dir| firstbyte_tests::dir::set_mode(&dir.join("k.pem"), 0o600))
        .start();
    assert!(
        Tls::new()
            .get(server.port(), "localhost", "/v")
            .is_from(&leaf)
    );
    let key = std::fs::canonicalize(server.path("k.pem")).expect("it is there");
    for worker in server.workers() {
        assert_ne!(process::effective_user(worker), Some(0));
        let open = std::fs::read_dir(format!("/proc/{worker}/fd")).expect("it runs");
        for descriptor in open.flatten() {
            let target = std::fs::read_link(descriptor.path()).unwrap_or_default();
            assert_ne!(target, key);
        }
    }
    let mut arguments = server.arguments();
    arguments.push("-T".to_owned());
    let shown = run(arguments);
    let (output, error) = (shown.stdout, shown.stderr);
    assert!(output.contains("ssl_certificate_key"), "{error}");
    assert!(!output.contains("PRIVATE KEY") && !error.contains("PRIVATE KEY"));
    assert!(!server.error_log().contains("PRIVATE KEY"));
}

#[test]
fn a_broken_handshake_is_logged_as_nginx_does() {
    let server = with(
        &format!("ssl_protocols TLSv1.3; {SERVER}"),
        &site("localhost"),
    )
    .start();
    let old = Tls::of(&rustls::version::TLS12);
    assert!(
        old.ask(server.port(), "localhost", "localhost", "/v")
            .is_err()
    );
    server.wait_for_text("error.log", "SSL_do_handshake() failed (");
    server.wait_for_text("error.log", " while SSL handshaking, client: 127.0.0.1");
    assert_eq!(Tls::new().get(server.port(), "localhost", "/v").status, 200);
}

#[test]
fn handshake_of_http_2_that_stops_halfway_costs_nothing() {
    if !peer::knows_nginx(25) {
        return;
    }
    let server = with(&format!("http2 on; {SERVER}"), &site("localhost")).start();
    // The begin of a handshake like the others: the client does not respond to the server's flight.
    let mut half = Tls::speaking(&[b"h2"]).begin(server.port(), "localhost");
    assert!(half.read(&mut [0; 16]).expect("the server answers") > 0);
    let worker = server.workers()[0];
    let before = process::cpu_ticks(worker);
    half.set_read_timeout(Some(Duration::from_millis(500)))
        .expect("it is not zero");
    while half.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {}
    let ticks = process::cpu_ticks(worker) - before;
    assert!(
        ticks < 20,
        "{ticks} hundredths of a second of half a second"
    );
}
