//! `firstbyte map LOG`: formats, compressed and damaged logs, standard input, signals.
//!
//! Single lines are tested beside the reader (`lab/src/map/log`), logs that rotate in `map_follow.rs`. nginx has none of this.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Output, Stdio};

use crate::map::{LINE, Logs, figures, lines};
use firstbyte_tests::client::request;
use firstbyte_tests::{Server, Signal, peer, process, run, wait_until};
use serde_json::Value;

/// The verb while it reads standard input; it prints JSON.
struct Reading(Option<Child>);

impl Reading {
    fn start(logs: &Logs, words: &[&str]) -> (Self, ChildStdin) {
        let mut command = Command::new(peer::binary());
        command.args(["map", "--json", "--geoip", &logs.path("geoip")]);
        command
            .args(words)
            .arg("-")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let input = child.stdin.take().expect("it is piped");
        (Self(Some(child)), input)
    }

    fn pid(&self) -> u32 {
        self.0.as_ref().expect("it runs").id()
    }

    /// Waits for the end of the process.
    fn output(mut self) -> Output {
        let child = self.0.take().expect("it runs");
        child.wait_with_output().expect("it ends")
    }
}

/// A test that fails leaves no process.
impl Drop for Reading {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A file compressed by a program.
fn packed(program: &str, text: &str) -> Option<Vec<u8>> {
    let piped = || Stdio::piped();
    let mut command = Command::new(program);
    let mut child = command
        .arg("-c")
        .stdin(piped())
        .stdout(piped())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take()?;
    let text = text.to_owned();
    let writing = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().ok()?;
    let written = writing.join().ok()?;
    (written.is_ok() && output.status.success()).then_some(output.stdout)
}

#[test]
fn formats_are_detected_named_and_given() {
    if !peer::is_firstbyte() {
        return;
    }
    let logs = Logs::new();
    let own = logs.write("own", "200|192.0.2.1|20000|1\n200|192.0.2.1|20000|2\n");
    let (json, _) = logs.json(&[
        "--format",
        "$status|$remote_addr|$tcpinfo_min_rtt|$connection_requests",
        &own,
    ]);
    assert_eq!(figures(&json, "DE"), (2, 1));
    assert_eq!(json["countries"][0]["median_ms"], 20.0);
    let combined = logs.write("combined", lines(5, ""));
    let (json, told) = logs.json(&[&combined]);
    assert_eq!(figures(&json, "DE"), (5, 0));
    assert!(
        told.contains("combined: the format \"combined\" is assumed"),
        "{told}"
    );
    assert!(told.contains("the log has no round-trip times"), "{told}");
    let rows = "{\"remote_addr\":\"192.0.2.1\",\"tcpinfo_min_rtt\":5000}\n".repeat(3);
    let rows = logs.write("rows", rows);
    for words in [&[&rows[..]][..], &["--format", "json", &rows]] {
        let (json, told) = logs.json(words);
        assert_eq!(figures(&json, "DE"), (3, 3));
        let why = "warning: the log has no $connection_requests";
        assert!(told.contains(why), "{told}");
    }
    let outcome = logs.map(&["--format", "main", &combined]);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.contains("no line can be used"),
        "{outcome:?}"
    );
    let outcome = logs.map(&[&own]);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome
            .stderr
            .contains("own: no known format with $remote_addr"),
        "{outcome:?}"
    );
}

#[test]
fn a_configuration_names_the_formats_of_its_logs() {
    if !peer::is_firstbyte() {
        return;
    }
    let logs = Logs::new();
    let conf = format!(
        "nonsense on; http {{ log_format a '$status ' '$remote_addr $tcpinfo_rtt'; log_format b '$remote_addr';
         server {{ access_log {0} a; access_log {0} b if=$x; access_log off; access_log {1}; }} }}",
        logs.path("one.log"),
        logs.path("two.log"),
    );
    let conf = logs.write("nginx.conf", conf);
    let one = logs.write("one.log.1", "200 192.0.2.1 500\n192.0.2.1\n");
    let two = logs.write("two.log-20261129", lines(3, ""));
    let (json, told) = logs.json(&["-c", &conf, &one, &two]);
    assert_eq!(figures(&json, "DE"), (5, 1));
    for word in [
        "one.log.1: the format is \"a\", by access_log in ",
        "nginx.conf:2",
        "the format is \"combined\"",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let other = logs.write("three.log", "");
    let outcome = logs.map(&["-c", &conf, &other]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("no access_log in "), "{outcome:?}");
    // A name of the configuration.
    let (json, _) = logs.json(&[
        "-c",
        &conf,
        "--format",
        "b",
        &logs.write("x", "192.0.2.1\n"),
    ]);
    assert_eq!(figures(&json, "DE"), (1, 0));
}

#[test]
fn compressed_logs_and_standard_input_are_read() {
    if !peer::is_firstbyte() {
        return;
    }
    let logs = Logs::new();
    let text = lines(20_000, " min_rtt=7000 requests=1");
    let gzip = packed("gzip", &text).expect("gzip is there: .ci/setup installs it");
    let zstd = packed("zstd", &text).expect("zstd is there: .ci/setup installs it");
    let all = [
        logs.write("plain", &text),
        logs.write("named-otherwise", &gzip),
        logs.write("c.zst", zstd),
    ];
    let words: Vec<&str> = all.iter().map(String::as_str).collect();
    let count = 20_000 * all.len() as u64;
    for threads in ["1", "2", "9"] {
        let words = [&["--threads", threads], &words[..]].concat();
        assert_eq!(figures(&logs.json(&words).0, "DE"), (count, count));
    }
    let (reading, mut input) = Reading::start(&logs, &[]);
    input.write_all(&gzip).expect("it reads");
    drop(input);
    let output = reading.output();
    let json: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(figures(&json, "DE"), (20_000, 20_000));
}

#[test]
fn damaged_lines_are_counted_and_the_rest_is_read() {
    if !peer::is_firstbyte() {
        return;
    }
    let logs = Logs::new();
    let long = "a".repeat(100_000);
    let text = format!(
        "{LINE}\r\n{LINE}\n\n192.0.2.1 - -\n\x00\x01\x1b[2J\n{}\n{long}\n{LINE}",
        LINE.replace("192.0.2.1", "192.0.2.999")
    );
    let log = logs.write("a.log", text);
    let (json, told) = logs.json(&["--format", "combined", &log]);
    assert_eq!(figures(&json, "DE"), (3, 0));
    let word = "a.log:4: it does not have the format: \"192.0.2.1 - -\"";
    assert!(
        told.contains("4 of 7 lines are damaged and were skipped"),
        "{told}"
    );
    assert!(told.contains(word) && !told.contains('\x1b'), "{told}");
    let warnings = json["warnings"].as_array().expect("a list");
    assert!(
        warnings
            .iter()
            .any(|one| one.as_str().is_some_and(|one| one.contains(word)))
    );
    // Files choose the words of this warning.
    let page = logs.path("a.html");
    let text = format!("<script>alert(1)</script>\n{LINE}\n");
    logs.json(&[
        "--html",
        &page,
        "--svg",
        &logs.path("a.svg"),
        &logs.write("b.log", text),
    ]);
    for name in ["a.html", "a.svg"] {
        let written = logs.0.read(name);
        assert!(
            written.contains("b.log:1: it does not have the format"),
            "{name}"
        );
        assert!(!written.contains("<script"), "{name}");
    }
    let gzip = packed("gzip", &lines(9999, "")).expect("gzip is there: .ci/setup installs it");
    let cut = logs.write("cut.gz", &gzip[..gzip.len() - 20]);
    let (json, told) = logs.json(&[&cut]);
    assert!(figures(&json, "DE").0 > 0);
    assert!(
        told.contains("cut.gz: it ends within a compressed block"),
        "{told}"
    );
}

#[test]
fn files_that_cannot_be_read_are_errors_with_their_names() {
    if !peer::is_firstbyte() {
        return;
    }
    let logs = Logs::new();
    let good = logs.write("good", lines(1, ""));
    let empty = logs.write("empty", "");
    let none = logs.path("none");
    for (words, why) in [
        (
            vec![good.as_str(), &none],
            "none: 2: No such file or directory",
        ),
        (vec!["/"], "cannot read /: it is a directory"),
        (vec![&empty], "no line can be used"),
        (vec!["-c", &none, &good], "none"),
        (
            vec!["--html", "/none/a.html", &good],
            "cannot write /none/a.html",
        ),
        (vec!["--format", "x", &good], "unknown format \"x\""),
    ] {
        let outcome = logs.map(&words);
        assert_eq!(outcome.code, 1, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(why), "{words:?}: {outcome:?}");
    }
    let outcome = run(["map", "--geoip", &none, &good]);
    assert!(
        outcome.code == 1 && outcome.stderr.contains(&none),
        "{outcome:?}"
    );
}

#[test]
fn logs_may_be_more_than_descriptors() {
    if !peer::is_firstbyte() {
        return;
    }
    let logs = Logs::new();
    let names: Vec<String> = (0..100)
        .map(|n| logs.write(&format!("{n}.log"), lines(1, "")))
        .collect();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 40; exec \"$@\"", "sh"]);
    command.arg(peer::binary()).args(["map", "--json"]);
    command.args(["--geoip", &logs.path("geoip")]).args(names);
    let output = command.output().expect("there is a shell");
    assert!(output.status.success(), "{output:?}");
    let json = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(figures(&json, "DE"), (100, 0));
}

#[test]
fn biased_times_are_warned_of_and_the_minimum_is_not() {
    if !peer::is_firstbyte() {
        return;
    }
    let logs = Logs::new();
    let smoothed = logs.write("a", lines(30, " rtt=204000 requests=1"));
    let (json, told) = logs.json(&[&smoothed]);
    assert_eq!(figures(&json, "DE"), (30, 30));
    for word in [
        "$tcpinfo_rtt, which is biased",
        "log_format min_rtt '$remote_addr",
        "log_format rtt '$remote_addr",
        "$tcpinfo_min_rtt",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let minimum = logs.write("b", lines(30, " min_rtt=50000 requests=1"));
    let (json, told) = logs.json(&[&minimum]);
    assert!(!told.contains("warning"), "{told}");
    assert_eq!(json["warnings"].as_array().map(Vec::len), Some(0));
}

#[test]
fn clients_behind_proxies_have_requests_and_no_times() {
    if !peer::is_firstbyte() {
        return;
    }
    let logs = Logs::new();
    let log = logs.write(
        "a",
        "127.0.0.1 500 \"10.9.8.7, 192.0.2.7, 10.0.0.1\"\n127.0.0.1 500 \"-\"\n",
    );
    let format = "$remote_addr $tcpinfo_min_rtt \"$http_x_forwarded_for\"";
    let (json, told) = logs.json(&["--format", format, "--client", "http_x_forwarded_for", &log]);
    assert_eq!(figures(&json, "DE"), (1, 0));
    assert!(told.contains("2 round-trip times were left out"), "{told}");
}

const HOSTILE: [&str; 9] = [
    "curl/8",
    "\" 5 1",
    "x\" 77 1",
    "\\\" 5 \\x22",
    "a\\",
    "[2J\t\u{e9}\u{202e}",
    "<script>alert(1)</script>",
    "{\"tcpinfo_min_rtt\":1,\"remote_addr\":\"192.0.2.1\"}",
    "\",\"rtt\":9,\"remote_addr\":\"192.0.2.1\",\"x\":\"",
];

/// Each request has a line in a log of each escaping, and a line of its numbers alone.
#[test]
fn logs_of_the_server_are_read_as_they_were_written() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(
        "log_format plain '$remote_addr \"$http_user_agent\" $tcpinfo_min_rtt $connection_requests';
         log_format bare escape=none '$remote_addr \"$http_user_agent\" $tcpinfo_min_rtt $connection_requests';
         log_format objects escape=json '{\"ua\":\"$http_user_agent\",\"remote_addr\":\"$remote_addr\",'
             '\"tcpinfo_min_rtt\":$tcpinfo_min_rtt,\"connection_requests\":$connection_requests}';
         log_format numbers '$remote_addr $tcpinfo_min_rtt $connection_requests';
         server {
             listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
             access_log %%DIR%%/plain.log plain; access_log %%DIR%%/bare.log bare;
             access_log %%DIR%%/objects.log objects; access_log %%DIR%%/numbers.log numbers;
             access_log %%DIR%%/combined.log;
         }",
    )
    .file("html/index.html", "x")
    .start();
    for agent in HOSTILE {
        let mut client = server.client();
        for _ in 0..3 {
            client.send(request("GET", "/", &[&format!("User-Agent: {agent}")]));
            assert_eq!(client.response().status, 200);
        }
    }
    let count = 3 * HOSTILE.len() as u64;
    wait_until("all lines are written", || {
        ["plain", "bare", "objects", "numbers", "combined"]
            .map(|name| server.dir().read(&format!("{name}.log")).lines().count() as u64)
            .iter()
            .all(|lines| *lines == count)
    });
    let logs = Logs::new();
    let path = |name: &str| server.path(name).display().to_string();
    let conf = path("nginx.conf");
    let numbers = logs.json(&["-c", &conf, &path("numbers.log")]).0;
    assert_eq!(figures(&numbers, "FR"), (count, HOSTILE.len() as u64));
    for name in ["plain.log", "bare.log", "objects.log"] {
        let (json, told) = logs.json(&["-c", &conf, &path(name)]);
        assert!(!told.contains("damaged"), "{name}: {told}");
        assert_eq!(figures(&json, "FR"), figures(&numbers, "FR"), "{name}");
        assert_eq!(
            json["countries"].as_array().map(Vec::len),
            Some(1),
            "{name}"
        );
    }
    // Without a format, by names.
    let (json, _) = logs.json(&[&path("objects.log")]);
    assert_eq!(figures(&json, "FR"), figures(&numbers, "FR"));
    let (json, told) = logs.json(&["-c", &conf, &path("combined.log")]);
    assert_eq!(figures(&json, "FR"), (count, 0), "{told}");
}

#[test]
fn signals_end_the_reading() {
    if !peer::is_firstbyte() {
        return;
    }
    let logs = Logs::new();
    for signal in [Signal::INT, Signal::TERM] {
        let (reading, mut input) = Reading::start(&logs, &["--format", "combined"]);
        input.write_all(lines(10, "").as_bytes()).expect("it reads");
        // It has read when it waits for more: the pipe is empty.
        wait_until("the lines are read", || {
            rustix::io::ioctl_fionread(&input).is_ok_and(|bytes| bytes == 0)
        });
        assert!(process::signal(reading.pid(), signal));
        let output = reading.output();
        assert_eq!(output.status.code(), Some(130));
        let json: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        assert_eq!(figures(&json, "DE"), (10, 0));
        drop(input);
    }
}
