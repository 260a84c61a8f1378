//! Clients and servers of other projects that run on node: scripts in `tests/peers`, libraries installed by
//! `.ci/setup`. The first lines of each script describe its arguments and output.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the libraries.
///
/// # Panics
/// If they are not installed.
#[must_use]
pub fn modules() -> PathBuf {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peers/node_modules");
    assert!(
        modules.is_dir(),
        "the libraries are there; .ci/setup installs them"
    );
    modules
}

/// A script by its name.
#[must_use]
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("peers")
        .join(name)
}

/// Output of `spdy.js` for a case, as a client of SPDY/3.1 of the server at this port.
///
/// # Panics
/// When node or the library is missing, or the case fails.
#[must_use]
pub fn spdy(port: u16, case: &str) -> String {
    let output = Command::new("node")
        .arg(script("spdy.js"))
        .arg(modules())
        .args([&port.to_string(), case])
        .output()
        .expect("node is there; .ci/setup installs it");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case}: {printed}{errors}");
    printed
}
