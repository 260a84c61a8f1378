//! Directives about retries that nginx does not have: further attempts with the same server, a delay before them, a time
//! for each attempt, a budget.
//!
//! Sources: docs/directives.md; docs/differences.md.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use firstbyte_tests::backend::{Backend, Gate, Step, ok};
use firstbyte_tests::client::request;
use firstbyte_tests::{Builder, Client, Server, wait_until};

/// A server with this number of threads, a group of these lines, and one location.
fn server(threads: u32, group: &str, directives: &str) -> Builder {
    Server::http_with(
        &format!("worker_processes {threads};"),
        &format!(
            "upstream behind {{ {group} }}
             log_format up '[$upstream_addr] [$upstream_status] $status';
             server {{ listen 127.0.0.1:%%PORT%%; access_log %%DIR%%/up.log up;
                 location / {{ proxy_pass http://behind; {directives} }} }}"
        ),
    )
}

/// A server that restarts is away for a moment: the request waits for it, also if it is the only one.
#[test]
fn the_only_server_gets_further_attempts_after_a_delay() {
    let asked = AtomicUsize::new(0);
    let backend = Backend::answering(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => vec![Step::Close],
        _ => ok("well again"),
    });
    let directives = "proxy_next_upstream_same 2; proxy_next_upstream_delay 100ms;";
    let server = server(1, &format!("server {};", backend.name()), directives).start();
    let start = Instant::now();
    assert_eq!(server.get("/").text(), "well again");
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert_eq!(backend.request_count(), 3);
    server.wait_for_text("up.log", "[502, 502, 200] 200");
}

#[test]
fn an_attempt_without_a_head_in_its_time_leads_to_the_next_server() {
    let silent = Backend::answering(|_| vec![Step::Hold]);
    let good = Backend::answering(|_| ok("good"));
    let group = format!("server {}; server {} backup;", silent.name(), good.name());
    let server = server(1, &group, "proxy_next_upstream_attempt_timeout 150ms;").start();
    let start = Instant::now();
    assert_eq!(server.get("/").text(), "good");
    assert!(start.elapsed() >= Duration::from_millis(150));
    server.wait_for_text("up.log", "[504, 200] 200");
    server.wait_for_text(
        "error.log",
        "upstream timed out (110: Connection timed out) while reading response header",
    );
    wait_until("the attempt is given up", || silent.open() == 0);
}

/// Requests of all threads count together.
#[test]
fn no_more_retries_than_the_budget_are_in_progress() {
    let gate = Gate::default();
    let of_script = gate.clone();
    let bad = Backend::answering(|_| vec![Step::Close]);
    let good = Backend::answering(move |_| {
        let mut steps = vec![Step::Gate(of_script.clone())];
        steps.extend(ok("good"));
        steps
    });
    let group = format!(
        "server {} max_fails=0; server {} backup;",
        bad.name(),
        good.name()
    );
    let server = server(4, &group, "proxy_retry_budget 0% min=2;").start();
    let mut held: Vec<Client> = (0..2).map(|_| server.client()).collect();
    for client in &mut held {
        client.send(request("GET", "/", &[]));
    }
    wait_until("both are repeated", || good.request_count() == 2);
    for _ in 0..8 {
        assert_eq!(server.get("/").status, 502);
    }
    assert_eq!(good.request_count(), 2);
    server.wait_for_text(
        "error.log",
        "no retry is left in the budget of the upstream while reading response header",
    );
    gate.open();
    for client in &mut held {
        assert_eq!(client.response().text(), "good");
    }
    assert_eq!(server.get("/").text(), "good");
}
