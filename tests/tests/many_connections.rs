//! As many connections as descriptors allow: none is refused, idle ones cost the busy ones nothing, and bursts of new ones
//! do not delay served ones.
//!
//! 18,000 connections if the hard limit of open files is at least 20,000, else fewer. Measurements of time or CPU are tried
//! three times, and are inconclusive on a busy machine. Own executable: it raises its limit of open files, and times
//! requests. Source: nginx documentation, `worker_connections`, `multi_accept`.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use firstbyte_tests::busy::{inconclusive, worst_stall_while};
use firstbyte_tests::wait::{DEADLINE, pause};
use firstbyte_tests::{Server, peer};
use rustix::process::{Resource, getrlimit, setrlimit};

/// Connections if the limit of open files permits, and descriptors left for other uses.
const MOST: usize = 18_000;
const SPARED: usize = 2_000;
/// Connections of which all wait for their answers at a time.
const AT_A_TIME: usize = 250;
/// Longest stall of a thread with which measured times are still valid.
const STALL_MAX: Duration = Duration::from_millis(20);

/// The tests share the descriptors of one process, and its processors.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Raises the limit of open files of this process, which the server inherits, and returns the number of connections it
/// allows.
fn allowed() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("up to the hard limit it may be raised");
    let files = limit.maximum.map_or(usize::MAX, |files| files as usize);
    MOST.min(files.saturating_sub(SPARED))
}

fn server(connections: usize, events: &str) -> Server {
    let most = connections + SPARED / 2;
    Server::whole(&format!(
        "%%USER%% daemon off; pid %%DIR%%/nginx.pid; error_log %%DIR%%/error.log warn; worker_processes 1;
         events {{ worker_connections {most}; {events} }}
         http {{ access_log off; client_body_temp_path %%DIR%%/body; keepalive_timeout 600s;
             keepalive_requests 1000000; server {{ listen 127.0.0.1:%%PORT%% backlog=4096; return 200 ok; }} }}"
    ))
    .start()
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    Ok(stream)
}

/// Reads a response to its end.
fn answered(stream: &mut TcpStream) -> io::Result<()> {
    let (mut bytes, mut filled) = ([0; 1024], 0);
    while !bytes[..filled].ends_with(b"\r\n\r\nok") {
        match stream.read(&mut bytes[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    Ok(())
}

/// Asks on each connection once.
fn ask_all(streams: &mut [TcpStream]) -> io::Result<()> {
    for some in streams.chunks_mut(AT_A_TIME) {
        for stream in &mut *some {
            stream.write_all(REQUEST)?;
        }
        for stream in some {
            answered(stream)?;
        }
    }
    Ok(())
}

/// Opens further connections up to `count`, each with one request.
fn open_up_to(count: usize, port: u16, streams: &mut Vec<TcpStream>) {
    while streams.len() < count {
        let before = streams.len();
        for _ in before..count.min(before + AT_A_TIME) {
            streams.push(connect(port).expect("nobody is refused"));
        }
        ask_all(&mut streams[before..]).expect("each is answered");
    }
}

/// Time that all threads of a process have computed, nanoseconds.
fn computed_ns(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let times = tasks.flatten().filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    times.sum()
}

fn memory_bytes(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.trim().parse().ok())
        .map_or(0, |kib: u64| kib * 1024)
}

/// Cost of requests on busy connections to the server: the least of several rounds.
fn cost_ns(pid: u32, busy: &mut [TcpStream]) -> u64 {
    let round = || {
        let before = computed_ns(pid);
        for _ in 0..60 {
            ask_all(busy).expect("the busy ones are answered");
        }
        computed_ns(pid) - before
    };
    std::iter::repeat_with(round)
        .take(5)
        .min()
        .unwrap_or_default()
}

#[test]
fn idle_connections_are_kept_by_the_thousands_and_cost_the_busy_ones_nothing() {
    let _alone = alone();
    let most = allowed();
    let server = server(most, "");
    let (pid, port) = (server.workers()[0], server.port());
    let (mut busy, mut idle) = (Vec::new(), Vec::new());
    open_up_to(32, port, &mut busy);
    open_up_to(100, port, &mut idle);
    let mut findings = Vec::new();
    // Beside it, with few connections, so that a machine that has become slower meanwhile is slower for both.
    let few = self::server(most, "");
    let (few_pid, mut few_busy, mut few_idle) = (few.workers()[0], Vec::new(), Vec::new());
    open_up_to(busy.len(), few.port(), &mut few_busy);
    open_up_to(100, few.port(), &mut few_idle);
    let few_bytes = memory_bytes(pid);
    open_up_to(most - busy.len(), port, &mut idle);
    let bytes = memory_bytes(pid).saturating_sub(few_bytes) / idle.len() as u64;
    if peer::is_firstbyte() {
        assert!(bytes <= IDLE_BYTES, "{bytes} bytes a connection");
    }
    for _ in 0..3 {
        let (mut few_ns, mut many_ns) = (0, 0);
        let stall = worst_stall_while(|| {
            few_ns = cost_ns(few_pid, &mut few_busy);
            many_ns = cost_ns(pid, &mut busy);
        });
        let text = format!("{few_ns} ns with 100 idle connections, {many_ns} ns with {most}");
        let bound_ns = few_ns * COST_MAX_PERCENT / 100;
        if many_ns <= bound_ns {
            break;
        }
        findings.push((text, stall));
    }
    if findings.len() == 3 {
        let text = format!("{findings:?}");
        assert!(
            findings.iter().all(|(_, stall)| *stall >= STALL_MAX),
            "{text}"
        );
        inconclusive(&text);
    }
    ask_all(&mut idle).expect("nobody has been closed");
}

/// Maximum memory of an idle connection in the server: slots of a table that is a quarter larger than its content.
const IDLE_BYTES: u64 = 256;
/// Maximum cost of a request beside thousands of idle connections, in percent: their memory takes some of the caches.
const COST_MAX_PERCENT: u64 = 140;

/// Response times of one request after the other on a few connections, until `over` returns true.
fn times_until(busy: &mut [TcpStream], over: impl Fn() -> bool) -> Vec<Duration> {
    let mut times = Vec::new();
    for at in (0..busy.len()).cycle() {
        if over() {
            break;
        }
        let start = Instant::now();
        let stream = &mut busy[at];
        stream.write_all(REQUEST).expect("it is kept");
        answered(stream).expect("it is answered");
        times.push(start.elapsed());
        pause(Duration::from_micros(500));
    }
    times
}

fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// Connections of a burst within a second, and the permitted delay of other clients besides twice their usual wait.
const BURST: usize = 5_000;
const HELD_UP: Duration = Duration::from_millis(5);

/// Opens the burst's connections at an even pace, and reads each response.
fn burst(port: u16, count: usize) {
    let start = Instant::now();
    let mut streams: Vec<TcpStream> = Vec::with_capacity(count);
    let mut asked = 0;
    while streams.len() < count {
        let due = start.elapsed().as_micros() as usize * count / 1_000_000;
        while streams.len() < due.min(count) {
            let mut stream = connect(port).expect("nobody is refused");
            stream.write_all(REQUEST).expect("it is connected");
            streams.push(stream);
        }
        // Most have their response by now.
        let end = streams.len().saturating_sub(AT_A_TIME);
        for stream in &mut streams[asked..end.max(asked)] {
            answered(stream).expect("each is answered");
        }
        asked = end.max(asked);
        pause(Duration::from_millis(1));
    }
    for stream in &mut streams[asked..] {
        answered(stream).expect("each is answered");
    }
}

#[track_caller]
fn burst_holds_nobody_up(events: &str) {
    let _alone = alone();
    let count = BURST.min(allowed() / 2);
    let server = server(count + 1000, events);
    let port = server.port();
    let (mut busy, mut idle) = (Vec::new(), Vec::new());
    open_up_to(16, port, &mut busy);
    open_up_to(500, port, &mut idle);
    let mut findings = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        let before = p99(times_until(&mut busy, || {
            start.elapsed() > Duration::from_millis(500)
        }));
        let mut during = Duration::ZERO;
        let stall = worst_stall_while(|| {
            std::thread::scope(|scope| {
                let new = scope.spawn(|| burst(port, count));
                during = p99(times_until(&mut busy, || new.is_finished()));
            });
        });
        if during <= before * 2 + HELD_UP {
            return;
        }
        findings.push((before, during, stall));
    }
    let text =
        format!("99 % are answered within {findings:?} without a burst, with it, worst stall");
    assert!(
        findings.iter().all(|(.., stall)| *stall >= STALL_MAX),
        "{text}"
    );
    inconclusive(&text);
}

#[test]
fn a_burst_of_new_connections_holds_nobody_up() {
    burst_holds_nobody_up("");
}

#[test]
fn a_burst_that_is_accepted_at_once_holds_nobody_up() {
    burst_holds_nobody_up("multi_accept on;");
}
