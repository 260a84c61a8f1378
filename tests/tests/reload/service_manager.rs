//! Messages to a service manager: READY once a worker serves, reloads, the end, and the main process.
//!
//! The test is the manager: it listens on the datagram socket of `NOTIFY_SOCKET`. Source: sd_notify(3). nginx sends
//! nothing to a manager, so these tests are firstbyte's alone.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use firstbyte_tests::change::{change, wait_until_alone};
use firstbyte_tests::wait::{DEADLINE, holds_within};
use firstbyte_tests::{Builder, Server, Signal, peer, process, wait_until};

fn site(daemon: &str) -> Builder {
    let main = format!("daemon {daemon};");
    Server::http_with(
        &main,
        "server { listen 127.0.0.1:%%PORT%%; return 200 ok; }",
    )
}

/// A service manager with one service.
struct Manager {
    socket: UnixDatagram,
    server: Server,
    child: Child,
}

impl Manager {
    /// Listens at a path in the server's directory, and starts it.
    fn start(site: Builder) -> Self {
        let server = site.written();
        let path = server.path("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket in the test's directory");
        Self::of(server, socket, &path.display().to_string())
    }

    /// Listens at an abstract name.
    fn start_abstract(site: Builder) -> Self {
        let server = site.written();
        let name = format!("firstbyte-test.{}", server.path("notify").display());
        let address = SocketAddr::from_abstract_name(&name).expect("a short name");
        let socket = UnixDatagram::bind_addr(&address).expect("a socket without a path");
        Self::of(server, socket, &format!("@{name}"))
    }

    fn of(server: Server, socket: UnixDatagram, name: &str) -> Self {
        socket
            .set_read_timeout(Some(DEADLINE))
            .expect("a deadline that is not zero is valid");
        let child = Command::new(peer::binary())
            .args(server.arguments())
            .env("NOTIFY_SOCKET", name)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary under test starts");
        Self {
            socket,
            server,
            child,
        }
    }

    /// The lines of the next datagram.
    #[track_caller]
    fn received(&self) -> Vec<String> {
        let mut bytes = [0; 1024];
        let length = self
            .socket
            .recv(&mut bytes)
            .expect("a datagram before the deadline");
        let text = String::from_utf8_lossy(&bytes[..length]);
        text.lines().map(str::to_owned).collect()
    }

    /// Returns whether no further message came.
    fn is_silent(&self) -> bool {
        self.socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .expect("a deadline that is not zero is valid");
        self.socket.recv(&mut [0; 1024]).is_err()
    }

    /// The process that was started has ended.
    fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        assert!(holds_within(DEADLINE, || {
            status = self.child.try_wait().ok().flatten();
            status.is_some()
        }));
        status.expect("it was just seen")
    }
}

#[track_caller]
fn assert_has(lines: &[String], wanted: &str) {
    assert!(
        lines.iter().any(|line| line == wanted),
        "{wanted} in {lines:?}"
    );
}

fn is_elsewhere() -> bool {
    !peer::is_firstbyte()
}

#[test]
fn ready_is_said_when_the_server_answers() {
    if is_elsewhere() {
        return;
    }
    let mut manager = Manager::start(site("off"));
    let lines = manager.received();
    assert_has(&lines, "READY=1");
    assert_has(&lines, &format!("MAINPID={}", manager.child.id()));
    // A single request: it must succeed after READY.
    assert_eq!(manager.server.get("/").text(), "ok");
    manager.server.adopt("nginx.pid");
    manager.server.signal(Signal::QUIT);
    assert_has(&manager.received(), "STOPPING=1");
    assert!(manager.ended().success());
    assert!(manager.is_silent(), "each thing is said once");
}

#[test]
fn a_reload_is_told_at_its_beginning_and_its_end() {
    if is_elsewhere() {
        return;
    }
    let mut manager = Manager::start_abstract(site("off").allow("[emerg]"));
    assert_has(&manager.received(), "READY=1");
    manager.server.adopt("nginx.pid");
    for (from, to, answer) in [("200 ok", "200 new", "new"), ("200 new", "20x", "new")] {
        manager.server.rewrite_conf(|text| text.replace(from, to));
        let before = monotonic_us();
        manager.server.signal(Signal::HUP);
        let lines = manager.received();
        assert_has(&lines, "RELOADING=1");
        let told = lines
            .iter()
            .find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
        let told: u64 = told.and_then(|text| text.parse().ok()).expect("a time");
        assert!((before..=monotonic_us()).contains(&told), "{told}");
        assert_has(&manager.received(), "READY=1");
        assert_eq!(manager.server.get("/").text(), answer, "after {to}");
    }
    manager.server.signal(Signal::TERM);
    assert_has(&manager.received(), "STOPPING=1");
    assert!(manager.ended().success());
}

#[test]
fn a_daemon_is_named_before_its_parent_ends() {
    if is_elsewhere() {
        return;
    }
    let mut manager = Manager::start(site("on").daemon());
    let status = manager.ended();
    assert!(status.success(), "{status}");
    // The parent has ended, so its message is there already, and comes first.
    let lines = manager.received();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let ready = manager.received();
    assert_has(&ready, "READY=1");
    assert_has(&ready, &lines[0]);
    manager.server.adopt("nginx.pid");
    let pid = manager.server.pid();
    assert_eq!(lines[0], format!("MAINPID={pid}"));
    manager.server.signal(Signal::QUIT);
    assert_has(&manager.received(), "STOPPING=1");
    assert_eq!(manager.server.wait_for_exit(), 0);
}

#[test]
fn a_replaced_worker_is_not_told_of() {
    if is_elsewhere() {
        return;
    }
    let mut manager = Manager::start(site("off").allow("exited on signal 9"));
    assert_has(&manager.received(), "READY=1");
    manager.server.adopt("nginx.pid");
    let worker = manager.server.workers()[0];
    assert!(process::signal(worker, Signal::KILL));
    assert!(holds_within(DEADLINE, || {
        manager
            .server
            .workers()
            .iter()
            .any(|&other| other != worker)
    }));
    assert_eq!(manager.server.get("/").text(), "ok");
    assert!(
        manager.is_silent(),
        "a worker that is replaced is the server's own business"
    );
}

/// The worker is replaced while the reload waits for an address.
#[test]
fn a_pending_reload_is_not_reported_as_ready_by_another_worker() {
    if is_elsewhere() {
        return;
    }
    let site = site("off")
        .file("unused", "%%PORT2%%")
        .allow("Address already in use")
        .allow("exited on signal 9");
    let mut manager = Manager::start(site);
    assert_has(&manager.received(), "READY=1");
    let server = &mut manager.server;
    server.adopt("nginx.pid");
    let second = server.port_number(2);
    let taken = TcpListener::bind(("127.0.0.1", second)).expect("the port is reserved");
    server.rewrite_conf(|text| {
        let listen = format!("listen 127.0.0.1:{second}; return 200 new;");
        text.replace("return 200 ok;", &listen)
    });
    server.signal(Signal::HUP);
    server.wait_for_text("error.log", "try again to bind()");
    let worker = server.workers()[0];
    assert!(process::signal(worker, Signal::KILL));
    wait_until("another worker serves", || {
        let workers = manager.server.workers();
        workers.first().is_some_and(|&other| other != worker) && process::is_waiting(workers[0])
    });
    assert_eq!(manager.server.get("/").text(), "ok");
    drop(taken);
    assert_has(&manager.received(), "RELOADING=1");
    assert_has(&manager.received(), "READY=1");
    assert_eq!(manager.server.get("/").text(), "new");
}

#[test]
fn a_new_binary_is_named_when_the_old_one_ends() {
    if is_elsewhere() {
        return;
    }
    let mut manager = Manager::start(site("off"));
    assert_has(&manager.received(), "READY=1");
    manager.server.adopt("nginx.pid");
    // A new process that ends again is not announced: the next message is about the second one.
    change(&manager.server).end(Signal::QUIT);
    wait_until_alone(&manager.server);
    let new = change(&manager.server);
    manager.server.signal(Signal::QUIT);
    assert_eq!(manager.received(), [format!("MAINPID={}", new.pid)]);
    assert!(manager.ended().success());
    manager.server.adopt("nginx.pid");
    assert_eq!(manager.server.get("/").text(), "ok");
    let worker = manager.server.workers()[0];
    wait_until("its worker has said that it is ready", || {
        process::is_waiting(worker)
    });
    wait_until("it has heard that", || process::is_waiting(new.pid));
    manager.server.signal(Signal::HUP);
    let mut lines = manager.received();
    if lines.iter().any(|line| line == "READY=1") {
        // Its first worker was ready only after the old one had ended.
        lines = manager.received();
    }
    assert_has(&lines, "RELOADING=1");
    let ready = manager.received();
    assert_has(&ready, "READY=1");
    assert_has(&ready, &format!("MAINPID={}", new.pid));
    manager.server.signal(Signal::QUIT);
    assert_has(&manager.received(), "STOPPING=1");
    manager.server.wait_for_exit();
}

#[test]
fn a_manager_that_does_not_listen_is_no_reason_not_to_serve() {
    if is_elsewhere() {
        return;
    }
    let server = site("off").written();
    for name in ["relative", "/nobody/listens/here"] {
        let child = Command::new(peer::binary())
            .args(server.arguments())
            .env("NOTIFY_SOCKET", name)
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.expect("the binary under test starts");
        let serves = holds_within(DEADLINE, || {
            firstbyte_tests::Client::try_connect_to("127.0.0.1", server.port())
                .is_ok_and(|mut client| client.get("/").text() == "ok")
        });
        assert!(serves, "{name}");
        assert!(process::signal(child.id(), Signal::QUIT));
        assert!(child.wait().expect("it was started").success());
    }
}

/// The kernel's monotonic clock, microseconds, as the server reads it.
fn monotonic_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let (seconds, nanoseconds) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    seconds * 1_000_000 + nanoseconds / 1_000
}
