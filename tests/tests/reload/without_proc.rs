//! A server that has no /proc, as in a bare chroot: names of the host, process titles, requests, reloads.
//!
//! Source: nginx documentation, `$hostname` and "Logging to syslog"; uname(2).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use firstbyte_tests::server::OWN_BINARY;
use firstbyte_tests::skip::skip;
use firstbyte_tests::syslog::Receiver;
use firstbyte_tests::{Builder, Server, Signal, peer, wait_until};

/// Has the server start with an empty file system on /proc, for itself alone. `None` if nothing can be mounted here.
fn without_proc(server: Builder) -> Option<Builder> {
    let tried = Command::new("unshare").args(["--mount", "true"]).output();
    if !tried.is_ok_and(|outcome| outcome.status.success()) {
        skip("nothing can be mounted here");
        return None;
    }
    Some(server.prepare(write_script))
}

fn write_script(dir: &Path) {
    let binary = peer::binary().display();
    let mount = "mount -t tmpfs none /proc && exec \"$@\"";
    let script = format!("#!/bin/sh\nexec unshare --mount sh -c '{mount}' sh '{binary}' \"$@\"\n");
    let path = dir.join(OWN_BINARY);
    fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
    fs::write(&path, script).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
}

/// The name of the machine, from this test's own /proc.
fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname");
    name.expect("/proc is mounted").trim().to_lowercase()
}

/// The title of a process, from this test's own /proc.
fn title(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

#[test]
fn names_titles_and_reloads_need_no_proc() {
    if !peer::is_firstbyte() {
        return;
    }
    let mut syslog = Receiver::udp();
    let http = format!(
        "log_format u '$uri'; access_log syslog:server=127.0.0.1:{} u;
         server {{ listen 127.0.0.1:%%PORT%%; server_name localhost;
                   location /host {{ return 200 $hostname; }}
                   location /generation {{ return 200 g1; }}
                   location / {{ root %%DIR%%/html; }} }}
         server {{ listen 127.0.0.1:%%PORT%%; server_name $hostname; return 200 named; }}",
        syslog.port()
    );
    let site = Server::http(&http).file("html/t.txt", "text");
    let Some(site) = without_proc(site) else {
        return;
    };
    let server = site.start();
    assert_eq!(server.get("/host").text(), hostname());
    assert_eq!(server.get("/t.txt").text(), "text");
    let mut client = server.client();
    let head = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", hostname());
    client.send(head.as_bytes());
    assert_eq!(client.response().text(), "named");

    let message = syslog.wait_for("/t.txt");
    let wanted = format!(" {} nginx: /t.txt", hostname());
    assert!(message.ends_with(&wanted), "{message}");

    assert!(title(server.pid()).starts_with("firstbyte: master process "));
    let first = server.workers()[0];
    wait_until("the worker has its title", || {
        title(first).starts_with("firstbyte: worker process")
    });

    server.rewrite_conf(|text| text.replace("g1", "g2"));
    server.signal(Signal::HUP);
    wait_until("the new configuration serves", || {
        server.get("/generation").text() == "g2"
    });
}

/// No system call returns the figures: the server works without the limit, and an alert names the file.
#[test]
fn a_memory_limit_without_proc_has_no_effect_and_an_alert() {
    if !peer::is_firstbyte() {
        return;
    }
    let site = Server::http_with(
        "error_log %%DIR%%/error.log info; worker_memory_limit 1g;",
        "server { listen 127.0.0.1:%%PORT%%; return 200 served; }",
    );
    let reason = "worker_memory_limit has no effect: open() \"/proc/self/statm\" failed \
                  (2: No such file or directory)";
    let Some(site) = without_proc(site) else {
        return;
    };
    let server = site.allow(reason).start();
    assert_eq!(server.get("/").text(), "served");
    server.wait_for_text("error.log", reason);
}
