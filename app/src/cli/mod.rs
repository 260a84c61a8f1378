//! Verbs: the first word of the command line selects another task than serving.

mod bench;
mod carried;
mod compare;
mod condition;
mod doctor;
mod experiment;
mod explain;
mod files;
mod freeze;
mod interruption;
mod lab;
mod lint;
pub(crate) mod manual;
mod map;
mod output;
pub(crate) mod status;
mod stored;
mod values;
mod via;
mod waterfall;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use ::lab::report::WIDTH_MIN;

use crate::{argv, stdout, terminal};

/// A command line that begins with a verb.
#[derive(Debug, Parser)]
#[command(name = "firstbyte", disable_help_subcommand = true, term_width = COLUMNS)]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

/// All verbs.
#[derive(Debug, Subcommand)]
enum Verb {
    Bench(Box<bench::Options>),
    Compare(compare::Options),
    Doctor(Box<doctor::Options>),
    Experiment(experiment::Options),
    Explain(explain::Options),
    Freeze(freeze::Options),
    Lab(lab::Options),
    Lint(lint::Options),
    Map(Box<map::Options>),
    Via(via::Options),
    Waterfall(Box<waterfall::Options>),
}

impl Verb {
    fn run(&self) -> ExitCode {
        match self {
            Self::Bench(options) => bench::run(options),
            Self::Compare(options) => compare::run(options),
            Self::Doctor(options) => doctor::run(options),
            Self::Experiment(options) => experiment::run(options),
            Self::Explain(options) => explain::run(options),
            Self::Freeze(options) => freeze::run(options),
            Self::Lab(options) => lab::run(options),
            Self::Lint(options) => lint::run(options),
            Self::Map(options) => map::run(options),
            Self::Via(options) => via::run(options),
            Self::Waterfall(options) => waterfall::run(options),
        }
    }

    /// The exit status for words that cannot be read.
    fn misused(name: &OsStr) -> ExitCode {
        match name == via::NAME {
            // Other numbers are those of its command.
            true => ExitCode::from(via::FAILED),
            false => ExitCode::FAILURE,
        }
    }
}

/// Runs the verb in a command line; `help` before its name prints its help. Returns `None` if the first word is no
/// verb.
pub(crate) fn run(arguments: &[OsString], before: impl FnOnce()) -> Option<ExitCode> {
    let (program, words) = arguments.split_first()?;
    let (name, words) = match words {
        [help, name, ..] if help == argv::HELP => (name, vec![name.clone(), "--help".into()]),
        [name, ..] => (name, words.to_vec()),
        [] => return None,
    };
    if !Verb::has_subcommand(name.to_str()?) {
        return None;
    }
    before();
    let line = std::iter::once(program.clone()).chain(words);
    let columns = terminal::stdout_columns().unwrap_or(COLUMNS);
    let width = columns.clamp(WIDTH_MIN, COLUMNS);
    let command = command().bin_name(argv::program()).term_width(width);
    let parsed = command.try_get_matches_from(line);
    let parsed = parsed.and_then(|found| CommandLine::from_arg_matches(&found));
    Some(match parsed {
        Ok(line) => line.verb.run(),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            let verb = name.to_string_lossy();
            output::status(&verb, stdout::write(&error.to_string()))
        }
        Err(error) => {
            let _ = write!(io::stderr(), "{error}");
            Verb::misused(name)
        }
    })
}

/// The command line of verbs, from which documents are made as well.
pub(crate) fn command() -> Command {
    CommandLine::command().mut_subcommands(manual::completed)
}

/// The verb that a first word resembles, but is not.
pub(crate) fn similar(word: &str) -> Option<String> {
    let line = ["firstbyte", word];
    let error = command().try_get_matches_from(line).err()?;
    match error.get(ContextKind::SuggestedSubcommand)? {
        ContextValue::Strings(verbs) => verbs.first().cloned(),
        ContextValue::String(verb) => Some(verb.clone()),
        _ => None,
    }
}

/// The verbs for `-h`, a line each.
pub(crate) fn list() -> String {
    let command = command();
    let line = |verb: &Command| {
        let about = verb.get_about().map(ToString::to_string);
        format!("  {:<14}: {}\n", verb.get_name(), about.unwrap_or_default())
    };
    command.get_subcommands().map(line).collect()
}

/// Width of help, characters, unless a terminal is narrower.
const COLUMNS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        command().debug_assert();
    }

    #[test]
    fn words_resemble_verbs_or_nothing() {
        for (word, verb) in [
            ("benhc", Some("bench")),
            ("bnech", Some("bench")),
            ("benches", Some("bench")),
            ("compar", Some("compare")),
            ("docter", Some("doctor")),
            ("waterfal", Some("waterfall")),
            ("start", None),
            ("stop", None),
            ("reload", None),
            ("nginx.conf", None),
            ("", None),
            ("--json", None),
        ] {
            assert_eq!(similar(word).as_deref(), verb, "{word}");
        }
    }

    #[test]
    fn examples_of_manuals_are_command_lines() {
        for manual in &manual::MANUALS {
            for (line, _) in manual.examples {
                let parts = line.split('\'').enumerate();
                let words = parts.flat_map(|(n, part)| match n % 2 {
                    1 => vec![part],
                    _ => part.split_whitespace().collect(),
                });
                let parsed = CommandLine::try_parse_from(words);
                assert!(parsed.is_ok(), "{line}: {parsed:?}");
                assert!(line.starts_with(&format!("firstbyte {} ", manual.verb)));
            }
        }
    }
}
