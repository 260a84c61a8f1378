//! `firstbyte via` when it is interrupted or killed: signals reach the command, and nothing is left behind.
//!
//! Skipped with a message if links are not possible: see `firstbyte_tests::via`. Own executable: no other test may have a
//! link.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use firstbyte_tests::via::possible;
use firstbyte_tests::{Signal, peer, process, wait_until};

/// The network devices of links, each with the number that it alone has ever had.
fn devices() -> Vec<(String, String)> {
    let folders = fs::read_dir("/sys/class/net").expect("/sys is mounted");
    let names = folders
        .flatten()
        .map(|folder| folder.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| name.starts_with("via"))
        .filter_map(|name| {
            let number = fs::read_to_string(format!("/sys/class/net/{name}/ifindex")).ok()?;
            Some((name, number))
        })
        .collect()
}

/// The child, its children, and theirs.
fn family(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        found.extend(process::children(*pid));
        at += 1;
    }
    found
}

fn ready(child: &mut Child) -> (String, BufReader<ChildStdout>) {
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line comes");
    (line, lines)
}

/// The namespaces of a network that `ip netns` would list.
fn named_namespaces() -> usize {
    fs::read_dir("/run/netns").map_or(0, Iterator::count)
}

/// The command, with default handling of signals: the process that runs the tests may ignore some, and ignored ones are
/// inherited.
fn via() -> Command {
    let mut command = Command::new("env");
    command
        .arg("--default-signal")
        .arg(peer::binary())
        .arg("via");
    command
}

#[test]
fn interruption_leaves_nothing_behind() {
    if !possible() {
        return;
    }
    // One child in a session of its own, so that no group of processes has them all.
    let script = "setsid sleep 1000 & sleep 1000 & echo ready $FIRSTBYTE_VIA_SERVER; wait";
    let named = named_namespaces();
    for (signal, status) in [
        (Signal::INT, Some(128 + 2)),
        (Signal::TERM, Some(128 + 15)),
        (Signal::KILL, None),
    ] {
        let mut child = via()
            .args(["20ms,20mbit", "--", "sh", "-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary under test starts");
        let (line, _lines) = ready(&mut child);
        let address = line.trim().strip_prefix("ready ").expect("it is ready");
        let mut processes = family(child.id());
        wait_until("all processes run", || {
            processes = family(child.id());
            processes.len() == 5
        });
        let inside = processes.iter().rev();
        let inside = inside.filter_map(|pid| fs::read_link(format!("/proc/{pid}/ns/net")).ok());
        let inside = inside.map(|name| name.display().to_string()).next();
        let address_is_there = || {
            let table = fs::read_to_string("/proc/net/fib_trie").expect("/proc is mounted");
            table.contains(&format!(" {address}\n"))
        };
        assert!(address_is_there(), "{address}");
        let before = devices();
        assert!(!before.is_empty());
        assert!(process::signal(child.id(), signal));
        let ended = child.wait().expect("it ends");
        assert_eq!(ended.code(), status, "{signal:?}");
        wait_until("no process is left", || {
            processes.iter().all(|pid| !process::is_alive(*pid))
        });
        // Other tests have links meanwhile; of those that were there one has to go.
        wait_until("the device is gone", || {
            let now = devices();
            before.iter().any(|device| !now.contains(device))
        });
        wait_until("nobody is in the namespace", || !in_use(&inside));
        assert_eq!(named_namespaces(), named);
    }
}

/// Whether a process is in this network namespace.
fn in_use(namespace: &Option<String>) -> bool {
    let folders = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let mut found = folders.filter_map(|folder| fs::read_link(folder.path().join("ns/net")).ok());
    found.any(|name| Some(name.display().to_string()) == *namespace)
}

#[test]
fn signals_reach_the_command() {
    if !possible() {
        return;
    }
    let script = "trap 'echo hup' HUP; trap 'echo usr1; exit 9' USR1; echo ready; while :; do sleep 0.01; done";
    let mut child = via()
        .args(["1ms", "--quiet", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary under test starts");
    let (line, mut lines) = ready(&mut child);
    assert_eq!(line, "ready\n");
    for (signal, said) in [(Signal::HUP, "hup\n"), (Signal::USR1, "usr1\n")] {
        process::signal(child.id(), signal);
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line comes");
        assert_eq!(line, said);
    }
    let ended = child.wait().expect("it ends");
    assert_eq!(ended.code(), Some(9));
}

#[test]
fn a_link_that_somebody_cuts_leaves_the_command_its_status() {
    if !possible() {
        return;
    }
    let script = "echo ready $FIRSTBYTE_VIA_SERVER; read line; exit 3";
    let mut child = via()
        .args(["1ms", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary under test starts");
    let (line, _lines) = ready(&mut child);
    let address = line.trim().strip_prefix("ready ").expect("it is ready");
    let shown = Command::new("ip")
        .args(["-oneline", "address", "show", "to", address])
        .output()
        .expect("ip starts");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let device = shown.split_whitespace().nth(1).expect("a device");
    assert!(device.starts_with("via"), "{shown}");
    let cut = Command::new("ip").args(["link", "delete", device]).status();
    assert!(cut.is_ok_and(|status| status.success()));
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the link was cut"), "{said}");
}
