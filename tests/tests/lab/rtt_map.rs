//! `rtt_map`: rows of connections in the store.
//!
//! Python's sqlite3 reads the file, so that another reader than the server's own agrees with it. Round-trip times of
//! known links are in `link/tests/rtt_map.rs`; faults of the store are in `rtt_map_faults.rs`.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;

use crate::recorded::{
    STORE, count, metric, plain_site, rows, site, store_processes, visit, wait_for_rows,
};
use crate::tls_client::site as leaf_of;
use firstbyte_tests::tls_pipe::tls_pipe;
use firstbyte_tests::{Builder, Client, H2Client, Server, SpdyClient, wait_until};
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn connections_of_every_protocol_have_a_row() {
    every_protocol_has_a_row(site);
}

/// Without metrics no other module subscribes to the begin of responses.
#[test]
fn connections_of_every_protocol_have_a_row_without_metrics() {
    every_protocol_has_a_row(plain_site);
}

fn every_protocol_has_a_row(site: fn(&str, &str) -> Builder) {
    let leaf = leaf_of("localhost");
    let server = site(STORE, "listen 127.0.0.1:%%PORT2%% ssl spdy; ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;")
        .bytes("c.pem", leaf.certificate.as_bytes())
        .bytes("k.pem", leaf.key.as_bytes())
        .start();
    let mut client = server.client();
    for _ in 0..3 {
        client.get("/f.txt");
    }
    drop(client);
    wait_for_rows(&server, 1);
    let mut client = Client::connect(tls_pipe(server.port_number(2), "http/1.1"));
    client.get("/f.txt");
    drop(client);
    wait_for_rows(&server, 2);
    let mut client = H2Client::connect(tls_pipe(server.port_number(2), "h2"));
    for _ in 0..2 {
        let stream = client.get("/f.txt");
        client.reply(stream);
    }
    drop(client);
    wait_for_rows(&server, 3);
    let mut client = SpdyClient::connect(tls_pipe(server.port_number(2), "spdy/3.1"));
    let stream = client.get("/f.txt");
    client.reply(stream);
    drop(client);
    wait_for_rows(&server, 4);
    let all = rows(&server, "SELECT * FROM connections ORDER BY id");
    let texts = |name: &str| -> Vec<&str> {
        all.iter()
            .map(|row| row[name].as_str().expect("a text"))
            .collect()
    };
    assert_eq!(
        texts("protocol"),
        ["HTTP/1.1", "HTTP/1.1", "HTTP/2.0", "SPDY/3.1"]
    );
    assert_eq!(texts("tls"), ["", "TLSv1.3", "TLSv1.3", "TLSv1.3"]);
    assert_eq!(texts("handshake_kind"), ["none", "full", "full", "full"]);
    assert_eq!(texts("server"), ["edge"; 4]);
    assert_eq!(texts("network"), ["127.0.0.0/24"; 4]);
    let numbers = |name: &str| -> Vec<f64> {
        all.iter()
            .map(|row| row[name].as_f64().unwrap_or(-1.0))
            .collect()
    };
    assert_eq!(numbers("requests"), [3.0, 1.0, 2.0, 1.0]);
    assert_eq!(numbers("via_proxy"), [0.0; 4]);
    let positive = |name: &str| numbers(name).iter().all(|number| *number > 0.0);
    for name in [
        "min_rtt_ms",
        "rtt_ms",
        "first_byte_ms",
        "bytes_sent",
        "bytes_received",
    ] {
        assert!(positive(name), "{name}: {:?}", numbers(name));
    }
    let handshakes = numbers("handshake_ms");
    assert_eq!(handshakes[0], -1.0);
    assert!(handshakes[1..].iter().all(|ms| *ms > 0.0), "{handshakes:?}");
    assert!(numbers("bytes_sent")[0] > 3.0 * 10.0);
    assert_eq!(
        metric(&server, "firstbyte_lab_samples_total{result=\"dropped\"}"),
        0
    );
}

/// Statuses of the last row: 2xx, 3xx, 4xx, 5xx.
fn last_statuses(server: &Server) -> [u64; 4] {
    let all = rows(server, "SELECT * FROM connections ORDER BY id DESC LIMIT 1");
    let names = ["status_2xx", "status_3xx", "status_4xx", "status_5xx"];
    names.map(|name| all[0][name].as_u64().expect("a number"))
}

#[test]
fn statuses_are_counted_by_class_at_the_end_of_requests() {
    let leaf = leaf_of("localhost");
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = upstream.local_addr().expect("an address");
    let server = site(
        STORE,
        &format!(
            "listen 127.0.0.1:%%PORT2%% ssl spdy; ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
             location = /e {{ return 503; }} location = /r {{ return 301 /f.txt; }}
             location = /w {{ proxy_pass http://{to}; }}
             location = /i {{ proxy_pass http://{to}; proxy_ignore_client_abort on; }}"
        ),
    )
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .start();
    let accepted = || upstream.accept().expect("a connection").0;

    // The last request ends with its client: 499.
    let mut client = server.client();
    for path in ["/f.txt", "/f.txt", "/none", "/e", "/r"] {
        client.get(path);
    }
    client.get_with("/f.txt", &["If-None-Match: *"]);
    client.send("GET /w HTTP/1.1\r\nHost: a\r\n\r\n");
    let waiting = accepted();
    drop(client);
    wait_for_rows(&server, 1);
    assert_eq!(last_statuses(&server), [2, 2, 2, 1]);
    drop(waiting);

    // An incomplete head, and an incomplete body: 400.
    for rest in [
        "GET /f",
        "POST /w HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
    ] {
        let before = count(&server);
        let mut client = server.client();
        client.get("/f.txt");
        client.send(rest).finish_sending();
        assert!(client.closed());
        wait_for_rows(&server, before + 1);
        assert_eq!(last_statuses(&server), [1, 0, 1, 0], "{rest}");
    }

    // A response that outlives its client.
    let mut client = server.client();
    client.get("/e");
    client.send("GET /i HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut answering = accepted();
    drop(client);
    visit(&server);
    wait_for_rows(&server, 4);
    answering
        .write_all(b"HTTP/1.0 204 No Content\r\n\r\n")
        .expect("the server reads");
    drop(answering);
    wait_for_rows(&server, 5);
    assert_eq!(last_statuses(&server), [1, 0, 0, 1]);

    // Streams that are cancelled: 499.
    let mut client = H2Client::connect(tls_pipe(server.port_number(2), "h2"));
    for path in ["/f.txt", "/none", "/e", "/r"] {
        client.fetch(path);
    }
    let stream = client.get("/w");
    let waiting = accepted();
    client.cancel(stream);
    client.fetch("/f.txt");
    drop((client, waiting));
    wait_for_rows(&server, 6);
    assert_eq!(last_statuses(&server), [2, 1, 2, 1]);
    let mut client = SpdyClient::connect(tls_pipe(server.port_number(2), "spdy/3.1"));
    client.fetch("/none");
    let stream = client.get("/w");
    let waiting = accepted();
    client.cancel(stream);
    let two = [client.get("/e"), client.get("/f.txt")];
    for stream in two {
        client.reply(stream);
    }
    client.get("/w");
    let last = accepted();
    drop((client, waiting));
    wait_for_rows(&server, 7);
    assert_eq!(last_statuses(&server), [1, 0, 3, 1]);
    drop(last);
    let sums = rows(&server, "SELECT sum(requests) AS n FROM connections");
    // Each request has a status.
    let expected = 7 + 2 + 2 + 1 + 2 + 6 + 5;
    assert_eq!(sums[0]["n"], expected);
}

#[test]
fn open_connections_have_a_row_by_minute_and_protocol() {
    let leaf = leaf_of("localhost");
    let server = site(STORE, "listen 127.0.0.1:%%PORT2%% ssl; ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;")
        .bytes("c.pem", leaf.certificate.as_bytes())
        .bytes("k.pem", leaf.key.as_bytes())
        .start();
    // Connections without a request count, too.
    let one = [server.client(), server.client(), server.client()];
    let mut two = H2Client::connect(tls_pipe(server.port_number(2), "h2"));
    two.fetch("/f.txt");
    let query = "SELECT protocol, server, max(connections) AS n FROM open_connections GROUP BY protocol ORDER BY protocol";
    let all = || rows(&server, query);
    wait_until("rows of both protocols", || {
        let found = all();
        found.len() == 2 && found[0]["n"].as_u64() >= Some(3)
    });
    let found = all();
    assert_eq!(found[0]["protocol"], "HTTP/1.1");
    assert_eq!(
        (&found[1]["protocol"], &found[1]["n"]),
        (&"HTTP/2.0".into(), &1.into())
    );
    assert_eq!(found[1]["server"], "edge");
    let minutes =
        "SELECT count(*) AS rows, count(DISTINCT at || protocol) AS minutes FROM open_connections";
    let counted = &rows(&server, minutes)[0];
    assert_eq!(counted["rows"], counted["minutes"]);
    // None of them is closed.
    assert_eq!(count(&server), 0);
    drop((one, two));
}

#[test]
fn connections_without_a_response_have_no_row() {
    let server = site(STORE, "listen unix:%%DIR%%/s.sock;").start();
    drop(server.client());
    server.client().send("GET /f");
    drop(UnixStream::connect(server.path("s.sock")).expect("it listens"));
    // Rows are written in the order in which connections close.
    visit(&server);
    wait_for_rows(&server, 1);
    visit(&server);
    wait_for_rows(&server, 2);
    let protocols = rows(&server, "SELECT DISTINCT protocol FROM connections");
    assert_eq!(protocols.len(), 1);
    assert_eq!(protocols[0]["protocol"], "HTTP/1.1");
}

#[test]
fn connections_of_proxies_are_marked_and_have_the_network_of_the_visitor() {
    let server = site(
        STORE,
        "listen 127.0.0.1:%%PORT2%% proxy_protocol; set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;",
    )
    .start();
    let field = "X-Forwarded-For: 198.51.100.77";
    server.client().get_with("/f.txt", &[field]);
    wait_for_rows(&server, 1);
    // The proxy names a client in its second request only.
    let mut client = server.client();
    client.get("/f.txt");
    client.get_with("/f.txt", &[field]);
    drop(client);
    wait_for_rows(&server, 2);
    for header in [
        "PROXY TCP4 203.0.113.99 192.0.2.1 4000 80\r\n",
        "PROXY TCP6 2001:db8:1:2:3:4:5:6 2001:db8::1 4000 80\r\n",
        "PROXY UNKNOWN\r\n",
    ] {
        let before = count(&server);
        let mut client = Client::connect(server.port_number(2));
        client.send(format!("{header}GET /f.txt HTTP/1.1\r\nHost: a\r\n\r\n"));
        client.response();
        drop(client);
        wait_for_rows(&server, before + 1);
    }
    let all = rows(
        &server,
        "SELECT network, via_proxy FROM connections ORDER BY id",
    );
    let found: Vec<_> = all
        .iter()
        .map(|row| {
            (
                row["network"].as_str().unwrap_or(""),
                row["via_proxy"].as_u64(),
            )
        })
        .collect();
    let expected = [
        "198.51.100.0/24",
        "127.0.0.0/24",
        "203.0.113.0/24",
        "2001:db8:1::/48",
        "127.0.0.0/24",
    ];
    assert_eq!(found, expected.map(|network| (network, Some(1))));
    holds_no_address(
        &server,
        &["198.51.100.77", "203.0.113.99", "2001:db8:1:2:3:4:5:6"],
    );
}

/// Files of the lab hold none of these addresses: no text, no bytes, in no order of bytes.
#[track_caller]
fn holds_no_address(server: &Server, addresses: &[&str]) {
    let files = fs::read_dir(server.path("lab")).expect("the folder of the store");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.push(server.path("error.log"));
    for path in paths {
        let bytes = fs::read(&path).unwrap_or_default();
        for address in addresses {
            let is_in = |wanted: &[u8]| bytes.windows(wanted.len()).any(|part| part == wanted);
            let binary = match address.parse().expect("an address") {
                std::net::IpAddr::V4(v4) => v4.octets().to_vec(),
                std::net::IpAddr::V6(v6) => v6.octets().to_vec(),
            };
            let reversed: Vec<u8> = binary.iter().rev().copied().collect();
            let texts = [address.as_bytes(), &binary, &reversed];
            assert!(
                !texts.into_iter().any(is_in),
                "{} in {}",
                address,
                path.display()
            );
        }
    }
}

#[test]
fn first_database_that_knows_the_country_has_precedence() {
    let lines = format!(
        "{STORE} geoip_database %%DIR%%/none %%DIR%%/first; geoip_database %%DIR%%/second;"
    );
    let loopback = u32::from(std::net::Ipv4Addr::LOCALHOST);
    let server = site(&lines, "")
        .file("none", "1,2,AU\n")
        .file("first", &format!("{loopback},{loopback},NZ\n"))
        .file("second", &format!("{loopback},{loopback},SE\n"))
        .start();
    visit(&server);
    wait_for_rows(&server, 1);
    let country = |n: usize| {
        rows(&server, "SELECT country FROM connections ORDER BY id")[n]["country"].clone()
    };
    assert_eq!(country(0), "NZ");
    // Changed databases count from the next reload.
    fs::write(server.path("first"), "3,4,NZ\n").expect("it is ours");
    let before = store_processes(&server);
    server.signal(Signal::HUP);
    wait_until("another store process alone", || {
        let now = store_processes(&server);
        now.len() == 1 && now != before
    });
    visit(&server);
    wait_for_rows(&server, 2);
    assert_eq!(country(1), "SE");
}

#[test]
fn networks_are_left_out_if_they_are_off() {
    let server = site(&format!("{STORE} lab_network off;"), "").start();
    visit(&server);
    wait_for_rows(&server, 1);
    let all = rows(&server, "SELECT network FROM connections");
    assert_eq!(all[0]["network"], Value::Null);
}

#[test]
fn share_of_connections_is_drawn() {
    let mut server = site(STORE, "").written();
    server.rewrite_conf(|conf| conf.replace("rtt_map on;", "rtt_map on sample=20%;"));
    server.launch(false);
    for _ in 0..1000 {
        visit(&server);
    }
    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0);
    // Six standard deviations.
    assert!((124..=276).contains(&count(&server)), "{}", count(&server));
}
