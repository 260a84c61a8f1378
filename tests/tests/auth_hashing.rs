//! Slow password hashes: other clients are served meanwhile, an unknown name costs as much, and a client that leaves ends
//! its work.
//!
//! Work is measured as CPU time of the worker, which does not depend on other load. Waiting is judged only if the machine
//! responds in time without any hash. Own executable: requests are timed.

use std::time::{Duration, Instant};

use firstbyte_tests::busy::Waits;
use firstbyte_tests::h2::H2Client;
use firstbyte_tests::process::cpu_time;
use firstbyte_tests::{Builder, Client, Server, peer};

/// The names `slow` and `nobody` with the password `x`.
const SLOW: &str = "Authorization: Basic c2xvdzp4";
const NOBODY: &str = "Authorization: Basic bm9ib2R5Ong=";

/// Longest permitted wait of other clients, and the longest response time without a hash for a conclusive test.
const PROMPT: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_millis(10);
/// Minimum time of a hash, and the cost of a faster one.
const LONG: Duration = Duration::from_millis(300);
const LEAST_COST: u8 = 6;

/// A user file in which `slow` and `u00`, `u01` and so on have hashes of bcrypt of this cost, which no password fits.
fn users(cost: u8, count: usize) -> String {
    let hash = format!("$2y${cost:02}$abcdefghijklmnopqrstuuThisIsNoHashOfAnyPasswordxxxxxxx");
    let names = (0..count).map(|n| format!("u{n:02}"));
    ["slow".to_owned()]
        .into_iter()
        .chain(names)
        .map(|name| format!("{name}:{hash}\n"))
        .collect()
}

/// The cost at which the server computes for about a quarter of a second for a hash, however it was built, and whatever else
/// this machine does.
fn slow_cost(server: &Server) -> u8 {
    // Many ticks of the clock by which the kernel counts.
    const MEASURED: Duration = Duration::from_millis(150);
    let mut client = server.client();
    server.dir().write("users", users(LEAST_COST, 0));
    let worker = server.workers()[0];
    let before = cpu_time(worker);
    let (mut times, mut spent) = (0, Duration::ZERO);
    while spent < MEASURED {
        assert_eq!(client.get_with("/t.txt", &[SLOW]).status, 401);
        times += 1;
        spent = cpu_time(worker) - before;
    }
    let hash = (spent / times).max(Duration::from_millis(1));
    let more = (LONG.as_micros() / hash.as_micros()).max(1).ilog2();
    LEAST_COST + more.clamp(1, 8) as u8
}

/// The credentials of `u` and a number, with the password `x`.
fn credentials(n: usize) -> String {
    format!("Authorization: Basic {}", base64(&format!("u{n:02}:x")))
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in text.as_bytes().chunks(3) {
        let bits = (0..3).fold(0, |bits, n| {
            bits << 8 | usize::from(three.get(n).copied().unwrap_or(0))
        });
        for n in 0..4 {
            let digit = char::from(DIGITS[bits >> (18 - 6 * n) & 63]);
            out.push(if n > three.len() { '=' } else { digit });
        }
    }
    out
}

fn site(locations: &str) -> Builder {
    let text = format!(
        "access_log %%DIR%%/a.log;
         server {{ listen 127.0.0.1:%%PORT%%; http2 on; root %%DIR%%/html;
             location /open {{ return 200 open; }}
             location / {{ auth_basic closed; auth_basic_user_file users; }} {locations} }}"
    );
    Server::http_with("worker_processes 1;", &text).file("html/t.txt", "text")
}

/// The middle of some times.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Duration of a small response.
fn prompt(client: &mut Client) -> Duration {
    let start = Instant::now();
    assert_eq!(client.get("/open").text(), "open");
    start.elapsed()
}

#[test]
fn others_are_served_while_passwords_are_hashed() {
    if !peer::is_firstbyte() {
        return;
    }
    const HASHES: usize = 8;
    let server = site("").start();
    let cost = slow_cost(&server);
    server.dir().write("users", users(cost, HASHES));
    let mut other = server.client();
    prompt(&mut other);
    let mut asking: Vec<Client> = (0..HASHES).map(|_| server.client()).collect();
    for (n, client) in asking.iter_mut().enumerate() {
        let line = credentials(n);
        client.send(format!("GET /t.txt HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n"));
    }
    let mut waited = Vec::new();
    let last = asking.last_mut().expect("there are some");
    while waited.is_empty() || !last.has_bytes_within(Duration::from_millis(1)) {
        waited.push(prompt(&mut other));
    }
    for client in &mut asking {
        assert_eq!(client.response().status, 401);
    }
    let waited = median(waited);
    let idle = median((0..20).map(|_| prompt(&mut other)).collect());
    if waited >= PROMPT && idle >= IDLE {
        println!("inconclusive: a machine without hashes answers in {idle:?}");
        return;
    }
    assert!(waited < PROMPT, "{waited:?}, without hashes {idle:?}");
}

#[test]
fn streams_of_the_same_connection_are_served_while_a_password_is_hashed() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = site("").start();
    let cost = slow_cost(&server);
    server.dir().write("users", users(cost, 0));
    let waits = Waits::begin();
    let mut client = H2Client::connect(server.port());
    let name = base64("slow:x");
    let fields = [("authorization", &*format!("Basic {name}"))];
    let slow = client.request("GET", "/t.txt", &fields, true);
    let open = client.get("/open");
    assert_eq!(client.reply(open).text(), "open");
    assert!(
        client.so_far(slow).status == 0 || waits.explain(LONG / 2, "an answer was late"),
        "the hash takes longer than another answer"
    );
    assert_eq!(client.reply(slow).status, 401);
}

#[test]
fn a_name_that_is_unknown_costs_what_a_wrong_password_costs() {
    if !peer::is_firstbyte() {
        return;
    }
    const TIMES: u32 = 6;
    let server = site("").start();
    let mixed = format!("plain:{{PLAIN}}secret\n{}", users(slow_cost(&server), 0));
    server.dir().write("users", &mixed);
    let worker = server.workers()[0];
    let mut client = server.client();
    let mut work = |line: &str| {
        let before = cpu_time(worker);
        for _ in 0..TIMES {
            assert_eq!(client.get_with("/t.txt", &[line]).status, 401);
        }
        (cpu_time(worker) - before) / TIMES
    };
    let known = work(SLOW);
    assert!(known > Duration::from_millis(30), "{known:?}");
    let plain = format!("Authorization: Basic {}", base64("plain:x"));
    for line in [NOBODY, &plain] {
        let unknown = work(line);
        assert!(
            unknown > known * 3 / 4 && unknown < known * 4 / 3,
            "{line}: {unknown:?}, of a known name {known:?}"
        );
    }
}

#[test]
fn passwords_of_clients_that_have_left_are_not_hashed() {
    if !peer::is_firstbyte() {
        return;
    }
    const CLIENTS: usize = 24;
    let server = site("").start();
    let cost = slow_cost(&server);
    server.dir().write("users", users(cost, CLIENTS));
    let worker = server.workers()[0];
    let mut one = server.client();
    let before = cpu_time(worker);
    assert_eq!(one.get_with("/t.txt", &[SLOW]).status, 401);
    let hash = cpu_time(worker) - before;
    for n in 0..CLIENTS {
        let mut client = server.client();
        let line = credentials(n);
        client.send(format!("GET /t.txt HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n"));
    }
    let log = server.wait_for_text("a.log", " 499 ");
    assert!(log.contains("\"GET /t.txt HTTP/1.1\" 401 "), "{log}");
    // Comes after all of them.
    assert_eq!(one.get_with("/t.txt", &[NOBODY]).status, 401);
    let worked = cpu_time(worker) - before;
    assert!(
        worked < hash * (CLIENTS as u32) / 2,
        "{worked:?}, where a hash takes {hash:?}"
    );
}

/// References of a page are not sent to clients that may not see it.
#[test]
fn hints_do_not_leave_before_the_password_is_known_to_fit() {
    if !peer::is_firstbyte() {
        return;
    }
    let right = "me:$2y$04$abcdefghijklmnopqrstuughE8Ev8uGFaUgY2cNEySvxngrb/Jzdm\n";
    let server = site(
        "location /hint { early_hints 1; early_hints_link '</s.css>; rel=preload'; auth_delay 100ms;
             auth_basic a; auth_basic_user_file users; try_files /t.txt =404; }",
    )
    .file("users", right)
    .start();
    for (password, status) in [("wrong", 401), ("password", 200)] {
        let fields = [(
            "authorization",
            &*format!("Basic {}", base64(&format!("me:{password}"))),
        )];
        let mut client = H2Client::connect(server.port());
        let stream = client.request("GET", "/hint", &fields, true);
        let reply = client.reply(stream);
        let hints = if status == 200 { vec![103] } else { vec![] };
        assert_eq!((reply.status, reply.interim), (status, hints));
        let mut client = server.client();
        let line = format!("Authorization: {}", fields[0].1);
        client.send(format!(
            "GET /hint HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{line}\r\n\r\n"
        ));
        let all = String::from_utf8_lossy(&client.rest()).into_owned();
        assert_eq!(all.contains(" 103 "), status == 200, "{all}");
    }
}

#[test]
fn what_else_decides_waits_for_the_password() {
    let locations =
        "location /any { satisfy any; deny all; auth_basic a; auth_basic_user_file right;
                     try_files /t.txt =404; }
         location /asks { auth_basic a; auth_basic_user_file right; auth_request /open;
                     try_files /t.txt =404; }
         location /page { auth_basic a; auth_basic_user_file right; error_page 401 /open; }";
    let right = "me:$2y$04$abcdefghijklmnopqrstuughE8Ev8uGFaUgY2cNEySvxngrb/Jzdm\n";
    let server = site(locations)
        .file("users", right)
        .file("right", right)
        .start();
    let with = |password: &str| {
        let text = base64(&format!("me:{password}"));
        format!("Authorization: Basic {text}")
    };
    for _ in 0..2 {
        let mut client = server.client();
        for path in ["/t.txt", "/any", "/asks"] {
            let answer = client.get_with(path, &[&with("password")]);
            assert_eq!((answer.status, &*answer.text()), (200, "text"), "{path}");
            let answer = client.get_with(path, &[&with("wrong")]);
            assert_eq!(answer.status, 401, "{path}");
            assert!(answer.header("WWW-Authenticate").is_some(), "{path}");
        }
        let answer = client.get_with("/page", &[&with("wrong")]);
        assert_eq!((answer.status, &*answer.text()), (401, "open"));
    }
    // A pipelined response comes after the one before.
    let mut client = server.client();
    let line = with("another");
    client.send(format!(
        "GET /open HTTP/1.1\r\nHost: a\r\n\r\nGET /t.txt HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\nGET /open HTTP/1.1\r\nHost: a\r\n\r\n"
    ));
    let statuses = [(); 3].map(|()| client.response().status);
    assert_eq!(statuses, [200, 401, 200]);
}
