//! Output of verbs.

use std::io::{self, Write};
use std::process::ExitCode;

use lab::report::{escaped_json, visible};
use serde::Serialize;

/// The exit status of a verb; an error is reported on standard error.
pub(super) fn status(verb: &str, done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => fail(verb, &why),
    }
}

/// Joins the errors of several outputs, one per line. A failed output does not prevent others.
///
/// # Errors
/// All errors, in their order.
pub(super) fn all<const N: usize>(written: [Result<(), String>; N]) -> Result<(), String> {
    let errors: Vec<String> = written.into_iter().filter_map(Result::err).collect();
    match errors.is_empty() {
        true => Ok(()),
        false => Err(errors.join("\n")),
    }
}

/// Returns a report for `--json`, with control characters escaped for terminals.
///
/// # Errors
/// It cannot be written as JSON.
pub(super) fn json(report: &impl Serialize) -> Result<String, String> {
    let text = serde_json::to_string_pretty(report).map_err(|error| error.to_string())?;
    Ok(escaped_json(&text).into_owned() + "\n")
}

/// Prints the reason for a failure of a verb on standard error. Control characters are escaped, since parts of the text
/// come from servers and files.
pub(super) fn fail(verb: &str, why: &str) -> ExitCode {
    let lines: Vec<_> = why.split('\n').map(visible).collect();
    let _ = writeln!(io::stderr(), "firstbyte {verb}: {}", lines.join("\n"));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_errors_of_outputs_are_reported() {
        let error = |why: &str| Err(why.to_owned());
        assert_eq!(all([Ok(()), Ok(())]), Ok(()));
        assert_eq!(all([error("a"), Ok(()), error("b")]), error("a\nb"));
    }
}
