//! A finding: one thing that costs time, with its evidence.

use serde::Serialize;
use serde_json::{Map, Value};

use super::code::{Code, Text};

/// One thing that costs time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its code.
    pub code: Code,
    /// Its severity.
    pub severity: Severity,
    /// One sentence, with its figures.
    pub title: String,
    /// Time that a visitor loses by it, ms.
    pub lost_ms: f64,
    /// Lost round trips, if the cost grows with the distance; else 0.
    pub lost_round_trips: f64,
    /// Figures that prove it, by name.
    pub evidence: Map<String, Value>,
    /// Directives of nginx and of firstbyte, then commands that test the server again. The member of `--json` is `mend`, as in
    /// all reports of this format.
    #[serde(rename = "mend")]
    pub fixes: Vec<String>,
}

/// A name that a server sent, for a sentence: no longer than names are, without hidden characters.
#[must_use]
pub(super) fn name_of_server(name: &str) -> String {
    let clean = name.chars().filter(char::is_ascii_graphic);
    clean.take(NAME_CHARS_MAX).collect()
}

/// Characters of a name that a server sent: names of fields, metrics and protocols are shorter.
const NAME_CHARS_MAX: usize = 64;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing has to be done.
    Note,
    /// Visitors may lose time.
    Warn,
    /// Visitors lose time.
    Bad,
}

impl Finding {
    /// Returns a finding with its own title. The methods below add figures and fixes.
    #[must_use]
    pub fn new(code: Code, severity: Severity, title: impl Into<String>) -> Self {
        let (title, fixes) = (title.into(), Vec::new());
        Self::of(Text { code, title, fixes }, severity)
    }

    /// A finding with a text of its code's row, without figures.
    pub(crate) fn of(text: Text, severity: Severity) -> Self {
        Self {
            code: text.code,
            severity,
            title: text.title,
            lost_ms: 0.0,
            lost_round_trips: 0.0,
            evidence: Map::new(),
            fixes: text.fixes,
        }
    }

    /// Sets the cost: milliseconds, and round trips if the cost grows with the distance.
    #[must_use]
    pub fn costs(mut self, lost_ms: f64, lost_round_trips: f64) -> Self {
        (self.lost_ms, self.lost_round_trips) = (lost_ms, lost_round_trips);
        self
    }

    /// Adds a figure to the evidence.
    #[must_use]
    pub fn proof(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.evidence.insert(name.to_owned(), value.into());
        self
    }

    /// Appends a fix.
    #[must_use]
    pub fn fix(mut self, line: impl Into<String>) -> Self {
        self.fixes.push(line.into());
        self
    }

    /// Inserts fixes before the others.
    pub(crate) fn fix_first(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.fixes.splice(0..0, lines);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_servers_are_cut_and_cleaned() {
        let hostile = format!("\u{1b}[2J{}", "x".repeat(100));
        assert_eq!(name_of_server(&hostile).len(), NAME_CHARS_MAX);
        assert!(!name_of_server(&hostile).contains('\u{1b}'));
    }
}
