//! `event_coalescing`: a thread that forwards many requests wakes up less often for them, and a lone client is not delayed.
//!
//! Clients are `firstbyte bench`. The kernel counts the sleeps of a thread. Source: docs/differences.md. Own executable:
//! sleeps depend on free CPUs.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use firstbyte_tests::busy::inconclusive;
use firstbyte_tests::{Server, peer, process, report};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::{CpuSet, sched_setaffinity};

/// Responds to requests one after the other, like a server slower than the one before it; returns its port.
fn back() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        second_processor();
        let mut streams: Vec<TcpStream> = Vec::new();
        loop {
            let all = std::iter::once(listener.as_fd()).chain(streams.iter().map(AsFd::as_fd));
            let mut polled: Vec<PollFd<'_>> = all
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            poll(&mut polled, None).expect("descriptors can be polled");
            let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
            let mut at = 1;
            streams.retain_mut(|stream| {
                at += 1;
                !ready[at - 1] || answered(stream)
            });
            if ready[0] {
                streams.push(listener.accept().expect("there are descriptors").0);
            }
        }
    });
    port
}

/// Answers the request that has come; false at the end.
fn answered(stream: &mut TcpStream) -> bool {
    let mut request = [0; 4096];
    if stream.read(&mut request).is_ok_and(|read| read > 0) {
        let begin = Instant::now();
        while begin.elapsed() < WORK {}
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        return stream.write_all(response).is_ok();
    }
    false
}

/// A proxy on a CPU of its own.
fn front(back: u16, switch: &str) -> Server {
    Server::whole(&format!(
        "%%USER%% daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log warn; worker_processes 1;
         worker_cpu_affinity 01; events {{ worker_connections 1024; event_coalescing {switch}; }}
         http {{ access_log off; keepalive_requests 10000000; client_body_temp_path %%DIR%%/body;
             upstream back {{ server 127.0.0.1:{back}; keepalive 256; }}
             server {{ listen 127.0.0.1:%%PORT%%; location / {{ proxy_pass http://back; }} }} }}"
    ))
    .start()
}

/// Number of sleeps of the threads of a process.
fn sleeps(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let ids = tasks
        .flatten()
        .filter_map(|task| task.file_name().to_str()?.parse().ok());
    ids.map(|id: u32| {
        let count = process::status(id, "voluntary_ctxt_switches");
        count.parse::<u64>().unwrap_or(0)
    })
    .sum()
}

/// Number of sleeps of a server per request, under the load of 64 clients for a second.
fn sleeps_a_request(server: &Server) -> f64 {
    let url = format!("http://127.0.0.1:{}/", server.port());
    let worker = server.workers()[0];
    let before = sleeps(worker);
    let report = report("bench", &[&url, "--connections", "64", "--duration", "1"]);
    let slept = sleeps(worker) - before;
    let done = report["servers"][0]["done"].as_u64().expect("a number");
    assert_eq!(report["servers"][0]["errors"], serde_json::json!({}));
    slept as f64 / done.max(1) as f64
}

#[test]
fn many_requests_in_progress_share_their_wake_ups() {
    if !peer::is_firstbyte() {
        return;
    }
    if !peer::is_firstbyte() {
        return;
    }
    let (back, second) = (back(), second_processor());
    let (gathers, takes_each) = (front(back, "on"), front(back, "off"));
    if !second {
        return inconclusive("there is no second processor for the clients");
    }
    let mut found = Vec::new();
    for _ in 0..TRIES {
        let (on, off) = (sleeps_a_request(&gathers), sleeps_a_request(&takes_each));
        if off > OFTEN && on < 0.6 * off {
            return;
        }
        found.push((on, off));
    }
    // A thread that others keep from the processor finds many events whenever it gets there.
    let slept = found.iter().filter(|(_, off)| *off > OFTEN).count();
    assert!(
        slept < TRIES,
        "sleeps a request with coalescing, without: {found:?}"
    );
    inconclusive(&format!("the thread seldom slept: {found:?}"));
}

/// Binds this thread, and the programs that it starts, to the second processor; false if there is none.
fn second_processor() -> bool {
    let mut cpus = CpuSet::new();
    cpus.set(1);
    sched_setaffinity(None, &cpus).is_ok()
}

#[test]
fn a_lone_client_is_not_waited_for() {
    if !peer::is_firstbyte() {
        return;
    }
    if !peer::is_firstbyte() {
        return;
    }
    let back = back();
    let (gathers, takes_each) = (front(back, "on"), front(back, "off"));
    let least = |server: &Server| {
        let mut client = server.client();
        let mut least = Duration::MAX;
        for _ in 0..2000 {
            let begin = Instant::now();
            client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
            assert_eq!(client.response().body, b"ok");
            least = least.min(begin.elapsed());
        }
        least
    };
    // Two delays, of request and response, would be 100 us.
    let (on, off) = (least(&gathers), least(&takes_each));
    assert!(on < off + Duration::from_micros(50), "{on:?}, {off:?}");
}

/// CPU time of a response of the upstream server.
const WORK: Duration = Duration::from_micros(10);
/// Rounds before there is a verdict.
const TRIES: usize = 5;
/// Sleeps a request from which on there is something to save.
const OFTEN: f64 = 0.3;
