//! Memory and processor time of open event streams: `dashboard_streams [STREAMS] [SECONDS]`, 1,000 and 20 by default.
//!
//! Prints a line for the server without streams, and one with all of them. The readers are another process: this program again.

#[path = "../tests/dashboard/mod.rs"]
mod dashboard;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| {
        arguments
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (streams, seconds, port) = (number(1000), number(20), number(0));
    match port {
        0 => serve(streams, seconds),
        port => read(streams, port as u16),
    }
}

/// Serves, and measures this process.
fn serve(streams: u64, seconds: u64) {
    let file = std::env::temp_dir().join(format!("dashboard-streams-{}.db", std::process::id()));
    dashboard::filled(&file, 1000);
    let site = dashboard::Dashboard::start(&file);
    let live = std::sync::Arc::clone(&site.live);
    thread::spawn(move || {
        loop {
            live.set_open(
                1,
                [("HTTP/1.1".to_owned(), 12), ("HTTP/2.0".to_owned(), 87)],
            );
            thread::sleep(Duration::from_secs(1));
        }
    });
    let before = Usage::now();
    let mut readers = start_readers(streams, site.address.port());
    let all = Usage::now();
    thread::sleep(Duration::from_secs(seconds));
    let after = Usage::now();
    let memory_kb = all.resident_kb.max(after.resident_kb) - before.resident_kb;
    let cpu_ms = after.cpu_ms - all.cpu_ms;
    let (each_kb, each_us) = (
        memory_kb as f64 / streams as f64,
        cpu_ms * 1000.0 / (streams * seconds) as f64,
    );
    println!(
        "{streams} streams, an event a second: {each_kb:.2} KB of memory and {each_us:.1} us of CPU time a second each"
    );
    println!(
        "all: {memory_kb} KB, {:.2} % of a processor",
        cpu_ms / (seconds as f64 * 10.0)
    );
    // The readers end with their input.
    drop(readers.stdin.take());
    let _ = readers.wait();
    let _ = fs::remove_file(&file);
}

/// Starts the readers, and waits until each has its first event.
fn start_readers(streams: u64, port: u16) -> Child {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program)
        .args([streams.to_string(), "0".to_owned(), port.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut ready = [0; 1];
    let output = child.stdout.as_mut().expect("a pipe");
    output.read_exact(&mut ready).expect("all streams are open");
    child
}

/// Opens all streams and reads them until the input ends.
fn read(streams: u64, port: u16) {
    let open = |_| {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let request = "GET /events HTTP/1.1\r\nHost: h\r\n\r\n";
        socket.write_all(request.as_bytes()).expect("it reads");
        let mut first = [0; 15];
        socket.read_exact(&mut first).expect("it answers");
        assert_eq!(&first, b"HTTP/1.1 200 OK");
        socket.set_nonblocking(true).expect("it is a socket");
        socket
    };
    let mut sockets: Vec<TcpStream> = (0..streams).map(open).collect();
    print!("x");
    std::io::stdout().flush().expect("a pipe");
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let mut buffer = [0; 4096];
    loop {
        let next = Instant::now() + Duration::from_millis(200);
        for socket in &mut sockets {
            while matches!(socket.read(&mut buffer), Ok(1..)) {}
        }
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Memory and processor time of this process.
struct Usage {
    resident_kb: u64,
    cpu_ms: f64,
}

impl Usage {
    fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").expect("Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kb = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let times = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Self {
            resident_kb: kb.and_then(|kb| kb.trim().parse().ok()).unwrap_or(0),
            cpu_ms: times.tv_sec as f64 * 1000.0 + times.tv_nsec as f64 / 1e6,
        }
    }
}
