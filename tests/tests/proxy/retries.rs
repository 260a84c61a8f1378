//! Failures that cause another attempt, the server of that attempt, and requests that must not be sent twice.
//!
//! `PROXY_RACES=100000` is the number of connections that are closed under a request, 2,000 by default. Sources: nginx
//! documentation, `proxy_next_upstream`, `server` of ngx_http_upstream_module; RFC 9110 section 9.2.2;
//! docs/differences.md.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use firstbyte_tests::backend::{Backend, Gate, Step, answer, ok, send};
use firstbyte_tests::client::request;
use firstbyte_tests::closing::ClosingServer;
use firstbyte_tests::port::Port;
use firstbyte_tests::{Builder, Client, Server, peer, wait_until};

/// A server with a group of these lines and one location.
fn server(group: &str, directives: &str) -> Builder {
    Server::http_with(
        "worker_processes 1;",
        &format!(
            "upstream behind {{ {group} }}
             log_format up '$request_method [$upstream_addr] [$upstream_status] $status';
             server {{ listen 127.0.0.1:%%PORT%%; access_log %%DIR%%/up.log up; client_max_body_size 0;
                 location / {{ proxy_pass http://behind; {directives} }} }}"
        ),
    )
}

fn post(server: &Server, path: &str) -> u16 {
    let mut client = server.client();
    client.send(request("POST", path, &["Content-Length: 4"]) + "body");
    client.response().status
}

/// One that fails in some way, and one that is well.
fn bad_and_good(bad: impl Fn() -> Vec<Step> + Send + Sync + 'static) -> (Backend, Backend, String) {
    let bad = Backend::answering(move |_| bad());
    let good = Backend::answering(|_| ok("good"));
    let group = format!(
        "server {} max_fails=0; server {} backup;",
        bad.name(),
        good.name()
    );
    (bad, good, group)
}

/// Failures of an attempt, their words in `proxy_next_upstream`, and the status after the last attempt.
fn failures() -> Vec<(&'static str, &'static str, Vec<Step>, u16)> {
    let status = |line: &str| answer(line, &[], "bad");
    vec![
        ("close", "error", vec![Step::Close], 502),
        ("reset", "error", vec![Step::Reset], 502),
        ("silence", "timeout", vec![Step::Hold], 504),
        (
            "nonsense",
            "invalid_header",
            vec![send("HTTP/1.1 200 OK\r\nX\0: y\r\n\r\n"), Step::Close],
            502,
        ),
        ("500", "http_500", status("500 Internal Server Error"), 500),
        ("502", "http_502", status("502 Bad Gateway"), 502),
        ("503", "http_503", status("503 Service Unavailable"), 503),
        ("504", "http_504", status("504 Gateway Timeout"), 504),
        ("403", "http_403", status("403 Forbidden"), 403),
        ("404", "http_404", status("404 Not Found"), 404),
        ("429", "http_429", status("429 Too Many Requests"), 429),
    ]
}

#[test]
fn each_reason_is_followed_where_it_is_named() {
    for (what, reason, steps, status) in failures() {
        let (bad, good, group) = bad_and_good(move || steps.clone());
        let times = "proxy_read_timeout 150ms;";
        let on = server(&group, &format!("{times} proxy_next_upstream {reason};")).start();
        assert_eq!(on.get("/").text(), "good", "{what}");
        assert_eq!(
            (bad.request_count(), good.request_count()),
            (1, 1),
            "{what}"
        );
        let statuses = on.wait_for_text("up.log", "GET");
        assert!(
            statuses.contains(&format!("[{status}, 200] 200")),
            "{what}: {statuses}"
        );

        let off = server(&group, &format!("{times} proxy_next_upstream off;")).start();
        assert_eq!(off.get("/").status, status, "{what}");
        assert_eq!(
            (bad.request_count(), good.request_count()),
            (2, 1),
            "{what}"
        );
    }
}

/// A request with possible effects is not repeated unless the configuration permits it.
#[test]
fn post_is_repeated_only_where_it_is_allowed() {
    let (bad, good, group) = bad_and_good(|| vec![Step::Close]);
    let careful = server(&group, "").start();
    assert_eq!(post(&careful, "/"), 502);
    assert_eq!((bad.request_count(), good.request_count()), (1, 0));
    assert_eq!(careful.get("/").status, 200);

    let bold = server(&group, "proxy_next_upstream error timeout non_idempotent;").start();
    assert_eq!(post(&bold, "/"), 200);
    let seen = good.latest();
    assert_eq!((seen.method(), &seen.body[..]), ("POST", &b"body"[..]));

    // Without a connection, no byte was sent.
    let port = Port::reserve();
    let group = format!(
        "server 127.0.0.1:{}; server {} backup;",
        port.number(),
        good.name()
    );
    let nobody = server(&group, "").start();
    assert_eq!(post(&nobody, "/"), 200);
}

/// The next server gets the whole body, from memory and from a file, however it was sent.
#[test]
fn bodies_are_sent_again_whole() {
    let (_bad, good, group) = bad_and_good(|| vec![Step::Close]);
    let server = server(&group, "client_body_buffer_size 16k;").start();
    for len in [1000, 300_000] {
        let body: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
        let mut client = server.client();
        client.send(request("PUT", "/", &[&format!("Content-Length: {len}")]));
        client.send(&body);
        assert_eq!(client.response().status, 200);
        assert!(good.latest().body == body, "{len}");
    }
}

/// Data sent for a first attempt is lost if it was not kept.
#[test]
fn body_that_was_passed_on_is_not_sent_again() {
    let bad = Backend::at_heads(|_| vec![Step::Read(4), Step::Close]);
    let good = Backend::answering(|_| ok("good"));
    let group = format!("server {}; server {} backup;", bad.name(), good.name());
    let directives = "proxy_request_buffering off; proxy_next_upstream error non_idempotent;";
    let server = server(&group, directives).start();
    let mut client = server.client();
    client.send(request("PUT", "/", &["Content-Length: 8"]) + "half");
    wait_until("it is passed on", || bad.request_count() == 1);
    client.send("half");
    assert_eq!(client.response().status, 502);
    assert_eq!(good.request_count(), 0);
}

#[test]
fn tries_and_time_are_limits() {
    let closing: Vec<Backend> = (0..5)
        .map(|_| Backend::answering(|_| vec![Step::Wait(100), Step::Close]))
        .collect();
    let lines = closing
        .iter()
        .map(|b| format!("server {} max_fails=0;", b.name()));
    let group: String = lines.collect();
    let asked = || closing.iter().map(Backend::request_count).sum::<usize>();
    let all = server(&group, "").start();
    assert_eq!((all.get("/").status, asked()), (502, 5));
    let three = server(&group, "proxy_next_upstream_tries 3;").start();
    assert_eq!((three.get("/").status, asked()), (502, 5 + 3));
    let short = server(&group, "proxy_next_upstream_timeout 150ms;").start();
    assert_eq!(short.get("/").status, 502);
    assert!(asked() < 5 + 3 + 5, "{}", asked());
}

#[test]
fn server_that_fails_is_left_alone_for_a_time() {
    let well = AtomicUsize::new(0);
    let bad = Backend::answering(move |_| match well.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => vec![Step::Close],
        _ => ok("well again"),
    });
    let good = Backend::answering(|_| ok("good"));
    let group = format!(
        "server {} max_fails=2 fail_timeout=1s; server {} backup;",
        bad.name(),
        good.name()
    );
    let server = server(&group, "").start();
    for n in 1..=6 {
        assert_eq!(server.get("/").text(), "good");
        assert_eq!(
            bad.request_count(),
            n.min(2),
            "it has its two fails, and then none is sent"
        );
    }
    server.wait_for_text("error.log", "upstream server temporarily disabled");
    wait_until("it is asked again", || {
        server.get("/").text() == "well again"
    });
}

#[test]
fn group_without_a_server_is_502() {
    let (_bad, _good, _) = bad_and_good(Vec::new);
    let port = Port::reserve();
    let group = format!(
        "server 127.0.0.1:{0}; server 127.0.0.1:{0} backup;",
        port.number()
    );
    let server = server(&group, "").start();
    for _ in 0..3 {
        assert_eq!(server.get("/").status, 502);
    }
    server.wait_for_text(
        "error.log",
        "no live upstreams while connecting to upstream",
    );
}

#[test]
fn round_robin_follows_the_weights() {
    let backends: Vec<Backend> = (0..3).map(|_| Backend::answering(|_| ok("x"))).collect();
    let group = format!(
        "server {} weight=3; server {}; server {} down;",
        backends[0].name(),
        backends[1].name(),
        backends[2].name()
    );
    let server = server(&group, "").start();
    let mut client = server.client();
    for _ in 0..40 {
        assert_eq!(client.get("/").status, 200);
    }
    let asked: Vec<usize> = backends.iter().map(Backend::request_count).collect();
    assert_eq!(asked, [30, 10, 0]);
}

#[test]
fn max_conns_is_a_limit_of_a_server() {
    let gate = Gate::default();
    let of_script = gate.clone();
    let first = Backend::answering(move |_| {
        let mut steps = vec![Step::Gate(of_script.clone())];
        steps.extend(ok("first"));
        steps
    });
    let second = Backend::answering(|_| ok("second"));
    let group = format!(
        "server {} max_conns=2; server {} backup;",
        first.name(),
        second.name()
    );
    let server = server(&group, "").start();
    let mut held: Vec<Client> = (0..2).map(|_| server.client()).collect();
    for client in &mut held {
        client.send(request("GET", "/", &[]));
    }
    wait_until("both are there", || first.request_count() == 2);
    assert_eq!(server.get("/").text(), "second");
    gate.open();
    for client in &mut held {
        assert_eq!(client.response().text(), "first");
    }
    wait_until("there is room again", || server.get("/").text() == "first");
}

/// A kept connection that ended while idle is not used for a request.
#[test]
fn connection_that_ended_while_idle_is_not_used() {
    // A child that another test forks meanwhile has the socket until its exec: closing alone might not end the connection.
    let backend = Backend::answering(|_| [ok("good"), vec![Step::HalfClose, Step::Close]].concat());
    let server = server(&format!("server {};", backend.name()), "").start();
    for n in 1..=50 {
        assert_eq!(post(&server, "/"), 200, "{}", server.error_log());
        wait_until("it is closed", || backend.open() == 0);
        assert_eq!(backend.accepted(), n);
    }
}

/// A reset, or an end after the server took the request, does not show whether the request had an effect.
#[test]
fn post_that_was_taken_is_never_sent_again() {
    for end in [Step::Close, Step::Reset] {
        let of_script = end.clone();
        let backend = Backend::answering(move |r| match r.number {
            1 => ok("first"),
            _ => vec![of_script.clone()],
        });
        let server = server(&format!("server {};", backend.name()), "").start();
        assert_eq!(post(&server, "/first"), 200);
        assert_eq!(post(&server, "/second"), 502, "{end:?}");
        assert_eq!(backend.request_count(), 2, "{end:?}");
        // A request without effects may be.
        assert_eq!(post(&server, "/first"), 200);
        assert_eq!(server.get("/third").status, 200, "{end:?}");
        assert_eq!(backend.request_count(), 5, "{end:?}");
    }
}

/// Results of the clients of a race.
#[derive(Debug, Default)]
struct Race {
    /// Answered.
    good: usize,
    /// 502 after the server had taken the request.
    touched: usize,
    /// 502 before the server had taken it.
    untouched: usize,
    /// Taken more than once.
    doubled: usize,
}

/// Sends POST after POST, a little apart, each with a target of its own.
fn race(server: &Server, closing: &ClosingServer, thread: usize, tries: usize) -> Race {
    // nginx's refused requests never reach the server, and to wait for each would take long.
    let patient_for = Duration::from_millis(if peer::is_firstbyte() { 5000 } else { 200 });
    let mut race = Race::default();
    let mut random = fastrand::Rng::with_seed(thread as u64);
    let mut client = server.client();
    for n in 0..tries {
        let apart = Duration::from_micros(random.u64(..500));
        let start = Instant::now();
        while start.elapsed() < apart {
            std::hint::spin_loop();
        }
        let target = format!("/{thread}/{n}");
        client.send(request("POST", &target, &["Content-Length: 4"]) + "body");
        let status = client.response().status;
        let mut received = closing.received(&target);
        // A request that is in the server's socket is counted when its thread has read it.
        let patience = Instant::now();
        while received.dropped + received.answered == 0 && patience.elapsed() < patient_for {
            std::thread::yield_now();
            received = closing.received(&target);
        }
        race.doubled += usize::from(received.answered + received.dropped > 1);
        match status {
            200 => race.good += 1,
            502 if received.dropped + received.answered > 0 => race.touched += 1,
            _ => race.untouched += 1,
        }
    }
    race
}

#[test]
fn post_on_a_connection_that_closes_is_sent_again_if_untouched() {
    let tries = std::env::var("PROXY_RACES").map_or(2_000, |n| n.parse().expect("a number"));
    let closing = ClosingServer::start();
    let group = format!("server {} max_fails=0;", closing.address);
    // A client's connection is kept for all its requests.
    let server = server(&group, "keepalive_requests 1000000;").start();
    let threads = 2;
    let races: Vec<Race> = std::thread::scope(|scope| {
        let run = |thread| {
            scope.spawn({
                let (server, closing) = (&server, &closing);
                move || race(server, closing, thread, tries / threads)
            })
        };
        let running: Vec<_> = (0..threads).map(run).collect();
        running
            .into_iter()
            .map(|race| race.join().expect("a race ends"))
            .collect()
    });
    let sum = |of: fn(&Race) -> usize| races.iter().map(of).sum::<usize>();
    let (untouched, doubled) = (sum(|r| r.untouched), sum(|r| r.doubled));
    println!(
        "{tries} tries: {} answered, {} refused after they were taken, {untouched} though they were not; \
         {doubled} taken twice; {} met a closed connection",
        sum(|r| r.good),
        sum(|r| r.touched),
        closing.refused()
    );
    assert_eq!(doubled, 0);
    if peer::is_firstbyte() {
        assert_eq!(untouched, 0, "502 where it was known untouched");
    }
}
