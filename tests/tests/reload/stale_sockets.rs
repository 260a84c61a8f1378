//! Files of UNIX-domain sockets that a killed server has left.
//!
//! nginx does not start until they are removed. Source: nginx documentation, `listen`; docs/differences.md.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};

use firstbyte_tests::{Client, Server, Signal, command, peer, process, wait_until};

const SITE: &str =
    "server { listen 127.0.0.1:%%PORT%%; listen unix:%%DIR%%/socket; return 200 ok; }";

fn answers(server: &Server, name: &str) {
    let mut client = Client::connect_unix(&server.path(name));
    assert_eq!(client.get("/").text(), "ok");
}

/// Ends a server and its workers as `kill -9` does.
fn kill(server: &mut Server) {
    let workers = server.workers();
    server.signal(Signal::KILL);
    server.wait_for_exit();
    for worker in workers {
        process::signal(worker, Signal::KILL);
        wait_until("the worker is gone", || !process::is_alive(worker));
    }
}

#[test]
fn a_server_that_was_killed_starts_again() {
    if !peer::is_firstbyte() {
        return;
    }
    let mut server = Server::http(SITE).start();
    answers(&server, "socket");
    for _ in 0..3 {
        kill(&mut server);
        assert!(server.path("socket").exists(), "it left its file");
        server.launch(false);
        answers(&server, "socket");
    }
    server.wait_for_text("error.log", "is replaced, no server listens there");
    let mode = fs::metadata(server.path("socket"))
        .expect("a socket")
        .mode();
    assert_eq!(mode & 0o777, 0o666);
}

#[test]
fn a_reload_replaces_a_file_that_nobody_listens_on_and_no_other() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(SITE)
        .allow("still could not bind()")
        .allow("Address already in use")
        .start();
    let add = |name: &str| {
        server.rewrite_conf(|text| {
            text.replacen(
                "listen unix:",
                &format!("listen unix:%%DIR%%/{name}; listen unix:"),
                1,
            )
        });
        server.signal(Signal::HUP);
    };
    drop(UnixListener::bind(server.path("stale")).expect("bind"));
    add("stale");
    wait_until("the reload has replaced it", || {
        UnixListener::bind(server.path("stale")).is_err()
            && UnixStream::connect(server.path("stale")).is_ok()
    });
    answers(&server, "stale");
    // This one has a listener, so it stays unchanged.
    let _live = UnixListener::bind(server.path("live")).expect("bind");
    let before = fs::metadata(server.path("live")).expect("a socket").ino();
    add("live");
    server.wait_for_text("error.log", "still could not bind()");
    let after = fs::metadata(server.path("live")).expect("a socket").ino();
    assert_eq!(before, after);
    answers(&server, "stale");
}

/// The next generation has no such socket, but its worker is not ready yet.
#[test]
fn a_refused_reload_leaves_the_socket_of_a_worker_that_still_serves() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(SITE).allow("none/nginx.pid").start();
    let worker = server.workers()[0];
    wait_until("the worker has reported that it serves", || {
        process::is_waiting(worker)
    });
    assert!(process::signal(worker, Signal::STOP));
    let listen = format!("listen unix:{};", server.path("socket").display());
    let log = server.path("second.log");
    let logged = format!("access_log {};", log.display());
    server.rewrite_conf(|text| text.replace(&listen, &logged));
    server.signal(Signal::HUP);
    wait_until("the second configuration is opened", || log.exists());
    server.rewrite_conf(|text| {
        let text = text.replace(&logged, &format!("{logged} {listen}"));
        text.replace("nginx.pid", "none/nginx.pid")
    });
    server.signal(Signal::HUP);
    server.wait_for_text("error.log", "none/nginx.pid");
    assert!(UnixStream::connect(server.path("socket")).is_ok());
    assert!(process::signal(worker, Signal::CONT));
    wait_until("the worker serves the second configuration", || {
        !server.path("socket").exists()
    });
}

#[test]
fn a_file_that_is_no_socket_keeps_the_server_from_starting() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http(SITE)
        .file("socket", "text")
        .allow("Address already in use")
        .allow("still could not bind()")
        .written();
    let outcome = command::run(server.arguments());
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(
        outcome.stderr.contains("bind() to unix:")
            && outcome.stderr.contains("(98: Address already in use)"),
        "{outcome:?}"
    );
    assert_eq!(server.dir().read("socket"), "text");
}
