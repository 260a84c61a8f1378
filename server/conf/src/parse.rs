//! Text to items: statements become directives, braces become nesting.
//!
//! The first syntax error becomes an [`Item::Error`] where it was met, in the innermost open block, and ends the
//! text: the directives before it are kept, so that an error of theirs, which nginx would have met first, comes
//! first. Nothing is known here about names, contexts or includes.

use std::sync::Arc;

use crate::lex::{End, Lexer, Statement};
use crate::{ConfError, Directive, Item, Origin, Word};

/// Parses one text. `file` is its index in [`crate::Files`]; with [`Origin::CommandLine`] blocks are refused.
/// The words share the text.
pub fn parse(text: &Arc<Vec<u8>>, file: u32, origin: &Origin) -> Vec<Item> {
    parser(text, file, origin).body(&mut Vec::new()).items
}

/// Parses one text and hands each of its outermost items to `f` before it reads on, so that of a text of a million lines no
/// more than one is in memory.
///
/// # Errors
/// The first of `f`, which ends it.
pub(crate) fn parse_each<E>(
    text: &Arc<Vec<u8>>,
    file: u32,
    origin: &Origin,
    mut f: impl FnMut(&Item) -> Result<(), E>,
) -> Result<(), E> {
    let mut parser = parser(text, file, origin);
    let mut open = Vec::new();
    loop {
        match parser.next(&mut open) {
            Next::Item(item) => f(&item)?,
            Next::Last(item) => return f(&item),
            Next::End => return Ok(()),
        }
    }
}

fn parser<'a>(text: &'a Arc<Vec<u8>>, file: u32, origin: &'a Origin) -> Parser<'a> {
    Parser {
        lexer: Lexer::new(text, file, origin),
        origin,
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
    /// The `}`, or the end of the text.
    End,
}

impl Parser<'_> {
    /// Reads to the end of the block, or of the text when `open`, the heads of the open blocks, is empty.
    fn body(&mut self, open: &mut Vec<Word>) -> Body {
        let mut items = Vec::new();
        loop {
            match self.next(open) {
                Next::Item(item) => items.push(item),
                Next::Last(item) => {
                    items.push(item);
                    return self.ended(items, true);
                }
                Next::End => return self.ended(items, false),
            }
        }
    }

    fn next(&mut self, open: &mut Vec<Word>) -> Next {
        let error = loop {
            let statement = match self.lexer.statement() {
                Ok(statement) => statement,
                Err(error) => break error,
            };
            match (statement.end, open.last()) {
                (End::Semicolon, _) => {
                    if let Some(item) = self.directive(statement, None) {
                        return Next::Item(item);
                    }
                }
                (End::Open, _) => {
                    if let Some(error) = self.open_error(open.len()) {
                        break error;
                    }
                    let body = self.block(&statement, open);
                    let broken = body.broken;
                    match self.directive(statement, Some(body)) {
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

    fn ended(&self, items: Vec<Item>, broken: bool) -> Body {
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

    fn directive(&self, statement: Statement, body: Option<Body>) -> Option<Item> {
        let end_line = statement.line;
        // The lexer gives no `;` or `{` without a word before it.
        let name = statement.name?;
        let (block, close_line) = match body {
            Some(body) => (Some(body.items), body.close_line),
            None => (None, end_line),
        };
        Some(Item::Directive(Directive {
            pos: name.pos,
            name,
            args: statement.args,
            block,
            end_line,
            close_line,
            origin: self.origin.clone(),
        }))
    }
}

/// Blocks may be nested this deep. nginx has no limit of its own; no context of it nests beyond a handful except
/// `location`, and the tree is walked recursively.
pub const BLOCK_DEPTH_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<Item> {
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
        let items = parsed("user a;\nhttp {\n server { listen 80; }\n server {}\n}\n");
        assert_eq!(
            outline(&items),
            "user(a) http(){server(){listen(80)} server(){}}"
        );
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
        ] {
            let mut items = Vec::new();
            let whole = Arc::new(text.into());
            let all: Result<(), ()> = parse_each(&whole, 0, &Origin::file("/a.conf"), |item| {
                items.push(item.clone());
                Ok(())
            });
            assert_eq!((all, items), (Ok(()), parsed(text)), "{text}");
        }
    }

    #[test]
    fn an_item_that_is_refused_is_the_last_that_is_read() {
        let mut count = 0;
        let text = Arc::new("a; b; c; }".into());
        let refused = parse_each(&text, 0, &Origin::file("/a.conf"), |_| {
            count += 1;
            if count == 2 { Err("b") } else { Ok(()) }
        });
        assert_eq!((refused, count), (Err("b"), 2));
    }

    #[test]
    fn lines_are_those_of_the_end_of_the_head_and_of_the_block() {
        let items = parsed("a\nb\n{\nc;\n}");
        let [Item::Directive(d)] = items.as_slice() else {
            panic!("one directive: {items:?}")
        };
        assert_eq!((d.pos.line, d.end_line, d.close_line), (1, 3, 5));
    }

    #[test]
    fn a_closing_brace_too_many_is_unexpected() {
        assert_eq!(
            outline(&parsed("a {}\n}\nb;")),
            "a(){} !unexpected \"}\" in /a.conf:2"
        );
    }

    #[test]
    fn an_unclosed_block_is_an_error_at_the_end_of_the_file() {
        let items = parsed("a {\nb {\nc;\n}\n");
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
            outline(&parsed("a; b { c; ; d; } e;")),
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
            outline(&parsed(&format!(
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
