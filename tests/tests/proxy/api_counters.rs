//! Counters of `api` on a running server: idle connections and queues of groups, TLS in both roles, names, lost workers.
//!
//! Absent: counters of zones of servers, locations and limits, which have tests with their modules.
//!
//! Source: nginx documentation, `ngx_http_api_module`.

use std::net::UdpSocket;
use std::thread;

use firstbyte_tests::backend::{Backend, Gate, Step, ok};
use firstbyte_tests::client::request;
use firstbyte_tests::{Server, Signal, process, wait_until};
use serde_json::{Value, json};

use crate::api::{call, get};
use crate::tls_client::{self, Tls};

const APP: &str = "/api/9/http/upstreams/app";

/// A server with this number of threads and a group of one server.
fn site(threads: u32, backend: &Backend, group: &str) -> Server {
    let name = backend.name();
    let http = format!(
        "upstream app {{ zone app 64k; server {name} {group} }}
         upstream plain {{ server {name}; keepalive 4; }}
         server {{
             listen 127.0.0.1:%%PORT%%;
             location / {{ proxy_pass http://app; }}
             location /plain {{ proxy_pass http://plain; }}
             location /metrics {{ metrics; }}
             location /api {{ api write=on; }}
         }}"
    );
    Server::http_with(&format!("worker_processes {threads};"), &http).start()
}

/// Asserts that the page of metrics has this line.
fn assert_metric(server: &Server, line: &str) {
    let page = server.get("/metrics").text();
    assert!(page.lines().any(|known| known == line), "{line}: {page}");
}

#[test]
fn idle_connections_of_a_group_are_counted_while_they_are_idle() {
    let gate = Gate::default();
    let waits = gate.clone();
    let backend =
        Backend::answering(move |_| [vec![Step::Gate(waits.clone())], ok("done")].concat());
    let server = site(2, &backend, "; keepalive 4;");
    assert_eq!(get(&server, APP)["keepalive"], 0);
    let mut clients = [(); 3].map(|()| server.client());
    for client in &mut clients {
        client.send(request("GET", "/", &[]));
    }
    wait_until("all are sent", || backend.request_count() == 3);
    assert_eq!(get(&server, APP)["keepalive"], 0);
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().text(), "done");
    }
    wait_until("all are idle", || get(&server, APP)["keepalive"] == 3);
    let line = "firstbyte_upstream_idle_connections{upstream=\"app\"} 3";
    assert_metric(&server, line);
    // Connections of another group, without a zone, are not counted.
    assert_eq!(server.get("/plain").status, 200);
    assert_eq!(get(&server, APP)["keepalive"], 3);
    assert!(get(&server, APP).get("queue").is_none());
    drop(backend);
    wait_until("all are closed", || get(&server, APP)["keepalive"] == 0);
}

#[test]
fn queues_of_a_group_are_counted() {
    let gate = Gate::default();
    let waits = gate.clone();
    let backend =
        Backend::answering(move |_| [vec![Step::Gate(waits.clone())], ok("done")].concat());
    let server = site(1, &backend, "max_conns=1; queue 2;");
    let queue =
        |size: u32, overflows: u32| json!({"size": size, "max_size": 2, "overflows": overflows});
    assert_eq!(get(&server, APP)["queue"], queue(0, 0));
    let mut clients = [(); 3].map(|()| server.client());
    for (n, client) in clients.iter_mut().enumerate() {
        client.send(request("GET", "/", &[]));
        match n {
            0 => wait_until("it is sent", || backend.request_count() == 1),
            n => wait_until("it waits", || get(&server, APP)["queue"]["size"] == n),
        }
    }
    assert_eq!(server.get("/").status, 502);
    assert_eq!(get(&server, APP)["queue"], queue(2, 1));
    for line in [
        "firstbyte_upstream_queued_requests{upstream=\"app\"} 2",
        "firstbyte_upstream_queue_overflows_total{upstream=\"app\"} 1",
    ] {
        assert_metric(&server, line);
    }
    // A client that leaves gives up its place.
    let [mut first, mut second, third] = clients;
    third.reset();
    wait_until("it has left", || get(&server, APP)["queue"]["size"] == 1);
    gate.open();
    assert_eq!(
        [first.response().text(), second.response().text()],
        ["done", "done"]
    );
    assert_eq!(get(&server, APP)["queue"], queue(0, 1));
    assert_eq!(call(&server, "DELETE", APP, "").status, 204);
    assert_eq!(get(&server, APP)["queue"], queue(0, 0));
    let two = site(2, &backend, "max_conns=1; queue 2;");
    assert_eq!(
        get(&two, APP)["queue"]["max_size"],
        4,
        "a queue for each thread"
    );
}

#[test]
fn handshakes_with_upstream_servers_are_counted_by_result() {
    let leaf = tls_client::site("localhost");
    let server = Server::http(
        "upstream plain { zone plain 64k; server 127.0.0.1:%%PORT%%; }
         upstream good { zone good 64k; server 127.0.0.1:%%PORT2%%; }
         upstream named { zone named 64k; server 127.0.0.1:%%PORT2%%; }
         upstream old { zone old 64k; server 127.0.0.1:%%PORT2%%; }
         server {
             listen 127.0.0.1:%%PORT%%;
             proxy_set_header Connection close;
             location /good { proxy_pass https://good; }
             location /plain { proxy_pass http://plain/ok; }
             location /ok { return 200 ok; }
             location /named {
                 proxy_pass https://named; proxy_ssl_name other.example;
                 proxy_ssl_verify on; proxy_ssl_trusted_certificate %%DIR%%/c.pem;
             }
             location /old { proxy_pass https://old; proxy_ssl_protocols TLSv1.2; }
             location /metrics { metrics; }
             location /api { api; }
         }
         server {
             listen 127.0.0.1:%%PORT2%% ssl; ssl_protocols TLSv1.3;
             ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
             return 200 secure;
         }",
    )
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .start();
    for _ in 0..2 {
        assert_eq!(server.get("/good").text(), "secure");
    }
    assert_eq!(server.get("/plain").text(), "ok");
    assert_eq!(server.get("/named").status, 502);
    assert_eq!(server.get("/old").status, 502);
    let groups = get(&server, "/api/9/http/upstreams");
    let ssl = |group: &str| groups[group]["peers"][0]["ssl"].clone();
    let counts = |ssl: &Value| {
        [
            "handshakes",
            "handshakes_failed",
            "session_reuses",
            "no_common_protocol",
        ]
        .map(|name| ssl[name].as_u64().unwrap_or(u64::MAX))
    };
    assert_eq!(counts(&ssl("good")), [2, 0, 1, 0]);
    assert_eq!(ssl("plain"), Value::Null);
    assert_eq!(counts(&ssl("named")), [0, 1, 0, 0]);
    let failures =
        json!({"expired_cert": 0, "revoked_cert": 0, "hostname_mismatch": 1, "other": 0});
    assert_eq!(ssl("named")["verify_failures"], failures);
    assert_eq!(counts(&ssl("old")), [0, 1, 0, 1]);
    let old = get(&server, "/api/7/http/upstreams/good");
    assert!(old["peers"][0].get("ssl").is_none(), "since version 8");
    let address = groups["good"]["peers"][0]["server"]
        .as_str()
        .expect("an address");
    let labels = format!("upstream=\"good\",server=\"{address}\"");
    for (name, count) in [
        ("tls_handshakes", 2),
        ("tls_resumed_handshakes", 1),
        ("tls_handshake_failures", 0),
    ] {
        assert_metric(
            &server,
            &format!("firstbyte_upstream_{name}_total{{{labels}}} {count}"),
        );
    }
}

#[test]
fn handshakes_with_clients_are_counted_by_result() {
    let leaf = tls_client::site("localhost");
    let authority = tls_client::authority("an authority");
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; location /metrics { metrics; } location /api { api write=on; } }
         server {
             listen 127.0.0.1:%%PORT2%% ssl; status_zone secure; ssl_protocols TLSv1.3; client_header_timeout 1s;
             ssl_certificate %%DIR%%/c.pem; ssl_certificate_key %%DIR%%/k.pem;
             ssl_verify_client on; ssl_client_certificate %%DIR%%/ca.pem;
             return 200 secure;
         }",
    )
    .bytes("c.pem", leaf.certificate.as_bytes())
    .bytes("k.pem", leaf.key.as_bytes())
    .bytes("ca.pem", authority.pem().as_bytes())
    .start();
    let port = server.port_number(2);
    let known = tls_client::client("someone", &authority);
    assert_eq!(
        Tls::known_as(&known).get(port, "localhost", "/").status,
        200
    );
    assert_eq!(Tls::new().get(port, "localhost", "/").status, 400);
    let stranger = tls_client::site("stranger");
    assert_eq!(
        Tls::known_as(&stranger).get(port, "localhost", "/").status,
        400
    );
    assert!(
        Tls::of(&rustls::version::TLS12)
            .open(port, "localhost")
            .is_err()
    );
    let silent = Tls::new().begin(port, "localhost");
    let zone = "/api/9/http/server_zones/secure";
    wait_until("the silent client is too late", || {
        get(&server, zone)["ssl"]["handshake_timeout"] == 1
    });
    drop(silent);
    for ssl in [
        get(&server, "/api/9/ssl"),
        get(&server, zone)["ssl"].clone(),
    ] {
        for (name, count) in [
            ("handshakes", 3),
            ("handshakes_failed", 2),
            ("no_common_protocol", 1),
            ("no_common_cipher", 0),
            ("handshake_timeout", 1),
            ("peer_rejected_cert", 0),
        ] {
            assert_eq!(ssl[name], count, "{name}: {ssl}");
        }
        let failures = &ssl["verify_failures"];
        let counts = ["no_cert", "expired_cert", "revoked_cert", "other"]
            .map(|name| failures[name].as_u64());
        assert_eq!(counts, [1, 0, 0, 1].map(Some), "{ssl}");
    }
    for line in [
        "firstbyte_tls_handshake_failures_total{reason=\"no_common_protocol\"} 1",
        "firstbyte_tls_handshake_failures_total{reason=\"timeout\"} 1",
        "firstbyte_tls_client_certificate_failures_total{reason=\"missing\"} 1",
        "firstbyte_tls_client_certificate_failures_total{reason=\"other\"} 1",
    ] {
        assert_metric(&server, line);
    }
    assert_eq!(call(&server, "DELETE", "/api/9/ssl", "").status, 204);
    let ssl = get(&server, "/api/9/ssl");
    assert_eq!(
        (
            &ssl["no_common_protocol"],
            &ssl["verify_failures"]["no_cert"]
        ),
        (&json!(0), &json!(0))
    );
}

/// A name server that answers this number of queries with NXDOMAIN. Returns its port.
fn unknowing(queries: usize) -> (u16, thread::JoinHandle<()>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let port = socket.local_addr().expect("it is bound").port();
    let answers = thread::spawn(move || {
        for _ in 0..queries {
            let mut message = [0; 512];
            let (length, from) = socket.recv_from(&mut message).expect("a query comes");
            // A response, recursion available, NXDOMAIN.
            (message[2], message[3]) = (0x81, 0x83);
            socket
                .send_to(&message[..length], from)
                .expect("it is sent");
        }
    });
    (port, answers)
}

#[test]
fn lookups_are_counted_in_the_zone_of_their_resolver() {
    let (port, answers) = unknowing(2);
    let server = Server::http(&format!(
        "resolver 127.0.0.1:{port} ipv6=off status_zone=names;
         server {{
             listen 127.0.0.1:%%PORT%%;
             location /to {{ proxy_pass http://$arg_host; }}
             location /api {{ api write=on; }}
         }}"
    ))
    .start();
    for host in ["a.example", "b.example"] {
        assert_eq!(server.get(&format!("/to?host={host}")).status, 502);
    }
    assert!(answers.join().is_ok());
    let path = "/api/9/resolvers/names";
    let zone = get(&server, path);
    assert_eq!(zone["requests"], json!({"name": 2, "srv": 0, "addr": 0}));
    assert_eq!(zone["responses"]["nxdomain"], 2, "{zone}");
    assert_eq!(call(&server, "DELETE", path, "").status, 204);
    assert_eq!(get(&server, path)["responses"]["nxdomain"], 0);
}

#[test]
fn a_lost_worker_is_counted() {
    let server = Server::http(
        "server { listen 127.0.0.1:%%PORT%%; location /metrics { metrics; } location /api { api write=on; } }",
    )
    .allow("exited on signal 9")
    .start();
    let path = "/api/9/processes";
    assert_eq!(get(&server, path), json!({"respawned": 0}));
    let worker = server.workers()[0];
    assert!(process::signal(worker, Signal::KILL));
    wait_until("another worker runs", || {
        let workers = server.workers();
        !workers.is_empty() && !workers.contains(&worker)
    });
    assert_eq!(get(&server, path), json!({"respawned": 1}));
    assert_metric(&server, "firstbyte_respawned_workers_total 1");
    assert_eq!(call(&server, "DELETE", path, "").status, 204);
    assert_eq!(get(&server, path), json!({"respawned": 0}));
}
