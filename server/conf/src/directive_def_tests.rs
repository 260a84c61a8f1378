//! Rows by name and context, and the walks of a block.

use super::*;
use crate::Memory;
use crate::testing::directive;

/// Rows read their blocks of HTTP themselves if `reads` is set.
struct Two {
    table: Table<Self>,
    loader: Loader,
    seen: Vec<&'static str>,
    reads: bool,
}

impl Builder for Two {
    fn reads_block(&self, _: &str, context: Contexts) -> bool {
        self.reads && context == Contexts::HTTP
    }

    fn table(&self) -> &Table<Self> {
        &self.table
    }

    fn loader(&mut self) -> &mut Loader {
        &mut self.loader
    }
}

const fn server(
    contexts: Contexts,
    arity: Arity,
    block: bool,
    apply: Apply<Two>,
) -> DirectiveDef<Two> {
    DirectiveDef {
        name: "server",
        contexts,
        arity,
        block,
        default: "",
        doc: "",
        syntax: "",
        apply,
    }
}

const BLOCK: &[DirectiveDef<Two>] = &[server(Contexts::HTTP, Arity::NOARGS, true, |two, _| {
    two.seen.push("block");
    Ok(())
})];

const PEER: &[DirectiveDef<Two>] = &[server(
    Contexts::UPSTREAM,
    Arity::ONE_MORE,
    false,
    |two, _| {
        two.seen.push("peer");
        Ok(())
    },
)];

const PEERS: &[DirectiveDef<Two>] = &[DirectiveDef {
    name: "upstream",
    ..server(Contexts::HTTP, Arity::NOARGS, true, |two, d| {
        two.seen.push("peers");
        walk_block(two, d, Contexts::UPSTREAM)
    })
}];

fn two(files: Memory) -> Two {
    Two {
        table: Table::from(&[BLOCK, PEER, PEERS]),
        loader: Loader::new(files, "/"),
        seen: Vec::new(),
        reads: false,
    }
}

fn walk_text(text: &str, context: Contexts) -> Result<Vec<&'static str>, ConfError> {
    let mut two = two(Memory::default());
    walk(&mut two, &[Item::Directive(directive(text))], context)?;
    Ok(two.seen)
}

/// Walks a text. Its blocks are parsed before their rows are called, or with `reads` by the rows. Returns rows and error.
fn walk_file_text(text: &str, reads: bool) -> (Vec<&'static str>, String) {
    let files = Memory::default().with_file("/a", text);
    let files = files.with_file("/b", "server b; server c;");
    let mut two = Two {
        reads,
        ..two(files)
    };
    let file = two.loader.load("/a".as_ref()).expect("it is there");
    let error = walk_file(&mut two, &file, Contexts::HTTP).err();
    let error = error.map_or_else(String::new, |error| error.render(two.loader.files()));
    (two.seen, error)
}

#[test]
fn a_block_is_walked_alike_whether_it_is_parsed_before_or_meanwhile() {
    for (text, seen, error) in [
        ("upstream { }", &["peers"][..], ""),
        (
            "upstream { server a; include /b; } server { server d; } upstream { server e; }",
            &["peers", "peer", "peer", "peer", "block", "peers", "peer"],
            "",
        ),
        (
            "upstream { server a; { } } server { }",
            &["peers", "peer"],
            "unexpected \"{\" in /a:1",
        ),
        (
            "upstream { server a; }\n } server { }",
            &["peers", "peer"],
            "unexpected \"}\" in /a:2",
        ),
        (
            "upstream { server a; ",
            &["peers", "peer"],
            "unexpected end of file, expecting \"}\" in /a:1",
        ),
        // A row that ignores its block does not notice errors in it.
        ("server { { } } upstream { }", &["block"], ""),
    ] {
        for reads in [false, true] {
            let (found, why) = walk_file_text(text, reads);
            assert_eq!(found, seen, "{text} {reads}");
            assert_eq!(why.is_empty(), error.is_empty(), "{text} {reads}: {why}");
            assert!(why.contains(error), "{text} {reads}: {why}");
        }
    }
}

#[test]
fn the_row_of_a_name_is_chosen_by_context() {
    assert_eq!(walk_text("server { }", Contexts::HTTP), Ok(vec!["block"]));
    assert_eq!(walk_text("server a;", Contexts::UPSTREAM), Ok(vec!["peer"]));
}

#[test]
fn a_name_without_a_row_for_the_context_is_not_allowed() {
    let error = walk_text("server a;", Contexts::LOCATION).expect_err("it has no such row");
    assert_eq!(error.message(), "\"server\" directive is not allowed here");
    assert_eq!(error.hint(), Some("it is allowed in: http, upstream"));
}

#[test]
fn names_are_those_of_the_context() {
    let table = Table::from(&[BLOCK, PEER]);
    assert_eq!(table.names(Contexts::HTTP).collect::<Vec<_>>(), ["server"]);
    assert_eq!(table.names(Contexts::MAIN).count(), 0);
    assert_eq!(table.lookup("server").len(), 2);
    assert_eq!(table.rows().count(), 2);
}
