//! Output of verbs.

use std::io::{self, Write};
use std::process::ExitCode;

/// Prints on standard output. Errors of a closed one are ignored.
pub(super) fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    ExitCode::SUCCESS
}

/// Says on standard error why a verb could not do its work.
pub(super) fn fail(verb: &str, why: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "firstbyte {verb}: {why}");
    ExitCode::FAILURE
}
