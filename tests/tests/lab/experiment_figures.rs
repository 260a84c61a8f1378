//! `experiment`: figures of the server by arm.
//!
//! Figures are read from the metrics, which include all figures of closed connections. Source: docs/experiments.md.

use std::fs::File;

use firstbyte_tests::backend::{Backend, Step, chunk, send};
use firstbyte_tests::client::request;
use firstbyte_tests::h2::Http2;
use firstbyte_tests::mux::{Frames, MuxClient};
use firstbyte_tests::process::cpu_time;
use firstbyte_tests::spdy::Spdy;
use firstbyte_tests::{Builder, Client, H2Client, Server, SpdyClient, wait_until};

/// A site with these arms and servers, and metrics on the first port.
fn site(arms: &str, servers: &str) -> Builder {
    Server::http(&format!(
        "experiment_key %%DIR%%/key; access_log off; http2 on;
         experiment x {{ user address; {arms} }}
         server {{ listen 127.0.0.1:%%PORT%%; server_name www; location = /metrics {{ metrics; }} }}
         {servers}"
    ))
    .file("key", "0123456789abcdef0123456789abcdef\n")
    .file("html/f.txt", "0123456789")
}

const ARMS: &str = "arm a weight=50 host=a.test; arm b weight=50 host=b.test;";

/// A site of which the second arm has all requests of the third port.
fn figures_of(directives: &str) -> Builder {
    site(
        ARMS,
        &format!(
            "server {{ listen 127.0.0.1:%%PORT2%%; server_name a.test; }}
             server {{ listen 127.0.0.1:%%PORT3%% spdy; server_name b.test; root %%DIR%%/html; {directives} }}"
        ),
    )
}

/// Figures of an arm.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Arm {
    connections: u64,
    requests: u64,
    promised: u64,
    sent: u64,
    truncated: u64,
    aborted: u64,
    open: u64,
    memory_bytes: u64,
    cpu_s: f64,
}

impl Arm {
    fn of(server: &Server, arm: &str) -> Self {
        let page = server.get("/metrics").text();
        let sample = |name: &str| -> f64 {
            let start = format!("firstbyte_experiment_{name}{{experiment=\"x\",arm=\"{arm}\"}} ");
            let value = page.lines().find_map(|line| line.strip_prefix(&start));
            value.map_or(0.0, |value| value.parse().expect("a number"))
        };
        let count = |name: &str| sample(name) as u64;
        Self {
            connections: count("connections_total"),
            requests: count("requests_total"),
            promised: count("promised_bytes_total"),
            sent: count("sent_bytes_total"),
            truncated: count("truncated_responses_total"),
            aborted: count("aborted_requests_total"),
            open: count("open_connections"),
            memory_bytes: count("memory_bytes"),
            cpu_s: sample("cpu_seconds_total"),
        }
    }

    /// Waits until this many connections have come and all are closed.
    #[track_caller]
    fn closed(server: &Server, arm: &str, connections: u64) -> Self {
        let is_closed = || {
            let it = Self::of(server, arm);
            it.connections == connections && it.open == 0
        };
        wait_until("the connections of the arm are closed", is_closed);
        Self::of(server, arm)
    }

    /// Requests, truncated responses, aborted requests.
    fn counts(&self) -> [u64; 3] {
        [self.requests, self.truncated, self.aborted]
    }
}

/// Promises of responses that are whole: a body, a head alone, 304, a range, a compressed file, chunks.
#[test]
fn whole_responses_keep_their_promise_over_every_protocol() {
    let backend = Backend::answering(|_| {
        vec![
            send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            chunk("piece"),
            chunk(""),
        ]
    });
    let directives = format!(
        "location = /chunks {{ proxy_pass http://{}; proxy_http_version 1.1; }}
         location = /z.txt {{ gzip on; gzip_types text/plain; gzip_min_length 1; }}",
        backend.name()
    );
    let server = figures_of(&directives)
        .file("html/z.txt", &"compressible ".repeat(100))
        .start();
    let mut client = Client::connect(server.port_number(3));
    client.get("/f.txt");
    client.head("/f.txt");
    assert_eq!(client.get_with("/f.txt", &["If-None-Match: *"]).status, 304);
    assert_eq!(client.get_with("/f.txt", &["Range: bytes=2-4"]).status, 206);
    assert_eq!(client.get("/chunks").text(), "piece");
    drop(client);
    let arm = Arm::closed(&server, "b", 1);
    assert_eq!((arm.counts(), arm.promised, arm.sent), ([5, 0, 0], 13, 13));

    let mut client = Client::connect(server.port_number(3));
    let compressed = client.get_with("/z.txt", &["Accept-Encoding: gzip"]);
    assert_eq!(compressed.header("Content-Encoding"), Some("gzip"));
    let length = compressed.header("Content-Length");
    let length = length.map_or(0, |length| length.parse().expect("a number"));
    drop(client);
    let before = arm.promised + length;
    let arm = Arm::closed(&server, "b", 2);
    assert_eq!((arm.promised, arm.sent), (before, before));

    whole_over_streams(H2Client::connect(server.port_number(3)));
    let arm = Arm::closed(&server, "b", 3);
    assert_eq!((arm.counts(), arm.promised), ([11, 0, 0], before + 13));
    assert_eq!(arm.sent, arm.promised);
    whole_over_streams(SpdyClient::connect(server.port_number(3)));
    let arm = Arm::closed(&server, "b", 4);
    assert_eq!((arm.counts(), arm.promised), ([16, 0, 0], before + 26));
    assert_eq!(arm.sent, arm.promised);
    assert_eq!(
        Arm::of(&server, "a"),
        Arm::default(),
        "the other arm has no connection"
    );
}

fn whole_over_streams<F: Frames>(mut client: MuxClient<F>) {
    client.fetch("/f.txt");
    for (method, path, fields, status) in [
        ("HEAD", "/f.txt", &[][..], 200),
        ("GET", "/f.txt", &[("if-none-match", "*")], 304),
        ("GET", "/f.txt", &[("range", "bytes=2-4")], 206),
        ("GET", "/chunks", &[], 200),
    ] {
        let stream = client.request(method, path, fields, true);
        assert_eq!(client.reply(stream).status, status, "{method} {path}");
    }
}

/// A file that no socket takes whole.
const LARGE_BYTES: u64 = 50 << 20;

/// Clients that leave in the middle of a response, and before its head.
#[test]
fn clients_that_leave_are_counted_exactly() {
    let backend = Backend::at_heads(|_| vec![Step::Hold]);
    let directives = format!(
        "location = /wait {{ proxy_pass http://{}; }}",
        backend.name()
    );
    let server = figures_of(&directives)
        .zeros("html/large", LARGE_BYTES)
        .start();
    let port = server.port_number(3);
    // An earlier whole response is no abort.
    let mut client = Client::connect(port);
    client.get("/f.txt");
    client.send(request("GET", "/large", &[]));
    client.response_to_head();
    client.bytes(1000);
    client.reset();
    let arm = Arm::closed(&server, "b", 1);
    assert_eq!(arm.counts(), [2, 1, 1]);
    assert_eq!(arm.promised, LARGE_BYTES + 10);
    assert!((1010..LARGE_BYTES).contains(&arm.sent), "{arm:?}");

    let client_waits = |client: &mut Client| {
        let before = backend.accepted();
        client.send(request("GET", "/wait", &[]));
        wait_until("the request is passed on", || backend.accepted() > before);
    };
    let mut client = Client::connect(port);
    client_waits(&mut client);
    client.reset();
    let arm = Arm::closed(&server, "b", 2);
    assert_eq!(arm.counts(), [3, 1, 2], "nothing was promised");

    leaves_over_streams::<Http2>(&server, &backend, H2Client::connect, |c, stream| {
        c.cancel(stream);
    });
    let arm = Arm::closed(&server, "b", 4);
    assert_eq!(arm.counts(), [8, 3, 6]);
    leaves_over_streams::<Spdy>(&server, &backend, SpdyClient::connect, |c, stream| {
        c.cancel(stream);
    });
    let arm = Arm::closed(&server, "b", 6);
    assert_eq!(arm.counts(), [13, 5, 10]);
}

/// Two connections. On the first one a stream is reset in the middle and another before its head, and a whole response
/// follows. The second one is closed with one stream in the middle and another before its head.
fn leaves_over_streams<F: Frames>(
    server: &Server,
    backend: &Backend,
    connect: fn(u16) -> MuxClient<F>,
    cancel: fn(&mut MuxClient<F>, u32),
) {
    let begin = |client: &mut MuxClient<F>| {
        let large = client.get("/large");
        client.until("a piece", |c| !c.so_far(large).body.is_empty());
        let before = backend.accepted();
        let waits = client.get("/wait");
        wait_until("the request is passed on", || backend.accepted() > before);
        [large, waits]
    };
    let mut client = connect(server.port_number(3));
    for stream in begin(&mut client) {
        cancel(&mut client, stream);
    }
    assert_eq!(client.fetch("/f.txt").text(), "0123456789");
    drop(client);
    let mut client = connect(server.port_number(3));
    begin(&mut client);
}

/// An upstream server that ends a response early, with a length and in chunks.
#[test]
fn responses_that_a_server_behind_ends_early_are_truncated() {
    let backend = Backend::answering(|request| {
        let head = match request.target() {
            "/length" => "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345",
            _ => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
        };
        vec![send(head), Step::Close]
    });
    let directives = format!(
        "location / {{ proxy_pass http://{}; proxy_http_version 1.1; }}",
        backend.name()
    );
    let server = figures_of(&directives)
        .allow("upstream prematurely closed")
        .start();
    let mut expected = Arm::default();
    let mut check = |connections: u64, requests: u64, promised: u64| {
        expected.requests += requests;
        expected.truncated += requests;
        expected.promised += promised;
        let arm = Arm::closed(&server, "b", connections);
        assert_eq!(arm.counts(), [expected.requests, expected.truncated, 0]);
        assert_eq!(
            (arm.promised, arm.sent),
            (expected.promised, expected.promised / 2)
        );
    };
    for (path, promised, connections) in [("/length", 10, 1), ("/chunks", 0, 2)] {
        let mut client = Client::connect(server.port_number(3));
        client.send(request("GET", path, &[]));
        client.rest();
        drop(client);
        check(connections, 1, promised);
    }
    ends_early(H2Client::connect(server.port_number(3)));
    let arm = Arm::closed(&server, "b", 3);
    assert_eq!((arm.counts(), arm.promised), ([4, 4, 0], 20));
    ends_early(SpdyClient::connect(server.port_number(3)));
    let arm = Arm::closed(&server, "b", 4);
    assert_eq!((arm.counts(), arm.promised), ([6, 6, 0], 30));
    assert!((15..30).contains(&arm.sent), "{arm:?}");
}

fn ends_early<F: Frames>(mut client: MuxClient<F>) {
    for path in ["/length", "/chunks"] {
        let reply = client.fetch(path);
        assert!(reply.reset.is_some(), "{path}: {reply:?}");
    }
}

/// A file that becomes shorter: the server ends the connection, no client does.
#[test]
fn files_that_become_shorter_are_truncated_and_not_aborted() {
    let server = figures_of("").zeros("html/large", LARGE_BYTES).start();
    let path = server.path("html/large");
    let resize = |bytes: u64| {
        let file = File::options().write(true).open(&path).expect("the file");
        file.set_len(bytes).expect("it is a file");
    };
    let mut client = Client::connect(server.port_number(3));
    client.send(request("GET", "/large", &[]));
    client.response_to_head();
    resize(0);
    client.rest();
    drop(client);
    let arm = Arm::closed(&server, "b", 1);
    assert_eq!((arm.counts(), arm.promised), ([1, 1, 0], LARGE_BYTES));
    assert!(arm.sent < LARGE_BYTES, "{arm:?}");

    resize(LARGE_BYTES);
    shortens(H2Client::connect(server.port_number(3)), || resize(0));
    let arm = Arm::closed(&server, "b", 2);
    assert_eq!(arm.counts(), [2, 2, 0]);
    resize(LARGE_BYTES);
    shortens(SpdyClient::connect(server.port_number(3)), || resize(0));
    let arm = Arm::closed(&server, "b", 3);
    assert_eq!(arm.counts(), [3, 3, 0]);
}

fn shortens<F: Frames>(mut client: MuxClient<F>, shorten: impl Fn()) {
    let stream = client.get("/large");
    client.until("a piece", |c| !c.so_far(stream).body.is_empty());
    shorten();
    client.until_closed();
}

#[test]
fn open_connections_and_their_memory_are_shown() {
    let server = figures_of("").start();
    let mut client = Client::connect(server.port_number(3));
    client.get("/f.txt");
    let mut other = H2Client::connect(server.port_number(3));
    other.fetch("/f.txt");
    wait_until("both have memory", || {
        let arm = Arm::of(&server, "b");
        // HTTP/2 has tables and a boxed state.
        arm.open == 2 && arm.memory_bytes > 1000 && arm.requests == 2
    });
    drop((client, other));
    wait_until("the memory is released", || {
        let arm = Arm::of(&server, "b");
        (arm.open, arm.memory_bytes) == (0, 0)
    });
}

/// Without a host, the user's arm counts from the first response that names it.
#[test]
fn connections_belong_to_arms_of_their_users() {
    let server = site(
        "arm a weight=1; arm b weight=10000;",
        "server { listen 127.0.0.1:%%PORT2%%; server_name a; root %%DIR%%/html;
             location = /arm { return 200 $experiment_x; } }",
    )
    .start();
    let mut client = Client::connect(server.port_number(2));
    client.get("/f.txt");
    let arm = client.get("/arm").text();
    client.get("/f.txt");
    drop(client);
    let figures = Arm::closed(&server, &arm, 1);
    assert_eq!((figures.counts(), figures.promised), ([2, 0, 0], 11));
}

/// The first 16 requests of a connection can add it to an arm.
#[test]
fn late_arms_have_no_connection() {
    let server = site(
        "arm a weight=1; arm b weight=10000;",
        "server { listen 127.0.0.1:%%PORT2%%; server_name a; root %%DIR%%/html;
             location = /arm { return 200 $experiment_x; } }",
    )
    .start();
    // In this order: the connection that counts closes last.
    for before in [17, 16, 15] {
        let mut client = Client::connect(server.port_number(2));
        for _ in 0..before {
            assert_eq!(client.get("/f.txt").status, 200);
        }
        assert_eq!(client.get("/arm").text(), "b");
    }
    assert_eq!(Arm::closed(&server, "b", 1).counts(), [1, 0, 0]);
}

/// Requests of each arm: some 6,000 steps, of which one in 64 is measured. The standard error of a sum is 14 %.
const LOADED: usize = 3000;

/// Loads two arms one after the other and compares their processor times with those of the worker. The second arm compresses.
#[test]
fn processor_time_of_arms_has_the_ratio_of_their_work() {
    let numbers = (0..1500u32).map(|n| n.wrapping_mul(2_654_435_761).to_string());
    let page = numbers.collect::<Vec<_>>().join(" ");
    let server = site(
        ARMS,
        "server { listen 127.0.0.1:%%PORT2%%; server_name a.test; root %%DIR%%/html; keepalive_requests 100000; }
         server { listen 127.0.0.1:%%PORT3%%; server_name b.test; root %%DIR%%/html; keepalive_requests 100000;
             sub_filter never never; sub_filter_types *; gzip on; gzip_comp_level 9; gzip_types *; }",
    )
    .file("html/page.txt", &page)
    .start();
    let worker = server.workers()[0];
    let load = |port: usize| {
        let before = cpu_time(worker);
        let mut client = Client::connect(server.port_number(port));
        for _ in 0..LOADED {
            let response = client.get_with("/page.txt", &["Accept-Encoding: gzip"]);
            assert_eq!(response.status, 200);
        }
        (cpu_time(worker) - before).as_secs_f64()
    };
    let of_worker = [load(2), load(3)];
    let of_arms = ["a", "b"].map(|arm| Arm::closed(&server, arm, 1).cpu_s);
    let shares = [0, 1].map(|arm| of_arms[arm] / of_worker[arm]);
    let shown = format!("{of_arms:?} s of {of_worker:?} s");
    assert!(
        of_worker[1] > 2.0 * of_worker[0],
        "compression is work: {shown}"
    );
    // The rest is work of the loop between connections. Five standard errors of the ratio are a factor of 2.7.
    assert!(
        shares.iter().all(|share| (0.2..1.8).contains(share)),
        "{shown}"
    );
    let ratio = shares[1] / shares[0];
    assert!((0.37..2.7).contains(&ratio), "{ratio}: {shown}");
}
