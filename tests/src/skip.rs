//! Reports of tests that cannot run on this machine, or cannot measure on it now.

use std::io::Write;

/// Reports on standard error that the current test is skipped, and why; `make test` repeats all reports at its end.
///
/// The line is `skipped: TEST: WHY`. It passes the capture of the test's output.
pub fn skip(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("\nskipped: {test}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Reports a skipped test like [`skip`], for programs that `.ci/setup` installs.
///
/// # Panics
/// If `CI=true`, since the report would not be read.
pub fn skip_outside_ci(why: &str) {
    let required = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!required, "{why}: run .ci/setup");
    skip(why);
}
