//! `lint`: the warnings of `-t` for pipelines: levels, a choice of rules, reports for programs, an exit status.
//!
//! The rules are in the crate `lint`. Only texts are read: no address is bound, no certificate or log opened, no
//! directive applied. So a configuration can be checked on a machine that does not serve it. Source: of our own;
//! docs/lint.md.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ::lint::{Level, Report};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use conf::Disk;
use lab::report::visible;

use super::condition::FailOn;
use super::output::{fail, json};
use super::status::CONDITION;
use crate::argv;
use crate::lint_report::{self, sarif};
use crate::paths::Paths;
use crate::stdout;
use crate::terminal::{broken, stdout_columns};

/// warn of known traps in a configuration, for pipelines
///
/// Reads a configuration and the files it includes, and warns of known traps. Nothing is loaded: directives that are not
/// supported are checked as well. A comment "# firstbyte: allow CODE" in the configuration silences the directives of its line,
/// or the next directive. docs/lint.md explains the codes.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Configuration file; relative to the prefix, or without -p to the current directory
    #[arg(short = 'c', value_name = "filename")]
    conf: Option<OsString>,
    /// Prefix path, as for serving
    #[arg(short = 'p', value_name = "prefix")]
    prefix: Option<OsString>,
    /// Global directives, as for serving
    #[arg(short = 'g', value_name = "directives")]
    globals: Option<OsString>,
    /// Print JSON
    #[arg(long, conflicts_with = "sarif")]
    json: bool,
    /// Print SARIF 2.1.0, which code hosts read; paths are relative to the current directory
    #[arg(long)]
    sarif: bool,
    /// End with status 2 if there is a warning of this level or above
    #[arg(long, value_name = "LEVEL", default_value = "warn", value_parser = levels())]
    fail_on: FailOn<Level>,
    /// Codes to report, separated by commas; may be repeated
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = codes(), hide_possible_values = true, conflicts_with = "ignore")]
    only: Vec<String>,
    /// Codes to leave out, separated by commas; may be repeated
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = codes(), hide_possible_values = true)]
    ignore: Vec<String>,
}

fn levels() -> impl TypedValueParser<Value = FailOn<Level>> {
    FailOn::parser(Level::ALL.map(|level| (level.name(), level)))
}

/// The codes are not listed by the help, since there are dozens.
fn codes() -> impl TypedValueParser<Value = String> {
    let names = ::lint::rules().iter().map(|rule| rule.code);
    PossibleValuesParser::new(names)
}

impl Options {
    /// The configuration file. Paths of a pipeline are those of its checkout.
    fn conf_path(&self) -> PathBuf {
        match (&self.conf, &self.prefix) {
            (Some(conf), None) => PathBuf::from(conf),
            (conf, prefix) => {
                let place = argv::Options {
                    conf: conf.clone(),
                    prefix: prefix.clone(),
                    ..argv::Options::default()
                };
                Paths::new(&place).conf
            }
        }
    }

    /// Whether warnings of a code are reported.
    fn is_chosen(&self, code: &str) -> bool {
        let has = |codes: &[String]| codes.iter().any(|one| one == code);
        (self.only.is_empty() || has(&self.only)) && !has(&self.ignore)
    }

    /// The exit status for a report.
    fn status(&self, report: &Report) -> ExitCode {
        let levels = report.findings.iter().map(|finding| finding.rule.level);
        match self.fail_on.fails(levels) {
            true => ExitCode::from(CONDITION),
            false => ExitCode::SUCCESS,
        }
    }
}

/// Runs the verb.
pub(super) fn run(options: &Options) -> ExitCode {
    let conf_path = options.conf_path();
    let globals = options.globals.as_ref().map(|text| text.to_string_lossy());
    let mut report = match ::lint::check(Disk::default(), &conf_path, globals.as_deref()) {
        Ok(report) => report,
        Err(refused) => return fail(NAME, &refused.error.render(&refused.files)),
    };
    report
        .findings
        .retain(|finding| options.is_chosen(finding.rule.code));
    let text = if options.sarif {
        sarif::log(&report, &conf_path).and_then(|log| json(&log))
    } else if options.json {
        json(&lint_report::of(&report, &conf_path))
    } else {
        Ok(text(&report))
    };
    // A lost report is the graver failure.
    match text.and_then(|text| stdout::write(&text)) {
        Ok(()) => options.status(&report),
        Err(why) => fail(NAME, &why),
    }
}

/// Returns the warnings as `-t` prints them, each with its level, and their number. Sentences are wrapped for a
/// terminal. Excerpts are not, since a caret marks a column below them.
fn text(report: &Report) -> String {
    let columns = stdout_columns();
    let mut text = String::new();
    for group in report.groups() {
        let shown = format!("[{}] {}\n", group.level(), group.render(&report.files));
        for line in shown.lines() {
            let words: Vec<_> = line.split('\t').map(visible).collect();
            let line = words.join("\t") + "\n";
            match line.get(5..8) == Some(EXCERPT) {
                true => text.push_str(&line),
                false => text.push_str(&broken(&line, columns, INDENT)),
            }
        }
    }
    let counts = lint_report::Counts::of(report);
    text + &format!("{counts}\n")
}

/// Columns before the rest of a sentence that is broken.
const INDENT: usize = 4;
/// The separator between number and text of a line in an excerpt.
const EXCERPT: &str = " | ";

/// The verb.
const NAME: &str = "lint";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::values::parsed;

    #[test]
    fn options_are_read() {
        let options: Options = parsed("--only FB201,FB301 --only FB101 --fail-on error --json")
            .expect("it is accepted");
        assert_eq!(options.only, ["FB201", "FB301", "FB101"]);
        assert_eq!(
            (options.fail_on, options.json),
            (FailOn::Level(Level::Error), true)
        );
        assert!(options.is_chosen("FB101") && !options.is_chosen("FB102"));
        let options: Options = parsed("--ignore FB201 --fail-on never").expect("it is accepted");
        assert_eq!(options.fail_on, FailOn::Never);
        assert!(options.is_chosen("FB101") && !options.is_chosen("FB201"));
        let options: Options = parsed("").expect("it is accepted");
        assert_eq!(options.fail_on, FailOn::Level(Level::Warn));
        assert!(options.is_chosen("FB101"));
    }

    #[test]
    fn the_file_is_found_from_the_prefix_or_from_here() {
        let path = |line: &str| parsed::<Options>(line).expect("accepted").conf_path();
        assert_eq!(path("-c a/b.conf"), PathBuf::from("a/b.conf"));
        assert_eq!(path("-c b.conf -p /a"), PathBuf::from("/a/b.conf"));
        assert_eq!(path("-c /b.conf -p /a"), PathBuf::from("/b.conf"));
        assert_eq!(path(""), Paths::new(&argv::Options::default()).conf);
    }

    #[test]
    fn each_wrong_word_is_named() {
        for (line, why) in [
            ("--only FB2", "invalid value 'FB2' for '--only <CODE>'"),
            (
                "--ignore FB201,x",
                "invalid value 'x' for '--ignore <CODE>'",
            ),
            (
                "--fail-on bad",
                "[possible values: notice, warn, error, never]",
            ),
            ("--json --sarif", "cannot be used with '--sarif'"),
            ("--only FB201 --ignore FB301", "cannot be used with"),
            ("nginx.conf", "unexpected argument 'nginx.conf'"),
        ] {
            let told = parsed::<Options>(line)
                .map(|_| ())
                .expect_err("it is refused");
            assert!(told.contains(why), "{line}: {told}");
        }
    }
}
