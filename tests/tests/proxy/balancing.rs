//! Methods of choosing a server: attempts in progress, the client's address, keys, and reloads.
//!
//! Source: nginx documentation, `least_conn`, `ip_hash`, `hash`, `least_time` of ngx_http_upstream_module.

use std::collections::HashSet;

use firstbyte_tests::backend::{Backend, Gate, Step, ok};
use firstbyte_tests::shop::reload;
use firstbyte_tests::{Builder, Server, wait_until};

/// A server with a group of these backends and a method.
fn server(method: &str, backends: &[&Backend]) -> Builder {
    let servers = backends
        .iter()
        .map(|backend| format!("server {}; ", backend.name()));
    let servers: String = servers.collect();
    Server::http_with(
        "worker_processes 1;",
        &format!(
            "upstream behind {{ {method} {servers} }}
             server {{ listen 127.0.0.1:%%PORT%%; set_real_ip_from 127.0.0.0/8;
                 location = /generation {{ return 200 g0; }}
                 location / {{ proxy_pass http://behind; }} }}"
        ),
    )
}

/// A backend that answers with its name, `/slow` only after the gate was opened.
fn backend(name: &'static str, gate: &Gate) -> Backend {
    let gate = gate.clone();
    Backend::answering(move |request| match request.line.as_str() {
        "GET /slow HTTP/1.1" => [vec![Step::Gate(gate.clone())], ok(name)].concat(),
        _ => ok(name),
    })
}

#[test]
fn a_server_with_an_attempt_in_progress_gets_no_other_one() {
    for method in [
        "least_conn;",
        "least_time last_byte inflight;",
        "random two;",
    ] {
        let gate = Gate::default();
        let (one, two) = (backend("one", &gate), backend("two", &gate));
        let server = server(method, &[&one, &two]).start();
        let mut slow = server.client();
        slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
        wait_until("the slow request arrives", || {
            one.request_count() + two.request_count() == 1
        });
        let texts: HashSet<String> = (0..10).map(|_| server.get("/").text()).collect();
        assert_eq!(texts.len(), 1, "{method} {texts:?}");
        gate.open();
        let busy = slow.response().text();
        assert!(!texts.contains(&busy), "{method} {busy}");
    }
}

#[test]
fn clients_and_keys_keep_their_servers_over_a_reload() {
    for method in ["ip_hash;", "hash $arg_a;", "hash $arg_a consistent;"] {
        let gate = Gate::default();
        let (one, two, three) = (
            backend("one", &gate),
            backend("two", &gate),
            backend("three", &gate),
        );
        let server = server(method, &[&one, &two, &three]).start();
        let mut client = server.client();
        let mut texts = || -> Vec<String> {
            let one = |n| {
                let address = format!("X-Real-IP: 192.0.{n}.1");
                client.get_with(&format!("/?a={n}"), &[&address]).text()
            };
            (0..30).map(one).collect()
        };
        let before = texts();
        assert_eq!(before.iter().collect::<HashSet<_>>().len(), 3, "{method}");
        assert_eq!(texts(), before, "{method}");
        reload(&server, 1);
        assert_eq!(texts(), before, "{method}");
    }
}
