//! The binary under test, and its differences from nginx.
//!
//! The tests describe firstbyte. Nearly all of their expectations are nginx's behaviour, so they also run against
//! nginx. These functions guard lines in which firstbyte differs on purpose (docs/differences.md), and lines that an
//! old nginx does not support yet.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::command::run;
use crate::dir::TempDir;

/// Kind of the binary under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The server these tests were written for.
    Firstbyte,
    /// nginx, with the middle number of its version (22 for 1.22.1).
    Nginx {
        /// The middle number of `1.MINOR.x`.
        minor: u32,
    },
}

/// The binary under test: `FIRSTBYTE_BIN`, else the one that cargo built beside this test.
///
/// # Panics
/// If there is none; the message explains how to build one.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("FIRSTBYTE_BIN") {
            return std::path::absolute(path).expect("FIRSTBYTE_BIN is a path");
        }
        beside_the_test().unwrap_or_else(|| {
            panic!("no firstbyte binary: run `cargo build -p firstbyte` or set FIRSTBYTE_BIN")
        })
    })
}

/// The kind of [`binary`]: nginx if the file has that name.
///
/// # Panics
/// If an nginx binary does not print its version.
pub fn peer() -> Peer {
    static PEER: OnceLock<Peer> = OnceLock::new();
    *PEER.get_or_init(|| {
        let name = binary().file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("nginx") {
            nginx_version()
        } else {
            Peer::Firstbyte
        }
    })
}

/// True if firstbyte itself is under test: guards intended differences from nginx.
#[must_use]
pub fn is_firstbyte() -> bool {
    peer() == Peer::Firstbyte
}

/// True unless an nginx older than 1.`minor` is under test: guards behaviour that is new in that version.
#[must_use]
pub fn knows_nginx(minor: u32) -> bool {
    match peer() {
        Peer::Firstbyte => true,
        Peer::Nginx { minor: found } => found >= minor,
    }
}

/// True if the binary accepts `directive` (with its arguments) in a location, by `-t`. So the tests of a module run
/// from the day it is built.
///
/// # Panics
/// If the binary does not start.
#[must_use]
pub fn builds(directive: &str) -> bool {
    let dir = TempDir::new();
    let place = dir.path().display();
    let conf = format!(
        "pid {place}/pid; error_log {place}/log; events {{}} http {{ access_log off;
         client_body_temp_path {place}/body; server {{ location / {{ {directive} }} }} }}"
    );
    dir.write("nginx.conf", conf);
    let prefix = format!("{place}/");
    let outcome = run(["-t", "-p", &prefix, "-c", "nginx.conf", "-e", "log"]);
    outcome.code == 0 || !outcome.stderr.contains("is not built yet")
}

/// True when the tests may change users: a worker under another user makes file modes matter.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn beside_the_test() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let profile = test.parent()?.parent()?;
    let target = profile.parent()?;
    let places = [
        profile.to_path_buf(),
        target.join("release"),
        target.join("debug"),
    ];
    places
        .into_iter()
        .map(|place| place.join("firstbyte"))
        .find(|path| path.is_file())
}

fn nginx_version() -> Peer {
    let output = Command::new(binary())
        .arg("-v")
        .output()
        .expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let minor = text
        .split("nginx/1.")
        .nth(1)
        .and_then(|v| v.split('.').next()?.parse().ok());
    Peer::Nginx {
        minor: minor.expect("nginx -v names its version"),
    }
}
