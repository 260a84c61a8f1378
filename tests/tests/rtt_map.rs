//! `rtt_map`: rows of connections in the store.
//!
//! Python's sqlite3 reads the file, so that another reader than the server's own agrees with it. Round-trip times of
//! known links are in `link/tests/rtt_map.rs`; faults of the store are in `rtt_map_faults.rs`.

mod recorded;
mod tls_client;

use std::fs;
use std::os::unix::net::UnixStream;

use firstbyte_tests::tls_pipe::tls_pipe;
use firstbyte_tests::{Client, H2Client, Server, SpdyClient, wait_until};
use recorded::{STORE, count, metric, rows, site, store_processes, visit, wait_for_rows};
use rustix::process::Signal;
use serde_json::Value;
use tls_client::site as leaf_of;

#[test]
fn connections_of_every_protocol_have_a_row() {
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
