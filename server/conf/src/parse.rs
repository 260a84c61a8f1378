//! Text to items: statements become directives, braces become nesting.
//!
//! The first syntax error becomes an [`Item::Error`] in the innermost open block, and ends the text. The directives before it
//! are kept: nginx reports their errors first. Names, contexts and includes are not checked here.

use std::sync::Arc;

use crate::lex::{End, Lexer, Position, Statement};
use crate::{ConfError, Directive, Item, Origin, Word};

/// Parses one text. `file` is its index in [`crate::Files`]; with [`Origin::CommandLine`] blocks are refused.
/// The words share the text.
pub fn parse(text: &Arc<Vec<u8>>, file: u32, origin: &Origin) -> Vec<Item> {
    let mut parser = Parser {
        lexer: Lexer::new(text, file, origin),
        origin,
    };
    parser.body(&mut Vec::new()).items
}

/// Reader of a text, item by item, so that of a text of a million lines no more than one is in memory.
#[derive(Debug)]
pub(crate) struct Reader {
    text: Arc<Vec<u8>>,
    file: u32,
    origin: Origin,
    position: Position,
    /// The heads of blocks that are read item by item, too, and are not closed yet.
    open: Vec<Word>,
    /// A syntax error was found; nothing follows it.
    is_broken: bool,
}

/// The next part of a text.
#[derive(Debug)]
pub(crate) enum Part {
    /// A whole item.
    Item(Item),
    /// A directive with a block: its items are the next parts, up to the next end.
    Open(Directive),
    /// The end of the innermost open block, or of the text.
    End,
}

impl Reader {
    pub(crate) fn new(text: Arc<Vec<u8>>, file: u32, origin: Origin) -> Self {
        Self {
            text,
            file,
            origin,
            position: Position::default(),
            open: Vec::new(),
            is_broken: false,
        }
    }

    /// Number of blocks that are open.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Reads the next part. `opens` returns whether the block of this name is read item by item.
    pub(crate) fn next(&mut self, opens: &dyn Fn(&str) -> bool) -> Part {
        if self.is_broken {
            self.open.pop();
            return Part::End;
        }
        let position = std::mem::take(&mut self.position);
        let mut parser = Parser {
            lexer: Lexer::at(position, &self.text, self.file, &self.origin),
            origin: &self.origin,
        };
        let next = parser.next(&mut self.open, opens);
        self.position = parser.lexer.into_position();
        match next {
            Next::Item(item) => Part::Item(item),
            Next::Last(item) => {
                self.is_broken = true;
                Part::Item(item)
            }
            Next::Open(head) => {
                self.open.push(head.name.clone());
                Part::Open(head)
            }
            Next::End => {
                self.open.pop();
                Part::End
            }
        }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    origin: &'a Origin,
}

/// The items up to a `}` or the end of the text.
struct Body {
    items: Vec<Item>,
    close_line: u32,
    /// An error is the last item; nothing more is read.
    broken: bool,
}

/// The next item of a text or block.
enum Next {
    Item(Item),
    /// With an error, or one inside: nothing more is read.
    Last(Item),
    /// A directive with an open block that is not read yet.
    Open(Directive),
    /// The `}`, or the end of the text.
    End,
}

impl Parser<'_> {
    /// Reads to the end of the block, or of the text when `open`, the heads of the open blocks, is empty.
    fn body(&mut self, open: &mut Vec<Word>) -> Body {
        let mut items = Vec::new();
        loop {
            match self.next(open, &|_| false) {
                Next::Item(item) => items.push(item),
                // No block is read item by item here.
                Next::Open(_) => {}
                Next::Last(item) => {
                    items.push(item);
                    return self.finish_body(items, true);
                }
                Next::End => return self.finish_body(items, false),
            }
        }
    }

    fn next(&mut self, open: &mut Vec<Word>, opens: &dyn Fn(&str) -> bool) -> Next {
        let error = loop {
            let statement = match self.lexer.statement() {
                Ok(statement) => statement,
                Err(error) => break error,
            };
            match (statement.end, open.last()) {
                (End::Semicolon, _) => {
                    if let Some(directive) = self.directive(statement, None) {
                        return Next::Item(Item::Directive(directive));
                    }
                }
                (End::Open, _) => {
                    if let Some(error) = self.open_error(open.len()) {
                        break error;
                    }
                    let opens = |name: &Word| opens(name.as_str());
                    if statement.name.as_ref().is_some_and(opens) {
                        let body = self.finish_body(Vec::new(), false);
                        if let Some(head) = self.directive(statement, Some(body)) {
                            return Next::Open(head);
                        }
                        continue;
                    }
                    let body = self.block(&statement, open);
                    let broken = body.broken;
                    match self.directive(statement, Some(body)).map(Item::Directive) {
                        Some(item) if broken => return Next::Last(item),
                        Some(item) => return Next::Item(item),
                        None => {}
                    }
                }
                (End::Close, Some(_)) | (End::Eof, None) => return Next::End,
                (End::Close, None) => break self.lexer.error_here("unexpected \"}\""),
                (End::Eof, Some(head)) => break self.unclosed(head),
            }
        };
        Next::Last(Item::Error(error))
    }

    fn finish_body(&self, items: Vec<Item>, broken: bool) -> Body {
        Body {
            items,
            close_line: self.lexer.line(),
            broken,
        }
    }

    fn block(&mut self, statement: &Statement, open: &mut Vec<Word>) -> Body {
        open.extend(statement.name.clone());
        let body = self.body(open);
        open.pop();
        body
    }

    /// Why no block may be opened here.
    fn open_error(&self, depth: usize) -> Option<ConfError> {
        let message = match self.origin {
            Origin::CommandLine => "block directives are not supported in -g option".to_owned(),
            Origin::File(_) if depth >= BLOCK_DEPTH_MAX => {
                format!("blocks are nested deeper than {BLOCK_DEPTH_MAX}")
            }
            Origin::File(_) => return None,
        };
        Some(self.lexer.error_here(message))
    }

    /// The text ended inside a block: the caret is under the name the block belongs to.
    fn unclosed(&self, head: &Word) -> ConfError {
        let message = "unexpected end of file, expecting \"}\"";
        let hint = format!(
            "the block of \"{}\" opened on line {} is never closed",
            head.as_str(),
            head.pos.line
        );
        self.lexer
            .error_at(message, head.pos, head.raw_len)
            .with_hint(hint)
    }

    fn directive(&self, statement: Statement, body: Option<Body>) -> Option<Directive> {
        let end_line = statement.line;
        // The lexer returns no `;` or `{` without a word before it.
        let name = statement.name?;
        let (block, close_line) = match body {
            Some(body) => (Some(body.items), body.close_line),
            None => (None, end_line),
        };
        Some(Directive {
            pos: name.pos,
            name,
            args: statement.args,
            block,
            end_line,
            close_line,
            origin: self.origin.clone(),
        })
    }
}

/// Blocks may be nested this deep. nginx has no limit of its own; no context of it nests beyond a handful except
/// `location`, and the tree is walked recursively.
pub const BLOCK_DEPTH_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_items(text: &str) -> Vec<Item> {
        parse(&Arc::new(text.into()), 0, &Origin::file("/a.conf"))
    }

    /// The items as `name(arg arg){...}` and `!error`, to compare at a glance.
    fn outline(items: &[Item]) -> String {
        let shown = items.iter().map(|item| match item {
            Item::Error(error) => format!("!{error}"),
            Item::Directive(d) => {
                let args: Vec<_> = d.args.iter().map(Word::as_str).collect();
                let block = d
                    .block
                    .as_ref()
                    .map_or(String::new(), |block| format!("{{{}}}", outline(block)));
                format!("{}({}){block}", d.name(), args.join(" "))
            }
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn blocks_nest() {
        let items = parse_items("user a;\nhttp {\n server { listen 80; }\n server {}\n}\n");
        assert_eq!(
            outline(&items),
            "user(a) http(){server(){listen(80)} server(){}}"
        );
    }

    /// The items that a reader finds in a text: blocks named `o` are read item by item, too.
    fn read_one_by_one(text: &str) -> Vec<Item> {
        let mut reader = Reader::new(Arc::new(text.into()), 0, Origin::file("/a.conf"));
        // The items of each open block, and the directive before them.
        let mut heads: Vec<Directive> = Vec::new();
        let mut levels = vec![Vec::new()];
        loop {
            assert_eq!(reader.depth(), heads.len(), "{text}");
            match reader.next(&|name| name == "o") {
                Part::Item(item) => levels.last_mut().expect("there is one").push(item),
                Part::Open(head) => {
                    assert_eq!(head.block, Some(Vec::new()));
                    assert_eq!(head.close_line, head.end_line);
                    heads.push(head);
                    levels.push(Vec::new());
                }
                Part::End => {
                    let items = levels.pop().expect("there is one");
                    let Some(mut head) = heads.pop() else {
                        return items;
                    };
                    head.block = Some(items);
                    let outer = levels.last_mut().expect("there is one");
                    outer.push(Item::Directive(head));
                }
            }
        }
    }

    #[test]
    fn items_one_by_one_are_those_of_the_whole_text() {
        for text in [
            "",
            "a;",
            "a; b { c; } d;",
            "a; b { c; ; } d;",
            "a; }",
            "a { b",
            "o { }",
            "o { a; b { c; o { d; } } } e;",
            "o x 'y' { a; o { b; } c { } } d; o { }",
            "a; o { b { c; ; } d; } e;",
            "o { a; o { b; ; } c; } d;",
            "o { a; } } b;",
            "o { a; o { b",
            "o { o {",
        ] {
            assert_eq!(
                outline(&read_one_by_one(text)),
                outline(&parse_items(text)),
                "{text}"
            );
        }
    }

    #[test]
    fn nothing_is_read_after_an_error() {
        let mut reader = Reader::new(
            Arc::new("o { a; ; b; } c;".into()),
            0,
            Origin::file("/a.conf"),
        );
        let mut seen = Vec::new();
        for _ in 0..6 {
            seen.push(match reader.next(&|name| name == "o") {
                Part::Item(item) => outline(&[item]),
                Part::Open(head) => head.name().to_owned(),
                Part::End => "end".to_owned(),
            });
        }
        assert_eq!(
            seen,
            [
                "o",
                "a()",
                "!unexpected \";\" in /a.conf:1",
                "end",
                "end",
                "end"
            ]
        );
    }

    #[test]
    fn lines_are_those_of_the_end_of_the_head_and_of_the_block() {
        let items = parse_items("a\nb\n{\nc;\n}");
        let [Item::Directive(d)] = items.as_slice() else {
            panic!("one directive: {items:?}")
        };
        assert_eq!((d.pos.line, d.end_line, d.close_line), (1, 3, 5));
    }

    #[test]
    fn a_closing_brace_too_many_is_unexpected() {
        assert_eq!(
            outline(&parse_items("a {}\n}\nb;")),
            "a(){} !unexpected \"}\" in /a.conf:2"
        );
    }

    #[test]
    fn an_unclosed_block_is_an_error_at_the_end_of_the_file() {
        let items = parse_items("a {\nb {\nc;\n}\n");
        assert_eq!(
            outline(&items),
            "a(){b(){c()} !unexpected end of file, expecting \"}\" in /a.conf:5}"
        );
        let [Item::Directive(d)] = items.as_slice() else {
            panic!("one directive: {items:?}")
        };
        let Some(Item::Error(error)) = d.items().last() else {
            panic!("an error last: {items:?}")
        };
        assert_eq!(
            error.hint(),
            Some("the block of \"a\" opened on line 1 is never closed")
        );
    }

    #[test]
    fn an_error_ends_the_text_and_keeps_what_came_before() {
        assert_eq!(
            outline(&parse_items("a; b { c; ; d; } e;")),
            "a() b(){c() !unexpected \";\" in /a.conf:1}"
        );
    }

    #[test]
    fn the_command_line_takes_no_blocks() {
        let items = parse(
            &Arc::new(b"daemon off; events {}".to_vec()),
            0,
            &Origin::CommandLine,
        );
        let expected =
            "daemon(off) !block directives are not supported in -g option in command line";
        assert_eq!(outline(&items), expected);
    }

    #[test]
    fn the_depth_of_blocks_is_limited() {
        let nested = |depth: usize| {
            outline(&parse_items(&format!(
                "{}{}",
                "a{".repeat(depth),
                "}".repeat(depth)
            )))
        };
        assert!(!nested(BLOCK_DEPTH_MAX).contains('!'));
        assert!(
            nested(BLOCK_DEPTH_MAX + 1).contains("!blocks are nested deeper than 128 in /a.conf:1")
        );
    }
}
