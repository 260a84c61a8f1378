//! Visits that fail: pages that hang, invalid servers, browsers that exit; none leaves a process or a file.
//!
//! Each visit runs in a process of its own with a temporary directory of its own, so that its files and processes are
//! known. No test checks times that a busy machine changes, so visits run concurrently.

mod browser;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use browser::is_installed;
use firstbyte_tests::backend::{Backend, answer};
use firstbyte_tests::port::Port;
use firstbyte_tests::process::{is_alive, signal};
use firstbyte_tests::{Signal, TempDir, wait_until};
use lab::browser::{Options, visits};
use serde_json::{Value, json};

/// The variable with the options of a visit in another process, JSON.
const ASKED: &str = "FIRSTBYTE_TEST_VISIT";
/// How its lines begin.
const TOLD: &str = "visit: ";

/// Runs a visit for another test, which starts this process.
#[test]
fn asked_for_by_another_test() {
    let Ok(asked) = std::env::var(ASKED) else {
        return;
    };
    let asked: Value = serde_json::from_str(&asked).expect("by this file");
    let text = |name: &str| asked[name].as_str().map(str::to_owned);
    let mut options = Options::new(&text("url").expect("there is one"));
    options.timeout = Duration::from_millis(asked["timeout_ms"].as_u64().unwrap_or(30_000));
    options.after_load = Duration::from_millis(asked["after_load_ms"].as_u64().unwrap_or(2000));
    options.browser = text("browser").map(Into::into);
    let stops = asked["stops"].as_bool().unwrap_or(false);
    let mut begun = false;
    let result = visits(&options, &mut |step| {
        if step.resources > 0 && !begun {
            println!("\n{TOLD}{}", json!({"begun": true}));
            begun = true;
        }
        !(stops && begun)
    });
    let told = match result {
        Err(why) => json!({"error": why}),
        Ok(runs) => {
            let visit = &runs[0].cold;
            let one = |one: &lab::page::Resource| json!({"url": one.url, "status": one.status, "error": one.error, "end_ms": one.end_ms(), "wait_ms": one.phases.wait_ms});
            let all: Vec<Value> = visit.resources.iter().map(one).collect();
            json!({"resources": all, "notes": visit.notes, "load_ms": visit.timings.load_ms})
        }
    };
    println!("\n{TOLD}{told}");
}

/// A visit in a process of its own.
struct Visiting {
    dir: TempDir,
    child: Child,
    lines: Box<dyn Iterator<Item = Value>>,
}

impl Visiting {
    fn start(asked: &Value) -> Self {
        let dir = TempDir::new();
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "asked_for_by_another_test", "--nocapture"])
            .env(ASKED, asked.to_string())
            .env("TMPDIR", dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = child.stdout.take().expect("a pipe");
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        let told =
            |line: String| Some(serde_json::from_str(line.strip_prefix(TOLD)?).expect("JSON"));
        Self {
            dir,
            child,
            lines: Box::new(lines.filter_map(told)),
        }
    }

    /// Waits for the request of the page.
    fn begun(&mut self) {
        let told = self.lines.next().expect("it tells of its begin");
        assert_eq!(told, json!({"begun": true}));
    }

    /// The first process of its browser.
    #[track_caller]
    fn browser(&self) -> u32 {
        let children = firstbyte_tests::process::children(self.child.id());
        let [browser] = children[..] else {
            panic!("{children:?}")
        };
        browser
    }

    /// The result, after a check that nothing of the visit is left.
    #[track_caller]
    fn result(mut self) -> Value {
        let told = self.lines.find(|told| told["begun"].is_null());
        let told = told.expect("it tells of its end");
        // Looked at while the process that visited may still run: the visit itself must have cleaned up.
        let left = processes(self.dir.path());
        assert!(left.is_empty(), "{left:?} of {told}");
        let files: Vec<_> = fs::read_dir(self.dir.path())
            .expect("ours")
            .flatten()
            .collect();
        assert!(files.is_empty(), "{files:?} of {told}");
        assert!(self.child.wait().expect("a child").success());
        told
    }
}

impl Drop for Visiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processes that have a directory among their arguments and run.
fn processes(dir: &Path) -> Vec<u32> {
    let dir = dir.display().to_string();
    let entries = fs::read_dir("/proc")
        .expect("there are processes")
        .flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_of = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&dir)
    };
    pids.filter(is_of).filter(|pid| is_alive(*pid)).collect()
}

/// A server that takes connections and never answers.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("bound").port();
    (listener, format!("http://127.0.0.1:{port}"))
}

fn page(body: &str) -> Backend {
    let page = format!("<!doctype html><title>t</title><link rel=icon href=data:,>{body}");
    Backend::answering(move |_| answer("200 OK", &["Content-Type: text/html"], &page))
}

#[test]
fn page_that_never_answers_is_an_error_at_the_timeout() {
    if !is_installed() {
        return;
    }
    let (_listener, url) = silent();
    let to = format!("Location: {url}/x");
    let led = Backend::answering(move |_| answer("302 Found", &[&to], ""));
    for (asked, silent) in [
        (format!("{url}/"), format!("{url}/")),
        (format!("http://{}/", led.name()), format!("{url}/x")),
    ] {
        let told = Visiting::start(&json!({"url": asked, "timeout_ms": 1000})).result();
        assert_eq!(told["error"], format!("{silent}: no response within 1 s"));
    }
}

#[test]
fn resource_that_hangs_is_recorded_until_the_end_of_the_visit() {
    if !is_installed() {
        return;
    }
    let (_listener, hanging) = silent();
    let script =
        format!("<p>text<script>onload = () => fetch('{hanging}/x', {{mode: 'no-cors'}})</script>");
    let backend = page(&script);
    let told = Visiting::start(&json!({"url": format!("http://{}/", backend.name())})).result();
    let all = told["resources"].as_array().expect("it came to an end");
    let hung = all.iter().find(|one| one["url"] == format!("{hanging}/x"));
    let hung = hung.unwrap_or_else(|| panic!("{told}"));
    assert_eq!(hung["error"], "unfinished at the end of the visit");
    assert!(
        hung["wait_ms"].as_f64().is_some_and(|ms| ms > 500.0),
        "it waited for the server: {told}"
    );
    assert!(told["load_ms"].is_number(), "{told}");
    let note = told["notes"].to_string();
    assert!(
        note.contains("stopped 2 s after the load event; 1 requests"),
        "{note}"
    );
}

#[test]
fn what_is_no_page_is_an_error() {
    if !is_installed() {
        return;
    }
    let nonsense = Backend::saying("220 mail.example ESMTP\r\n".repeat(50));
    let closing = Backend::saying("");
    let empty = Backend::saying("HTTP/1.1 204 No Content\r\n\r\n");
    let closed = Port::reserve();
    let refusing = format!("http://127.0.0.1:{}", closed.number());
    for (url, why) in [
        (
            format!("http://{}/", nonsense.name()),
            "the response is not HTTP",
        ),
        (
            format!("http://{}/", closing.name()),
            "the server closed the connection",
        ),
        (refusing, "the connection was refused"),
        ("http://name.invalid/".to_owned(), "the name has no address"),
        (
            "http://127.0.0.1:1/".to_owned(),
            "browsers do not connect to this port",
        ),
        (
            format!("http://{}/", empty.name()),
            "the response is a download, or has no content",
        ),
    ] {
        let told = Visiting::start(&json!({"url": url})).result();
        let error = told["error"]
            .as_str()
            .unwrap_or_else(|| panic!("{url}: {told}"));
        assert!(error.starts_with(&url) && error.contains(why), "{error}");
    }
}

#[test]
fn body_that_breaks_off_is_noted() {
    if !is_installed() {
        return;
    }
    let backend = Backend::saying(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 500\r\n\r\n<p>text",
    );
    let told = Visiting::start(&json!({"url": format!("http://{}/", backend.name())})).result();
    let note = told["notes"].to_string();
    assert!(note.contains("is incomplete"), "{told}");
    assert!(
        !note.contains("was stopped"),
        "nothing was waited for: {told}"
    );
}

#[test]
fn dialogs_do_not_stop_a_page() {
    if !is_installed() {
        return;
    }
    let backend = page("<script>alert('wait'); confirm('wait'); prompt('wait')</script><p>text");
    let told = Visiting::start(&json!({"url": format!("http://{}/", backend.name())})).result();
    assert!(told["load_ms"].is_number(), "{told}");
}

#[test]
fn visit_that_is_stopped_leaves_nothing() {
    if !is_installed() {
        return;
    }
    let (_listener, url) = silent();
    let told = Visiting::start(&json!({"url": url, "stops": true})).result();
    assert_eq!(told["error"], "interrupted");
}

#[test]
fn browser_that_is_killed_is_an_error() {
    if !is_installed() {
        return;
    }
    let (_listener, url) = silent();
    let mut visiting = Visiting::start(&json!({"url": url}));
    visiting.begun();
    assert!(signal(visiting.browser(), Signal::KILL));
    let told = visiting.result();
    let error = told["error"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert!(error.starts_with("the browser has exited"), "{error}");
}

#[test]
fn page_whose_process_is_killed_is_an_error() {
    if !is_installed() {
        return;
    }
    let (_listener, url) = silent();
    let mut visiting = Visiting::start(&json!({"url": url}));
    visiting.begun();
    let is_of_page = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("--type=renderer")
    };
    let mut of_pages = processes(visiting.dir.path());
    of_pages.retain(is_of_page);
    assert!(!of_pages.is_empty());
    for pid in of_pages {
        signal(pid, Signal::KILL);
    }
    let told = visiting.result();
    assert_eq!(told["error"], "the page's process has crashed");
}

#[test]
fn browser_dies_with_the_process_that_visits() {
    if !is_installed() {
        return;
    }
    let (_listener, url) = silent();
    let mut visiting = Visiting::start(&json!({"url": url}));
    visiting.begun();
    assert!(
        processes(visiting.dir.path()).len() > 3,
        "its processes are seen"
    );
    // One that hangs does not see the end of its pipe.
    assert!(signal(visiting.browser(), Signal::STOP));
    assert!(signal(visiting.child.id(), Signal::KILL));
    wait_until("the browser is gone", || {
        processes(visiting.dir.path()).is_empty()
    });
}

#[test]
fn programs_that_are_no_browsers_are_told() {
    if !is_installed() {
        return;
    }
    let dir = TempDir::new();
    for (script, why) in [
        (
            "echo no display >&2; exit 1",
            "the browser has exited: no display",
        ),
        (
            "printf 'hello\\0' >&4; sleep 5",
            "does not speak the DevTools protocol",
        ),
        (
            "printf '{}\\0' >&4; exec 4>&-; sleep 5",
            "the browser has exited",
        ),
    ] {
        dir.write("browser", format!("#!/bin/sh\n{script}\n"));
        let program = dir.path().join("browser");
        firstbyte_tests::dir::set_mode(&program, 0o755);
        let asked = json!({"url": "http://127.0.0.1:9/", "browser": program.display().to_string()});
        let told = Visiting::start(&asked).result();
        let error = told["error"].as_str().unwrap_or_else(|| panic!("{told}"));
        assert!(error.contains(why), "{script}: {error}");
    }
}

/// A server that takes connections in a thread, so that a browser that connects several times is not refused.
#[test]
fn body_without_end_ends_at_the_timeout() {
    if !is_installed() {
        return;
    }
    let (listener, url) = silent();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || endless(stream));
        }
    });
    let told = Visiting::start(&json!({"url": url, "timeout_ms": 3000})).result();
    let all = told["resources"]
        .as_array()
        .unwrap_or_else(|| panic!("{told}"));
    assert_eq!(all[0]["status"], 200);
    assert_eq!(all[0]["error"], "unfinished at the end of the visit");
}

fn endless(mut stream: TcpStream) {
    use std::io::Write;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<!doctype html><p>";
    let mut sent = stream.write_all(head.as_bytes());
    while sent.is_ok() {
        sent = stream.write_all(b"for ever ");
        firstbyte_tests::wait::pause(Duration::from_millis(1));
    }
}
