//! Inherited listening sockets: by `NGINX=`, and by a service manager's `LISTEN_FDS`.
//!
//! The tests bind the sockets, and a shell gives them their numbers before it becomes the server.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};

use firstbyte_tests::change::pid_in;
use firstbyte_tests::wait::{DEADLINE, holds_within};
use firstbyte_tests::{Client, Server, Signal, peer, process, wait_until};

const HTTP: &str = "server { listen 127.0.0.1:%%PORT%%; return 200 ok; }";

/// A server started by a shell; it does not outlive its test.
struct Started(Child);

impl Started {
    /// Runs the server with `socket` as its descriptor 3, after `words` of the shell (assignments).
    fn with(server: &Server, words: &str, socket: impl Into<OwnedFd>) -> Self {
        let script = format!("{words} exec \"$0\" \"$@\" 3<&0 </dev/null");
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).arg(peer::binary());
        command.args(server.arguments());
        command.stdin(Stdio::from(socket.into()));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("a shell starts"))
    }

    /// Signals it to finish, and waits until it has.
    fn quit(mut self) {
        assert!(process::signal(self.0.id(), Signal::QUIT));
        let ended = holds_within(DEADLINE, || self.0.try_wait().is_ok_and(|s| s.is_some()));
        assert!(ended, "it ends after QUIT");
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            process::signal(self.0.id(), Signal::TERM);
            holds_within(DEADLINE, || {
                self.0.try_wait().is_ok_and(|status| status.is_some())
            });
        }
    }
}

fn bound(port: u16) -> TcpListener {
    TcpListener::bind(("127.0.0.1", port)).expect("the port was reserved for this test")
}

fn accepts(port: u16) -> bool {
    Client::try_connect_to("127.0.0.1", port).is_ok()
}

/// True when the answers come from the server, not from the queue of a socket without an acceptor.
fn answers(server: &Server) -> bool {
    Client::connect(server.port()).get("/").text() == "ok"
}

#[test]
fn a_socket_is_used_instead_of_binding_another() {
    let server = Server::http(HTTP).written();
    let socket = bound(server.port());
    // While the test holds it as well, the address is in use for everybody else.
    let held = socket.try_clone().expect("a copy");
    let started = Started::with(&server, "NGINX='3;'", socket);
    assert!(answers(&server));
    server.wait_for_text("error.log", "using inherited sockets from \"3;\"");
    let mut kept = Client::connect(server.port());
    assert_eq!(kept.get("/").text(), "ok");
    started.quit();
    assert!(kept.ended());
    assert!(accepts(server.port()), "the socket is the test's, too");
    drop(held);
    assert!(!accepts(server.port()));
}

#[test]
fn wrong_numbers_are_told_and_the_others_used() {
    for (value, messages) in [
        (
            "3;77;",
            &["getsockname() of the inherited socket #77 failed (9: Bad file descriptor)"][..],
        ),
        (
            "3;x;4;",
            &["invalid socket number \"x;4;\" in NGINX environment variable, ignoring the rest"],
        ),
        (
            "3;4",
            &["invalid socket number \"4\" in NGINX environment variable, ignoring"],
        ),
    ] {
        let server = Server::http(HTTP)
            .allow("NGINX environment variable")
            // nginx closes unusable sockets.
            .allow("close() socket listening socket on")
            .written();
        let socket = bound(server.port());
        let held = socket.try_clone().expect("a copy");
        let started = Started::with(&server, &format!("NGINX='{value}'"), socket);
        assert!(answers(&server), "{value}");
        for message in messages {
            server.wait_for_text("error.log", message);
        }
        started.quit();
        drop(held);
    }
}

#[test]
fn a_descriptor_that_is_no_socket_is_told() {
    let server = Server::http(HTTP).written();
    let file = std::fs::File::open("/dev/null").expect("it is there");
    let started = Started::with(&server, "NGINX='3;'", file);
    let message =
        "getsockname() of the inherited socket #3 failed (88: Socket operation on non-socket)";
    server.wait_for_text("error.log", message);
    wait_until("it binds its own", || accepts(server.port()));
    assert!(answers(&server));
    started.quit();
}

#[test]
fn a_socket_that_the_configuration_does_not_name_is_closed() {
    let server = Server::http(HTTP).file("unused", "%%PORT2%%").written();
    let other = server.port_number(2);
    let started = Started::with(&server, "NGINX='3;'", bound(other));
    wait_until("it binds its own", || accepts(server.port()));
    wait_until("the other is closed", || !accepts(other));
    started.quit();
}

#[test]
fn a_service_manager_keeps_its_sockets() {
    if !peer::is_firstbyte() {
        return;
    }
    let server = Server::http("server { listen unix:%%DIR%%/s.sock; return 200 ok; }").written();
    let path = server.path("s.sock");
    let socket = UnixListener::bind(&path).expect("the folder is writable");
    let held = socket.try_clone().expect("a copy");
    for _ in 0..2 {
        let socket = held.try_clone().expect("a copy");
        let started = Started::with(&server, "LISTEN_FDS=1 LISTEN_PID=$$", socket);
        assert_eq!(Client::connect_unix(&path).get("/").text(), "ok");
        server.wait_for_text("error.log", "using 1 sockets from LISTEN_FDS");
        started.quit();
        assert!(path.exists(), "the file is the manager's");
    }
}

#[test]
fn a_service_manager_keeps_its_sockets_over_a_change_of_the_binary() {
    if !peer::is_firstbyte() {
        return;
    }
    let mut server =
        Server::http("server { listen unix:%%DIR%%/s.sock; return 200 ok; }").written();
    let path = server.path("s.sock");
    let socket = UnixListener::bind(&path).expect("the folder is writable");
    let _held = socket.try_clone().expect("a copy");
    let started = Started::with(&server, "LISTEN_FDS=1 LISTEN_PID=$$", socket);
    assert_eq!(Client::connect_unix(&path).get("/").text(), "ok");
    assert!(process::signal(started.0.id(), Signal::USR2));
    wait_until("the new one has its pid file", || {
        let pid = pid_in(&server, "nginx.pid");
        pid != 0 && pid != started.0.id()
    });
    started.quit();
    server.adopt("nginx.pid");
    assert_eq!(Client::connect_unix(&path).get("/").text(), "ok");
    server.signal(Signal::QUIT);
    server.wait_for_exit();
    assert!(path.exists(), "the file is the manager's");
}

#[test]
fn sockets_for_another_process_are_left_alone() {
    let server = Server::http(HTTP).file("unused", "%%PORT2%%").written();
    let other = bound(server.port_number(2));
    let started = Started::with(&server, "LISTEN_FDS=1 LISTEN_PID=1", other);
    wait_until("it binds its own", || accepts(server.port()));
    assert!(answers(&server));
    assert!(!server.error_log().contains("LISTEN_FDS"));
    started.quit();
}
