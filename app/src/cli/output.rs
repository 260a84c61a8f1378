//! Output of verbs.

use std::io::{self, Write};
use std::process::ExitCode;

use lab::report::{escaped_json, visible};
use serde::Serialize;

/// Prints on standard output. Errors of a closed one are ignored.
pub(super) fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    ExitCode::SUCCESS
}

/// A report as `--json` prints it: what a terminal would obey is escaped.
///
/// # Errors
/// It cannot be written as JSON.
pub(super) fn json(report: &impl Serialize) -> Result<String, String> {
    let text = serde_json::to_string_pretty(report).map_err(|error| error.to_string())?;
    Ok(escaped_json(&text).into_owned() + "\n")
}

/// Says on standard error why a verb could not do its work; what a terminal would obey is written out, since servers and files
/// choose some of the words.
pub(super) fn fail(verb: &str, why: &str) -> ExitCode {
    let lines: Vec<_> = why.split('\n').map(visible).collect();
    let _ = writeln!(io::stderr(), "firstbyte {verb}: {}", lines.join("\n"));
    ExitCode::FAILURE
}
