//! The current ClickHouse: the package chdb of PyPI behind a port, by `peers/chdb_server.py`.
//!
//! `.ci/setup all` installs the package, and `make test-all` sets `LAB_LONG`.

use std::path::Path;
use std::process::Command;

use crate::dir::TempDir;
use crate::port::Port;
use crate::programs::Program;
use crate::skip::skip;

/// Package as `.ci/setup all` installs it.
const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/chdb");

/// An embedded ClickHouse on a port of 127.0.0.1. It ends when dropped.
#[derive(Debug)]
pub struct Chdb {
    port: Port,
    _program: Program,
    dir: TempDir,
}

impl Chdb {
    /// Starts it. If it is not installed, or the test is too long, the test is reported as skipped.
    #[must_use]
    pub fn start() -> Option<Self> {
        if std::env::var_os("LAB_LONG").is_none() {
            skip("LAB_LONG is not set");
            return None;
        }
        if !Path::new(PACKAGE).join("chdb").is_dir() {
            skip("chdb is not installed: run .ci/setup all");
            return None;
        }
        let (dir, port) = (TempDir::new(), Port::reserve());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/chdb_server.py");
        let mut command = Command::new("python3");
        command
            .args([script, &port.number().to_string()])
            .arg(dir.path())
            .env("PYTHONPATH", PACKAGE)
            .env("TZ", "UTC");
        let program = Program::start(&dir, "chdb", &mut command).accepting(port.number());
        Some(Self {
            port,
            _program: program,
            dir,
        })
    }

    /// TCP port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Directory of its files.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}
