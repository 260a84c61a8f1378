//! `limit_req`, `limit_conn` and `limit_rate` under many clients admit exactly the number of their formula.
//!
//! Own executable: the number depends on time. Source: nginx's documentation of ngx_http_limit_req_module,
//! ngx_http_limit_conn_module and `limit_rate`.

use std::collections::HashMap;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use firstbyte_tests::busy::{Waits, inconclusive, worst_wait_while};
use firstbyte_tests::client::{Client, request};
use firstbyte_tests::{Builder, Server, wait_until};

const CLIENTS: usize = 200;

/// A site served by two threads.
fn site(http: &str, server: &str) -> Builder {
    let text = format!(
        "log_format t '$msec $request_time $status'; access_log %%DIR%%/t.log t; {http}
         keepalive_requests 1000000;
         server {{ listen 127.0.0.1:%%PORT%%; server_name one; root %%DIR%%/html; {server} }}"
    );
    Server::http_with("worker_processes 2;", &text)
        .allow("limiting")
        .file("html/small", "s")
        .zeros("html/big", 1 << 20)
}

/// Runs every client's part at the same time, and returns the result of each.
fn at_once<T: Send + 'static>(port: u16, part: fn(&mut Client) -> T) -> Vec<T> {
    let start = Arc::new(Barrier::new(CLIENTS));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let start = Arc::clone(&start);
            thread::spawn(move || {
                let mut client = Client::connect(port);
                start.wait();
                part(&mut client)
            })
        })
        .collect();
    clients
        .into_iter()
        .map(|client| client.join().expect("a client ends"))
        .collect()
}

#[test]
fn burst_is_admitted_whole_and_not_one_request_more() {
    let server = site(
        "limit_req_zone $server_name zone=z:1m rate=1r/m;",
        "limit_req zone=z burst=49 nodelay;",
    )
    .start();
    let statuses = at_once(server.port(), |client| client.get("/small").status);
    let admitted = statuses.iter().filter(|status| **status == 200).count();
    let refused = statuses.iter().filter(|status| **status == 503).count();
    assert_eq!((admitted, refused), (50, CLIENTS - 50));
}

/// Time at which the limit admitted a request, seconds.
fn admitted_at(line: &str) -> Option<f64> {
    let (ended, took) = line.strip_suffix(" 200")?.split_once(' ')?;
    Some(ended.parse::<f64>().ok()? - took.parse::<f64>().ok()?)
}

const RATE: f64 = 200.0;
const BURST: f64 = 20.0;

/// When requests were let through over a second and a half, in order, and how long the server was kept from running at once in
/// that time.
fn admitted_times() -> (Vec<f64>, Duration) {
    let server = site(
        &format!("limit_req_zone $server_name zone=z:1m rate={RATE}r/s;"),
        &format!("limit_req zone=z burst={BURST} nodelay;"),
    )
    .start();
    let load = || {
        at_once(server.port(), |client| {
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(1500) {
                client.get("/small");
            }
        });
    };
    let stall = worst_wait_while(server.pid(), load);
    server.signal(firstbyte_tests::Signal::QUIT);
    let mut times: Vec<f64> = Vec::new();
    wait_until("the log is written", || {
        times = server
            .dir()
            .read("t.log")
            .lines()
            .filter_map(admitted_at)
            .collect();
        times.len() > 100
    });
    times.sort_by(f64::total_cmp);
    (times, stall)
}

/// Number of requests beyond burst and rate at these times; `None` if there are none.
fn beyond_burst_and_rate(times: &[f64]) -> Option<f64> {
    let (first, last) = (times[0], times[times.len() - 1]);
    let wanted = 1.0 + BURST + RATE * (last - first);
    // The log has milliseconds: one request at each end may lie on either side.
    let in_all = (times.len() as f64 - wanted).abs() - 2.0;
    let early = times.iter().enumerate().map(|(n, time)| {
        // Each thread has read the clock at the beginning of its turn, so one more request may seem early.
        let most = 2.0 + BURST + RATE * (time - first + 0.002);
        n as f64 + 1.0 - most
    });
    let beyond = early.fold(in_all, f64::max);
    (beyond > 0.0).then_some(beyond)
}

#[test]
fn admitted_over_time_is_burst_and_rate() {
    // If a thread stalls between its reading of the clock and the limit, requests seem early by that time, and not
    // every such stall is seen. A wrong limit fails each time.
    let mut unexplained = Vec::new();
    for _ in 0..3 {
        let (times, stall) = admitted_times();
        let Some(beyond) = beyond_burst_and_rate(&times) else {
            return;
        };
        if beyond > RATE * stall.as_secs_f64() {
            unexplained.push((beyond, stall));
        }
    }
    assert!(unexplained.len() < 3, "each time: {unexplained:?}");
    inconclusive("threads were kept from running while requests were counted");
}

#[test]
fn connections_up_to_the_limit_are_served_and_not_one_more() {
    let server = site(
        "limit_conn_zone $server_name zone=z:1m;",
        "location / { limit_conn z 30; limit_rate 16k; limit_rate_after 1; }",
    )
    .start();
    let port = server.port();
    let start = Arc::new(Barrier::new(CLIENTS));
    let done = Arc::new(Barrier::new(CLIENTS));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (start, done) = (Arc::clone(&start), Arc::clone(&done));
            thread::spawn(move || {
                let mut client = Client::connect(port);
                start.wait();
                client.send(request("GET", "/big", &[]));
                let head = client.bytes(12);
                // No client leaves before all have their response, so no slot becomes free.
                done.wait();
                head
            })
        })
        .collect();
    let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
    for client in clients {
        *counts
            .entry(client.join().expect("a client ends"))
            .or_default() += 1;
    }
    assert_eq!(counts.get(&b"HTTP/1.1 200"[..]), Some(&30), "{counts:?}");
    assert_eq!(counts.get(&b"HTTP/1.1 503"[..]), Some(&170), "{counts:?}");
    // All slots are free again after the clients have left.
    wait_until("a place is free", || {
        server.client().head("/big").status == 200
    });
}

#[test]
fn rate_bounds_a_response_after_its_first_bytes() {
    let server = site(
        "",
        "location / { limit_rate 1000k; limit_rate_after 200k; }
         location /set { set $limit_rate 100k; return 200 $limit_rate; }",
    )
    .start();
    let mut client = server.client();
    let waits = Waits::begin();
    assert_eq!(client.get("/big").body.len(), 1 << 20);
    // 200 kB of 1024 are free. nginx sends the first second's 1000 at once, and then waits for their time.
    waits.assert_below(waits.elapsed(), Duration::from_millis(1500));
    // Its first byte does not wait.
    let waits = Waits::begin();
    let mut slow = server.client();
    slow.send(request("GET", "/big?2", &[]));
    slow.bytes(100);
    waits.assert_below(waits.elapsed(), Duration::from_millis(500));
    assert_eq!(client.get("/set").text(), "102400");
}

#[test]
fn rate_holds_what_comes_after_the_first_second() {
    let server = site("", "location / { limit_rate 500k; }").start();
    let mut client = server.client();
    let waits = Waits::begin();
    assert_eq!(client.get("/big").body.len(), 1 << 20);
    let took = waits.elapsed();
    // 1024 kB at 500 kB a second, the first 500 of them at once.
    assert!(took.as_millis() >= 1000, "{took:?}");
    waits.assert_below(took, Duration::from_secs(3));
}

#[test]
fn connection_that_times_out_is_reset_only_where_asked_for() {
    for (directive, reset) in [("on", true), ("off", false)] {
        let server = site(
            "",
            &format!(
                "client_header_timeout 200ms; reset_timedout_connection {directive};
                 location /444 {{ return 444; }} location / {{ return 204; }}"
            ),
        )
        .start();
        let mut client = server.client();
        client.send("GET / HT");
        assert_eq!(client.try_response().is_err(), reset, "{directive}");
        let mut client = server.client();
        client.send(request("GET", "/444", &[]));
        assert_eq!(client.try_response().is_err(), reset, "{directive}");
    }
}
