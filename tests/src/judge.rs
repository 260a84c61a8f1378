//! Pages, pictures and archives of reports, judged in Chromium by `tests/peers/pages.js`.
//!
//! `.ci/setup` installs Chromium and the libraries. If one is missing, tests are skipped; with `CI=true` that is a failure.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::dir::TempDir;
use crate::wait::holds_within;
use crate::{node, programs, skip};

/// Returns Chromium; `None` if it or a library of the judge is missing.
#[must_use]
pub fn browser() -> Option<PathBuf> {
    let found = programs::command("chromium")?;
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peers/node_modules");
    for library in ["axe-core", "perf-cascade", "@har-sdk/validator"] {
        if !peers.join(library).is_dir() {
            skip::skip_outside_ci(&format!(
                "{library} is not installed; .ci/setup installs it"
            ));
            return None;
        }
    }
    Some(found)
}

/// Asserts that the judge finds no fault with files of a folder.
///
/// # Panics
/// If it finds one.
#[track_caller]
pub fn judge(browser: &Path, dir: &TempDir, files: &[&str]) {
    let found = judged(browser, dir, files);
    assert_eq!(found, format!("judged {}\n", files.len()));
}

/// Returns the faults of files of a folder, a line each, and a last line with the number of files.
///
/// # Panics
/// If the judge does not start, or does not end in ten minutes.
#[track_caller]
#[must_use]
pub fn judged(browser: &Path, dir: &TempDir, files: &[&str]) -> String {
    let paths = files
        .iter()
        .map(|file| dir.path().join(file).into_os_string());
    judged_by("pages.js", browser, dir, paths)
}

/// Returns the output of a judge of `tests/peers`. It gets the directory of its libraries, the browser, a directory for the
/// browser's profile, and then `arguments`.
///
/// # Panics
/// If the judge does not start, or does not end in ten minutes.
#[track_caller]
#[must_use]
pub fn judged_by(
    script: &str,
    browser: &Path,
    dir: &TempDir,
    arguments: impl IntoIterator<Item = OsString>,
) -> String {
    let mut child = Command::new("node")
        .arg(node::script(script))
        .arg(node::modules())
        .arg(browser)
        .arg(dir.path().join("profile"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("node is there; .ci/setup installs it");
    // Its output fits the pipe. It kills the browser when it is killed.
    let ended = holds_within(PATIENCE, || {
        child.try_wait().is_ok_and(|status| status.is_some())
    });
    if !ended {
        let _ = child.kill();
    }
    let output = child.wait_with_output().expect("it has ended");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        ended,
        "the judge did not end within {PATIENCE:?}: {printed}"
    );
    printed
}

/// Time limit of the judge on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);
