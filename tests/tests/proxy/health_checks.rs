//! `health_check` in a running server: a stopped server, reloads, kept connections, several threads.
//!
//! Source: nginx documentation, `ngx_http_upstream_hc_module`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firstbyte_tests::backend::{Backend, Step, answer, ok};
use firstbyte_tests::busy::Waits;
use firstbyte_tests::load::Load;
use firstbyte_tests::{Server, process, wait_until};
use rustix::process::Signal;

/// A server that answers each request with its own name.
fn named(name: &str) -> Server {
    Server::http(&format!(
        "server {{ listen 127.0.0.1:%%PORT%%; add_header X-Name {name};
             location = /t.txt {{ return 200 text; }} location = /health {{ return 204; }} }}"
    ))
    .start()
}

#[test]
fn a_stopped_server_is_noticed_within_two_intervals_and_no_request_fails() {
    let behind = ["one", "two", "three"].map(named);
    let servers = behind
        .each_ref()
        .map(|server| format!("server 127.0.0.1:{} fail_timeout=1s;", server.port()));
    let server = Server::http_with(
        "worker_processes 2;",
        &format!(
            "upstream behind {{ zone behind 64k; {} }}
             server {{ listen 127.0.0.1:%%PORT%%; keepalive_requests 1000000; location / {{
                 proxy_pass http://behind; proxy_read_timeout 1s; health_check interval=2s uri=/health; }} }}",
            servers.concat()
        ),
    )
    .allow("upstream timed out")
    .allow("peer is unhealthy")
    .start();
    let load = Load::start(server.port(), 2, 2);
    load.go_on_for(100);
    let two = format!(
        "of peer 127.0.0.1:{} in upstream \"behind\"",
        behind[1].port()
    );
    let workers = behind[1].workers();
    let waits = Waits::begin();
    for worker in &workers {
        assert!(process::signal(*worker, Signal::STOP));
    }
    let action = "reading response header from upstream";
    let unhealthy = format!("peer is unhealthy while {action}, health check \"\" {two}");
    server.wait_for_text("error.log", &unhealthy);
    waits.assert_below(waits.elapsed(), Duration::from_secs(4));
    // The kernel accepts for it, so a request would wait for its answer.
    let mut client = server.client();
    for _ in 0..6 {
        assert_ne!(client.get("/t.txt").header("X-Name"), Some("two"));
    }
    let waits = Waits::begin();
    for worker in &workers {
        assert!(process::signal(*worker, Signal::CONT));
    }
    let healthy = format!("peer is healthy while checking status code, health check \"\" {two}");
    server.wait_for_text("error.log", &healthy);
    waits.assert_below(waits.elapsed(), Duration::from_secs(4));
    wait_until("it gets requests again", || {
        server.get("/t.txt").header("X-Name") == Some("two")
    });
    let figures = load.stop();
    let lost = (figures.failed, figures.ended, figures.reset, figures.cut);
    assert_eq!(lost, (0, 0, 0, 0), "{figures:?}");
}

/// A server with a status for checks that the test changes, and 200 for other requests.
fn switched(is_well: &Arc<AtomicBool>) -> Backend {
    let is_well = Arc::clone(is_well);
    Backend::answering(move |request| match request.target() {
        "/health" if !is_well.load(Ordering::SeqCst) => answer("503 Sick", &[], ""),
        _ => ok("text"),
    })
}

#[test]
fn health_outlives_a_reload() {
    for (parameters, name) in [("", "plain"), ("mandatory persistent", "persistent")] {
        let is_well = Arc::new(AtomicBool::new(false));
        let (sick, well) = (
            switched(&is_well),
            switched(&Arc::new(AtomicBool::new(true))),
        );
        let server = Server::http_with(
            "worker_processes 2;",
            &format!(
                "upstream {name} {{ zone {name} 64k; server {}; server {}; }}
                 server {{ listen 127.0.0.1:%%PORT%%; location / {{
                     proxy_pass http://{name}; health_check interval=50ms uri=/health {parameters}; }}
                     location = /number {{ return 200 old; }} }}",
                sick.name(),
                well.name()
            ),
        )
        .allow("peer is unhealthy")
        .start();
        server.wait_for_text("error.log", "peer is unhealthy");
        wait_until("the other server is up", || server.get("/a").status == 200);
        // The next check begins after the test, so that states are those of before.
        server.rewrite_conf(|conf| {
            conf.replace("return 200 old", "return 200 new")
                .replace("interval=50ms", "interval=1h jitter=1h")
        });
        let before = sick.request_count();
        server.signal(Signal::HUP);
        wait_until("the reload is over", || {
            server.get("/number").text() == "new"
        });
        for _ in 0..20 {
            assert_eq!(server.get("/b").status, 200, "{name}");
        }
        let requests = sick.requests().split_off(before);
        let clients = requests.iter().filter(|r| r.target() == "/b");
        assert_eq!(clients.count(), 0, "{name}");
    }
}

#[test]
fn checks_share_one_connection_with_keepalive_time() {
    let behind = Backend::answering(|_| ok("text"));
    let server = behind
        .grouped(
            "zone kept 64k;",
            "health_check interval=20ms keepalive_time=1h; proxy_set_header Connection \"\";",
        )
        .start();
    wait_until("some checks are made", || behind.request_count() >= 5);
    assert_eq!(behind.accepted(), 1);
    server.stop();
}

#[test]
fn one_thread_makes_the_checks() {
    let behind = Backend::answering(|_| ok("text"));
    let server = Server::http_with(
        "worker_processes 4;",
        &format!(
            "upstream behind {{ zone behind 64k; server {}; }}
             server {{ listen 127.0.0.1:%%PORT%%;
                 location / {{ proxy_pass http://behind; health_check interval=1h uri=/health; }} }}",
            behind.name()
        ),
    )
    .start();
    wait_until("the check is made", || behind.request_count() > 0);
    assert_eq!(server.get("/a").status, 200);
    let checks = |target| {
        behind
            .requests()
            .iter()
            .filter(|r| r.target() == target)
            .count()
    };
    assert_eq!(checks("/health"), 1);
}

#[test]
fn a_check_in_progress_keeps_neither_an_old_configuration_nor_the_server() {
    let behind = Backend::answering(|_| vec![Step::Hold]);
    let mut server = behind
        .grouped("zone held 64k;", "health_check interval=20ms;")
        .start();
    wait_until("a check waits", || behind.request_count() == 1);
    server.signal(Signal::HUP);
    wait_until("the new configuration checks in its place", || {
        behind.accepted() == 2 && behind.open() == 1
    });
    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0, "long before its timeout");
}
