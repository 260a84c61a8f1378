//! The tree of a parsed text: words with their places, directives, and the error that ended the text.
//!
//! The tree keeps the order of the file, errors included: a walk finds the same first error as nginx, which interprets while it
//! reads.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use crate::{ConfError, Text};

/// A place in a loaded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pos {
    /// Index in [`crate::Files`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
}

/// The origin of a text, as named in error messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A file: `... in /etc/nginx/nginx.conf:3`.
    File(Arc<Path>),
    /// The argument of `-g`: `... in command line`.
    CommandLine,
}

impl Origin {
    /// The origin for a file at `path`.
    pub fn file(path: impl AsRef<Path>) -> Self {
        Self::File(Arc::from(path.as_ref()))
    }
}

/// One word, its quotes removed and its escapes resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The bytes of the word; any bytes, not only UTF-8.
    pub text: Text,
    /// Position of the word, including an opening quote.
    pub pos: Pos,
    /// Whether it was written in quotes.
    pub quoted: bool,
    /// Bytes it takes in the text, quotes and backslashes included.
    pub raw_len: u32,
    /// The text with invalid UTF-8 replaced; `None` if it is valid.
    #[expect(clippy::box_collection, reason = "it is rare, and a word small")]
    lossy: Option<Box<String>>,
}

impl Word {
    /// A word at a position; `raw_len` is its length in the text, in bytes.
    pub fn new(text: impl Into<Text>, pos: Pos, quoted: bool, raw_len: u32) -> Self {
        let text = text.into();
        let lossy = match String::from_utf8_lossy(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(replaced) => Some(Box::new(replaced)),
        };
        Self {
            text,
            pos,
            quoted,
            raw_len,
            lossy,
        }
    }

    /// The word as text; bytes that are not UTF-8 show as U+FFFD (`text` has them as they are).
    pub fn as_str(&self) -> &str {
        match &self.lossy {
            Some(replaced) => replaced,
            // `new` found the bytes to be UTF-8; should a caller have changed them since, nothing is shown.
            None => std::str::from_utf8(&self.text).unwrap_or_default(),
        }
    }

    /// The bytes of the word.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }
}

impl PartialEq<str> for Word {
    fn eq(&self, other: &str) -> bool {
        *self.text == *other.as_bytes()
    }
}

impl PartialEq<&str> for Word {
    fn eq(&self, other: &&str) -> bool {
        *self.text == *other.as_bytes()
    }
}

/// One directive, simple (`listen 80;`) or with a block (`server { ... }`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// Its name, the first word.
    pub name: Word,
    /// The words after the name.
    pub args: Vec<Word>,
    /// The items between its braces; `None` when it ends with a semicolon.
    pub block: Option<Vec<Item>>,
    /// Position of the name.
    pub pos: Pos,
    /// Line of the `;` or `{` that ends the head: the line nginx names in errors about the directive.
    pub end_line: u32,
    /// Line of the closing `}`: the line nginx names in errors found once the block is read. `end_line` without block.
    pub close_line: u32,
    /// The text that contains it.
    pub origin: Origin,
}

impl Directive {
    /// A directive without a file: a default that is compiled like a written directive.
    pub fn synthetic(name: &str) -> Self {
        let pos = Pos {
            file: crate::COMMAND_LINE,
            line: 1,
            column: 1,
        };
        Self {
            name: Word::new(name, pos, false, 0),
            args: Vec::new(),
            block: None,
            pos,
            end_line: 1,
            close_line: 1,
            origin: Origin::CommandLine,
        }
    }

    /// The directive without its block, for messages that outlive the load: its words are copies, which do not keep
    /// the text of their file in memory.
    pub fn owned_head(&self) -> Self {
        let copy = |word: &Word| Word {
            text: word.text.to_vec().into(),
            ..word.clone()
        };
        Self {
            name: copy(&self.name),
            args: self.args.iter().map(copy).collect(),
            block: None,
            pos: self.pos,
            end_line: self.end_line,
            close_line: self.close_line,
            origin: self.origin.clone(),
        }
    }

    /// The name as text.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The bytes of argument `index` (from 0); empty when there is none.
    pub fn arg(&self, index: usize) -> &[u8] {
        self.args.get(index).map_or(&[], |word| &word.text)
    }

    /// Argument `index` (from 0) as text; empty when there is none.
    pub fn arg_str(&self, index: usize) -> &str {
        self.args.get(index).map_or("", Word::as_str)
    }

    /// Argument `index` (from 0), or the name if there is none: the position for an error about it.
    pub fn word(&self, index: usize) -> &Word {
        self.args.get(index).unwrap_or(&self.name)
    }

    /// The items of its block; empty when it has none.
    pub fn items(&self) -> &[Item] {
        self.block.as_deref().unwrap_or_default()
    }
}

/// An element of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A directive.
    Directive(Directive),
    /// The syntax error that ended the text; nothing follows it.
    Error(ConfError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn an_owned_head_keeps_no_text() {
        let text = Arc::new(b"\n server a \"b c\" { d; }\n".to_vec());
        let mut items = parse(&text, 3, &Origin::file("/a.conf"));
        let Some(Item::Directive(mut directive)) = items.pop() else {
            panic!("a directive: {items:?}");
        };
        let head = directive.owned_head();
        directive.block = None;
        assert_eq!(head, directive);
        assert!(Arc::strong_count(&text) > 1);
        drop(directive);
        assert_eq!(Arc::strong_count(&text), 1);
    }
}
