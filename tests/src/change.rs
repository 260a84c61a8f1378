//! A server whose binary can be changed by USR2, and the new one beside it.
//!
//! The server is started through a link in its directory. The target of the link is the next binary. `$pid` names the
//! worker that responds, and the kernel's list of children names its supervisor.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::process::Signal;

use crate::client::Client;
use crate::peer;
use crate::process;
use crate::server::{Builder, OWN_BINARY, Server};
use crate::wait::{holds_within, wait_until};

/// The new supervisor beside the old one; it does not outlive a test that fails.
#[derive(Debug)]
pub struct New {
    /// Its process.
    pub pid: u32,
}

/// A site that answers `/t.txt` with `text` and `/pid` with the worker's process; `listen` follows the address of
/// its `listen` directive.
#[must_use]
pub fn site(main: &str, listen: &str, http: &str) -> Builder {
    let text = format!(
        "keepalive_requests 10000000; keepalive_timeout 60s; {http}
         server {{ listen 127.0.0.1:%%PORT%%{listen}; root %%DIR%%/html;
         location = /pid {{ return 200 $pid; }} }}"
    );
    let builder = Server::http_with(main, &text)
        .file("html/t.txt", "text")
        .prepare(|dir| install(dir, peer::binary()));
    if main.contains("daemon on;") {
        builder.daemon()
    } else {
        builder
    }
}

/// Makes `binary` the next binary of the server in this directory.
///
/// # Panics
/// If the directory cannot be written.
pub fn install(dir: &Path, binary: &Path) {
    let own = dir.join(OWN_BINARY);
    let folder = own.parent().expect("a path below the directory");
    fs::create_dir_all(folder).expect("a folder can be made");
    let fresh = folder.join("fresh");
    symlink(binary, &fresh).expect("a link can be made");
    fs::rename(&fresh, &own).expect("a link can be replaced");
}

/// Sends USR2 and waits until the new one has its pid file and a worker, and the old one's is `.oldbin`.
///
/// # Panics
/// When that does not happen.
#[track_caller]
pub fn change(server: &Server) -> New {
    let old = server.pid();
    server.signal(Signal::USR2);
    let mut pid = 0;
    let started = holds_within(crate::wait::DEADLINE, || {
        pid = pid_in(server, "nginx.pid");
        pid != 0 && pid != old && !process::children(pid).is_empty()
    });
    assert!(started, "no new server: {}", server.error_log());
    assert_eq!(pid_in(server, "nginx.pid.oldbin"), old);
    New { pid }
}

/// The process number in a file, 0 while there is none.
#[must_use]
pub fn pid_in(server: &Server, file: &str) -> u32 {
    server.dir().read(file).trim().parse().unwrap_or(0)
}

/// True when a worker of this supervisor answers a new connection.
#[must_use]
pub fn served_by(server: &Server, supervisor: u32) -> bool {
    let worker = Client::connect(server.port()).get("/pid").text().parse();
    worker.is_ok_and(|worker| process::children(supervisor).contains(&worker))
}

/// The workers of a supervisor that has started another one.
#[must_use]
pub fn workers_beside(supervisor: u32, other: u32) -> Vec<u32> {
    let mut workers = process::children(supervisor);
    workers.retain(|&child| child != other);
    workers
}

/// Waits until the server's pid file has its name back.
///
/// # Panics
/// When it never has.
#[track_caller]
pub fn wait_until_alone(server: &Server) {
    wait_until("the pid file has its name back", || {
        !server.path("nginx.pid.oldbin").exists() && pid_in(server, "nginx.pid") == server.pid()
    });
}

impl New {
    /// Sends a signal that ends it, and waits until it and its workers have ended.
    ///
    /// # Panics
    /// When they do not.
    #[track_caller]
    pub fn end(self, signal: Signal) {
        let workers = process::children(self.pid);
        assert!(process::signal(self.pid, signal), "it is there");
        wait_until("the new one ends", || {
            !process::is_alive(self.pid) && !workers.iter().any(|&one| process::is_alive(one))
        });
    }
}

impl Drop for New {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for worker in process::children(self.pid) {
                process::signal(worker, Signal::KILL);
            }
            process::signal(self.pid, Signal::KILL);
        }
    }
}
