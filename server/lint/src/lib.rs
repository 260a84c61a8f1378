//! Warnings of `-t` for configurations that load but do not have their obvious effect.
//!
//! [`check`] reads a configuration as text into a tree and runs every rule of [`rules::RULES`] on it. Rules know names, places
//! and arguments of directives, including directives that firstbyte has not built. Each warning has a code, and a comment
//! silences it (see `allow`). `docs/lint.md` explains each code, and its examples are tests of this crate.
//!
//! The crate depends only on the syntax crate `conf`. Starts and reloads do not use it.

#![forbid(unsafe_code)]

mod allow;
mod bytes;
mod comments;
mod delays;
mod level;
mod listens;
mod manual;
mod pass_address;
mod regex;
mod report;
mod rules;
mod tree;
mod uses;
mod value;

use std::path::Path;

use conf::{ConfError, Source};

pub use delays::{CertificateFile, Delay, Delays, Weight, delays};
pub use level::Level;
pub use manual::section;
pub use report::{Finding, Group, Report};
pub use rules::Rule;
pub use tree::{DATA_BLOCKS, ReadError};

use tree::{Id, Tree};

/// All rules, in the order of their codes.
pub fn rules() -> &'static [Rule] {
    rules::RULES
}

/// Checks the configuration at `conf_path`, with `globals` from the command line.
///
/// # Errors
/// The text is not whole: a file cannot be read or has an error of syntax.
pub fn check(
    source: impl Source + 'static,
    conf_path: &Path,
    globals: Option<&str>,
) -> Result<Report, Box<ReadError>> {
    let tree = Tree::read(source, conf_path, globals, rules::find_code)?;
    let mut findings = Vec::new();
    for rule in rules::RULES {
        let mut warn = Warn {
            rule,
            tree: &tree,
            findings: &mut findings,
        };
        (rule.check)(&tree, &mut warn);
    }
    Ok(Report::new(findings, tree.files))
}

/// Collects the warnings of a rule.
pub(crate) struct Warn<'a> {
    rule: &'static Rule,
    tree: &'a Tree,
    findings: &'a mut Vec<Finding>,
}

impl Warn<'_> {
    /// Warns about the name of a directive.
    fn name(&mut self, id: Id, message: impl AsRef<str>, hint: impl Into<String>) {
        let d = self.tree.directive(id);
        let message = self.message(message.as_ref());
        self.add(id, ConfError::at(d, message).with_hint(hint));
    }

    /// Warns about one argument of a directive.
    fn word(&mut self, id: Id, index: usize, message: impl AsRef<str>, hint: impl Into<String>) {
        let d = self.tree.directive(id);
        let message = self.message(message.as_ref());
        self.add(
            id,
            ConfError::word(d, d.word(index), message).with_hint(hint),
        );
    }

    /// The code of the current rule.
    fn code(&self) -> &'static str {
        self.rule.code
    }

    fn message(&self, message: &str) -> String {
        format!("{}: {message}", self.rule.code)
    }

    fn add(&mut self, id: Id, warning: ConfError) {
        let allows = &self.tree.allows;
        if !allows.silences(self.tree, id, self.rule.code) {
            self.push(warning);
        }
    }

    /// Adds a warning without looking for silencing comments.
    fn push(&mut self, warning: ConfError) {
        self.findings.push(Finding {
            rule: self.rule,
            // The line that the excerpt shows; a directive may end lines later.
            warning: warning.on_line_of_caret(),
        });
    }
}

#[cfg(test)]
mod testing {
    use std::path::Path;

    use conf::Memory;

    use crate::tree::Tree;

    const MAIN: &str = "/etc/nginx/nginx.conf";

    /// The tree of a text.
    pub(crate) fn tree(text: &str) -> Tree {
        let source = Memory::default().with_file(MAIN, text);
        Tree::read(source, Path::new(MAIN), None, crate::rules::find_code)
            .expect("the text is whole")
    }

    /// The warnings about a whole configuration, as `FB201 3:15`.
    pub(crate) fn warnings(text: &str) -> Vec<String> {
        let source = Memory::default().with_file(MAIN, text);
        let report = crate::check(source, Path::new(MAIN), None).expect("the text is whole");
        let shown = report.findings.iter().map(|finding| {
            let pos = finding.warning.pos().expect("a warning has a place");
            format!("{} {}:{}", finding.rule.code, pos.line, pos.column)
        });
        shown.collect()
    }

    /// The codes of the warnings about a text in `server`.
    pub(crate) fn in_server(text: &str) -> Vec<&'static str> {
        in_http(&format!("server {{ listen 80; {text}\n}}"))
    }

    /// The codes of the warnings about a text in `http`.
    pub(crate) fn in_http(text: &str) -> Vec<&'static str> {
        let text = format!("events {{}} http {{ {text}\n}}");
        let source = Memory::default().with_file(MAIN, text);
        let report = crate::check(source, Path::new(MAIN), None).expect("the text is whole");
        report.findings.iter().map(|f| f.rule.code).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use conf::Memory;

    use super::*;

    /// The first lines and excerpts of the warnings about a text.
    fn rendered(text: &str) -> Vec<String> {
        let source = Memory::default().with_file("/c", text);
        let report = check(source, Path::new("/c"), None).expect("the text is whole");
        report.rendered().collect()
    }

    #[test]
    fn a_warning_names_the_line_of_its_excerpt() {
        for (text, line) in [
            ("error_log\n  off\n  warn;", 2),
            ("http { ssl_protocols\n  TLSv1.2\n  TLSv1.1\n; }", 3),
            ("http { location\n  /a\n{ alias /b/; } }", 2),
            ("http { add_header\n  Content-Type\n  a; }", 2),
            ("http { add_header B 'c\n  d'\n; }", 1),
            ("\n# firstbyte: allow FB1\nhttp { }", 2),
        ] {
            let rendered = rendered(text);
            let [warning] = &rendered[..] else {
                panic!("{rendered:?}")
            };
            let (first, excerpt) = warning.split_once('\n').expect("an excerpt");
            assert!(first.ends_with(&format!(" in /c:{line}")), "{warning}");
            assert!(excerpt.starts_with(&format!("{line:>5} | ")), "{warning}");
        }
    }
}
