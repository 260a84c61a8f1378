//! References in CSS: `url()`, `src()`, `@import`, `image-set()`, the name of a source map.
//!
//! Comments and strings elsewhere are passed over, and so is the name of a namespace, which is no reference. The
//! same reader takes style sheets, `style` elements and `style` attributes. Absent: escapes in the names of functions.
//!
//! Source: CSS Syntax 3; CSS Images 4, `image-set()`; the convention `sourceMappingURL`.

use super::sink::{Report, Sink};
use crate::text::Text;

/// Reads style rules or declarations.
pub(super) fn scan(text: &Text<'_>, sink: &mut Sink<'_>) {
    Css {
        text,
        at: 0,
        rule: Vec::new(),
        image_sets: Vec::new(),
    }
    .run(sink);
}

struct Css<'a> {
    text: &'a Text<'a>,
    at: usize,
    /// The name of the at-rule at the reader's position.
    rule: Vec<u8>,
    /// For each open bracket whether it is that of `image-set`.
    image_sets: Vec<bool>,
}

impl Css<'_> {
    fn run(&mut self, sink: &mut Sink<'_>) {
        let bytes = self.text.bytes();
        while self.at < bytes.len() {
            match bytes[self.at] {
                b'/' if bytes[self.at..].starts_with(b"/*") => self.comment(sink),
                b'"' | b'\'' => {
                    let (from, to) = self.string();
                    let in_image_set = self.image_sets.last() == Some(&true);
                    if in_image_set || self.rule == b"import" {
                        sink.reference(&self.text.css(from, to), Report::Broken, None);
                        // Conditions follow the reference.
                        self.rule.clear();
                    }
                }
                b'@' => {
                    self.at += 1;
                    self.rule = self.name().to_ascii_lowercase();
                }
                b';' | b'{' | b'}' => {
                    self.rule.clear();
                    self.image_sets.clear();
                    self.at += 1;
                }
                b'(' => {
                    self.image_sets.push(false);
                    self.at += 1;
                }
                b')' => {
                    self.image_sets.pop();
                    self.at += 1;
                }
                b'\\' => self.at += 2,
                b if in_name(b) => self.word(sink),
                _ => self.at += 1,
            }
        }
    }

    /// A name, and the content of its brackets if that is a reference.
    fn word(&mut self, sink: &mut Sink<'_>) {
        let name = self.name().to_ascii_lowercase();
        let bytes = self.text.bytes();
        if bytes.get(self.at) != Some(&b'(') {
            return;
        }
        self.at += 1;
        match name.as_slice() {
            b"url" | b"src" => {
                self.blanks();
                let range = match bytes.get(self.at) {
                    Some(b'"' | b'\'') => self.string(),
                    _ if name == b"src" => {
                        self.image_sets.push(false);
                        return;
                    }
                    _ => self.bare(),
                };
                self.image_sets.push(false);
                if self.rule != b"namespace" {
                    sink.reference(&self.text.css(range.0, range.1), Report::Broken, None);
                }
            }
            b"image-set" | b"-webkit-image-set" => self.image_sets.push(true),
            _ => self.image_sets.push(false),
        }
    }

    /// Reads the text between `url(` and its bracket without quotes, and stops at the bracket.
    fn bare(&mut self) -> (usize, usize) {
        let bytes = self.text.bytes();
        let from = self.at;
        while self.at < bytes.len() && bytes[self.at] != b')' {
            self.at += if bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at = self.at.min(bytes.len());
        let blank = |b: &&u8| b.is_ascii_whitespace();
        let blanks = bytes[from..self.at].iter().rev().take_while(blank).count();
        (from, self.at - blanks)
    }

    /// Reads the text between quotes, and stops after them.
    fn string(&mut self) -> (usize, usize) {
        let (from, to, next) = self.text.quoted(self.at);
        self.at = next;
        (from, to)
    }

    fn name(&mut self) -> &[u8] {
        let bytes = self.text.bytes();
        let from = self.at;
        let length = bytes[from..].iter().take_while(|b| in_name(**b)).count();
        self.at += length;
        &bytes[from..from + length]
    }

    fn blanks(&mut self) {
        let rest = &self.text.bytes()[self.at..];
        self.at += rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
    }

    fn comment(&mut self, sink: &mut Sink<'_>) {
        let bytes = self.text.bytes();
        let from = self.at + 2;
        let rest = &bytes[from.min(bytes.len())..];
        let length = rest.windows(2).position(|w| w == b"*/");
        let to = length.map_or(bytes.len(), |length| from + length);
        source_map(self.text, from.min(to), to, sink);
        self.at = (to + 2).min(bytes.len());
    }
}

/// The name of a source map, if a comment has one.
pub(super) fn source_map(text: &Text<'_>, from: usize, to: usize, sink: &mut Sink<'_>) {
    let comment = &text.bytes()[from..to];
    for mark in [&b"# sourceMappingURL="[..], b"@ sourceMappingURL="] {
        if comment.starts_with(mark) {
            let from = from + mark.len();
            let url = &text.bytes()[from..to];
            let length = url.iter().take_while(|b| !b.is_ascii_whitespace()).count();
            sink.reference(&text.part(from, from + length), Report::Broken, None);
        }
    }
}

fn in_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'-' || b == b'_' || b >= 0x80
}
