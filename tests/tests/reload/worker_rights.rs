//! Rights of the worker: no more than its user's.
//!
//! Source: nginx documentation, `user`; prctl(2), setgroups(2), user_namespaces(7).

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use firstbyte_tests::skip::skip;
use firstbyte_tests::wait::{DEADLINE, holds_within};
use firstbyte_tests::{Builder, Server, Signal, peer, process, wait_until};

/// The user `nobody`, as whom the worker runs in the tests of root.
const NOBODY: u32 = 65_534;

fn site(main: &str, http: &str) -> Builder {
    let http = format!(
        "{http} server {{ listen 127.0.0.1:%%PORT%%; location = /generation {{ return 200 g1; }} location / {{ return 204; }} }}"
    );
    Server::http_with(main, &http)
}

#[test]
fn the_worker_gains_no_rights() {
    let server = site("", "").start();
    if peer::is_firstbyte() {
        wait_until("it says so", || {
            process::status(server.workers()[0], "NoNewPrivs") == "1"
        });
    }
}

/// In a namespace of users that forbids setgroups(2), root cannot lose its groups.
#[test]
fn a_worker_does_not_keep_the_groups_of_root() {
    if !peer::is_root() || !peer::is_firstbyte() {
        return;
    }
    let server = site("error_log %%DIR%%/error.log info;", "")
        .prepare(|dir| {
            let mode = fs::Permissions::from_mode(0o777);
            fs::set_permissions(dir, mode).expect("its mode");
        })
        .written();
    let mut command = Command::new("unshare");
    command.args(["--user", "sh", "-c", "read line; exec \"$@\"", "sh"]);
    command.arg(peer::binary()).args(server.arguments());
    command.stdin(Stdio::piped()).stderr(Stdio::null());
    let spawned = command.spawn();
    let Ok(mut child) = spawned else {
        return skip("unshare is not there");
    };
    let place = |name: &str| format!("/proc/{}/{name}", child.id());
    let entered = holds_within(DEADLINE, || {
        fs::read_link(place("ns/user")).ok() != fs::read_link("/proc/self/ns/user").ok()
    });
    let maps = format!("0 0 1\n{NOBODY} {NOBODY} 1\n");
    let mapped = entered
        && fs::write(place("setgroups"), "deny").is_ok()
        && fs::write(place("uid_map"), &maps).is_ok()
        && fs::write(place("gid_map"), &maps).is_ok();
    let mut input = child.stdin.take().expect("it is a pipe");
    let told = input.write_all(b"go\n");
    if !mapped || told.is_err() {
        let _ = child.kill();
        let _ = child.wait();
        return skip("this machine has no namespaces of users");
    }
    let ended = "exited with fatal code 2 and cannot be respawned";
    let refused = holds_within(DEADLINE, || {
        let log = server.error_log();
        log.contains("initgroups(nobody, 65534) failed (1: ") && log.contains(ended)
    });
    let workers = process::children(child.id());
    process::signal(child.id(), Signal::TERM);
    let _ = child.wait();
    assert!(refused, "{workers:?} {}", server.error_log());
    // The logged errors were expected.
    fs::write(server.path("error.log"), "").expect("it is ours");
}
