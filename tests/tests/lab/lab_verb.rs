//! `firstbyte lab`: the dashboard of a store, served by a process of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::recorded::{STORE, site, visit, wait_for_rows};
use firstbyte_tests::port::Port;
use firstbyte_tests::wait::{DEADLINE, holds_within};
use firstbyte_tests::{Client, Signal, TempDir, peer, process, run, wait_until};

/// A running verb.
struct Lab {
    child: Child,
    port: Port,
    temporary: TempDir,
}

impl Lab {
    fn start(store: &str, more: &[&str]) -> Self {
        let (port, temporary) = (Port::reserve(), TempDir::new());
        let child = Command::new(peer::binary())
            .args(["lab", "--store", store])
            .args(["--listen", &format!("127.0.0.1:{}", port.number())])
            .args(more)
            .env("TMPDIR", temporary.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lab = Self {
            child,
            port,
            temporary,
        };
        let accepts = holds_within(DEADLINE, || {
            Client::try_connect_to("127.0.0.1", lab.port.number()).is_ok()
        });
        let status = lab.child.try_wait();
        assert!(accepts, "{status:?}");
        lab
    }

    fn client(&self) -> Client {
        Client::connect(self.port.number())
    }

    /// Sends a signal; returns the exit status.
    fn end(&mut self, signal: Signal) -> Option<i32> {
        assert!(process::signal(self.child.id(), signal));
        wait_until("it ends", || {
            self.child.try_wait().is_ok_and(|it| it.is_some())
        });
        self.child.wait().expect("it has ended").code()
    }

    fn temporary_files(&self) -> usize {
        fs::read_dir(self.temporary.path())
            .expect("a folder")
            .count()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The store of a server with one connection, closed.
fn store() -> (TempDir, PathBuf) {
    let mut server = site(STORE, "").start();
    visit(&server);
    wait_for_rows(&server, 1);
    server.signal(Signal::QUIT);
    server.wait_for_exit();
    let dir = TempDir::new();
    let copy = dir.path().join("store.db");
    fs::copy(server.path("lab/store.db"), &copy).expect("a closed store");
    (dir, copy)
}

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

#[test]
fn pages_of_a_store_are_served_until_a_signal() {
    if !peer::is_firstbyte() {
        return;
    }
    let (_dir, store) = store();
    let bytes = fs::read(&store).expect("the store");
    for signal in [Signal::INT, Signal::TERM] {
        let mut lab = Lab::start(&url(&store), &[]);
        let page = lab.client().get_with("/", &[]);
        assert_eq!(page.status, 200);
        assert!(page.text().contains("store.db"));
        for path in ["/servers.csv", "/servers.json"] {
            assert_eq!(lab.client().get(path).status, 200, "{path}");
        }
        assert_eq!(lab.client().get("/nothing/here").status, 404);
        assert_eq!(lab.client().get("/../etc/passwd").status, 400);
        let mut stream = lab.client();
        stream.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(stream.response_to_head().status, 200);
        assert_eq!(lab.temporary_files(), 1);
        assert_eq!(lab.end(signal), Some(0));
        assert_eq!(lab.temporary_files(), 0, "its directory is removed");
    }
    assert_eq!(fs::read(&store).expect("the store"), bytes, "it only reads");
}

#[test]
fn reload_keeps_the_pages() {
    if !peer::is_firstbyte() {
        return;
    }
    let (_dir, store) = store();
    let lab = Lab::start(&url(&store), &[]);
    for _ in 0..3 {
        assert!(process::signal(lab.child.id(), Signal::HUP));
        assert_eq!(lab.client().get("/").status, 200);
    }
}

#[test]
fn other_names_get_nothing_unless_the_pages_are_public() {
    if !peer::is_firstbyte() {
        return;
    }
    let (_dir, store) = store();
    let status = |lab: &Lab, host: &str| {
        let mut client = lab.client();
        client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        client.response().status
    };
    let lab = Lab::start(&url(&store), &[]);
    let port = lab.port.number();
    for host in ["localhost", "127.0.0.1", &format!("127.0.0.1:{port}")] {
        assert_eq!(status(&lab, host), 200, "{host}");
    }
    for host in ["evil.example", "127.0.0.2", "localhost.evil.example"] {
        assert_eq!(status(&lab, host), 421, "{host}");
    }
    let public = Lab::start(&url(&store), &["--public"]);
    assert_eq!(status(&public, "dashboard.example"), 200);
}

#[test]
fn stores_that_cannot_be_read_are_errors() {
    if !peer::is_firstbyte() {
        return;
    }
    let dir = TempDir::new();
    dir.write(
        "text",
        "no database, but text that is longer than the head of one".repeat(20),
    );
    dir.write("password", "");
    let at = |name: &str| dir.path().join(name).display().to_string();
    let (none, text, password) = (at("none.db"), at("text"), at("password"));
    let closed = Port::reserve();
    let server = format!("clickhouse:http://127.0.0.1:{}/visits", closed.number());
    let cases: [(&[&str], &str); 8] = [
        (&[&format!("sqlite:{none}")], "none.db cannot be read"),
        (&[&format!("sqlite:{text}")], "cannot be read"),
        (&[&server], "cannot be read: ClickHouse: cannot connect"),
        (&["mysql:a"], "invalid store \"mysql:a\""),
        (
            &["clickhouse:http://a:hunter2@b/c"],
            "must have no user and no password",
        ),
        (
            &[&server, "--user", "a", "--password-file", &none],
            "none.db",
        ),
        (
            &[&server, "--user", "a", "--password-file", &password],
            "must have one line",
        ),
        (&[&server, "--cacert", &text], "its URL is not \"https://\""),
    ];
    for (words, expected) in cases {
        let outcome = run([&["lab", "--store"][..], words].concat());
        assert_eq!(outcome.code, 1, "{words:?}");
        assert!(
            outcome.stderr.contains(expected),
            "{words:?}: {}",
            outcome.stderr
        );
        assert!(!outcome.stderr.contains("hunter2"), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("/proc/self"), "{}", outcome.stderr);
        assert_eq!(outcome.stdout, "");
    }
}

#[test]
fn addresses_of_other_machines_need_public() {
    if !peer::is_firstbyte() {
        return;
    }
    let outcome = run(["lab", "--store", "sqlite:/none", "--listen", "0.0.0.0:7070"]);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.contains("add --public"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn address_in_use_is_an_error() {
    if !peer::is_firstbyte() {
        return;
    }
    let (_dir, store) = store();
    let lab = Lab::start(&url(&store), &[]);
    let listen = format!("127.0.0.1:{}", lab.port.number());
    let outcome = run(["lab", "--store", &url(&store), "--listen", &listen]);
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.contains("Address already in use"),
        "{}",
        outcome.stderr
    );
}
