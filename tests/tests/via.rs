//! `firstbyte via`: a command behind a link, servers at its other end, statuses, figures, packets, a user without rights.
//!
//! Interruptions are in `via_ends.rs`. Each test is skipped with a message if links are not possible: they need root,
//! /dev/net/tun and the `ip` command, and most need curl. `LINK_SECONDS=60` makes measurements long. Own executable: rates
//! and delays of links are measured.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use firstbyte_tests::dir::set_mode;
use firstbyte_tests::skip::skip_outside_ci;
use firstbyte_tests::via::{NO_LINK, possible, skipped};
use firstbyte_tests::wait::DEADLINE;
use firstbyte_tests::{Server, TempDir, peer, run};
use serde_json::Value;

/// Whether there is curl, too.
fn possible_with_curl() -> bool {
    let found = Command::new("curl").arg("--version").output();
    possible() && (found.is_ok() || skipped("there is no curl"))
}

/// Duration of measurements.
fn seconds() -> u64 {
    let asked = std::env::var("LINK_SECONDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(2)
}

fn via(words: &[&str]) -> Output {
    let mut command = Command::new(peer::binary());
    let command = command.arg("via").args(words).stdin(Stdio::null());
    command.output().expect("the binary under test starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Output of curl for a URL: time of the connection, and the response's code.
const CURL: &str =
    "curl --silent --show-error --output /dev/null --write-out '%{http_code} %{time_connect}' ";

/// Holds curl's words to a round trip, ms.
#[track_caller]
fn assert_connected(words: &str, round_trip_ms: f64) {
    let (code, time) = words.split_once(' ').expect("two words");
    let time_ms = time.trim().parse::<f64>().expect("seconds") * 1e3;
    assert_eq!(code, "200");
    // A connection is one round trip; a machine that is busy with other tests adds to it.
    let in_reach = round_trip_ms..round_trip_ms + 200.0;
    assert!(in_reach.contains(&time_ms), "{time_ms} ms");
}

#[test]
fn servers_of_this_machine_are_reached_over_the_link() {
    if !possible_with_curl() {
        return;
    }
    let server = Server::http("server { listen 127.0.0.1:%%PORT%%; return 200 ok; }").start();
    let script = format!("{CURL} http://localhost:{}/", server.port());
    let output = via(&["50ms", "--", "sh", "-c", &script]);
    assert_connected(&stdout(&output), 50.0);
    assert!(
        stderr(&output).starts_with("link: 50ms,seed="),
        "{output:?}"
    );
    server.stop();
}

/// Minimal images have none of these files.
#[test]
fn names_of_protocols_services_and_tables_are_not_needed() {
    if !possible_with_curl() {
        return;
    }
    let hidden = "for file in /etc/protocols /etc/services; do \
        [ ! -e $file ] || mount --bind /dev/null $file || exit 77; done; \
        for folder in /etc/iproute2 /usr/share/iproute2; do \
        [ ! -d $folder ] || mount -t tmpfs tmpfs $folder || exit 77; done; exec \"$@\"";
    let server = Server::http("server { listen 127.0.0.1:%%PORT%%; return 200 ok; }").start();
    let curl = format!("{CURL} http://localhost:{}/", server.port());
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", hidden, "sh"])
        .arg(peer::binary())
        .args(["via", "50ms", "--", "sh", "-c", &curl])
        .stdin(Stdio::null())
        .output()
        .expect("unshare is of util-linux");
    if output.status.code() == Some(77) {
        skipped("files cannot be hidden here");
    } else {
        assert_connected(&stdout(&output), 50.0);
    }
    server.stop();
}

#[test]
fn high_ports_of_localhost_are_the_commands_own_unless_they_are_named() {
    if !possible_with_curl() {
        return;
    }
    // The system's ephemeral ports begin at 32768.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    if port < 32_768 {
        skipped("this system gives other ports than those from 32768 on");
        return;
    }
    let script = format!("{CURL} http://localhost:{port}/");
    let output = via(&["1ms", "--quiet", "--", "sh", "-c", &script]);
    assert!(stderr(&output).contains("Failed to connect"), "{output:?}");
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        std::io::copy(&mut stream, &mut std::io::sink())
    });
    let option = format!("--port={port}");
    let output = via(&["30ms", &option, "--quiet", "--", "sh", "-c", &script]);
    assert_connected(&stdout(&output), 30.0);
    let ended = served.join().expect("it does not panic");
    ended.expect("the end of the connection comes");
}

#[test]
fn servers_in_a_network_of_their_own_are_reached_by_name() {
    if !possible_with_curl() {
        return;
    }
    let dir = TempDir::new();
    dir.write(
        "nginx.conf",
        "daemon off; pid nginx.pid; error_log stderr; events { }
         http { access_log off; server { listen 80; return 200 ok; } }",
    );
    let (binary, path) = (peer::binary(), dir.path().display());
    let server = format!(
        "exec {} -p {path}/ -c nginx.conf -e stderr",
        binary.display()
    );
    let report = dir.path().join("via.json");
    let script = format!(
        "{CURL} http://server.via/ && echo && {CURL} http://$FIRSTBYTE_VIA_SERVER/ && echo && {CURL} localhost"
    );
    let output = via(&[
        "40ms,delack=200ms,seed=7",
        "--server",
        &server,
        "--json",
        &report.display().to_string(),
        "--quiet",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    let said = stdout(&output);
    assert_eq!(said.lines().count(), 3, "{output:?}");
    said.lines().for_each(|line| assert_connected(line, 40.0));
    assert_eq!(stderr(&output), "");
    let report: Value = serde_json::from_str(&dir.read("via.json")).expect("JSON");
    assert_eq!(report["format"], "firstbyte-via/1");
    assert_eq!(report["link"], "40ms,delack=200ms,seed=7");
    assert_eq!((&report["seed"], &report["status"]), (&7.into(), &0.into()));
    assert_eq!(report["servers"][0], server);
    assert_eq!(report["command"][0], "sh");
    for way in ["to_server", "to_client"] {
        assert!(report[way]["packets"].as_u64() >= Some(9), "{report}");
        assert_eq!(report[way]["lost"], 0);
    }
    assert_eq!(report["late"]["limit_us"], 1000);
    let allowed = OpenOptions::new().write(true).open("/dev/cpu_dma_latency");
    assert_eq!(report["late"]["cpus_awake"], allowed.is_ok());
    assert_eq!(report["notes"], serde_json::json!([]));
}

#[test]
fn status_is_that_of_the_command() {
    if !possible() {
        return;
    }
    for (words, status) in [
        (&["sh", "-c", "exit 7"][..], 7),
        (&["sh", "-c", "kill -TERM $$"], 128 + 15),
        (&["/nonexistent/command"], 127),
        (&["/etc/passwd"], 126),
    ] {
        let output = via(&[&["1ms", "--quiet", "--"], words].concat());
        assert_eq!(output.status.code(), Some(status), "{output:?}");
    }
}

#[test]
fn what_is_wrong_is_said_before_anything_is_started() {
    if !peer::is_firstbyte() {
        return;
    }
    let refused = |words: &[&str]| {
        let outcome = run(["via"].iter().chain(words));
        assert_eq!(outcome.code, NO_LINK, "{words:?}");
        outcome.stderr
    };
    let said = refused(&["50ms,loss=101%", "--", "true"]);
    let expected = "\"loss=101%\" at character 6: a loss is 0% to 100%\n";
    assert!(said.contains(expected), "{said}");
    assert!(refused(&["50ms"]).contains("<COMMAND>..."));
    let help = run(["via", "-h"]);
    assert!(help.code == 0 && help.stdout.contains("--server <COMMAND>"));
    if !possible() {
        return;
    }
    let said = refused(&["1ms", "--server", "exit 3", "--", "true"]);
    assert!(
        said.contains("the server \"exit 3\" ended before it listened"),
        "{said}"
    );
    let said = refused(&["1ms", "--pcap", "/nonexistent/p", "--", "true"]);
    assert!(said.contains("/nonexistent/p: 2: No such file"), "{said}");
}

#[test]
fn a_user_without_rights_has_links_between_namespaces() {
    if !possible_with_curl() {
        return;
    }
    let dir = TempDir::new();
    let folder = dir.path();
    let binary = folder.join("firstbyte");
    fs::copy(peer::binary(), &binary).expect("a copy that everybody may run");
    set_mode(&binary, 0o755);
    dir.write(
        "nginx.conf",
        "daemon off; pid run/nginx.pid; error_log stderr; events { }
         http { access_log off; server { listen 80; return 200 ok; } }",
    );
    for name in ["mount", "run"] {
        fs::create_dir(folder.join(name)).expect("a folder");
    }
    set_mode(&folder.join("run"), 0o777);
    let shown = folder.display();
    let server = format!("exec {shown}/firstbyte -p {shown}/ -c nginx.conf -e stderr");
    // /dev/net/tun is everybody's on most systems; here it becomes so for this command alone.
    let allowed = "mount -t tmpfs tun \"$0\" && mknod -m 666 \"$0/tun\" c 10 200 && \
                   mount --bind \"$0/tun\" /dev/net/tun && exec \"$@\"";
    let as_nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let attempt = |prepare: &str, words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", prepare]);
        command.arg(folder.join("mount")).args(as_nobody);
        let command = command.arg(&binary).arg("via").args(words);
        command.output().expect("unshare starts")
    };
    let script = format!("id -u; grep CapEff /proc/self/status; {CURL} http://server.via/");
    let words = [
        "20ms", "--quiet", "--server", &server, "--", "sh", "-c", &script,
    ];
    let output = attempt(allowed, &words);
    if stderr(&output).contains("user namespaces") {
        skipped(&stderr(&output));
        return;
    }
    let said = stdout(&output);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[..2],
        ["65534", "CapEff:\t0000000000000000"],
        "{output:?}"
    );
    assert_connected(lines[2], 20.0);
    let output = attempt(allowed, &["20ms", "--", "true"]);
    assert_eq!(output.status.code(), Some(NO_LINK));
    assert!(
        stderr(&output).contains("needs root (CAP_SYS_ADMIN"),
        "{output:?}"
    );
    let closed = allowed.replace("666", "600");
    let output = attempt(&closed, &words);
    assert_eq!(output.status.code(), Some(NO_LINK));
    assert!(
        stderr(&output).contains("/dev/net/tun may not be opened"),
        "{output:?}"
    );
}

/// A pcap file's packets: times, nanoseconds, and bytes.
fn packets(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let bytes = fs::read(path).expect("it was written");
    let number = |at: usize| {
        let four = bytes[at..at + 4].try_into().expect("four bytes");
        u32::from_le_bytes(four)
    };
    assert_eq!((number(0), number(20)), (0xa1b2_3c4d, 101));
    let (mut at, mut found) = (24, Vec::new());
    while at < bytes.len() {
        let time = u64::from(number(at)) * 1_000_000_000 + u64::from(number(at + 4));
        let length = number(at + 8) as usize;
        found.push((time, bytes[at + 16..at + 16 + length].to_vec()));
        at += 16 + length;
    }
    found
}

/// The port of the server that a packet of TCP belongs to: the lower of its two.
fn port_of(packet: &[u8]) -> u16 {
    let port = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    port(20).min(port(22))
}

#[test]
fn packets_are_captured_as_they_leave() {
    if !possible_with_curl() {
        return;
    }
    let server = Server::http("server { listen 127.0.0.1:%%PORT%%; return 200 ok; }").start();
    let dir = TempDir::new();
    let file = dir.path().join("link.pcap");
    let name = file.display().to_string();
    let script = format!("{CURL} http://localhost:{}/", server.port());
    let words = [
        "30ms", "--pcap", &name, "--quiet", "--", "sh", "-c", &script,
    ];
    let output = via(&words);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut packets = packets(&file);
    let all = packets.len();
    // This machine may still close connections of an earlier link.
    packets.retain(|(_, packet)| port_of(packet) == server.port());
    let flags: Vec<u8> = packets
        .iter()
        .map(|(_, packet)| packet[33] & 0x3f)
        .collect();
    // SYN; SYN and ACK; ACK; the request.
    assert_eq!(flags[..4], [0x02, 0x12, 0x10, 0x18], "{flags:02x?}");
    // Each leaves the link half a round trip after it came.
    let between_ms = (packets[1].0 - packets[0].0) as f64 / 1e6;
    assert!((15.0..25.0).contains(&between_ms), "{between_ms} ms");
    server.stop();
    let Ok(read) = Command::new("tcpdump").args(["-n", "-r", &name]).output() else {
        return skip_outside_ci("tcpdump is not installed");
    };
    let printed = stdout(&read);
    assert!(
        printed.contains("Flags [S]") && printed.contains("Flags [P.]"),
        "{read:?}"
    );
    assert_eq!(printed.lines().count(), all, "{printed}");
}

#[test]
fn unshaped_link_is_fast() {
    if !possible_with_curl() {
        return;
    }
    let long = seconds() >= 60;
    let bytes: u64 = if long { 6_000_000_000 } else { 200_000_000 };
    let server = Server::http("server { listen 127.0.0.1:%%PORT%%; root %%DIR%%; }")
        .zeros("file", bytes)
        .start();
    let script = format!(
        "curl --silent --show-error --output /dev/null --write-out '%{{size_download}} %{{speed_download}}' \
         http://localhost:{}/file",
        server.port()
    );
    let fetch = |round_trip: &str| {
        let output = via(&[round_trip, "--", "sh", "-c", &script]);
        let said = stdout(&output);
        let (size, speed) = said.split_once(' ').expect("two numbers");
        assert_eq!(size.parse(), Ok(bytes), "{output:?}");
        let gigabits = speed.parse::<f64>().expect("bytes a second") * 8e-9;
        if long {
            println!("{round_trip}: {gigabits:.2} Gbit/s; {}", stderr(&output));
        }
        gigabits
    };
    let least = if long { 1.0 } else { 0.2 };
    for round_trip in ["0ms", "1ms"] {
        // One of three, because server, client and link share the CPUs with whatever else runs.
        let mut found = Vec::new();
        while found.len() < 3 && found.last().is_none_or(|gigabits| *gigabits < least) {
            found.push(fetch(round_trip));
        }
        let best = found.last().is_some_and(|gigabits| *gigabits >= least);
        assert!(best, "{found:?} Gbit/s at {round_trip}");
    }
    server.stop();
}
