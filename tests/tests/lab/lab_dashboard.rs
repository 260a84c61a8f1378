//! `lab_dashboard`: access, the socket of the store process, and its restarts.
//!
//! Pages themselves are the subject of `dashboard_pages.rs`.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;

use crate::recorded::{STORE, children, store_processes, visit, wait_for_rows};
use firstbyte_tests::change::{change, install, wait_until_alone};
use firstbyte_tests::h2::H2Client;
use firstbyte_tests::{Builder, Client, Server, Signal, peer, process, wait_until};

/// The first page, figures as files, and the event stream.
const PATHS: [&str; 6] = [
    "/lab/",
    "/lab/servers",
    "/lab/servers.csv",
    "/lab/servers.json",
    EVENTS,
    "/lab/a/b",
];
const EVENTS: &str = "/lab/events";

/// A server with dashboards below `/lab/`, and with rules below `/denied/` and `/named/`.
fn dashboard(main: &str, recording: &str, location: &str) -> Builder {
    let http = format!(
        "{recording} {STORE} access_log off; http2 on;
         server {{ listen 127.0.0.1:%%PORT%%; root %%DIR%%/html;
           location /lab/ {{ lab_dashboard {location} }}
           location = /auth {{ return 403; }}
           location /metrics {{ metrics; }} }}"
    );
    Server::http_with(main, &http)
        .file("html/f.txt", "0123456789")
        .allow("rtt_map records no countries")
}

fn recording(location: &str) -> Builder {
    dashboard("", "rtt_map on;", location)
}

/// Starts a server that records, and waits for its store.
fn started(builder: Builder) -> Server {
    let server = builder.start();
    server.wait_for_text("error.log", "is open");
    server
}

fn socket(server: &Server) -> PathBuf {
    server.path("nginx.pid.lab.sock")
}

/// Requests a page by the socket of the store process; returns whether there is one.
fn asked_directly(server: &Server) -> bool {
    let Ok(mut stream) = UnixStream::connect(socket(server)) else {
        return false;
    };
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut page = String::new();
    stream
        .write_all(request)
        .and_then(|()| stream.read_to_string(&mut page))
        .is_ok_and(|_| page.starts_with("HTTP/1.1 200"))
}

/// Begins an event stream and waits for its first event.
fn stream(server: &Server) -> Client {
    let mut client = server.client();
    let head = client.send(firstbyte_tests::client::request("GET", EVENTS, &[]));
    let head = head.response_to_head();
    assert_eq!(head.status, 200);
    let kind = head.header("content-type").unwrap_or_default();
    assert!(kind.starts_with("text/event-stream"), "{kind}");
    assert!(!client.bytes(1).is_empty());
    client
}

/// Open sockets of a process.
fn sockets(pid: u32) -> usize {
    let list = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    let links = list.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    links
        .filter(|link| link.to_string_lossy().starts_with("socket:"))
        .count()
}

fn only_store_process(server: &Server) -> u32 {
    let mut all = Vec::new();
    wait_until("one store process", || {
        all = store_processes(server);
        all.len() == 1
    });
    all[0]
}

#[test]
fn clients_see_the_store_over_both_protocols() {
    let server = started(recording("public;"));
    visit(&server);
    wait_for_rows(&server, 1);
    let page = server.get("/lab/");
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.text().contains("store.db"), "{}", page.text());
    let mut h2 = H2Client::connect(server.port());
    let reply = h2.fetch("/lab/");
    assert_eq!(reply.status, 200);
    assert!(reply.text().contains("store.db"));
    assert_eq!(server.client().head("/lab/").status, 200);
    assert_eq!(server.get("/lab").status, 301);
    stream(&server);
    let events = h2.get(EVENTS);
    h2.until("an event", |h2| !h2.so_far(events).body.is_empty());
    assert!(!h2.so_far(events).ended);
}

#[test]
fn denied_clients_get_nothing() {
    for (rules, status) in [
        ("; deny all;", 403),
        ("; allow 192.0.2.1; deny all;", 403),
        ("; auth_basic lab; auth_basic_user_file %%DIR%%/users;", 401),
        ("; auth_request /auth;", 403),
    ] {
        let server = recording(rules)
            .file("users", "a:{PLAIN}b\n")
            .allow("access forbidden by rule")
            .start();
        let pid = only_store_process(&server);
        wait_until("pages for root", || asked_directly(&server));
        let before = sockets(pid);
        let mut h2 = H2Client::connect(server.port());
        for path in PATHS {
            let answer = server.get(path);
            let reply = h2.fetch(path);
            assert_eq!(
                (answer.status, reply.status),
                (status, status),
                "{rules} {path}"
            );
            for text in [answer.text(), reply.text()] {
                assert!(
                    !text.contains("store.db") && text.contains(&status.to_string()),
                    "{text}"
                );
            }
        }
        assert!(sockets(pid) <= before, "{rules}");
    }
}

#[test]
fn right_password_opens_the_pages() {
    let rules = "; auth_basic lab; auth_basic_user_file %%DIR%%/users;";
    let server = recording(rules).file("users", "a:{PLAIN}b\n").start();
    visit(&server);
    wait_for_rows(&server, 1);
    let mut client = server.client();
    let page = client.get_with("/lab/", &["Authorization: Basic YTpi"]);
    assert_eq!(page.status, 200);
}

#[test]
fn socket_is_open_to_the_user_of_the_worker_alone() {
    let server = started(recording("public;"));
    let file = fs::metadata(socket(&server)).expect("a socket");
    assert_eq!(file.mode() & 0o777, 0o600);
    let workers = children(&server, "firstbyte: worker process");
    assert_eq!(Some(file.uid()), process::effective_user(workers[0]));
    assert_eq!(server.get("/lab/").status, 200);
}

#[test]
fn reload_adds_and_removes_the_socket() {
    let mut server = started(recording("public;"));
    let path = socket(&server);
    let change = |from: &'static str, to: &'static str| {
        server.rewrite_conf(move |text| text.replace(from, to));
        server.signal(Signal::HUP);
    };
    change("lab_dashboard public;", "return 204;");
    wait_until("the socket is gone", || !path.exists());
    wait_until("other pages", || server.get("/lab/").status == 204);
    change("return 204;", "lab_dashboard public;");
    wait_until("pages", || server.get("/lab/").status == 200);
    assert!(path.exists());
    // The socket follows the pid file.
    change("nginx.pid", "other.pid");
    let other = server.path("other.pid.lab.sock");
    wait_until("another socket alone", || other.exists() && !path.exists());
    wait_until("pages", || server.get("/lab/").status == 200);
    change("other.pid", "nginx.pid");
    wait_until("the first socket alone", || {
        path.exists() && !other.exists()
    });
    server.signal(Signal::QUIT);
    assert_eq!(server.wait_for_exit(), 0);
    assert!(!path.exists());
}

#[test]
fn reload_to_another_store_keeps_the_pages() {
    let server = started(recording("public;"));
    assert_eq!(server.get("/lab/").status, 200);
    let before = only_store_process(&server);
    server.rewrite_conf(|text| text.replace("server=edge", "server=second"));
    server.signal(Signal::HUP);
    // Requests meanwhile wait for the next process.
    for _ in 0..20 {
        assert_eq!(server.get("/lab/").status, 200);
    }
    wait_until("another store process", || {
        store_processes(&server) != [before]
    });
    assert_eq!(server.get("/lab/").status, 200);
}

#[test]
fn store_is_shown_without_recording_and_never_written() {
    for recording in ["", "rtt_map off;"] {
        let server = dashboard("", recording, "public;").start();
        only_store_process(&server);
        let page = server.get("/lab/");
        assert!([200, 503].contains(&page.status), "{}", page.text());
        visit(&server);
        assert!(!server.path("lab").exists(), "a reader makes no file");
    }
}

#[test]
fn threads_serve_pages_without_a_master_process() {
    let mut server = dashboard("master_process off;", "rtt_map on;", "public;").start();
    visit(&server);
    wait_for_rows(&server, 1);
    assert_eq!(server.get("/lab/").status, 200);
    let mut events = stream(&server);
    server.signal(Signal::TERM);
    assert_eq!(server.wait_for_exit(), 0);
    let _ = events.rest();
    assert!(!socket(&server).exists());
}

#[test]
fn files_that_are_no_stale_socket_stay() {
    if !peer::is_firstbyte() {
        return;
    }
    let stale =
        started(recording("public;").prepare(|dir| {
            drop(UnixListener::bind(dir.join("nginx.pid.lab.sock")).expect("bind"))
        }));
    assert_eq!(stale.get("/lab/").status, 200);
    stale.wait_for_text("error.log", "is replaced, no server listens there");
    let plant: [fn(&std::path::Path); 3] = [
        |path| fs::write(path, "text").expect("a file"),
        |path| fs::create_dir(path).expect("a folder"),
        // Its file would be stale without a socket.
        |path| std::mem::forget(UnixDatagram::bind(path).expect("bind")),
    ];
    for plant in plant {
        let server = recording("public;")
            .allow("")
            .prepare(|dir| plant(&dir.join("nginx.pid.lab.sock")))
            .written();
        let before = fs::symlink_metadata(socket(&server)).expect("it").ino();
        let ended = Command::new(peer::binary())
            .args(server.arguments())
            .output()
            .expect("it runs");
        assert!(!ended.status.success());
        let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(errors.contains("nginx.pid.lab.sock"), "{errors}");
        let after = fs::symlink_metadata(socket(&server))
            .expect("it stays")
            .ino();
        assert_eq!(before, after);
    }
}

#[test]
fn path_of_the_socket_has_a_limit() {
    let test = |bytes: usize| {
        let server = recording("public;").allow("too long path").written();
        let dir = server.path("").display().to_string();
        let dir = dir.trim_end_matches('/');
        // The directory, a slash, the name and the end of the socket's name.
        let name = "p".repeat(bytes - dir.len() - 1 - ".lab.sock".len());
        server.rewrite_conf(|text| text.replace("nginx.pid", &name));
        let tested = Command::new(peer::binary())
            .args(server.arguments())
            .arg("-t")
            .output()
            .expect("it runs");
        let errors = String::from_utf8_lossy(&tested.stderr).into_owned();
        (tested.status.success(), errors)
    };
    for bytes in [106, 107] {
        let (is_accepted, errors) = test(bytes);
        assert!(is_accepted, "{errors}");
    }
    let (is_accepted, errors) = test(108);
    assert!(!is_accepted);
    assert!(
        errors.contains("108 bytes, at most 107; set \"pid\" to a shorter path"),
        "{errors}"
    );
}

#[test]
fn streams_end_with_the_store_process_and_come_back_with_the_next() {
    let server = started(
        recording("public;")
            .allow("exited on signal 9")
            .allow("prematurely closed connection"),
    );
    for _ in 0..2 {
        let mut streams: Vec<Client> = (0..8).map(|_| stream(&server)).collect();
        let mut h2 = H2Client::connect(server.port());
        let events = h2.get(EVENTS);
        h2.until("an event", |h2| !h2.so_far(events).body.is_empty());
        let pid = only_store_process(&server);
        assert!(process::signal(pid, Signal::KILL));
        for client in &mut streams {
            let _ = client.rest();
        }
        h2.until("the end of the stream", |h2| {
            let reply = h2.so_far(events);
            reply.ended || reply.reset.is_some()
        });
        // The request waits at the socket until the next process accepts it.
        assert_eq!(server.get("/lab/").status, 200);
        stream(&server);
    }
}

#[test]
fn request_during_a_restart_waits_for_the_next_process() {
    let server = started(recording("public;").allow("exited on signal 9"));
    assert_eq!(server.get("/lab/").status, 200);
    let pid = only_store_process(&server);
    assert!(process::signal(pid, Signal::STOP));
    wait_until("it is stopped", || process::is_stopped(pid));
    let mut client = server.client();
    client.send("GET /lab/ HTTP/1.1\r\nHost: a\r\n\r\n");
    // Other requests do not wait.
    visit(&server);
    assert!(process::signal(pid, Signal::KILL));
    assert_eq!(client.response().status, 200);
}

#[test]
fn clients_that_leave_end_their_streams_in_the_store_process() {
    let server = started(recording("public;"));
    let pid = only_store_process(&server);
    let before = sockets(pid);
    assert_eq!(server.get("/lab/").status, 200);
    let streams: Vec<Client> = (0..16).map(|_| stream(&server)).collect();
    let mut h2 = H2Client::connect(server.port());
    let events: Vec<u32> = (0..4).map(|_| h2.get(EVENTS)).collect();
    for id in &events {
        h2.until("an event", |h2| !h2.so_far(*id).body.is_empty());
    }
    assert!(sockets(pid) >= before + 20);
    for id in &events {
        h2.cancel(*id);
    }
    wait_until("streams of HTTP/2 are gone", || sockets(pid) <= before + 16);
    drop(streams);
    wait_until("all streams are gone", || sockets(pid) <= before);
    assert_eq!(h2.fetch("/lab/").status, 200);
}

#[test]
fn hundreds_of_streams_are_open_at_once() {
    let server = started(recording("public;"));
    server.rewrite_conf(|text| text.replace("worker_connections 512", "worker_connections 4096"));
    server.signal(Signal::HUP);
    let streams: Vec<Client> = (0..400).map(|_| stream(&server)).collect();
    assert_eq!(server.get("/lab/").status, 200);
    assert_eq!(streams.len(), 400);
}

#[test]
fn new_binary_takes_over_the_socket() {
    if !peer::is_firstbyte() {
        return;
    }
    let builder = dashboard("daemon on;", "rtt_map on;", "public;");
    let builder = builder.prepare(|dir| install(dir, peer::binary()));
    let mut server = started(builder.daemon());
    let inode = || fs::metadata(socket(&server)).map(|file| file.ino()).ok();
    let first = inode();
    assert_eq!(server.get("/lab/").status, 200);
    // The new process gives up, since the old one still has its socket.
    change(&server).end(Signal::TERM);
    wait_until_alone(&server);
    assert_eq!(server.get("/lab/").status, 200);
    assert_eq!(inode(), first);
    // The old one ends.
    let new = change(&server);
    server.signal(Signal::QUIT);
    wait_until("the old one has ended", || !process::is_alive(server.pid()));
    assert_eq!(inode(), first);
    assert_eq!(server.get("/lab/").status, 200);
    assert!(process::is_alive(new.pid));
    server.wait_for_exit();
    server.adopt("nginx.pid");
    let path = socket(&server);
    server.signal(Signal::QUIT);
    server.wait_for_exit();
    assert!(!path.exists());
}
