//! Configuration errors: nginx's line, then the place shown, then a hint.
//!
//! [`ConfError`]'s `Display` is exactly what nginx prints after `nginx: [emerg] `. [`ConfError::render`] adds the line of the
//! file with a caret under the word, and a hint if there is one:
//!
//! ```text
//! unknown directive "srever" in /etc/nginx/nginx.conf:3
//!     3 |     srever {
//!       |     ^^^^^^
//! did you mean "server"?
//! ```
//!
//! The line in the message is the last one nginx has read when it notices the error (`Directive::end_line`). The caret marks
//! the wrong word, which may be lines before.

use std::fmt::{self, Write as _};
use std::io;
use std::ops::Range;
use std::path::Path;

use sys::os_error;

use crate::{Directive, Files, Origin, Pos, Word};

/// An error in the configuration; always of nginx's level `emerg` unless collected as a warning.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfError(Box<Fields>);

#[derive(Clone, PartialEq, Eq)]
struct Fields {
    message: String,
    place: Option<(Origin, u32)>,
    caret: Option<Caret>,
    hint: Option<String>,
}

/// The span to underline: `len` bytes from `pos`, at most to the end of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Caret {
    pos: Pos,
    len: u32,
}

impl Caret {
    /// The span in the bytes of its line.
    fn bytes(self, line: &[u8]) -> (usize, usize) {
        let start = (self.pos.column as usize).saturating_sub(1).min(line.len());
        let end = start.saturating_add(self.len as usize).min(line.len());
        (start, end)
    }
}

/// The position of a word of a directive, for an error after the directive was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordSpan {
    origin: Origin,
    line: u32,
    caret: Caret,
}

impl WordSpan {
    /// The place of a word of a directive.
    pub fn new(directive: &Directive, word: &Word) -> Self {
        Self {
            origin: directive.origin.clone(),
            line: directive.end_line,
            caret: Caret {
                pos: word.pos,
                len: word.raw_len,
            },
        }
    }

    /// An error about the word, see [`ConfError::word`].
    pub fn error(&self, message: impl Into<String>) -> ConfError {
        ConfError::new(message)
            .with_place((self.origin.clone(), self.line))
            .with_caret(self.caret.pos, self.caret.len)
    }
}

impl ConfError {
    /// An error that has no place in a file.
    pub fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Fields {
            message: message.into(),
            place: None,
            caret: None,
            hint: None,
        }))
    }

    /// An error about a directive: nginx's line, the caret under its name.
    pub fn at(directive: &Directive, message: impl Into<String>) -> Self {
        Self::word(directive, &directive.name, message)
    }

    /// An error found when the block of a directive had been read: the line is that of its `}`.
    pub fn at_close(directive: &Directive, message: impl Into<String>) -> Self {
        let place = (directive.origin.clone(), directive.close_line);
        Self::at(directive, message).with_place(place)
    }

    /// An error about one word of a directive: the caret is under the word.
    pub fn word(directive: &Directive, word: &Word, message: impl Into<String>) -> Self {
        WordSpan::new(directive, word).error(message)
    }

    /// `invalid value "v"`, the caret under the word.
    pub fn invalid(directive: &Directive, word: &Word) -> Self {
        Self::word(
            directive,
            word,
            format!("invalid value \"{}\"", word.as_str()),
        )
    }

    /// `invalid parameter "p"`, the caret under the word.
    pub fn parameter(directive: &Directive, word: &Word) -> Self {
        let text = format!("invalid parameter \"{}\"", word.as_str());
        Self::word(directive, word, text)
    }

    /// An error about a directive with a secret: only nginx's line, without the text of the file.
    pub fn secret(directive: &Directive, message: impl Into<String>) -> Self {
        Self::new(message).with_place((directive.origin.clone(), directive.end_line))
    }

    /// `"name" directive <what>`: nginx's form for errors found by a directive's own code.
    pub fn directive(directive: &Directive, what: impl fmt::Display) -> Self {
        Self::at(
            directive,
            format!("\"{}\" directive {what}", directive.name()),
        )
    }

    /// `<call>() "<path>" failed (2: No such file or directory)`, without a place.
    pub fn io(call: &str, path: &Path, error: &io::Error) -> Self {
        Self::new(format!(
            "{call}() \"{}\" failed ({})",
            path.display(),
            os_error(error)
        ))
    }

    pub(crate) fn with_place(mut self, place: (Origin, u32)) -> Self {
        self.0.place = Some(place);
        self
    }

    pub(crate) fn with_caret(mut self, pos: Pos, len: u32) -> Self {
        self.0.caret = Some(Caret { pos, len });
        self
    }

    /// Names the line of the word it points at, not the line nginx had read up to. Warnings that nginx does not have use it.
    #[must_use]
    pub fn on_line_of_caret(mut self) -> Self {
        if let (Some((_, line)), Some(caret)) = (&mut self.0.place, self.0.caret) {
            *line = caret.pos.line;
        }
        self
    }

    /// Sets the place of an error that has none to that of a directive, as nginx does for a file that cannot be included.
    #[must_use]
    pub fn or_at(self, directive: &Directive, word: &Word) -> Self {
        if self.0.place.is_some() {
            return self;
        }
        let hint = self.0.hint;
        let placed = Self::word(directive, word, self.0.message);
        match hint {
            Some(hint) => placed.with_hint(hint),
            None => placed,
        }
    }

    /// Adds to the message, before the place.
    #[must_use]
    pub fn with_more(mut self, text: &str) -> Self {
        self.0.message.push_str(text);
        self
    }

    /// Adds a line of advice, shown last.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The message without the place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The advice, if there is any.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The word it points at.
    pub fn pos(&self) -> Option<Pos> {
        self.0.caret.map(|caret| caret.pos)
    }

    /// The columns it points at, in characters from 1, the end excluded: of the line of [`ConfError::pos`] in `files`.
    pub fn columns(&self, files: &Files) -> Option<Range<usize>> {
        let caret = self.0.caret?;
        let line = files.line(caret.pos.file, caret.pos.line)?;
        let (start, end) = caret.bytes(line);
        let count = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().count();
        let first = count(&line[..start]) + 1;
        Some(first..first + count(&line[start..end]).max(1))
    }

    /// The line nginx names, when the error has a place in a file.
    pub fn line(&self) -> Option<u32> {
        match &self.0.place {
            Some((Origin::File(_), line)) => Some(*line),
            _ => None,
        }
    }

    /// The message as nginx prints it, the line it is about with a caret, and the advice; no newline at the end.
    pub fn render(&self, files: &Files) -> String {
        let mut out = self.to_string();
        if let Some(caret) = self.0.caret
            && let Some(line) = files.line(caret.pos.file, caret.pos.line)
        {
            show_line(&mut out, line, caret);
        }
        if let Some(hint) = &self.0.hint {
            out.push('\n');
            out.push_str(hint);
        }
        out
    }
}

impl fmt::Display for ConfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match &self.0.place {
            None => Ok(()),
            Some((Origin::CommandLine, _)) => f.write_str(" in command line"),
            Some((Origin::File(path), line)) => write!(f, " in {}:{line}", path.display()),
        }
    }
}

impl fmt::Debug for ConfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfError({self})")
    }
}

impl std::error::Error for ConfError {}

/// Appends the line and the carets under it. Tabs are kept in both so that they line up on any terminal; other
/// control characters show as `?`, since they would act on the terminal.
fn show_line(out: &mut String, line: &[u8], caret: Caret) {
    let (start, end) = caret.bytes(line);
    let before = printable(&line[..start]);
    let marked = printable(&line[start..end]);
    let after = printable(&line[end..]);

    // A window of the line: at most half of it before the word.
    let skipped = before.chars().count().saturating_sub(SHOWN_MAX / 2);
    let before: String = before.chars().skip(skipped).collect();
    let room = SHOWN_MAX - before.chars().count();
    let marked: String = marked.chars().take(room).collect();
    let room = room - marked.chars().count();
    let after: String = after.chars().take(room).collect();

    let number = caret.pos.line.to_string();
    let pad: String = before
        .chars()
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    let carets = "^".repeat(marked.chars().count().max(1));
    let shown = format!("{before}{marked}{after}");
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "\n{number:>5} | {}\n{:>5} | {pad}{carets}",
        shown.trim_end(),
        ""
    );
}

fn printable(bytes: &[u8]) -> String {
    let shown = |c: char| if c.is_control() && c != '\t' { '?' } else { c };
    String::from_utf8_lossy(bytes).chars().map(shown).collect()
}

/// Longest piece of a line that is shown, in characters; longer lines are cut around the caret.
const SHOWN_MAX: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::directive;

    fn rendered(text: &str, word: usize) -> String {
        let mut files = Files::default();
        files.add(Path::new("/a.conf"), &std::sync::Arc::new(text.into()));
        let d = directive(text);
        ConfError::word(&d, d.word(word), "bad").render(&files)
    }

    #[test]
    fn display_is_nginx_line() {
        let d = directive("\nlisten\n  80;");
        assert_eq!(ConfError::at(&d, "bad").to_string(), "bad in /a.conf:3");
        assert_eq!(ConfError::new("bad").to_string(), "bad");
        assert_eq!(
            ConfError::directive(&d, "is duplicate").to_string(),
            "\"listen\" directive is duplicate in /a.conf:3"
        );
        assert_eq!(
            ConfError::invalid(&d, d.word(0)).to_string(),
            "invalid value \"80\" in /a.conf:3"
        );
    }

    #[test]
    fn an_error_at_the_close_names_the_line_of_the_brace() {
        let d = directive("upstream x {\n\n}");
        assert_eq!(
            ConfError::at_close(&d, "no servers").to_string(),
            "no servers in /a.conf:3"
        );
    }

    #[test]
    fn the_line_of_the_caret_can_be_named() {
        let d = directive("listen\n  80\n  foo;");
        let word = ConfError::word(&d, d.word(0), "bad");
        assert_eq!(word.to_string(), "bad in /a.conf:3");
        assert_eq!(word.on_line_of_caret().to_string(), "bad in /a.conf:2");
        let nowhere = ConfError::new("bad").on_line_of_caret();
        assert_eq!(nowhere.to_string(), "bad");
    }

    #[test]
    fn the_caret_points_at_the_word() {
        assert_eq!(
            rendered("listen 80 foo;", 1),
            "bad in /a.conf:1\n    1 | listen 80 foo;\n      |           ^^^"
        );
        assert_eq!(
            rendered("\tlisten \"8\\\"0\";", 0),
            "bad in /a.conf:1\n    1 | \tlisten \"8\\\"0\";\n      | \t       ^^^^^^"
        );
    }

    #[test]
    fn columns_are_counted_in_characters() {
        let columns = |text: &str, word: usize| {
            let mut files = Files::default();
            files.add(Path::new("/a.conf"), &std::sync::Arc::new(text.into()));
            let d = directive(text);
            ConfError::word(&d, d.word(word), "bad").columns(&files)
        };
        assert_eq!(columns("listen 80 foo;", 1), Some(11..14));
        assert_eq!(columns("a \u{e9}\u{e9} b\u{e9};", 1), Some(6..8));
        assert_eq!(columns("a 'bc\nd';", 0), Some(3..6));
        assert_eq!(ConfError::new("bad").columns(&Files::default()), None);
    }

    #[test]
    fn a_word_over_two_lines_is_underlined_to_the_end_of_its_first() {
        assert_eq!(
            rendered("a 'bc\nd';", 0),
            "bad in /a.conf:2\n    1 | a 'bc\n      |   ^^^"
        );
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let text = format!("a {} here {};", "x".repeat(500), "y".repeat(500));
        let shown = rendered(&text, 1);
        assert!(
            shown
                .lines()
                .all(|line| line.chars().count() <= SHOWN_MAX + 8)
        );
        assert!(shown.contains("x here y"));
        assert!(shown.ends_with(" ^^^^"));
    }

    #[test]
    fn control_and_foreign_bytes_do_not_reach_the_terminal() {
        assert_eq!(printable(b"a\x1b[1m\xff\tb"), "a?[1m\u{fffd}\tb");
    }

    #[test]
    fn a_system_error_is_written_number_first() {
        let error = io::Error::from_raw_os_error(2);
        let shown = ConfError::io("open", Path::new("/x"), &error).to_string();
        assert_eq!(shown, "open() \"/x\" failed (2: No such file or directory)");
    }

    #[test]
    fn or_at_places_only_what_has_no_place() {
        let d = directive("include x;");
        let placed = ConfError::new("a").with_hint("h").or_at(&d, d.word(0));
        assert_eq!(placed.to_string(), "a in /a.conf:1");
        assert_eq!(placed.hint(), Some("h"));
        assert_eq!(placed.pos().map(|pos| pos.column), Some(9));
        let again = placed
            .clone()
            .or_at(&directive("\n\ninclude x;"), d.word(0));
        assert_eq!(again, placed);
    }
}
