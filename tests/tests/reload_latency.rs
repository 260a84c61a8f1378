//! A reload of a large configuration delays a request by a few milliseconds at most.
//!
//! Other load of the machine is excluded: a request counts with the CPU time that its thread spends on it, and with its
//! duration without waits for a CPU. Own executable: requests are timed.

use std::time::{Duration, Instant};

use firstbyte_tests::busy::{inconclusive, worst_stall_while};
use firstbyte_tests::{Client, H2Client, Server, Signal, peer};

/// Server blocks, each with three locations: freeing them at once takes tens of milliseconds.
const SERVERS: usize = 1500;
const RELOADS: usize = 4;
/// How much slower the slowest request may be in a reload.
const MORE: Duration = Duration::from_millis(5);
/// Requests continue for this time after the first response of the new configuration: then the old one has been freed.
const AFTER: Duration = Duration::from_millis(500);
/// Limit of a reload on a busy machine.
const RELOAD_MAX: Duration = Duration::from_secs(120);

/// The slowest of some requests.
#[derive(Clone, Copy, Debug, Default)]
struct Slowest {
    /// CPU time of the serving thread.
    cpu: Duration,
    /// Response time, without the waits of either side for a CPU.
    taken: Duration,
}

/// Times of a thread by the kernel: time on a CPU, and time that it waited for one.
#[derive(Clone, Copy)]
struct Times {
    cpu: Duration,
    waited: Duration,
}

fn times(schedstat: &str) -> Times {
    let text = std::fs::read_to_string(schedstat).expect("the thread lives");
    let mut numbers = text.split(' ').map(|n| n.trim().parse().unwrap_or(0));
    let mut next = || Duration::from_nanos(numbers.next().unwrap_or(0));
    Times {
        cpu: next(),
        waited: next(),
    }
}

/// The file with the times of the only thread that serves.
fn serving_thread(server: &Server) -> String {
    let tasks = format!("/proc/{}/task", server.workers()[0]);
    let entries = std::fs::read_dir(tasks).expect("the worker lives");
    let mut tasks = entries.map(|entry| entry.expect("it can be read").path());
    let serves = |path: &std::path::PathBuf| {
        let name = std::fs::read_to_string(path.join("comm"));
        name.is_ok_and(|name| name.starts_with("serve-"))
    };
    let task = tasks.find(serves).expect("a thread serves");
    task.join("schedstat").display().to_string()
}

impl Slowest {
    /// Makes a request and returns the response.
    fn request(&mut self, thread: &str, request: &mut dyn FnMut() -> String) -> String {
        const OWN: &str = "/proc/thread-self/schedstat";
        let (server, own) = (times(thread), times(OWN));
        let sent = Instant::now();
        let answer = request();
        let taken = sent.elapsed();
        let (server_after, own_after) = (times(thread), times(OWN));
        let waited = server_after.waited.saturating_sub(server.waited)
            + own_after.waited.saturating_sub(own.waited);
        self.cpu = self.cpu.max(server_after.cpu.saturating_sub(server.cpu));
        self.taken = self.taken.max(taken.saturating_sub(waited));
        answer
    }
}

fn conf() -> String {
    let mut text = "keepalive_requests 100000000; access_log off;\n\
        server { listen 127.0.0.1:%%PORT%%; http2 on; location = /generation { return 200 g0; } }\n"
        .to_owned();
    for n in 0..SERVERS {
        text += &format!(
            "server {{ listen 127.0.0.1:%%PORT%%; server_name s{n}.test;\n\
             location / {{ index index.html; }}\n\
             location /api/ {{ proxy_pass http://127.0.0.1:9; proxy_set_header X-N {n}; }}\n\
             location ~ \\.php$ {{ return 404; }} }}\n"
        );
    }
    text
}

/// Compares requests in reloads with requests before.
fn judge(server: &Server, request: &mut dyn FnMut() -> String) {
    // Who answers has begun to serve.
    let before = request();
    let thread = serving_thread(server);
    let (mut quiet, mut reloads) = (Slowest::default(), Slowest::default());
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        quiet.request(&thread, request);
    }
    let number: usize = before[1..].parse().expect("a generation");
    let stall = worst_stall_while(|| {
        for n in number..number + RELOADS {
            let (old, new) = (format!("g{n}"), format!("g{}", n + 1));
            server.rewrite_conf(|text| {
                text.replace(&format!("return 200 {old};"), &format!("return 200 {new};"))
            });
            server.signal(Signal::HUP);
            let (begun, mut taken) = (Instant::now(), None);
            while taken.is_none_or(|at: Instant| at.elapsed() < AFTER) {
                let answer = reloads.request(&thread, request);
                assert!(answer == old || answer == new, "{answer}");
                if answer == new && taken.is_none() {
                    taken = Some(Instant::now());
                }
                assert!(begun.elapsed() < RELOAD_MAX, "it is not taken up");
            }
        }
    });
    let found = format!("quiet {quiet:?}, in reloads {reloads:?}, stalls of {stall:?}");
    println!("{found}");
    assert!(reloads.cpu <= quiet.cpu + MORE, "{found}");
    if reloads.taken > quiet.taken + MORE {
        // Other waits than those for a CPU may be the machine's too: steal, memory.
        assert!(stall > MORE, "{found}");
        inconclusive(&found);
    }
}

#[test]
fn no_request_waits_for_a_reload() {
    if !peer::is_firstbyte() {
        // In nginx another worker serves then.
        return;
    }
    let server = Server::http(&conf()).start();
    let mut client = Client::connect(server.port());
    judge(&server, &mut || client.get("/generation").text());
}

#[test]
fn no_request_of_http2_waits_for_a_reload() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(&conf()).start();
    let mut client = H2Client::connect(server.port());
    judge(&server, &mut || client.fetch("/generation").text());
}
