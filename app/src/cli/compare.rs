//! `compare`: compares two reports of `bench` and reports significant differences.
//!
//! Source: of our own; docs/lab.md.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::report::compare::{of_reports, read};
use lab::report::{Report, text};
use sys::os_error;

use super::output;
use crate::stdout;
use crate::terminal::fitted;

/// compare two reports of bench
///
/// Compares two reports of "firstbyte bench --json": the second with the first. Reports of several blocks can be compared in
/// all figures, those of one run in the rate.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// The first report
    #[arg(value_name = "A.json")]
    first: PathBuf,
    /// The second report
    #[arg(value_name = "B.json")]
    second: PathBuf,
    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub(super) fn run(options: &Options) -> ExitCode {
    let compared = compare(&options.first, &options.second, options.json);
    output::status("compare", compared.and_then(|text| stdout::write(&text)))
}

fn compare(first: &Path, second: &Path, json: bool) -> Result<String, String> {
    let (first, second) = (load(first)?, load(second)?);
    let found = of_reports(&first, &second)?;
    if json {
        return output::json(&found);
    }
    Ok(fitted(|| text::compared(&found, &first, &second)))
}

fn load(file: &Path) -> Result<Report, String> {
    let (text, file) = (std::fs::read_to_string(file), file.display());
    let text = text.map_err(|error| format!("cannot read {file}: {}", os_error(&error)))?;
    read(&text).map_err(|why| format!("{file}: {why}"))
}
