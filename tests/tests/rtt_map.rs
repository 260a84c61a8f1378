//! `rtt_map`: rows of connections in the store, and a store that fails, is replaced or is killed.
//!
//! Python's sqlite3 reads the file, so that another reader than the server's own agrees with it. Round-trip times of
//! known links are in `link/tests/rtt_map.rs`.

mod tls_client;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use firstbyte_tests::small_disk::on_small_disk;
use firstbyte_tests::tls_pipe::tls_pipe;
use firstbyte_tests::{Builder, Client, H2Client, Server, SpdyClient, process, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use tls_client::site as leaf_of;

/// Prints the rows of a query as a JSON array of objects.
const READER: &str = "import json, sqlite3, sys
db = sqlite3.connect(f\"file:{sys.argv[1]}?mode=ro\", uri=True, timeout=20)
db.row_factory = sqlite3.Row
print(json.dumps([dict(row) for row in db.execute(sys.argv[2])]))";

fn site(lines: &str, server: &str) -> Builder {
    let http = format!(
        "rtt_map on; {lines} access_log off; http2 on;
         server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; {server}
           location = /metrics {{ metrics; }} }}"
    );
    Server::http(&http)
        .file("html/f.txt", "0123456789")
        .allow("rtt_map records no countries")
}

const STORE: &str = "lab_store sqlite:%%DIR%%/lab/store.db server=edge;";

/// Rows of the store of a server; none while there is no table.
fn rows(server: &Server, query: &str) -> Vec<Value> {
    let file = server.path("lab/store.db");
    let read = Command::new("python3")
        .args(["-c", READER, &file.display().to_string(), query])
        .output()
        .expect("python3 runs");
    match serde_json::from_slice(&read.stdout) {
        Ok(Value::Array(rows)) => rows,
        _ => Vec::new(),
    }
}

fn count(server: &Server) -> u64 {
    let counted = rows(server, "SELECT count(*) AS n FROM connections");
    counted
        .first()
        .map_or(0, |row| row["n"].as_u64().expect("a number"))
}

#[track_caller]
fn wait_for_rows(server: &Server, number: u64) {
    wait_until("the store has the rows", || count(server) >= number);
    assert_eq!(count(server), number);
}

/// A request on a connection of its own.
fn visit(server: &Server) {
    assert_eq!(server.get("/f.txt").text(), "0123456789");
}

fn metric(server: &Server, sample: &str) -> u64 {
    let page = server.get("/metrics").text();
    let mut lines = page.lines();
    let value = lines.find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    value.map_or(0, |value| value.parse().expect("a number"))
}

/// Processes of a server by the begin of their title.
fn children(server: &Server, title: &str) -> Vec<u32> {
    let is_it = |pid: &u32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline"));
        line.is_ok_and(|line| line.starts_with(title))
    };
    let all = process::children(server.pid());
    all.into_iter().filter(is_it).collect()
}

fn store_processes(server: &Server) -> Vec<u32> {
    children(server, "firstbyte: store process")
}

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
    visit(&server);
    wait_for_rows(&server, 1);
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
    for header in [
        "PROXY TCP4 203.0.113.99 192.0.2.1 4000 80\r\n",
        "PROXY TCP6 2001:db8:1:2:3:4:5:6 2001:db8::1 4000 80\r\n",
        "PROXY UNKNOWN\r\n",
    ] {
        let before = count(&server);
        let mut client = Client::connect(server.port_number(2));
        client.send(&format!("{header}GET /f.txt HTTP/1.1\r\nHost: a\r\n\r\n"));
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
fn end_of_the_server_writes_what_is_queued() {
    for main in ["", "master_process off;"] {
        let http = format!(
            "rtt_map on; {STORE} access_log off; server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; }}"
        );
        let mut server = Server::http_with(main, &http)
            .file("html/f.txt", "0123456789")
            .allow("rtt_map records no countries")
            .start();
        for _ in 0..50 {
            visit(&server);
        }
        server.signal(Signal::QUIT);
        assert_eq!(server.wait_for_exit(), 0, "{main}");
        assert_eq!(count(&server), 50, "{main}");
    }
}

#[test]
fn reload_changes_the_store_and_loses_nothing() {
    let server = site(STORE, "").start();
    let change = |from: &str, to: &str| {
        let before = store_processes(&server);
        let (from, to) = (from.to_owned(), to.to_owned());
        server.rewrite_conf(move |conf| conf.replace(&from, &to));
        server.signal(Signal::HUP);
        wait_until("another store process alone", || {
            let now = store_processes(&server);
            now.len() == 1 && now != before
        });
    };
    visit(&server);
    wait_for_rows(&server, 1);
    change("server=edge", "server=second");
    visit(&server);
    wait_for_rows(&server, 2);
    change("lab/store.db", "a/b/lab/other.db");
    visit(&server);
    let other = server.path("a/b/lab/other.db");
    wait_until("the new store is there", || other.exists());
    change("a/b/lab/other.db", "lab/store.db");
    visit(&server);
    wait_for_rows(&server, 3);
    let names = rows(
        &server,
        "SELECT DISTINCT server FROM connections ORDER BY server",
    );
    let names: Vec<_> = names.iter().map(|row| row["server"].as_str()).collect();
    assert_eq!(names, [Some("edge"), Some("second")]);
    server.rewrite_conf(|conf| conf.replace("rtt_map on", "rtt_map off"));
    server.signal(Signal::HUP);
    wait_until("no store process", || store_processes(&server).is_empty());
    server.wait_for_text("error.log", "has no effect without \"rtt_map on\"");
    visit(&server);
}

#[test]
fn killed_store_process_is_started_again() {
    let server = site(STORE, "").allow("exited on signal 9").start();
    visit(&server);
    wait_for_rows(&server, 1);
    for n in 2..4 {
        let [pid] = store_processes(&server)[..] else {
            panic!("one store process");
        };
        assert!(process::signal(pid, Signal::KILL));
        // Samples wait in the socket meanwhile.
        visit(&server);
        wait_for_rows(&server, n);
        wait_until("another one", || {
            store_processes(&server).iter().any(|p| *p != pid)
        });
    }
}

#[test]
fn reopened_logs_receive_the_reports_of_the_store() {
    let server = site(STORE, "").start();
    server.wait_for_text("error.log", "is open");
    fs::rename(server.path("error.log"), server.path("error.log.1")).expect("it is ours");
    server.signal(Signal::USR1);
    server.wait_for_text("error.log", "is open");
}

#[test]
fn stores_that_fail_slow_nothing_and_are_reported() {
    let refused = site(STORE, "")
        .allow("cannot write the store")
        .prepare(|dir| {
            // The file's place is a directory.
            fs::create_dir_all(dir.join("lab/store.db")).expect("a folder");
            let open = fs::Permissions::from_mode(0o777);
            fs::set_permissions(dir.join("lab"), open).expect("it is ours");
        })
        .start();
    refused.wait_for_text("error.log", "cannot write the store");
    for _ in 0..20 {
        visit(&refused);
    }
    wait_until("metrics show it", || {
        metric(&refused, "firstbyte_lab_store_failing") == 1
            && metric(&refused, "firstbyte_lab_store_failed_writes_total") > 0
    });
    fs::remove_dir(refused.path("lab/store.db")).expect("it is empty");
    refused.wait_for_text("error.log", "can be written again");
    wait_until("rows have waited", || count(&refused) >= 20);
    wait_until("metrics show it", || {
        metric(&refused, "firstbyte_lab_store_failing") == 0
    });
}

#[test]
fn full_disk_keeps_what_is_stored() {
    let lines = "lab_store sqlite:%%DIR%%/small/store.db;";
    let Some(server) = on_small_disk(site(lines, "").allow("cannot write the store"), 1000) else {
        return;
    };
    let server = server.start();
    let written = || {
        metric(
            &server,
            "firstbyte_lab_store_samples_total{result=\"written\"}",
        )
    };
    wait_until("rows are stored", || written() > 0);
    let mut client = server.client();
    wait_until("the disk is full", || {
        for _ in 0..50 {
            visit(&server);
        }
        server.error_log().contains("cannot write the store")
    });
    assert_eq!(client.get("/f.txt").text(), "0123456789");
    wait_until("metrics show it", || {
        metric(&server, "firstbyte_lab_store_failing") == 1
    });
    assert!(
        metric(
            &server,
            "firstbyte_lab_store_samples_total{result=\"written\"}"
        ) > 0
    );
}

#[test]
fn damaged_store_is_moved_aside() {
    let server = site(STORE, "").allow("the store was damaged").start();
    visit(&server);
    wait_for_rows(&server, 1);
    let [before] = store_processes(&server)[..] else {
        panic!("one store process");
    };
    let file = server.path("lab/store.db");
    let bytes = fs::read(&file).expect("the store");
    let broken: Vec<u8> = bytes
        .iter()
        .enumerate()
        .map(|(at, byte)| if at < 4096 { *byte } else { !*byte })
        .collect();
    fs::write(&file, broken).expect("it is ours");
    server.signal(Signal::USR1);
    wait_until("another process", || {
        !store_processes(&server).contains(&before)
    });
    server.wait_for_text("error.log", "the store was damaged and is now");
    visit(&server);
    wait_for_rows(&server, 1);
    let aside = fs::read_dir(server.path("lab")).expect("the folder");
    let aside = aside.filter(|file| {
        let name = file.as_ref().expect("a file").file_name();
        name.to_string_lossy().contains(".damaged-")
    });
    assert!(aside.count() >= 1);
}

#[test]
fn store_process_that_hangs_slows_nothing() {
    let server = site(STORE, "").start();
    visit(&server);
    wait_for_rows(&server, 1);
    let [pid] = store_processes(&server)[..] else {
        panic!("one store process");
    };
    assert!(process::signal(pid, Signal::STOP));
    wait_until("it is stopped", || process::is_stopped(pid));
    for _ in 0..300 {
        visit(&server);
    }
    assert_eq!(count(&server), 1);
    assert!(process::signal(pid, Signal::CONT));
    wait_for_rows(&server, 301);
}

#[test]
fn lock_of_another_program_slows_nothing() {
    let server = site(STORE, "").allow("cannot write the store").start();
    visit(&server);
    wait_for_rows(&server, 1);
    let script = "import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute('BEGIN IMMEDIATE')
print('locked', flush=True)
sys.stdin.read()";
    let mut locker = Command::new("python3")
        .args([
            "-c",
            script,
            &server.path("lab/store.db").display().to_string(),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut line = String::new();
    let output = locker.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("text");
    assert_eq!(line, "locked\n");
    for _ in 0..50 {
        visit(&server);
    }
    assert_eq!(count(&server), 1);
    drop(locker.stdin.take());
    assert!(locker.wait().expect("it ends").success());
    wait_for_rows(&server, 51);
}

#[test]
fn kill_of_the_server_loses_the_last_second_at_most() {
    let mut server = site(STORE, "").start();
    for _ in 0..100 {
        visit(&server);
    }
    wait_for_rows(&server, 100);
    visit(&server);
    server.signal(Signal::KILL);
    assert_eq!(server.wait_for_exit(), -1);
    // The store process ends with the last worker, and writes what it has received.
    let file = server.path("lab/store.db-wal");
    wait_until("the store is closed", || !file.exists());
    assert!((100..=101).contains(&count(&server)), "{}", count(&server));
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
