//! References in style sheets: `@import`, `url()`, and the first supported source of each `@font-face`.
//!
//! This is only a scanner: it understands comments, strings and escapes, but not rules. Source: CSS Syntax Module Level
//! 3 sections 4.3.5 to 4.3.7, CSS Cascading and Inheritance Level 4 section 2, CSS Fonts Module Level 4 section 4.3.

use crate::page::Kind;

/// The references of a style sheet, in order.
pub(super) fn references(text: &str) -> Vec<(Kind, String)> {
    let mut scanner = Scanner {
        rest: text,
        found: Vec::new(),
        at: At::Rule,
        font: None,
    };
    while scanner.step() {}
    scanner.end_block();
    scanner.found
}

struct Scanner<'a> {
    rest: &'a str,
    found: Vec<(Kind, String)>,
    at: At,
    /// URL of the current font source, and whether its format may follow.
    font: Option<(String, bool)>,
}

/// Position of the scanner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Rule,
    /// After `@import`: its first string or URL is a style sheet.
    Import,
    /// After `@namespace`: its URL is a name.
    Name,
    /// In the block of a font.
    Font,
}

impl Scanner<'_> {
    /// Takes the next relevant token, or one character.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        match first {
            '/' if self.rest.starts_with("/*") => {
                let end = self.rest[2..].find("*/");
                self.skip(end.map_or(self.rest.len(), |end| end + 4));
            }
            '"' | '\'' => {
                let text = self.string(first);
                match self.at {
                    At::Import => self.take(text),
                    At::Font => self.take_format(&text),
                    At::Rule | At::Name => {}
                }
            }
            '@' if self.is_word("@import") => self.at = At::Import,
            '@' if self.is_word("@namespace") => self.at = At::Name,
            '@' if self.is_word("@font-face") => self.at = At::Font,
            ';' if matches!(self.at, At::Import | At::Name) => {
                self.at = At::Rule;
                self.skip(1);
            }
            '}' => {
                self.end_block();
                self.skip(1);
            }
            'u' | 'U' if self.is_word("url(") => {
                let text = self.url();
                self.take(text);
            }
            c if c.is_alphanumeric() || c == '-' || c == '_' => {
                // A word as a whole: `curl(` is no `url(`.
                let is_of_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
                let end = self.rest.find(|c| !is_of_word(c));
                let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest;
                if self.at == At::Font && word.eq_ignore_ascii_case("src") {
                    // Of several declarations the last counts: those before it are for old browsers.
                    self.font = None;
                }
            }
            '\\' => {
                let mut chars = self.rest.chars();
                chars.next();
                chars.next();
                self.rest = chars.as_str();
            }
            c => self.skip(c.len_utf8()),
        }
        true
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Takes a word if it is next; case is ignored.
    fn is_word(&mut self, word: &str) -> bool {
        let found = self.rest.get(..word.len());
        let is_it = found.is_some_and(|found| found.eq_ignore_ascii_case(word));
        if is_it {
            self.skip(word.len());
        }
        is_it
    }

    /// Takes a string and its quotes; without an end, it ends with its line.
    fn string(&mut self, quote: char) -> String {
        self.skip(1);
        let mut text = String::new();
        while let Some(c) = self.rest.chars().next() {
            if c == '\n' {
                break;
            }
            self.skip(c.len_utf8());
            match c {
                _ if c == quote => break,
                '\\' => text.extend(self.escape()),
                c => text.push(c),
            }
        }
        text
    }

    /// Takes the rest of an escape after its backslash: up to six hexadecimal digits and a blank, a line end, which is
    /// ignored, or a character.
    fn escape(&mut self) -> Option<char> {
        let digits = self
            .rest
            .bytes()
            .take(6)
            .take_while(u8::is_ascii_hexdigit)
            .count();
        if digits == 0 {
            let c = self.rest.chars().next()?;
            self.skip(c.len_utf8());
            return (c != '\n').then_some(c);
        }
        let code = u32::from_str_radix(&self.rest[..digits], 16).ok();
        self.skip(digits);
        if self.rest.starts_with(char::is_whitespace) {
            self.skip(1);
        }
        Some(code.and_then(char::from_u32).unwrap_or('\u{fffd}'))
    }

    /// Takes the argument of `url(` and its closing bracket.
    fn url(&mut self) -> String {
        self.rest = self.rest.trim_start();
        if let Some(quote @ ('"' | '\'')) = self.rest.chars().next() {
            let text = self.string(quote);
            let end = self.rest.find(')');
            self.skip(end.map_or(self.rest.len(), |end| end + 1));
            return text;
        }
        let mut text = String::new();
        while let Some(c) = self.rest.chars().next() {
            self.skip(c.len_utf8());
            match c {
                ')' => break,
                '\\' => text.extend(self.escape()),
                c => text.push(c),
            }
        }
        text.trim_end().to_owned()
    }

    fn take(&mut self, reference: String) {
        let kind = match self.at {
            At::Import => {
                self.at = At::Rule;
                Kind::Stylesheet
            }
            At::Name => return,
            At::Font => {
                let first = (reference, true);
                let font = self.font.take();
                self.font = Some(font.map_or(first, |(source, _)| (source, false)));
                return;
            }
            At::Rule => Kind::Image,
        };
        self.add(kind, reference);
    }

    /// Takes the format of a font's source. A source with a format that no browser supports is skipped.
    fn take_format(&mut self, format: &str) {
        let is_unread = matches!(format, "embedded-opentype" | "svg");
        self.font = self
            .font
            .take()
            .filter(|(_, is_last)| !(is_unread && *is_last));
    }

    fn end_block(&mut self) {
        self.at = At::Rule;
        if let Some((source, _)) = self.font.take() {
            self.add(Kind::Font, source);
        }
    }

    fn add(&mut self, kind: Kind, reference: String) {
        // A reference to a part of the document itself is no resource.
        if !reference.is_empty() && !reference.starts_with('#') {
            self.found.push((kind, reference));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_urls_and_fonts_are_found() {
        let text = r#"
            @charset "utf-8";
            /* url(no.png) */
            @import 'a.css';
            @IMPORT URL( b.css ) screen;
            @import url("c.css") layer(x);
            @font-face { font-family: "F"; src: local("G"), url(f.woff2) format("woff2"), url(f.woff) }
            @font-face { src: url('g.woff2') }
            @namespace svg url(http://no/);
            @font-face { src: url(no.eot); SRC: local("x"), url("no.eot?#iefix") format("embedded-opentype"),
                url(h.woff2) format("woff2"), url(no.svg) format('svg'); font-family: "svg" }
            .a { background: url(a.png), URL("b (1).png"); content: "url(no2.png)"; }
            .b { background: url( 'c\'d.png' ) no-repeat; curl(no3.png); fill: url(#part) }
            .c { background: url(e\20 f.png); cursor: url(g\
h.cur) }
        "#;
        let found = references(text);
        let expected = [
            (Kind::Stylesheet, "a.css"),
            (Kind::Stylesheet, "b.css"),
            (Kind::Stylesheet, "c.css"),
            (Kind::Font, "f.woff2"),
            (Kind::Font, "g.woff2"),
            (Kind::Font, "h.woff2"),
            (Kind::Image, "a.png"),
            (Kind::Image, "b (1).png"),
            (Kind::Image, "c'd.png"),
            (Kind::Image, "e f.png"),
            (Kind::Image, "gh.cur"),
        ];
        assert_eq!(found, expected.map(|(kind, name)| (kind, name.to_owned())));
    }

    #[test]
    fn what_has_no_end_ends_with_the_text() {
        for text in [
            "url(", "url('a", "/*", "@import", "\"", "\\", "url(\\", "@", "é\\é", "url(a\\", "'\\",
        ] {
            let _ = references(text);
        }
        assert_eq!(references("url(a"), [(Kind::Image, "a".to_owned())]);
        let font = (Kind::Font, "a".to_owned());
        assert_eq!(references("@font-face { src: url(a)"), [font]);
        assert_eq!(
            references("@import \"a"),
            [(Kind::Stylesheet, "a".to_owned())]
        );
    }
}
