//! Clients by other people that run on node: the scripts in `tests/peers`, the libraries that `.ci/setup` installs.
//!
//! A script takes the directory of its libraries, a port and the name of a case, and prints a line for each outcome.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What `tests/peers/spdy.js` prints for a case, as a client of SPDY/3.1 of the server at this port.
///
/// # Panics
/// When node or the library is missing, or the case fails.
#[must_use]
pub fn spdy(port: u16, case: &str) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let modules: PathBuf = tests.join("../target/peers/node_modules");
    assert!(
        modules.is_dir(),
        "the library is there; .ci/setup installs it"
    );
    let output = Command::new("node")
        .arg(tests.join("peers/spdy.js"))
        .arg(modules)
        .args([&port.to_string(), case])
        .output()
        .expect("node is there; .ci/setup installs it");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case}: {printed}{errors}");
    printed
}
