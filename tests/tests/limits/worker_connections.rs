//! `worker_connections`: behaviour at the limit, one below it and one above it, and its log lines.
//!
//! Source: nginx documentation, `worker_connections`; nginx closes idle connections before the limit is reached, here they stay
//! until a place is needed.

use std::time::{Duration, Instant};

use firstbyte_tests::backend::{Backend, Gate, Step, ok};
use firstbyte_tests::limited::limited;
use firstbyte_tests::{Builder, Client, Server, peer, wait_until};

/// The limit.
const MOST: usize = 16;

/// Some ticks of the server's clock.
const TICKS: Duration = Duration::from_millis(3);

fn site(events: &str, http: &str) -> Builder {
    Server::whole(&format!(
        "%%USER%% daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log warn; worker_processes 1;
         events {{ {events} }}
         http {{ access_log off; client_body_temp_path %%DIR%%/body; proxy_temp_path %%DIR%%/proxy; {http} }}"
    ))
}

const IDLE: &str = "server { listen 127.0.0.1:%%PORT%% backlog=1024;
     location = /metrics { metrics; } location / { return 200 ok; } }";

fn at_most(connections: usize) -> Builder {
    site(&format!("worker_connections {connections};"), IDLE)
}

fn ask(server: &Server) -> Client {
    let mut client = server.client();
    assert_eq!(client.get("/").text(), "ok");
    client
}

/// Value of a sample, requested on an open connection.
fn counted(client: &mut Client, sample: &str) -> u64 {
    let page = client.get("/metrics").text();
    let found = page.lines().find_map(|line| line.strip_prefix(sample));
    let value = found.and_then(|value| value.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {sample} in\n{page}"))
}

fn shed(client: &mut Client, connection: &str) -> u64 {
    let sample = format!("firstbyte_shed_connections_total{{connection=\"{connection}\"}}");
    counted(client, &sample)
}

/// An upstream server that holds its responses until the gate opens.
fn held_back(gate: &Gate) -> Backend {
    let held = gate.clone();
    Backend::answering(move |_| {
        let mut steps = vec![Step::Gate(held.clone())];
        steps.extend(ok("passed"));
        steps
    })
}

const PAUSES: &str = "firstbyte_accept_pauses_total";
const TOLD: &str = "worker_connections are not enough";

#[test]
fn the_limit_is_reached_exactly() {
    if !peer::is_firstbyte() {
        // nginx closes idle connections earlier, and counts its listeners.
        return;
    }
    let server = at_most(MOST).start();
    // One below the limit, and the limit.
    let mut clients: Vec<Client> = (0..MOST).map(|_| ask(&server)).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").text(), "ok", "it is still there");
    }
    // Idle times are compared in milliseconds, and all of this may happen within one.
    let asked = Instant::now();
    wait_until("the clock has gone on", || asked.elapsed() >= TICKS);
    assert_eq!(shed(&mut clients[0], "kept_alive"), 0);
    assert!(!server.error_log().contains(TOLD));
    // One above it: of these, the second is idle for longest.
    let mut last = ask(&server);
    assert!(clients[1].closed());
    assert_eq!(shed(&mut last, "kept_alive"), 1);
    server.wait_for_text("error.log", "[warn] ");
    let text = format!("{MOST} {TOLD}, reusing connections");
    assert!(server.error_log().contains(&text));
    clients.remove(1);
    for client in &mut clients {
        assert_eq!(client.get("/").text(), "ok", "one was enough");
    }
}

#[test]
fn idle_connections_make_way_one_by_one_and_that_is_told_once_a_second() {
    if !peer::is_firstbyte() {
        return;
    }
    const MORE: usize = 40 * MOST;
    let server = at_most(MOST).start();
    let start = Instant::now();
    let clients: Vec<Client> = (0..MOST + MORE).map(|_| ask(&server)).collect();
    let mut clients: Vec<Client> = clients.into_iter().skip(MORE).collect();
    let seconds = start.elapsed().as_secs() as usize + 1;
    for client in &mut clients {
        assert_eq!(
            client.get("/").text(),
            "ok",
            "those that came last are there"
        );
    }
    assert_eq!(shed(&mut clients[0], "kept_alive"), MORE as u64);
    assert_eq!(shed(&mut clients[0], "silent"), 0);
    assert_eq!(counted(&mut clients[0], PAUSES), 0);
    let lines = server.error_log().matches(TOLD).count();
    assert!((1..=seconds).contains(&lines), "{lines} in {seconds} s");
}

#[test]
fn a_request_without_a_connection_for_it_is_an_error_of_the_limit() {
    if !peer::is_firstbyte() {
        // nginx counts its listeners.
        return;
    }
    let gate = Gate::default();
    let backend = held_back(&gate);
    let http = format!(
        "server {{ listen 127.0.0.1:%%PORT%% backlog=1024;
             location / {{ proxy_pass http://{}; proxy_http_version 1.1; }} }}",
        backend.name()
    );
    let server = site(&format!("worker_connections {MOST};"), &http)
        .allow(TOLD)
        .start();
    // One that is in the middle of its body, and pairs of a client and a connection to the server: one place is left.
    let mut upload = server.client();
    upload.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhe");
    let mut busy: Vec<Client> = (1..MOST / 2).map(|_| server.client()).collect();
    for client in &mut busy {
        client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    wait_until("all are passed on", || {
        backend.request_count() == busy.len()
    });
    assert!(!server.error_log().contains(TOLD));
    let mut last = server.client();
    assert_eq!(last.get("/").status, 500);
    let log = server.wait_for_text("error.log", TOLD);
    assert!(!log.contains("socket() failed"), "{log}");
    gate.open();
    for client in &mut busy {
        assert_eq!(client.response().text(), "passed");
    }
    upload.send("llo");
    assert_eq!(upload.response().text(), "passed");
}

#[test]
fn connections_to_servers_count_and_busy_ones_stay() {
    if !peer::is_firstbyte() {
        return;
    }
    let gate = Gate::default();
    let backend = held_back(&gate);
    let http = format!(
        "server {{ listen 127.0.0.1:%%PORT%% backlog=1024; location = /metrics {{ metrics; }}
             location / {{ return 200 ok; }}
             location /px {{ proxy_pass http://{}; proxy_http_version 1.1; }} }}",
        backend.name()
    );
    let server = site(&format!("worker_connections {MOST};"), &http)
        .allow(TOLD)
        .start();
    let mut busy: Vec<Client> = (0..MOST / 2).map(|_| server.client()).collect();
    for client in &mut busy {
        client.send("GET /px HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    wait_until("all are passed on", || backend.request_count() == MOST / 2);
    assert!(
        !server.error_log().contains(TOLD),
        "there were places for all"
    );
    // No connection can be closed for this one, which waits.
    let mut late = server.client();
    late.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let told = server.wait_for_text("error.log", TOLD);
    assert!(!told.contains("reusing"), "{told}");
    gate.open();
    for client in &mut busy {
        assert_eq!(client.response().text(), "passed");
    }
    assert_eq!(late.response().text(), "ok");
    assert!(counted(&mut late, PAUSES) >= 1);
    assert_eq!(shed(&mut late, "silent"), 0);
}

#[test]
fn idle_connections_to_servers_go_first() {
    if !peer::is_firstbyte() {
        return;
    }
    let backend = Backend::answering(|_| ok("passed"));
    let http = format!(
        "upstream behind {{ server {}; keepalive 4; }}
         server {{ listen 127.0.0.1:%%PORT%% backlog=1024; location = /metrics {{ metrics; }}
             location / {{ return 200 ok; }}
             location /px {{ proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }}",
        backend.name()
    );
    let server = site(&format!("worker_connections {MOST};"), &http).start();
    let mut first = server.client();
    assert_eq!(first.get("/px").text(), "passed");
    // With the connection to the upstream server, all slots are in use.
    let mut others: Vec<Client> = (0..MOST - 2).map(|_| ask(&server)).collect();
    assert_eq!(shed(&mut first, "upstream"), 0);
    others.push(ask(&server));
    assert_eq!(shed(&mut first, "upstream"), 1);
    assert_eq!(shed(&mut first, "kept_alive"), 0);
    wait_until("the connection to the server is gone", || {
        backend.open() == 0
    });
}

#[test]
fn where_descriptors_end_first_idle_connections_make_way() {
    if !peer::is_firstbyte() {
        return;
    }
    const LIMIT: usize = 64;
    let builder = site("worker_connections 512;", IDLE).allow("exceed open file resource limit");
    let server = limited(builder, &format!("-n {LIMIT}")).start();
    let mut clients: Vec<Client> = (0..LIMIT * 2).map(|_| ask(&server)).collect();
    let last = clients.last_mut().expect("there are some");
    assert_eq!(last.get("/").text(), "ok");
    let closed = shed(last, "kept_alive");
    assert!(
        (LIMIT as u64..2 * LIMIT as u64).contains(&closed),
        "{closed}"
    );
    assert_eq!(counted(last, PAUSES), 0);
    server.wait_for_text(
        "error.log",
        "open files are not enough, reusing connections",
    );
    assert!(!server.error_log().contains("accept4() failed"));
}
