//! `queue`: requests that wait for a server.

use firstbyte_tests::backend::{Backend, Gate, Step, ok};
use firstbyte_tests::client::request;
use firstbyte_tests::port::Port;
use firstbyte_tests::{Builder, Client, Server, wait_until};

/// A server with a group of these lines and one location; requests and their times are logged.
fn server(group: &str) -> Builder {
    Server::http_with(
        "worker_processes 1;",
        &format!(
            "upstream behind {{ {group} }}
             log_format up '$request_uri $status [$upstream_addr] [$upstream_queue_time]';
             server {{ listen 127.0.0.1:%%PORT%%; access_log %%DIR%%/up.log up;
                 location / {{ proxy_pass http://behind; }} }}"
        ),
    )
}

/// A server that answers once the gate is open.
fn gated() -> (Backend, Gate) {
    let gate = Gate::default();
    let waits = gate.clone();
    let backend =
        Backend::answering(move |_| [vec![Step::Gate(waits.clone())], ok("done")].concat());
    (backend, gate)
}

/// Begins a request that the backend holds, and two more. Returns the clients of the first, of the one in the queue, and of
/// the one that was refused, and the path of the one in the queue.
fn fill(server: &Server, backend: &Backend) -> (Client, Client, &'static str) {
    let [mut first, mut second, mut third] = [(); 3].map(|()| server.client());
    first.send(request("GET", "/first", &[]));
    wait_until("it is sent", || backend.request_count() == 1);
    second.send(request("GET", "/second", &[]));
    third.send(request("GET", "/third", &[]));
    // Either may be the first one in the queue.
    let log = server.wait_for_text("up.log", " 502 [behind] [-]");
    let refused = log
        .lines()
        .find(|line| line.contains(" 502 "))
        .unwrap_or_default();
    match refused.starts_with("/second") {
        true => {
            assert_eq!(second.response().status, 502);
            (first, third, "/third")
        }
        false => {
            assert_eq!(third.response().status, 502);
            (first, second, "/second")
        }
    }
}

#[test]
fn a_request_waits_for_a_connection_and_one_too_many_is_refused() {
    let (backend, gate) = gated();
    let name = backend.name();
    let server = server(&format!("server {name} max_conns=1; queue 1;")).start();
    let (mut first, mut queued, path) = fill(&server, &backend);
    server.wait_for_text(
        "error.log",
        "upstream queue is full while connecting to upstream",
    );
    gate.open();
    assert_eq!(
        [first.response().text(), queued.response().text()],
        ["done", "done"]
    );
    let log = server.wait_for_text("up.log", &format!("{path} 200"));
    assert!(log.contains(&format!("/first 200 [{name}] [-]\n")), "{log}");
    let begin = format!("{path} 200 [{name}] [");
    let line = log
        .lines()
        .find_map(|line| line.strip_prefix(&begin)?.strip_suffix(']'));
    let time: f64 = line.and_then(|time| time.parse().ok()).expect("a time");
    assert!((0.0..60.0).contains(&time), "{log}");
    assert_eq!(server.get("/fourth").status, 200);
}

#[test]
fn a_wait_ends_with_502() {
    let (backend, _gate) = gated();
    let group = format!(
        "server {} max_conns=1; queue 5 timeout=200ms;",
        backend.name()
    );
    let server = server(&group).start();
    let mut first = server.client();
    first.send(request("GET", "/first", &[]));
    wait_until("it is sent", || backend.request_count() == 1);
    assert_eq!(server.get("/second").status, 502);
    server.wait_for_text(
        "error.log",
        "upstream queue timed out while connecting to upstream",
    );
    server.wait_for_text("up.log", "/second 502 [behind] [0.2");
}

#[test]
fn a_client_that_leaves_gives_up_its_place() {
    let (backend, gate) = gated();
    let group = format!("server {} max_conns=1; queue 1;", backend.name());
    let server = server(&group).start();
    let (mut first, queued, path) = fill(&server, &backend);
    queued.reset();
    server.wait_for_text("up.log", &format!("{path} 499 [-] [-]"));
    let mut fourth = server.client();
    fourth.send(request("GET", "/fourth", &[]));
    gate.open();
    assert_eq!(
        [first.response().text(), fourth.response().text()],
        ["done", "done"]
    );
}

#[test]
fn a_wait_after_a_failed_attempt_ends_with_the_time_for_retries() {
    let (backend, _gate) = gated();
    let dead = Port::reserve();
    let group = format!(
        "server {} max_conns=1; server 127.0.0.1:{} max_fails=0; queue 5 timeout=60s;
         }} proxy_next_upstream_timeout 400ms; map $host $unused {{",
        backend.name(),
        dead.number()
    );
    let server = server(&group).start();
    let mut first = server.client();
    first.send(request("GET", "/first", &[]));
    wait_until("it is sent", || backend.request_count() == 1);
    assert_eq!(server.get("/second").status, 502);
    server.wait_for_text(
        "error.log",
        "no upstream was chosen in the time for retries while connecting to upstream",
    );
}
