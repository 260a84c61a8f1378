//! Reloads in quick succession, with groups of servers that change, lose no request, no tunnel and no memory.
//!
//! `make test-all` sets `LAB_LONG`: 136 reloads in 10 minutes, as an ingress controller made them (nginx-gateway-fabric,
//! issue 5524). Without it there are fewer in less time. Clients keep connections, connect anew, send bodies, and talk
//! through WebSocket tunnels. None may see an end, a wrong response or an error. Own executable: memory is compared.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use firstbyte_tests::backend::{Backend, Step, ok, send};
use firstbyte_tests::client::request;
use firstbyte_tests::received::Request;
use firstbyte_tests::wait::{holds_within, pause};
use firstbyte_tests::{Client, Server, Signal, peer, wait_until};

/// Number and time of the reloads, long and short.
const LONG: (usize, Duration) = (136, Duration::from_secs(600));
const SHORT: (usize, Duration) = (16, Duration::from_secs(8));
/// Clients of each kind.
const CLIENTS: usize = 6;
/// Servers behind.
const BEHIND: usize = 4;
/// Pause of clients and servers between two messages, milliseconds.
const PAUSE_MS: u64 = 20;
/// Server blocks beside the one in use: with them a configuration that stays in memory is noticed.
const SERVERS: usize = 500;
/// How much higher memory may be at the end than after the first quarter: hundredths, and KiB.
const MORE_HUNDREDTHS: u64 = 3;
const MORE_KIB: u64 = 512;
/// How many more descriptors may be open at the end.
const MORE_DESCRIPTORS: usize = 2 * CLIENTS;

/// State that all clients share.
#[derive(Default)]
struct Storm {
    stop: AtomicBool,
    requests: AtomicU64,
    messages: AtomicU64,
    /// Number of the reload, for messages.
    reload: AtomicUsize,
}

impl Storm {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    #[track_caller]
    fn lost(&self, what: &str, why: impl std::fmt::Debug) -> ! {
        let reload = self.reload.load(Ordering::Relaxed);
        panic!("{what} lost after reload {reload}: {why:?}")
    }

    /// Counts a response; it must be that of a server behind.
    #[track_caller]
    fn check(&self, what: &str, client: &mut Client) {
        match client.try_response() {
            Ok(Some(response)) if response.status == 200 && response.text() == "behind" => {
                self.requests.fetch_add(1, Ordering::Relaxed);
            }
            other => self.lost(what, other),
        }
    }
}

/// Requests on one connection.
fn keep(storm: &Storm, port: u16) {
    let mut client = Client::connect(port);
    while storm.goes_on() {
        client.send(request("GET", "/kept", &[]));
        storm.check("a request on a kept connection was", &mut client);
    }
}

/// Requests with bodies, each on a connection of its own.
fn connect(storm: &Storm, port: u16) {
    while storm.goes_on() {
        let mut client = Client::connect(port);
        client.send(request("POST", "/new", &["Content-Length: 4"]) + "body");
        storm.check("a request on a new connection was", &mut client);
    }
}

/// Messages through a tunnel, each of which comes back.
fn talk(storm: &Storm, port: u16) {
    let mut client = Client::connect(port);
    client.send(request(
        "GET",
        "/chat",
        &["Upgrade: websocket", "Connection: Upgrade"],
    ));
    let answer = client.response();
    assert_eq!(answer.status, 101);
    for number in 0.. {
        let message = format!("message {number:08}");
        client.send(&message);
        if client.bytes(message.len()) != message.as_bytes() {
            storm.lost("a message was", number);
        }
        storm.messages.fetch_add(1, Ordering::Relaxed);
        if client.has_bytes_within(Duration::from_millis(PAUSE_MS)) {
            storm.lost("a tunnel was", client.rest());
        }
        if !storm.goes_on() {
            return;
        }
    }
}

fn answer(request: &Request) -> Vec<Step> {
    if request.header("Upgrade").is_none() {
        return [vec![Step::Wait(PAUSE_MS)], ok("behind")].concat();
    }
    let head =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    vec![send(head), Step::Echo, Step::Close]
}

/// The group of a generation: another server is missing each time, with other methods, weights and numbers of kept
/// connections. Some generations share their peers.
fn group(generation: usize, behind: &[Backend]) -> String {
    let mut text =
        format!("map $host $generation {{ default g{generation}; }}\nupstream behind {{\n");
    text += METHODS[generation % METHODS.len()];
    if generation % 4 > 1 {
        text += "zone behind 64k;\n";
    }
    for (number, server) in behind.iter().enumerate() {
        if number != generation % behind.len() {
            let weight = 1 + (generation + number) % 3;
            text += &format!("server {} weight={weight};\n", server.name());
        }
    }
    text + &format!("keepalive {};\n}}\n", 4 << (generation % 3))
}

fn start(behind: &[Backend], mirror: &Backend) -> Server {
    let mut others = String::new();
    for n in 0..SERVERS {
        others += &format!(
            "server {{ listen 127.0.0.1:%%PORT%%; server_name s{n}.test; location /a {{ root /srv; }} }}\n"
        );
    }
    let template = format!(
        "include group.conf; access_log off; keepalive_requests 100000000; keepalive_time 1d;
         server {{ listen 127.0.0.1:%%PORT%% default_server; server_name localhost;
             location / {{ proxy_pass http://behind; mirror /mirror; }}
             location /chat {{ proxy_pass http://behind; proxy_set_header Upgrade $http_upgrade;
                 proxy_set_header Connection upgrade; }}
             location /mirror {{ internal; proxy_pass http://{}; }}
             location = /generation {{ return 200 $generation; }} }}
         {others}",
        mirror.name()
    );
    let builder = Server::http_with("worker_processes 2;", &template);
    builder.file("group.conf", &group(0, behind)).start()
}

/// Anonymous memory of the worker, in KiB.
fn anonymous_kib(worker: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{worker}/smaps_rollup"));
    let text = text.expect("the worker lives");
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("Anonymous:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kib = kib.and_then(|kib| kib.trim().parse().ok());
    kib.expect("the kernel counts it")
}

fn descriptors(worker: u32) -> usize {
    let all = std::fs::read_dir(format!("/proc/{worker}/fd"));
    all.expect("the worker lives").count()
}

#[test]
fn a_storm_of_reloads_loses_nothing() {
    if !peer::is_firstbyte() {
        // In nginx old workers with tunnels stay, each with its configuration.
        return;
    }
    let is_long = std::env::var_os("LAB_LONG").is_some();
    let (reloads, time) = if is_long { LONG } else { SHORT };
    let behind: Vec<Backend> = (0..BEHIND).map(|_| Backend::answering(answer)).collect();
    let mirror = Backend::answering(|_| ok(""));
    let server = start(&behind, &mirror);
    let (port, worker) = (server.port(), server.workers()[0]);
    let storm = Arc::new(Storm::default());
    let clients: Vec<JoinHandle<()>> = (0..3 * CLIENTS)
        .map(|n| {
            let storm = Arc::clone(&storm);
            let work = [keep, connect, talk][n % 3];
            std::thread::spawn(move || work(&storm, port))
        })
        .collect();
    let begun = Instant::now();
    let mut samples = Vec::new();
    for number in 1..=reloads {
        server.dir().write("group.conf", group(number, &behind));
        server.signal(Signal::HUP);
        let now = format!("g{number}");
        wait_until("the new group is used", || {
            server.get("/generation").text() == now
        });
        storm.reload.store(number, Ordering::Relaxed);
        let due = time * number as u32 / reloads as u32;
        pause(due.saturating_sub(begun.elapsed()));
        samples.push((anonymous_kib(worker), descriptors(worker)));
        if clients.iter().any(JoinHandle::is_finished) {
            break;
        }
    }
    storm.stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("no client loses anything");
    }
    let taken = begun.elapsed().as_secs_f64();
    let (requests, messages) = (&storm.requests, &storm.messages);
    println!(
        "{reloads} reloads in {taken:.1} s: {} requests and {} messages, none lost",
        requests.load(Ordering::Relaxed),
        messages.load(Ordering::Relaxed)
    );
    assert_eq!(server.workers(), [worker], "one worker serves all the time");
    check_level(&samples, worker);
}

/// Compares memory and descriptors at the end with those of the first quarter.
fn check_level(samples: &[(u64, usize)], worker: u32) {
    let first = &samples[..samples.len() / 4];
    let kib = first.iter().map(|(kib, _)| *kib).max().unwrap_or_default();
    let open = first
        .iter()
        .map(|(_, open)| *open)
        .max()
        .unwrap_or_default();
    let quarters: Vec<u64> = samples
        .chunks(samples.len().div_ceil(4))
        .map(median_kib)
        .collect();
    println!("KiB of the worker, medians of the quarters: {quarters:?}");
    let most_kib = kib * (100 + MORE_HUNDREDTHS) / 100 + MORE_KIB;
    let is_level =
        || anonymous_kib(worker) <= most_kib && descriptors(worker) <= open + MORE_DESCRIPTORS;
    let comes_down = holds_within(Duration::from_secs(20), is_level);
    let last = (anonymous_kib(worker), descriptors(worker));
    println!("first quarter: {kib} KiB and {open} descriptors at most; end: {last:?}");
    assert!(comes_down, "{last:?} at the end, ({kib}, {open}) before");
}

fn median_kib(samples: &[(u64, usize)]) -> u64 {
    let mut all: Vec<u64> = samples.iter().map(|(kib, _)| *kib).collect();
    all.sort_unstable();
    all[all.len() / 2]
}

/// Methods that take turns.
const METHODS: [&str; 5] = [
    "",
    "least_conn;\n",
    "hash $uri consistent;\n",
    "ip_hash;\n",
    "random two;\n",
];
