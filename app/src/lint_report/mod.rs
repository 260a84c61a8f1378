//! Reports of the verb `lint` for programs: JSON of our own, and SARIF ([`sarif`]).
//!
//! Columns are counted in characters (Unicode code points) from 1, lines from 1. Source: docs/lint.md.

pub(crate) mod sarif;

use std::fmt;
use std::path::Path;

use lint::{Finding, Level, Report};
use serde::Serialize;

/// The report of `lint --json`.
#[derive(Serialize)]
pub(crate) struct Json<'r> {
    /// The configuration file.
    configuration: String,
    findings: Vec<JsonFinding<'r>>,
    counts: Counts,
}

#[derive(Serialize)]
struct JsonFinding<'r> {
    code: &'static str,
    title: &'static str,
    level: &'static str,
    message: &'r str,
    hint: Option<&'r str>,
    /// `None` for the command line.
    file: Option<String>,
    #[serde(flatten)]
    region: Option<Region>,
}

/// The numbers of warnings by level.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    error: usize,
    warn: usize,
    notice: usize,
}

impl Counts {
    /// Counts the warnings of a report.
    pub(crate) fn of(report: &Report) -> Self {
        let count = |level: Level| {
            let levels = report.findings.iter().map(|finding| finding.rule.level);
            levels.filter(|one| *one == level).count()
        };
        Self {
            error: count(Level::Error),
            warn: count(Level::Warn),
            notice: count(Level::Notice),
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            error,
            warn,
            notice,
        } = self;
        match error + warn + notice {
            0 => f.write_str("no warnings"),
            _ => write!(f, "{error} error, {warn} warn, {notice} notice"),
        }
    }
}

/// The words that a warning is about, on one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Region {
    line: usize,
    column: usize,
    /// The column after the last one.
    end_column: usize,
}

impl Region {
    fn of(finding: &Finding, report: &Report) -> Option<Self> {
        let pos = finding.warning.pos()?;
        let columns = finding.warning.columns(&report.files)?;
        Some(Self {
            line: pos.line as usize,
            column: columns.start,
            end_column: columns.end,
        })
    }
}

/// The report on the configuration at `conf_path` as JSON.
pub(crate) fn of<'r>(report: &'r Report, conf_path: &Path) -> Json<'r> {
    let finding = |finding: &'r Finding| JsonFinding {
        code: finding.rule.code,
        title: finding.rule.title,
        level: finding.rule.level.name(),
        message: finding.message(),
        hint: finding.warning.hint(),
        file: finding
            .path(&report.files)
            .map(|path| path.display().to_string()),
        region: Region::of(finding, report),
    };
    Json {
        configuration: conf_path.display().to_string(),
        findings: report.findings.iter().map(finding).collect(),
        counts: Counts::of(report),
    }
}
