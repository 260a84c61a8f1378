//! `firstbyte map --follow`: logs of a server under load that rotate meanwhile.
//!
//! Source: logrotate(8). nginx has none of this.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use crate::map::{LINE, Logs, figures};
use firstbyte_tests::{Client, Server, Signal, peer, process, wait_until};
use serde_json::Value;

/// The verb while it follows logs; it writes its figures to a file.
struct Follower {
    child: Child,
    logs: Logs,
}

impl Follower {
    fn start(words: &[&str], opened: &Path) -> Self {
        let logs = Logs::new();
        let mut command = Command::new(peer::binary());
        command.args(["map", "--follow", "--geoip", &logs.path("geoip")]);
        command.arg(format!("--json={}", logs.path("map.json")));
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(logs.path("messages")).expect("the file can be made"));
        let child = command.spawn().expect("it starts");
        let follower = Self { child, logs };
        follower.wait_for(opened);
        follower
    }

    /// Waits until the file that now has a path is open.
    fn wait_for(&self, path: &Path) {
        wait_until("the log is opened", || has_open(self.child.id(), path));
    }

    /// Bytes that it has read of all files.
    fn bytes_read(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/io", self.child.id()));
        let text = text.expect("it runs");
        let number = text.lines().find_map(|line| line.strip_prefix("rchar: "));
        number
            .and_then(|number| number.parse().ok())
            .expect("a number")
    }

    /// Ends it by a signal; returns its JSON and its messages.
    fn end_with_messages(mut self, signal: Signal) -> (Value, String) {
        assert!(process::signal(self.child.id(), signal));
        let status = self.child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0));
        let json = serde_json::from_str(&self.logs.0.read("map.json"));
        (json.expect("it is JSON"), self.logs.0.read("messages"))
    }

    /// Ends it by a signal; returns the number of requests.
    fn end(self, signal: Signal) -> u64 {
        figures(&self.end_with_messages(signal).0, "FR").0
    }
}

/// A test that fails leaves no process.
impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a process has the file open that now has a path.
fn has_open(pid: u32, path: &Path) -> bool {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    let entries = entries.into_iter().flatten().flatten();
    let mut targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.any(|target| target == path)
}

/// Requests from clients of their own until they are ended.
struct Load {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(port: u16) -> Self {
        let (stop, asked) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let client = |_| {
            let (stop, asked) = (Arc::clone(&stop), Arc::clone(&asked));
            std::thread::spawn(move || {
                let mut client = Client::connect(port);
                while !stop.load(Ordering::Relaxed) {
                    // Each line is another: bytes of a file identify it.
                    let number = asked.fetch_add(1, Ordering::Relaxed);
                    let target = format!("/index.html?{number}");
                    assert_eq!(client.get(&target).status, 200);
                }
            })
        };
        let clients = (0..2).map(client).collect();
        Self {
            stop,
            asked,
            clients,
        }
    }

    /// Waits for a number of requests from now on.
    fn goes_on(&self) {
        let before = self.asked.load(Ordering::Relaxed);
        wait_until("the load goes on", || {
            self.asked.load(Ordering::Relaxed) > before + 200
        });
    }

    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().expect("a client of the load ends");
        }
        self.asked.load(Ordering::Relaxed)
    }
}

/// Rotates the log of a server under load while it is followed; returns the numbers of followed lines, of requests, and of
/// lines in all files.
fn rotated(times: usize, directives: &str) -> (u64, u64, u64) {
    let mut server = Server::http(
        "access_log %%DIR%%/log/access.log;
         server { listen 127.0.0.1:%%PORT%%; root %%DIR%%/html; keepalive_requests 1000000; }",
    )
    .file("html/index.html", "")
    .file("log/access.log", "")
    .start();
    let (log, pid) = (server.path("log/access.log"), server.path("nginx.pid"));
    let rotation = format!(
        "{} {{\n rotate 50\n missingok\n compress\n {directives}\n postrotate\n kill -USR1 `cat {}`\n endscript\n}}\n",
        log.display(),
        pid.display()
    );
    server.dir().write("rotation", rotation);
    let follower = Follower::start(&["--format", "combined", &log.display().to_string()], &log);
    let load = Load::start(server.port());
    for _ in 0..times {
        let before = follower.bytes_read();
        load.goes_on();
        wait_until("the log is read", || follower.bytes_read() > before);
        let outcome = Command::new("logrotate")
            .args(["--force", "--state"])
            .args([server.path("state"), server.path("rotation")])
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .output()
            .expect("logrotate is there: .ci/setup installs it");
        assert!(outcome.status.success(), "{outcome:?}");
        wait_until("the server has opened its log anew", || {
            let workers = server.workers();
            !workers.is_empty() && workers.iter().all(|worker| has_open(*worker, &log))
        });
        // Two rotations between two looks would hide a file.
        follower.wait_for(&log);
    }
    load.goes_on();
    let asked = load.end();
    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0);
    let followed = follower.end(Signal::TERM);
    let script = format!("gzip -dcf {}* | wc -l", log.display());
    let output = Command::new("sh").args(["-c", &script]).output();
    let output = output.expect("there is a shell").stdout;
    let kept = String::from_utf8_lossy(&output).trim().parse();
    (followed, asked, kept.expect("wc prints a number"))
}

#[test]
fn a_log_that_is_renamed_while_followed_loses_nothing() {
    if !peer::is_firstbyte() {
        return;
    }
    let (followed, asked, kept) = rotated(5, "create\n delaycompress");
    assert_eq!((followed, kept), (asked, asked));
}

/// Further truncations are tested beside the reader. logrotate itself loses lines between copy and truncation; the follower has at least those that it keeps.
#[test]
fn a_log_that_is_truncated_while_followed_loses_nothing_that_is_kept() {
    if !peer::is_firstbyte() {
        return;
    }
    let (followed, asked, kept) = rotated(1, "copytruncate");
    assert!(
        (kept..=asked).contains(&followed),
        "{kept} {followed} {asked}"
    );
}

/// Each refresh rewrites the files, without a signal.
#[test]
fn followed_logs_are_reported_again_and_again() {
    if !peer::is_firstbyte() {
        return;
    }
    let logs = Logs::new();
    let log = logs.write("a.log", local(3));
    let path = Path::new(&log);
    let follower = Follower::start(&[&log], path);
    let requests = || {
        let json: Option<Value> = serde_json::from_str(&follower.logs.0.read("map.json")).ok();
        json.map_or(0, |json| figures(&json, "FR").0)
    };
    wait_until("the first report has three lines", || requests() == 3);
    let file = OpenOptions::new().append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(local(4).as_bytes()));
    written.expect("the log can be written");
    wait_until("the next report has all lines", || requests() == 7);
    assert_eq!(follower.end(Signal::INT), 7);
}

/// A server without visitors is no failure.
#[test]
fn followed_logs_without_a_line_are_no_failure() {
    if !peer::is_firstbyte() {
        return;
    }
    for text in ["", "damaged\n"] {
        let logs = Logs::new();
        let log = logs.write("a.log", text);
        let follower = Follower::start(&["--format", "combined", &log], Path::new(&log));
        let (json, told) = follower.end_with_messages(Signal::TERM);
        assert_eq!(json["countries"].as_array().map(Vec::len), Some(0));
        assert!(told.contains("no line can be used"), "{told}");
    }
}

/// As `head` does, a reader of the reports closes the pipe.
#[test]
fn a_closed_pipe_ends_it() {
    if !peer::is_firstbyte() {
        return;
    }
    let logs = Logs::new();
    let log = logs.write("a.log", local(3));
    let mut command = Command::new(peer::binary());
    command.args(["map", "--follow", "--geoip", &logs.path("geoip"), &log]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    drop(child.stdout.take());
    let mut status = None;
    wait_until("it ends", || {
        status = child.try_wait().expect("a child");
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(0));
}

/// Lines of clients in France.
fn local(count: usize) -> String {
    let line = LINE.replace("192.0.2.1", "127.0.0.1");
    format!("{line}\n").repeat(count)
}
