//! USR2 with nginx on the other side: either starts the other with its sockets, and takes its place back.
//!
//! The tests need an nginx, and root, since nginx without root cannot make its default folders. Otherwise they are
//! skipped with a message.

use std::path::Path;

use firstbyte_tests::change::{New, change, install, pid_in, served_by, site, wait_until_alone};
use firstbyte_tests::load::{BIG_BYTES, Download, Load};
use firstbyte_tests::{Builder, Client, Server, Signal, peer, wait_until};

const NGINX: &str = "/usr/sbin/nginx";

const CONNECTING: usize = 4;
const KEEPING: usize = 4;

/// nginx, if the tests can run it.
fn nginx() -> Option<&'static Path> {
    let path = Path::new(NGINX);
    if path.exists() && peer::is_root() && peer::is_firstbyte() {
        return Some(path);
    }
    println!("left out: needs {NGINX}, root, and firstbyte under test");
    None
}

fn both_sockets() -> Builder {
    site(
        "daemon on; worker_processes 2;",
        "; listen unix:%%DIR%%/s.sock",
        "access_log off;",
    )
    .zeros("html/big", BIG_BYTES)
}

fn is_nginx(server: &Server) -> bool {
    let answer = server.get("/t.txt");
    answer
        .header("Server")
        .is_some_and(|name| name.starts_with("nginx/"))
}

/// Starts the binary that is installed now and lets the old workers finish.
fn start_next(server: &Server) -> New {
    let new = change(server);
    server.signal(Signal::WINCH);
    // nginx signals its workers one after the other.
    wait_until("the new one alone answers", || {
        (0..50).all(|_| served_by(server, new.pid))
    });
    new
}

/// Ends the old one; the new one is the server from here on.
fn complete(server: &mut Server, new: &New) {
    server.signal(Signal::QUIT);
    server.wait_for_exit();
    assert_eq!(pid_in(server, "nginx.pid"), new.pid);
    assert!(!server.path("nginx.pid.oldbin").exists());
    server.adopt("nginx.pid");
}

fn assert_both_serve(server: &Server) {
    let mut unix = Client::connect_unix(&server.path("s.sock"));
    assert_eq!(unix.get("/t.txt").text(), "text");
    assert_eq!(server.get("/t.txt").text(), "text");
}

#[test]
fn firstbyte_to_nginx_and_back_under_load_loses_nothing() {
    let Some(nginx) = nginx() else { return };
    let mut server = both_sockets().start();
    let load = Load::start(server.port(), CONNECTING, KEEPING);
    for (binary, is_nginx_now) in [(nginx, true), (peer::binary(), false), (nginx, true)] {
        let mut idle = server.client();
        idle.get("/t.txt");
        let mut slow = Download::begin(&server);
        install(server.dir().path(), binary);
        let new = start_next(&server);
        load.go_on_for(500);
        assert!(idle.ended(), "an idle connection ends by FIN");
        assert_eq!(is_nginx(&server), is_nginx_now);
        assert!(slow.is_whole(), "a running answer is finished");
        complete(&mut server, &new);
        assert_both_serve(&server);
    }
    let figures = load.stop();
    println!("firstbyte, nginx, firstbyte, nginx: {figures:?}");
    assert_eq!((figures.failed, figures.cut), (0, 0), "{figures:?}");
}

#[test]
fn nginx_takes_its_place_back() {
    let Some(nginx) = nginx() else { return };
    let server = both_sockets().prepare(|dir| install(dir, nginx)).start();
    assert!(is_nginx(&server));
    install(server.dir().path(), peer::binary());
    for signal in [Signal::TERM, Signal::QUIT] {
        let new = start_next(&server);
        assert!(!is_nginx(&server));
        assert_both_serve(&server);
        new.end(signal);
        wait_until_alone(&server);
        wait_until("nginx serves again", || is_nginx(&server));
        assert_both_serve(&server);
    }
}

#[test]
fn firstbyte_takes_its_place_back_from_nginx() {
    let Some(nginx) = nginx() else { return };
    let server = both_sockets().start();
    install(server.dir().path(), nginx);
    let new = start_next(&server);
    assert!(is_nginx(&server));
    new.end(Signal::QUIT);
    wait_until_alone(&server);
    wait_until("firstbyte serves again", || {
        !server.workers().is_empty() && !is_nginx(&server)
    });
    assert_both_serve(&server);
}

#[test]
fn a_configuration_that_nginx_refuses_leaves_firstbyte_serving() {
    let Some(nginx) = nginx() else { return };
    let server = site("daemon on; reload_connections keep;", "", "")
        .allow("reload_connections")
        .start();
    let old = server.pid();
    install(server.dir().path(), nginx);
    server.signal(Signal::USR2);
    server.wait_for_text("error.log", "unknown directive \"reload_connections\"");
    wait_until_alone(&server);
    assert!(served_by(&server, old));
}
