//! References in JavaScript: module specifiers, `new URL(…, import.meta.url)`, the name of a source map. All other
//! strings only mention files.
//!
//! The reader implements as much of the grammar as is needed to distinguish strings from comments, templates and
//! regular expressions. If the grammar needs a parser to distinguish a regular expression from a division, the token
//! before the slash decides. Absent: names that a script builds at run time; those cannot be known.
//!
//! Source: ECMAScript, "Lexical Grammar", "Modules"; HTML, "Resolve a module specifier".

use super::css::source_map;
use super::sink::{Report, Sink};
use crate::text::Text;

/// Reads a script.
pub(super) fn scan(text: &Text<'_>, sink: &mut Sink<'_>) {
    Js {
        text,
        at: 0,
        last: [Token::Start; 4],
        brackets: Vec::new(),
    }
    .run(sink);
}

/// The kind of a token, as far as the meaning of the next one depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Start,
    Import,
    From,
    Url,
    New,
    /// A word after which an expression begins.
    Keyword,
    /// `if`, `while`, `for`, `with`: a statement follows their brackets.
    Condition,
    /// A name, a number, a string, a template or a regular expression.
    Value,
    /// A closing bracket after which a statement may begin.
    EndOfCondition,
    Punct(u8),
}

struct Js<'a> {
    text: &'a Text<'a>,
    at: usize,
    /// The tokens before this place, the last one first.
    last: [Token; 4],
    /// Open brackets with the token before them, and templates.
    brackets: Vec<Open>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Round { condition: bool },
    Curly,
    Template,
}

impl Js<'_> {
    fn run(&mut self, sink: &mut Sink<'_>) {
        let bytes = self.text.bytes();
        while self.at < bytes.len() {
            let b = bytes[self.at];
            match b {
                b'/' => self.slash(sink),
                b'"' | b'\'' => self.string(sink),
                b'`' => {
                    self.at += 1;
                    self.template(sink);
                }
                b'(' => {
                    let condition = self.last[0] == Token::Condition;
                    self.brackets.push(Open::Round { condition });
                    self.punct(b);
                }
                b')' => {
                    let open = self.brackets.pop();
                    self.punct(b);
                    if open == Some(Open::Round { condition: true }) {
                        self.last[0] = Token::EndOfCondition;
                    }
                }
                b'{' => {
                    self.brackets.push(Open::Curly);
                    self.punct(b);
                }
                b'}' => match self.brackets.pop() {
                    Some(Open::Template) => {
                        self.at += 1;
                        self.template(sink);
                    }
                    _ => self.punct(b),
                },
                b if b.is_ascii_whitespace() => self.at += 1,
                b if in_name(b) => self.word(),
                _ => self.punct(b),
            }
        }
    }

    fn push(&mut self, token: Token) {
        self.last.rotate_right(1);
        self.last[0] = token;
    }

    fn punct(&mut self, b: u8) {
        self.at += 1;
        self.push(Token::Punct(b));
    }

    fn word(&mut self) {
        let bytes = self.text.bytes();
        let from = self.at;
        let length = bytes[from..].iter().take_while(|b| in_name(**b)).count();
        self.at += length;
        let of_object = self.last[0] == Token::Punct(b'.');
        let token = match &bytes[from..from + length] {
            _ if of_object => Token::Value,
            b"import" => Token::Import,
            b"from" => Token::From,
            b"URL" => Token::Url,
            b"new" => Token::New,
            b"if" | b"while" | b"for" | b"with" => Token::Condition,
            b"return" | b"typeof" | b"case" | b"in" | b"of" | b"delete" | b"void" | b"throw"
            | b"else" | b"do" | b"instanceof" | b"yield" | b"await" | b"default" | b"extends" => {
                Token::Keyword
            }
            _ => Token::Value,
        };
        self.push(token);
    }

    fn slash(&mut self, sink: &mut Sink<'_>) {
        let bytes = self.text.bytes();
        let rest = &bytes[self.at..];
        if rest.starts_with(b"//") {
            let length = rest.iter().take_while(|b| **b != b'\n').count();
            let to = self.at + length;
            source_map(self.text, self.at + 2, to, sink);
            self.at = to;
        } else if rest.starts_with(b"/*") {
            let end = rest.windows(2).skip(2).position(|w| w == b"*/");
            let to = end.map_or(bytes.len(), |end| self.at + 2 + end);
            source_map(self.text, (self.at + 2).min(to), to, sink);
            self.at = (to + 2).min(bytes.len());
        } else {
            let length = self.expression_may_begin().then(|| regex(rest)).flatten();
            match length {
                Some(length) => {
                    self.at += length;
                    self.push(Token::Value);
                }
                None => self.punct(b'/'),
            }
        }
    }

    fn expression_may_begin(&self) -> bool {
        match self.last[0] {
            Token::Value | Token::From | Token::Url | Token::Import => false,
            Token::Punct(b) => b != b')' && b != b']',
            _ => true,
        }
    }

    fn string(&mut self, sink: &mut Sink<'_>) {
        let (from, to, next) = self.text.quoted(self.at);
        self.at = next;
        let value = self.text.js(from, to);
        if self.is_reference(&value) {
            sink.reference(&value, Report::Broken, None);
        } else {
            sink.words(&value);
        }
        self.push(Token::Value);
    }

    /// Whether the string that ends here is surely a reference.
    fn is_reference(&self, value: &Text<'_>) -> bool {
        let url = value.bytes();
        let of_module = [&b"./"[..], b"../", b"/"]
            .iter()
            .any(|s| url.starts_with(s));
        let after = Rest(&self.text.bytes()[self.at..]);
        match self.last {
            [Token::Import | Token::From, ..] => of_module,
            [Token::Punct(b'('), Token::Import, ..] => {
                of_module && (after.is(&[b")"]) || after.is(&[b","]))
            }
            [Token::Punct(b'('), Token::Url, Token::New, _] => {
                after.is(&[b",", b"import", b".", b"meta", b".", b"url", b")"])
            }
            _ => false,
        }
    }

    /// Reads on in a template, up to its end or to an expression in it.
    fn template(&mut self, sink: &mut Sink<'_>) {
        let bytes = self.text.bytes();
        let from = self.at;
        let mut to = from;
        while to < bytes.len() && bytes[to] != b'`' && !bytes[to..].starts_with(b"${") {
            to += if bytes[to] == b'\\' { 2 } else { 1 };
        }
        to = to.min(bytes.len());
        sink.words(&self.text.js(from, to));
        if bytes.get(to) == Some(&b'$') {
            self.brackets.push(Open::Template);
            self.at = to + 2;
            self.push(Token::Punct(b'{'));
        } else {
            self.at = (to + 1).min(bytes.len());
            self.push(Token::Value);
        }
    }
}

/// The text from a position on.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    /// Whether these words come next, with blanks between them.
    fn is(&self, words: &[&[u8]]) -> bool {
        let mut rest = self.0;
        for word in words {
            match rest.trim_ascii_start().strip_prefix(*word) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        true
    }
}

/// The length of the regular expression that begins here; `None` if none ends on its line.
fn regex(bytes: &[u8]) -> Option<usize> {
    let mut in_class = false;
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' => return None,
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

fn in_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80
}
