//! Messages of tests if links are not possible, or if the machine is too busy for one.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::io;

use link::Link;

/// Returns the link. If the machine cannot have one, the test is reported as skipped and has to return.
///
/// # Panics
/// If the link failed otherwise.
pub(crate) fn available(made: io::Result<Link>) -> Option<Link> {
    available_or(made, firstbyte_tests::skip::skip)
}

/// Returns the link as [`available`] does, with the function that reports a skipped test.
pub(crate) fn available_or(made: io::Result<Link>, report: impl FnOnce(&str)) -> Option<Link> {
    match made {
        Ok(link) => Some(link),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            report(&format!("there is no emulated link here: {error}"));
            None
        }
        Err(error) => panic!("the emulated link failed: {error}"),
    }
}

/// Whether a test must prove its result: then it fails if the machine is too busy to measure, or slow once.
pub(crate) fn is_strict() -> bool {
    std::env::var_os("LINK_STRICT").is_some()
}

/// For a test that could not measure, since the machine was too busy for the link to be on time: prints a line to
/// standard error. A busy machine makes a test inconclusive, not failed.
///
/// # Panics
/// If measurements must prove their result ([`is_strict`]).
pub(crate) fn inconclusive(what: &str, link: &Link) {
    let lateness = link.lateness();
    let line = format!(
        "{what}: the machine was too busy or too slow for the link to be on time: {lateness:?}"
    );
    assert!(!is_strict(), "{line}");
    tell(&format!("inconclusive: {line}"));
}

/// Prints past the capture of the tests' output: a skipped test must be visible.
fn tell(line: &str) {
    let _ = io::Write::write_all(&mut io::stderr(), format!("\n{line}\n").as_bytes());
}
