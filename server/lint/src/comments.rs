//! The comments of a text and the directives they belong to.
//!
//! The parser drops comments. They are found again in the gaps between its words, so both agree about comments. A comment on a
//! line of its own belongs to the next directive of its block. A comment after other text belongs to the directives of its
//! line, and a comment inside a directive to this directive.

use conf::{Item, Pos, Word};

/// A comment and its directives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    /// The position of its `#`.
    pub(crate) pos: Pos,
    /// The text after the `#`, to the end of the line.
    pub(crate) text: Vec<u8>,
    /// The positions of its directives; empty if none follows it in its block.
    pub(crate) directives: Vec<Pos>,
}

/// Returns the comments of a text and its parsed items.
pub(crate) fn of(file: u32, text: &[u8], items: &[Item]) -> Vec<Comment> {
    let mut words = Vec::new();
    collect(items, &mut words);
    let mut lines = vec![0];
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    lines.extend(ends.map(|(at, _)| at + 1));
    let mut scan = Scan {
        file,
        text,
        lines,
        comments: Vec::new(),
        pending: Vec::new(),
        open: None,
        line: 0,
        on_line: Vec::new(),
    };
    let mut at = 0;
    for (word, directive) in words {
        let start = scan.offset(word.pos).max(at);
        scan.gap(at, start);
        at = (start + word.raw_len as usize).min(text.len());
        scan.word(word, directive, at);
    }
    scan.gap(at, text.len());
    scan.comments
}

/// The words in the order of the text, the first of a directive with the directive's place.
fn collect<'i>(items: &'i [Item], words: &mut Vec<(&'i Word, Option<Pos>)>) {
    for item in items {
        let Item::Directive(d) = item else { continue };
        words.push((&d.name, Some(d.pos)));
        words.extend(d.args.iter().map(|word| (word, None)));
        collect(d.items(), words);
    }
}

struct Scan<'a> {
    file: u32,
    text: &'a [u8],
    /// The offset of each line.
    lines: Vec<usize>,
    comments: Vec<Comment>,
    /// Comments that wait for the next directive.
    pending: Vec<usize>,
    /// The directive that is being read.
    open: Option<Pos>,
    /// The line on which the directives of `on_line` have words, from 1.
    line: u32,
    on_line: Vec<Pos>,
}

impl Scan<'_> {
    fn offset(&self, pos: Pos) -> usize {
        let line = (pos.line as usize).saturating_sub(1);
        let start = self.lines.get(line).copied().unwrap_or(self.text.len());
        (start + pos.column as usize).saturating_sub(1)
    }

    fn pos(&self, at: usize) -> Pos {
        let line = self.lines.partition_point(|start| *start <= at);
        let column = at - self.lines[line - 1] + 1;
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Pos {
            file: self.file,
            line: number(line),
            column: number(column),
        }
    }

    fn word(&mut self, word: &Word, directive: Option<Pos>, end: usize) {
        if let Some(pos) = directive {
            self.open = Some(pos);
            for comment in self.pending.drain(..) {
                self.comments[comment].directives.push(pos);
            }
        }
        self.touch(word.pos.line);
        self.touch(self.pos(end.saturating_sub(1)).line);
    }

    /// The open directive has something on a line.
    fn touch(&mut self, line: u32) {
        let Some(open) = self.open else { return };
        if self.line != line {
            self.line = line;
            self.on_line.clear();
        }
        if self.on_line.last() != Some(&open) {
            self.on_line.push(open);
        }
    }

    /// The gap between two words: blanks, marks and comments.
    fn gap(&mut self, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            match self.text[at] {
                b';' | b'{' => {
                    self.touch(self.pos(at).line);
                    self.open = None;
                }
                b'}' => self.pending.clear(),
                b'#' => {
                    let rest = &self.text[at + 1..end];
                    let length = rest.iter().position(|byte| *byte == b'\n');
                    let length = length.unwrap_or(rest.len());
                    self.comment(at, rest[..length].to_vec());
                    at += length;
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn comment(&mut self, at: usize, text: Vec<u8>) {
        let pos = self.pos(at);
        let directives = match self.open {
            Some(open) => vec![open],
            None if self.line == pos.line => self.on_line.clone(),
            None => {
                self.pending.push(self.comments.len());
                Vec::new()
            }
        };
        self.comments.push(Comment {
            pos,
            text,
            directives,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conf::{Origin, parse};

    /// Each comment as `text -> columns and lines of its directives`.
    fn comments(text: &str) -> Vec<String> {
        let items = parse(&std::sync::Arc::new(text.into()), 0, &Origin::file("/a"));
        let shown = of(0, text.as_bytes(), &items).into_iter().map(|comment| {
            let places: Vec<String> = comment
                .directives
                .iter()
                .map(|pos| format!("{}:{}", pos.line, pos.column))
                .collect();
            let text = String::from_utf8_lossy(&comment.text).into_owned();
            format!("{} -> {}", text.trim(), places.join(" "))
        });
        shown.collect()
    }

    #[test]
    fn a_comment_above_belongs_to_the_next_directive() {
        assert_eq!(comments("# a\n\n# b\nx y;\nz;"), ["a -> 4:1", "b -> 4:1"]);
        assert_eq!(comments("s {\n # a\n x;\n}"), ["a -> 3:2"]);
    }

    #[test]
    fn a_comment_behind_belongs_to_its_line() {
        assert_eq!(comments("x; # a\ny;"), ["a -> 1:1"]);
        assert_eq!(comments("s { # a\n x; }"), ["a -> 1:1"]);
        assert_eq!(comments("s { x; } # a"), ["a -> 1:1 1:5"]);
        assert_eq!(comments("x a\n b; # a\ny;"), ["a -> 1:1"]);
        assert_eq!(comments("x 'a\nb'; # a\ny;"), ["a -> 1:1"]);
    }

    #[test]
    fn a_comment_inside_belongs_to_what_is_open() {
        assert_eq!(comments("x a # a\n b;\ny;"), ["a -> 1:1"]);
    }

    #[test]
    fn a_comment_before_the_end_belongs_to_nothing() {
        assert_eq!(comments("s { x;\n# a\n}\ny;\n# b"), ["a -> ", "b -> "]);
    }

    #[test]
    fn a_hash_in_a_word_is_none() {
        assert_eq!(comments("x a#b \"# c\" '#\n';"), [""; 0]);
    }
}
