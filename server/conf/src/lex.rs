//! Bytes to statements: the words up to a `;`, a `{` or a `}`.
//!
//! Rules, all of them nginx's:
//! - words are separated by blanks and line ends; `#` starts a comment only if a word could start there;
//! - a word that starts with a quote ends at the next such quote, possibly lines later. A blank, `;`, `{` or `)` must follow;
//!   the `)` starts the next word. A quote inside a word is an ordinary byte;
//! - a backslash escapes the next byte; `\"` `\'` `\\` `\t` `\r` `\n` are resolved, before any other byte the backslash is
//!   kept;
//! - `${` does not open a block; `}` closes one only if a word could start there;
//! - a word has at most [`WORD_MAX`] bytes as written.
//!
//! Absent: knowledge about directives. Bytes need not be UTF-8. One difference from nginx: a comment may be longer than
//! `WORD_MAX`; nginx reports a too long parameter.
//!
//! Source: nginx documentation, "Configuration file's structure"; the corners were compared with nginx itself.

use std::borrow::Cow;
use std::sync::Arc;

use crate::escape::{Marks, unescape};
use crate::{ConfError, Origin, Pos, Text, Word};

/// The end of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Semicolon,
    /// `{`
    Open,
    /// `}`; there are no words before it.
    Close,
    /// The end of the text; there are no words before it.
    Eof,
}

/// The words of a statement, the byte that ended it and that byte's line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// The first word.
    pub(crate) name: Option<Word>,
    pub(crate) args: Vec<Word>,
    pub(crate) end: End,
    pub(crate) line: u32,
}

/// Reads statements from a text.
pub(crate) struct Lexer<'a> {
    /// The text that words are ranges of.
    whole: &'a Arc<Vec<u8>>,
    text: &'a [u8],
    at: usize,
    line: u32,
    /// Offset of the current line.
    line_start: usize,
    /// Offset of the current or last word without its opening quote; the length limit counts from here.
    word_start: usize,
    /// The position of the word, the opening quote included.
    word_pos: Pos,
    file: u32,
    origin: &'a Origin,
    /// Collects the words of a statement. Reused, so that a statement allocates only its arguments.
    words: Vec<Word>,
}

/// Position in a text, between two statements, and memory for the words of the next one.
#[derive(Debug)]
pub(crate) struct Position {
    at: usize,
    line: u32,
    line_start: usize,
    words: Vec<Word>,
}

impl Default for Position {
    fn default() -> Self {
        Self {
            at: 0,
            line: 1,
            line_start: 0,
            words: Vec::new(),
        }
    }
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a Arc<Vec<u8>>, file: u32, origin: &'a Origin) -> Self {
        Self::at(Position::default(), text, file, origin)
    }

    /// Reads on at a position of the text.
    pub(crate) fn at(
        position: Position,
        text: &'a Arc<Vec<u8>>,
        file: u32,
        origin: &'a Origin,
    ) -> Self {
        Self {
            whole: text,
            text,
            at: position.at,
            line: position.line,
            line_start: position.line_start,
            word_start: position.at,
            word_pos: Pos {
                file,
                line: position.line,
                column: 1,
            },
            file,
            origin,
            words: position.words,
        }
    }

    /// Position behind the statement that was read last.
    pub(crate) fn into_position(self) -> Position {
        Position {
            at: self.at,
            line: self.line,
            line_start: self.line_start,
            words: self.words,
        }
    }

    /// The next statement, or the error that ends the text.
    pub(crate) fn statement(&mut self) -> Result<Statement, ConfError> {
        self.words.clear();
        loop {
            let Some(byte) = self.skip_gap() else {
                return if self.words.is_empty() {
                    Ok(self.finish_statement(End::Eof))
                } else {
                    Err(self.unexpected_end(None))
                };
            };
            match byte {
                b';' | b'{' if self.words.is_empty() => return Err(self.unexpected_byte()),
                b'}' if !self.words.is_empty() => {
                    let hint = "is a \";\" missing before it?";
                    return Err(self.unexpected_byte().with_hint(hint));
                }
                b';' => return Ok(self.finish_statement(End::Semicolon)),
                b'{' => return Ok(self.finish_statement(End::Open)),
                b'}' => return Ok(self.finish_statement(End::Close)),
                b'"' | b'\'' => {
                    let word = self.quoted_word(byte)?;
                    self.words.push(word);
                    if let Some(end) = self.after_quote()? {
                        return Ok(self.finish_statement(end));
                    }
                }
                _ => {
                    let (word, end) = self.bare_word()?;
                    self.words.push(word);
                    if let Some(end) = end {
                        return Ok(self.finish_statement(end));
                    }
                }
            }
        }
    }

    /// The line read up to.
    pub(crate) fn line(&self) -> u32 {
        self.line
    }

    /// The place of the byte read last.
    pub(crate) fn last_pos(&self) -> Pos {
        self.pos_of(self.at.saturating_sub(1))
    }

    /// An error at the line read up to, the caret under the byte read last.
    pub(crate) fn error_here(&self, message: impl Into<String>) -> ConfError {
        self.error_at(message, self.last_pos(), 1)
    }

    /// An error at the last line read; the caret marks its cause.
    pub(crate) fn error_at(&self, message: impl Into<String>, pos: Pos, len: u32) -> ConfError {
        ConfError::new(message)
            .with_place((self.origin.clone(), self.line))
            .with_caret(pos, len)
    }

    fn finish_statement(&mut self, end: End) -> Statement {
        let mut words = self.words.drain(..);
        Statement {
            name: words.next(),
            args: words.collect(),
            end,
            line: self.line,
        }
    }

    fn pos_of(&self, at: usize) -> Pos {
        let column = at.saturating_sub(self.line_start) + 1;
        Pos {
            file: self.file,
            line: self.line,
            column: clamp(column),
        }
    }

    /// Skips blanks and comments; the byte that starts a word or is a mark of its own, which is consumed.
    fn skip_gap(&mut self) -> Option<u8> {
        let mut comment = false;
        loop {
            let byte = self.take()?;
            match byte {
                b'\n' => comment = false,
                _ if comment => {}
                b' ' | b'\t' | b'\r' => {}
                b'#' => comment = true,
                _ => return Some(byte),
            }
        }
    }

    /// The next byte; lines are counted here and nowhere else.
    fn take(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        if byte == b'\n' {
            self.line = self.line.saturating_add(1);
            self.line_start = self.at;
        }
        Some(byte)
    }

    /// The next byte of a word, or why there is none: the text has ended, or the word is too long.
    fn take_in_word(&mut self, quote: Option<u8>) -> Result<u8, ConfError> {
        if self.at < self.text.len()
            && self.at - self.word_start >= WORD_MAX
            && *self.origin != Origin::CommandLine
        {
            return Err(self.too_long(quote));
        }
        self.take().ok_or_else(|| self.unexpected_end(quote))
    }

    /// Skips the bytes of a word that mean nothing, as far as the word may go: they are most of a text, and the state of
    /// [`Marks`] does not change with them. The byte before them must not have left any.
    fn skip_ordinary(&mut self) {
        let most = self.word_start.saturating_add(WORD_MAX - 1);
        let rest = &self.text[self.at..self.text.len().min(most).max(self.at)];
        let ordinary = rest.iter().position(|byte| is_special(*byte));
        self.at += ordinary.unwrap_or(rest.len());
    }

    fn quoted_word(&mut self, quote: u8) -> Result<Word, ConfError> {
        let opening = self.at - 1;
        self.word_pos = self.last_pos();
        self.word_start = self.at;
        let mut marks = Marks::default();
        loop {
            let byte = self.take_in_word(Some(quote))?;
            if !marks.plain(byte) {
                continue;
            }
            if byte == quote {
                let (text, raw_len) = (self.word_text(self.at - 1), clamp(self.at - opening));
                return Ok(Word::new(text, self.word_pos, true, raw_len));
            }
            self.skip_ordinary();
        }
    }

    /// The text after a closing quote: the end of the statement, or `None` if another word may start.
    fn after_quote(&mut self) -> Result<Option<End>, ConfError> {
        match self.take_in_word(None)? {
            b' ' | b'\t' | b'\r' | b'\n' => Ok(None),
            b';' => Ok(Some(End::Semicolon)),
            b'{' => Ok(Some(End::Open)),
            b')' => {
                // It is the first byte of the next word.
                self.at -= 1;
                Ok(None)
            }
            _ => Err(self.unexpected_byte()),
        }
    }

    /// A word that began with the byte read last, and the end of the statement if that ended the word.
    fn bare_word(&mut self) -> Result<(Word, Option<End>), ConfError> {
        self.at -= 1;
        self.word_start = self.at;
        self.word_pos = self.pos_of(self.at);
        let mut marks = Marks::default();
        self.skip_ordinary();
        loop {
            let byte = self.take_in_word(None)?;
            if !marks.plain(byte) {
                continue;
            }
            let end = match byte {
                b' ' | b'\t' | b'\r' | b'\n' => None,
                b';' => Some(End::Semicolon),
                b'{' => Some(End::Open),
                _ => {
                    self.skip_ordinary();
                    continue;
                }
            };
            let raw_len = clamp(self.at - 1 - self.word_start);
            let text = self.word_text(self.at - 1);
            return Ok((Word::new(text, self.word_pos, false, raw_len), end));
        }
    }

    /// The word up to `end`, its escapes resolved.
    fn word_text(&self, end: usize) -> Text {
        let range = self.word_start..end;
        match unescape(&self.text[range.clone()]) {
            Cow::Borrowed(_) => Text::part(self.whole, range),
            Cow::Owned(resolved) => resolved.into(),
        }
    }

    fn unexpected_byte(&self) -> ConfError {
        let byte = self.text.get(self.at.saturating_sub(1)).copied();
        let byte = byte.unwrap_or_default();
        self.error_here(format!(
            "unexpected \"{}\"",
            String::from_utf8_lossy(&[byte])
        ))
    }

    /// The text ended inside a statement: the caret is under the word, or under the quote that was never closed.
    fn unexpected_end(&self, quote: Option<u8>) -> ConfError {
        let message = match self.origin {
            Origin::CommandLine => "unexpected end of parameter, expecting \";\"",
            Origin::File(_) => "unexpected end of file, expecting \";\" or \"}\"",
        };
        let (len, hint) = match quote {
            Some(quote) => {
                let line = self.word_pos.line;
                (
                    1,
                    format!(
                        "the {} opened on line {line} is never closed",
                        char::from(quote)
                    ),
                )
            }
            None => {
                let rest = self.text[self.word_start..].iter();
                let len = rest.take_while(|byte| !byte.is_ascii_whitespace()).count();
                (clamp(len), "is a \";\" missing after it?".to_owned())
            }
        };
        self.error_at(message, self.word_pos, len).with_hint(hint)
    }

    fn too_long(&self, quote: Option<u8>) -> ConfError {
        let message = match quote {
            Some(quote) => {
                format!(
                    "too long parameter, probably missing terminating \"{}\" character",
                    char::from(quote)
                )
            }
            None => {
                let start = &self.text[self.word_start..self.word_start + SHOWN_START];
                format!(
                    "too long parameter \"{}...\" started",
                    String::from_utf8_lossy(start)
                )
            }
        };
        ConfError::new(message)
            .with_place((self.origin.clone(), self.word_pos.line))
            .with_caret(self.word_pos, 1)
    }
}

/// Returns whether a byte may end a word, begin a line, or change the meaning of the next one.
fn is_special(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\r' | b'\n' | b';' | b'{' | b'"' | b'\'' | b'\\' | b'$'
    )
}

fn clamp(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// A word with the byte that ends it must fit in this many bytes, quotes not counted; nginx's buffer for one.
pub const WORD_MAX: usize = 4096;
/// Bytes of a too long word that the message shows.
const SHOWN_START: usize = 10;

#[cfg(test)]
#[path = "lex_tests.rs"]
mod tests;
