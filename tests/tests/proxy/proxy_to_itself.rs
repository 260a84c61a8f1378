//! A server that passes requests on to itself, with all places in use: no request waits for a place that it holds.
//!
//! nginx resets connections without a place at once. Source: nginx documentation, `worker_connections`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use firstbyte_tests::backend::{Backend, Gate, Step, ok};
use firstbyte_tests::busy::{Waits, inconclusive};
use firstbyte_tests::h2::H2Client;
use firstbyte_tests::{Client, Server, peer, wait_until};

/// `worker_connections`.
const MOST: usize = 24;
/// Requests at a time.
const PARALLEL: usize = 20;
/// Number of rounds of requests.
const ROUNDS: usize = 6;
/// Timeout of a response or of the end of the connection.
const LIMIT: Duration = Duration::from_secs(1);
const TOLD: &str = "worker_connections are not enough";

fn itself(extra: &str) -> Server {
    Server::whole(&format!(
        "%%USER%% daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log warn; worker_processes 1;
         events {{ worker_connections {MOST}; }}
         http {{ access_log off; client_body_temp_path %%DIR%%/body; proxy_temp_path %%DIR%%/proxy;
             server {{ listen 127.0.0.1:%%PORT%% backlog=1024; http2 on; {extra}
                 location / {{ return 200 ok; }}
                 location = /status {{ stub_status; }}
                 location /px/ {{ proxy_pass http://127.0.0.1:%%PORT%%/; }} }} }}"
    ))
    .allow(TOLD)
    .start()
}

/// Runs `once` in as many threads as requests come at a time, over several rounds; each must end in time.
fn rounds(server: &Server, once: impl Fn(&Server) + Sync) {
    for round in 0..ROUNDS {
        let waits = Waits::begin();
        let slowest = thread::scope(|scope| {
            let timed = || {
                let start = Instant::now();
                once(server);
                start.elapsed()
            };
            let threads: Vec<_> = (0..PARALLEL).map(|_| scope.spawn(timed)).collect();
            let times = threads
                .into_iter()
                .map(|thread| thread.join().expect("it ends"));
            times.max().expect("there are some")
        });
        if slowest >= LIMIT {
            let waited = waits.waited();
            assert!(
                slowest < LIMIT + waited && waited > LIMIT / 4,
                "round {round}: an answer took {slowest:?}, {waited:?} of it waiting for a CPU"
            );
            return inconclusive("the machine is busy");
        }
        // Other clients are served.
        let start = Instant::now();
        let served = loop {
            match server_answers(server) {
                true => break true,
                false if start.elapsed() > LIMIT => break false,
                false => {}
            }
        };
        assert!(served, "round {round}: nobody is served behind it");
    }
}

fn server_answers(server: &Server) -> bool {
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    matches!(client.try_response(), Ok(Some(response)) if response.status == 200)
}

#[test]
fn requests_over_http1_end_within_a_second() {
    let server = itself("");
    let (good, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    rounds(&server, |server| {
        let mut client = server.client();
        client.send("GET /px/ HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let counter = match client.try_response() {
            Ok(Some(response)) if response.status == 200 => &good,
            Ok(Some(response)) => {
                assert!(matches!(response.status, 500 | 502), "{}", response.status);
                &failed
            }
            Ok(None) | Err(_) => &failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    });
    assert!(good.load(Ordering::Relaxed) > 0, "some are served");
}

#[test]
fn requests_over_http2_end_within_a_second() {
    let server = itself("");
    for _ in 0..ROUNDS {
        let waits = Waits::begin();
        let mut client = H2Client::connect(server.port());
        let streams: Vec<u32> = (0..2 * PARALLEL).map(|_| client.get("/px/")).collect();
        for stream in streams {
            let reply = client.reply(stream);
            let expected = matches!(reply.status, 200 | 500 | 502);
            assert!(expected || reply.reset.is_some(), "{reply:?}");
        }
        let (took, waited) = (waits.elapsed(), waits.waited());
        if took >= LIMIT {
            assert!(
                took < LIMIT + waited,
                "{took:?}, {waited:?} of it waiting for a CPU"
            );
            return inconclusive("the machine is busy");
        }
    }
}

#[test]
fn connections_without_a_place_are_closed_counted_and_told() {
    if !peer::is_firstbyte() {
        return;
    }
    let gate = Gate::default();
    let held = gate.clone();
    let backend = Backend::answering(move |_| {
        let mut steps = vec![Step::Gate(held.clone())];
        steps.extend(ok("passed"));
        steps
    });
    let server = itself(&format!(
        "location = /metrics {{ metrics; }} location /held {{ proxy_pass http://{}; }}",
        backend.name()
    ));
    let mut busy: Vec<Client> = (0..MOST / 2).map(|_| server.client()).collect();
    for client in &mut busy {
        client.send("GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    wait_until("all are passed on", || backend.request_count() == MOST / 2);
    let waits = Waits::begin();
    let mut late: Vec<Client> = (0..3).map(|_| server.client()).collect();
    for client in &mut late {
        assert!(client.rest().is_empty(), "it is closed without an answer");
    }
    let (took, waited) = (waits.elapsed(), waits.waited());
    server.wait_for_text("error.log", "[alert]");
    let log = server.wait_for_text("error.log", TOLD);
    assert!(log.contains("closing new connections unserved"), "{log}");
    gate.open();
    for client in &mut busy {
        assert_eq!(client.response().text(), "passed", "those in progress stay");
    }
    let status = busy[0].get("/status").text();
    let numbers: Vec<u64> = status
        .lines()
        .nth(2)
        .into_iter()
        .flat_map(|line| {
            line.split_whitespace()
                .map(|n| n.parse().expect("a number"))
        })
        .collect();
    assert_eq!(numbers[0] - numbers[1], late.len() as u64, "{status}");
    let metrics = busy[0].get("/metrics").text();
    assert!(
        metrics.contains("\nfirstbyte_refused_connections_total 3\n"),
        "{metrics}"
    );
    if took >= LIMIT {
        assert!(took < LIMIT + waited, "{took:?}");
        inconclusive("the machine is busy");
    }
}
