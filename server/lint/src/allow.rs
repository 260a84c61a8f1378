//! Comments that silence warnings: `# firstbyte: allow FB201 FB301 -- why`, and `allow-file` for a whole file.
//!
//! `allow` applies to its directive (see [`crate::comments`]) and the directive's block, including files of an `include` in it.
//! Text after `--` is a reason for readers.

use std::collections::{HashMap, HashSet};

use conf::{ConfError, Directive, Item, Pos, Word};

use crate::tree::{Id, Tree};
use crate::{Warn, comments};

/// Looks up a code in the table of rules.
pub(crate) type CodeLookup = fn(&str) -> Option<&'static str>;

/// The silenced codes, by directive and file.
pub(crate) struct Allows {
    known: CodeLookup,
    seen: HashSet<u32>,
    files: HashSet<(u32, &'static str)>,
    directives: HashMap<(u32, u32, u32), Vec<&'static str>>,
    faults: Vec<AllowError>,
}

struct AllowError {
    kind: AllowErrorKind,
    pos: Pos,
    len: usize,
    message: String,
    hint: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AllowErrorKind {
    UnknownCode,
    Useless,
}

impl Allows {
    /// Creates a set that silences nothing.
    pub(crate) fn new(known: CodeLookup) -> Self {
        Self {
            known,
            seen: HashSet::new(),
            files: HashSet::new(),
            directives: HashMap::new(),
            faults: Vec::new(),
        }
    }

    /// Adds the comments of a file; call it once for each file.
    pub(crate) fn add_file(&mut self, file: u32, text: &[u8], items: &[Item]) {
        let marked = text.windows(MARK.len()).any(|w| w == MARK.as_bytes());
        if !marked || !self.seen.insert(file) {
            return;
        }
        for comment in comments::of(file, text, items) {
            let text = String::from_utf8_lossy(&comment.text).into_owned();
            if let Some(rest) = text.trim_start().strip_prefix(MARK) {
                let offset = 1 + text.len() - rest.len();
                self.add(&comment, rest, offset);
            }
        }
    }

    /// `offset` is the position of `rest` in the comment, including its `#`.
    fn add(&mut self, comment: &comments::Comment, rest: &str, offset: usize) {
        let rest = rest.split("--").next().unwrap_or_default();
        // Messages point at a single word, so each word has its position in the comment.
        let mut words = rest
            .split([' ', '\t', '\r', ','])
            .filter(|word| !word.is_empty())
            .map(|word| {
                (
                    word,
                    offset + word.as_ptr() as usize - rest.as_ptr() as usize,
                )
            });
        let whole_file = match words.next() {
            Some(("allow", _)) => false,
            Some(("allow-file", _)) => true,
            other => {
                let word = other.map_or("", |(word, _)| word);
                let message = format!(
                    "unknown word \"{word}\" in a \"firstbyte:\" comment, expected \"allow\" or \"allow-file\""
                );
                self.useless(comment, message);
                return;
            }
        };
        let mut any = false;
        for (word, at) in words {
            any = true;
            match (self.known)(word) {
                Some(code) => self.allow(comment, code, whole_file),
                None => self.faults.push(AllowError {
                    kind: AllowErrorKind::UnknownCode,
                    pos: Pos {
                        column: comment
                            .pos
                            .column
                            .saturating_add(u32::try_from(at).unwrap_or(0)),
                        ..comment.pos
                    },
                    len: word.len(),
                    message: format!("unknown warning code \"{word}\""),
                    hint: "docs/lint.md lists the codes; write a reason after \"--\"",
                }),
            }
        }
        if !any {
            self.useless(
                comment,
                "no warning code in a \"firstbyte:\" comment".to_owned(),
            );
        } else if !whole_file && comment.directives.is_empty() {
            let message =
                "no directive follows this \"firstbyte:\" comment in its block".to_owned();
            self.useless(comment, message);
        }
    }

    fn allow(&mut self, comment: &comments::Comment, code: &'static str, whole_file: bool) {
        if whole_file {
            self.files.insert((comment.pos.file, code));
            return;
        }
        for pos in &comment.directives {
            let key = (pos.file, pos.line, pos.column);
            self.directives.entry(key).or_default().push(code);
        }
    }

    fn useless(&mut self, comment: &comments::Comment, message: String) {
        self.faults.push(AllowError {
            kind: AllowErrorKind::Useless,
            pos: comment.pos,
            len: comment.text.len() + 1,
            message,
            hint: "write \"# firstbyte: allow CODE\" above a directive or after it on its line",
        });
    }

    /// Whether a code is silenced for a directive.
    pub(crate) fn silences(&self, tree: &Tree, id: Id, code: &'static str) -> bool {
        tree.holders(id).any(|holder| {
            let Pos { file, line, column } = tree.directive(holder).pos;
            let here = self.directives.get(&(file, line, column));
            here.is_some_and(|codes| codes.contains(&code))
        }) || self.silences_file(tree.directive(id).pos.file, code)
    }

    fn silences_file(&self, file: u32, code: &'static str) -> bool {
        self.files.contains(&(file, code))
    }
}

/// FB001: a silencing comment names a code that no warning has.
pub(crate) fn unknown_codes(tree: &Tree, warn: &mut Warn<'_>) {
    faults(tree, warn, AllowErrorKind::UnknownCode);
}

/// FB002: a silencing comment without effect.
pub(crate) fn useless(tree: &Tree, warn: &mut Warn<'_>) {
    faults(tree, warn, AllowErrorKind::Useless);
}

fn faults(tree: &Tree, warn: &mut Warn<'_>, kind: AllowErrorKind) {
    let allows = &tree.allows;
    for fault in allows.faults.iter().filter(|fault| fault.kind == kind) {
        if allows.silences_file(fault.pos.file, warn.code()) {
            continue;
        }
        // A comment is no directive, so a synthetic directive has the position for the message.
        let mut place = Directive::synthetic("comment");
        let len = u32::try_from(fault.len).unwrap_or(u32::MAX);
        place.name = Word::new("comment", fault.pos, false, len);
        place.pos = fault.pos;
        place.end_line = fault.pos.line;
        if let Some(path) = tree.files.path(fault.pos.file) {
            place.origin = conf::Origin::file(path);
        }
        let message = format!("{}: {}", warn.code(), fault.message);
        warn.push(ConfError::at(&place, message).with_hint(fault.hint));
    }
}

/// The beginning of a comment for firstbyte.
const MARK: &str = "firstbyte:";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use conf::Memory;

    use crate::testing::warnings;

    const TRAP: &str = "location /a { alias /b/; }";

    #[test]
    fn a_comment_silences_its_directive_and_what_is_in_it() {
        for text in [
            format!("# firstbyte: allow FB201\n{TRAP}"),
            format!("#firstbyte: allow FB301,FB201 -- why FB999\n{TRAP}"),
            format!("{TRAP} # firstbyte: allow FB201"),
            format!("# firstbyte: allow FB201\nserver {{ {TRAP} }}"),
            format!("server {{ # firstbyte: allow FB201\n{TRAP} }}"),
            format!("{TRAP}\n# firstbyte: allow-file FB201"),
        ] {
            assert_eq!(warnings(&format!("http {{\n{text}\n}}")), [""; 0], "{text}");
        }
        for text in [
            format!("# firstbyte: allow FB202\n{TRAP}"),
            format!("# firstbyte: allow FB201\nroot /c;\n{TRAP}"),
            format!("root /c; # firstbyte: allow FB201\n\n{TRAP}"),
        ] {
            let found = warnings(&format!("http {{\n{text}\n}}"));
            assert!(found[0].starts_with("FB201 "), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_comment_at_an_include_silences_what_it_reads() {
        let found = |main: &str| {
            let source = Memory::default()
                .with_file("/c/nginx.conf", main)
                .with_file("/c/part", TRAP);
            let report = crate::check(source, Path::new("/c/nginx.conf"), None);
            report.expect("it is whole").findings.len()
        };
        assert_eq!(found("http { include part; include part; }"), 1);
        assert_eq!(
            found("http { include part; # firstbyte: allow FB201\n }"),
            0
        );
        assert_eq!(
            found("# firstbyte: allow-file FB201\nhttp { include part; }"),
            1
        );
    }

    #[test]
    fn a_comment_that_is_wrong_is_told_where_it_is_wrong() {
        for (text, expected) in [
            ("# firstbyte: allow FB201 FB2\nhttp { }", "FB001 1:26"),
            ("http { } # firstbyte: allow a reason", "FB001 1:29"),
            (" # firstbyte: alow FB201\nhttp { }", "FB002 1:2"),
            ("# firstbyte: allow -- why\nhttp { }", "FB002 1:1"),
            ("http {\n# firstbyte: allow FB201\n}", "FB002 2:1"),
            ("# firstbyte:\nhttp { }", "FB002 1:1"),
        ] {
            assert_eq!(
                warnings(text).first().map(String::as_str),
                Some(expected),
                "{text}"
            );
        }
        assert_eq!(warnings("# firstbyte is here: allow\nhttp { }"), [""; 0]);
    }
}
