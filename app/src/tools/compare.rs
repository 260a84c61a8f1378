//! `compare`: two reports of `bench`, and what differs between them for sure.
//!
//! Source: of our own; docs/lab.md.

use std::ffi::OsString;
use std::process::ExitCode;

use lab::report::Report;
use lab::report::compare::{differences, of_reports, read};

use super::long::{self, Long, Said, plain};

/// Runs the tool with the words after its name.
pub(super) fn run(words: &[OsString]) -> ExitCode {
    let mut files = Vec::new();
    let mut json = false;
    let said = match long::read(words, LONGS, &[]) {
        Ok(said) => said,
        Err(why) => return super::misused(NAME, &why),
    };
    for said in said {
        match said {
            Said::Help => return super::help(&(HELP.to_owned() + &long::help(LONGS))),
            Said::Option(..) => json = true,
            Said::Operand(file) => files.push(file),
        }
    }
    let [first, second] = &files[..] else {
        return super::misused(
            NAME,
            "two reports are needed, as \"firstbyte bench --json\" prints them",
        );
    };
    match compared(first, second, json) {
        Ok(text) => super::print(&text),
        Err(why) => super::fail(NAME, &why),
    }
}

fn compared(first: &str, second: &str, json: bool) -> Result<String, String> {
    let (first, second) = (load(first)?, load(second)?);
    let found = of_reports(&first, &second)?;
    if json {
        let text = serde_json::to_string_pretty(&found).map_err(|error| error.to_string())?;
        return Ok(text + "\n");
    }
    let mut text = String::new();
    for figure in &found {
        text.push_str(&format!("{}: {}\n", figure.first, figure.sentence()));
    }
    for warning in [&first, &second].iter().flat_map(|one| &one.warnings) {
        text.push_str(&format!("WARNING: {warning}\n"));
    }
    let differing = differences(&first, &second);
    if !differing.is_empty() {
        let list = differing.join("; ");
        text.push_str(&format!("They were not measured alike: {list}\n"));
    }
    Ok(text)
}

fn load(file: &str) -> Result<Report, String> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| format!("cannot read {file}: {error}"))?;
    read(&text).map_err(|why| format!("{file}: {why}"))
}

const NAME: &str = "compare";

const HELP: &str = "\
Usage: firstbyte compare A.json B.json [--json]

Compares two reports of \"firstbyte bench --json\": the second with the first. Reports of several
blocks can be compared in all figures, those of one run in the rate.

";

/// The options.
pub(crate) const LONGS: &[Long] = &[plain("json", "print the comparison as JSON")];
