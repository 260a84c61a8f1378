//! The result of a check: warnings with their rules, levels and places.
//!
//! A configuration of thousands of servers has a trap thousands of times. [`Report::groups`] joins such warnings for terminals;
//! programs read all of [`Report::findings`].

use std::collections::HashMap;
use std::path::Path;

use conf::{ConfError, Files, Pos};

use crate::level::Level;
use crate::rules::Rule;

/// One warning.
#[derive(Debug)]
pub struct Finding {
    /// The rule that found it.
    pub rule: &'static Rule,
    /// The message, which begins with the code, and its place.
    pub warning: ConfError,
}

impl Finding {
    /// The message without its code.
    pub fn message(&self) -> &str {
        let message = self.warning.message();
        let rest = message.strip_prefix(self.rule.code);
        rest.and_then(|rest| rest.strip_prefix(": "))
            .unwrap_or(message)
    }

    /// The file it is about; `None` for the command line.
    pub fn path<'f>(&self, files: &'f Files) -> Option<&'f Path> {
        self.warning.pos().and_then(|pos| files.path(pos.file))
    }

    /// File, line and column, which order the warnings.
    fn place(&self) -> (u32, u32, u32) {
        let pos = self.warning.pos();
        pos.map_or((0, 0, 0), |Pos { file, line, column }| (file, line, column))
    }
}

/// The warnings about a configuration, in the order of its text.
pub struct Report {
    /// The warnings.
    pub findings: Vec<Finding>,
    /// The texts they are about.
    pub files: Files,
}

impl Report {
    pub(crate) fn new(mut findings: Vec<Finding>, files: Files) -> Self {
        findings.sort_by_key(|finding| (finding.place(), finding.rule.code));
        // A file that is included twice is warned of once.
        findings.dedup_by_key(|finding| (finding.place(), finding.rule.code));
        Self { findings, files }
    }

    /// The text of each group.
    pub fn rendered(&self) -> impl Iterator<Item = String> {
        let groups = self.groups().into_iter();
        groups.map(|group| group.render(&self.files))
    }

    /// The warnings for a terminal. More than [`SHOWN_EACH_MAX`] warnings that differ only in names and places are one group;
    /// groups are in the order of their first warnings.
    pub fn groups(&self) -> Vec<Group<'_>> {
        let mut alike: HashMap<(&str, String), Vec<usize>> = HashMap::new();
        for (index, finding) in self.findings.iter().enumerate() {
            let key = (finding.rule.code, shape(finding.message()));
            alike.entry(key).or_default().push(index);
        }
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for indexes in alike.into_values() {
            match indexes.len() > SHOWN_EACH_MAX {
                true => groups.push(indexes),
                false => groups.extend(indexes.into_iter().map(|index| vec![index])),
            }
        }
        groups.sort_unstable();
        let group = |indexes: Vec<usize>| Group {
            findings: indexes.iter().map(|index| &self.findings[*index]).collect(),
        };
        groups.into_iter().map(group).collect()
    }
}

/// Warnings of one rule that are shown as one; never empty.
pub struct Group<'r> {
    findings: Vec<&'r Finding>,
}

impl Group<'_> {
    /// The severity of its warnings.
    pub fn level(&self) -> Level {
        self.findings[0].rule.level
    }

    /// The first warning with its line and a caret, the number of the others and some of their places.
    pub fn render(&self, files: &Files) -> String {
        let (first, others) = (&self.findings[0].warning, &self.findings[1..]);
        if others.is_empty() {
            return first.render(files);
        }
        let count = grouped(others.len());
        let mut more = format!("the others: {}", places(others, files));
        if others.len() > PLACES_SHOWN {
            more += ", ...; \"firstbyte lint --json\" lists all of them";
        }
        let hint = first.hint().map(|hint| format!("{hint}\n"));
        let first = first
            .clone()
            .with_more(&format!(" (and {count} more like it)"));
        first
            .with_hint(hint.unwrap_or_default() + &more)
            .render(files)
    }
}

/// The first [`PLACES_SHOWN`] places: `/a.conf:12, 16, /b.conf:3`.
fn places(findings: &[&Finding], files: &Files) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut before = None;
    for finding in &findings[..findings.len().min(PLACES_SHOWN)] {
        let (file, line, _) = finding.place();
        let path = finding.path(files).filter(|_| before != Some(file));
        before = Some(file);
        shown.push(match path {
            Some(path) => format!("{}:{line}", path.display()),
            None => line.to_string(),
        });
    }
    shown.join(", ")
}

/// A message without its names and places: text in quotes, and words with a slash.
fn shape(message: &str) -> String {
    let outside = message.split('"').step_by(2);
    let words = outside.flat_map(|text| text.split_whitespace().chain([QUOTED]));
    let kept: Vec<&str> = words.filter(|word| !word.contains('/')).collect();
    kept.join(" ")
}

/// `4,999`
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Most similar warnings that are shown separately.
const SHOWN_EACH_MAX: usize = 10;
/// Places of a group that are listed, besides the first.
const PLACES_SHOWN: usize = 5;
/// Replaces a text in quotes.
const QUOTED: &str = "\"";

#[cfg(test)]
mod tests {
    use super::*;
    use conf::Memory;

    /// The warnings about `count` blocks of `http` with one trap each.
    fn rendered(count: usize, block: impl Fn(usize) -> String) -> Vec<String> {
        let blocks: String = (0..count).map(|n| block(n) + "\n").collect();
        let source = Memory::default().with_file("/c", format!("http {{\n{blocks}}}"));
        let report = crate::check(source, Path::new("/c"), None).expect("the text is whole");
        assert_eq!(report.findings.len(), count);
        report.rendered().collect()
    }

    fn trap(n: usize) -> String {
        let default = if n == 0 { " default_server" } else { "" };
        format!(
            "server {{ listen 80{default}; server_name a{n}; location /f{n} {{ alias /srv/{n}/f/; }} }}"
        )
    }

    #[test]
    fn many_warnings_that_are_alike_are_one() {
        // The limit, and one above it.
        let each = rendered(SHOWN_EACH_MAX, trap);
        assert_eq!(each.len(), SHOWN_EACH_MAX);
        assert!(each.iter().all(|shown| !shown.contains("more like it")));
        for (count, more) in [(SHOWN_EACH_MAX + 1, "10"), (5000, "4,999")] {
            let shown = rendered(count, trap);
            let [shown] = &shown[..] else {
                panic!("{shown:?}")
            };
            let first = format!(" (and {more} more like it) in /c:2\n");
            assert!(shown.contains(&first), "{shown}");
            assert_eq!(shown.lines().count(), 5, "{shown}");
            let last =
                "\nthe others: /c:3, 4, 5, 6, 7, ...; \"firstbyte lint --json\" lists all of them";
            assert!(shown.ends_with(last), "{shown}");
        }
    }

    #[test]
    fn messages_that_differ_in_words_are_not_alike() {
        let why = |n: usize| match n % 2 {
            0 => format!("map $http_origin $a{n} {{ ~a\\.example$ 1; }}"),
            _ => format!("map $http_origin $a{n} {{ ~^https://a\\.example 1; }}"),
        };
        assert_eq!(rendered(2 * SHOWN_EACH_MAX, why).len(), 2 * SHOWN_EACH_MAX);
        assert_eq!(rendered(2 * SHOWN_EACH_MAX + 2, why).len(), 2);
    }

    #[test]
    fn a_shape_has_no_names() {
        let one = shape("\"allow a\" of /etc/a:12 is");
        assert_eq!(one, shape("\"allow b\" of /c:1 is"));
        assert_ne!(one, shape("\"allow b\" of /c:1 was"));
        assert_ne!(shape("a \"b\""), shape("a"));
    }

    #[test]
    fn numbers_have_commas() {
        for (number, shown) in [
            (1, "1"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), shown);
        }
    }
}
