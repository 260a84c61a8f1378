//! Servers and tools by other people, run by tests beside the server under test.
//!
//! `.ci/setup` installs them, so that no package starts a daemon of its own. A test without its program is reported as
//! skipped; with `CI=true` it fails.

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::client::Client;
use crate::dir::TempDir;
use crate::process;
use crate::skip::skip_outside_ci;
use crate::wait::{DEADLINE, holds_within, wait_until};

/// Finds a command of the system. If there is none, the test is reported as skipped.
///
/// # Panics
/// If it is missing and `CI=true`.
#[must_use]
pub fn command(name: &str) -> Option<PathBuf> {
    let found = ["/usr/sbin", "/usr/bin", "/usr/local/bin"]
        .map(|folder| Path::new(folder).join(name))
        .into_iter()
        .find(|path| path.is_file());
    if found.is_none() {
        skip_outside_ci(&format!("{name} is not installed"));
    }
    found
}

/// Finds the last command with this prefix and a version, such as `php-fpm8.2`. If there is none, the test is reported as
/// skipped.
///
/// # Panics
/// If it is missing and `CI=true`.
#[must_use]
pub fn command_like(prefix: &str) -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/usr/bin", "/usr/local/sbin"].map(std::fs::read_dir);
    let files = folders.into_iter().flatten().flatten().flatten();
    let is_version = |rest: &str| rest.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let named = files.map(|file| file.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(prefix).is_some_and(is_version)
    });
    let found = named.max();
    if found.is_none() {
        skip_outside_ci(&format!("{prefix} is not installed"));
    }
    found
}

/// A program that runs in the foreground until it is dropped.
#[derive(Debug)]
pub struct Program {
    child: Child,
    output: PathBuf,
}

impl Program {
    /// Starts it, with all it prints in a file `NAME.output` of the directory.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    #[track_caller]
    pub fn start(dir: &TempDir, name: &str, command: &mut Command) -> Self {
        let output = dir.path().join(format!("{name}.output"));
        let file = File::create(&output).expect("the test's directory is writable");
        let second = file.try_clone().expect("a file can be opened twice");
        command.stdin(Stdio::null()).stdout(file).stderr(second);
        let child = command.spawn();
        let child = child.unwrap_or_else(|e| panic!("{name} does not start: {e}"));
        Self { child, output }
    }

    /// Waits until a port accepts.
    ///
    /// # Panics
    /// If it never does; the message has the program's output.
    #[must_use]
    #[track_caller]
    pub fn accepting(self, port: u16) -> Self {
        self.ready(&format!("on port {port}"), || {
            Client::try_connect_to("127.0.0.1", port).is_ok()
        })
    }

    /// Waits until a UNIX-domain socket accepts.
    ///
    /// # Panics
    /// If it never does; the message has the program's output.
    #[must_use]
    #[track_caller]
    pub fn listening(self, path: &Path) -> Self {
        self.ready(&format!("at {}", path.display()), || {
            UnixStream::connect(path).is_ok()
        })
    }

    #[track_caller]
    fn ready(mut self, place: &str, accepts: impl Fn() -> bool) -> Self {
        let mut ended = None;
        // Interpreters take seconds to start on a busy machine.
        let ready = holds_within(DEADLINE * 3, || {
            ended = self.child.try_wait().ok().flatten();
            ended.is_some() || accepts()
        });
        assert!(
            ready && ended.is_none(),
            "nobody accepts {place}, {ended:?}: {}",
            self.printed()
        );
        self
    }

    /// Sends a signal to its process and to those that it has started.
    ///
    /// # Panics
    /// When it has ended.
    #[track_caller]
    pub fn signal_all(&self, signal: Signal) {
        // Stopped first, so that it does not replace a child that ends.
        process::signal(self.pid(), Signal::STOP);
        wait_until("it is stopped", || process::is_stopped(self.pid()));
        for child in process::children(self.pid()) {
            process::signal(child, signal);
        }
        process::signal(self.pid(), signal);
    }

    /// Output so far.
    #[must_use]
    pub fn printed(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// How many sockets the processes that it has started have open, together.
    #[must_use]
    pub fn sockets_of_children(&self) -> usize {
        let folders = process::children(self.pid())
            .into_iter()
            .filter_map(|child| std::fs::read_dir(format!("/proc/{child}/fd")).ok());
        let links = folders
            .flatten()
            .flatten()
            .filter_map(|file| std::fs::read_link(file.path()).ok());
        let is_socket = |link: &PathBuf| link.to_string_lossy().starts_with("socket:");
        links.filter(is_socket).count()
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Asked first: a server of several processes ends the others. Not every one does, and they would keep its port.
        let children = process::children(self.child.id());
        process::signal(self.child.id(), Signal::TERM);
        if !holds_within(DEADLINE / 4, || {
            self.child.try_wait().is_ok_and(|status| status.is_some())
        }) {
            let _ = self.child.kill();
        }
        for child in children {
            process::signal(child, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
