//! The man pages and completions of shells match the tables of options and directives.
//!
//! clap_mangen and clap_complete render them; `page` renders the page of nginx's options. They are compared with the
//! files under `packaging/`, and `FIRSTBYTE_UPDATE=1 cargo test -p firstbyte manual` writes them.
//! `server/modules/tests/directives.rs` checks the page of the directives, section 5.

mod page;
mod shells;
mod statuses;

use std::path::Path;

use clap_complete::Shell;
use conf::Contexts;
use server_http::assemble::all_rows;
use server_modules::MODULES;

use crate::cli;

#[test]
fn man_page_is_what_the_tables_say() {
    expect_file("packaging/man/firstbyte.8", &page::render());
}

#[test]
fn man_pages_of_verbs_are_what_their_options_say() {
    let mut names = Vec::new();
    for verb in cli::command().get_subcommands() {
        let name = format!("firstbyte-{}", verb.get_name());
        expect_file(
            &format!("packaging/man/{name}.1"),
            &page::of_verb(verb, &name),
        );
        names.push(format!("{name}.1"));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/man");
    let pages = std::fs::read_dir(folder).expect("it is there").flatten();
    let pages = pages.filter_map(|page| page.file_name().into_string().ok());
    let mut pages: Vec<String> = pages.filter(|page| page.ends_with(".1")).collect();
    pages.sort_unstable();
    assert_eq!(pages, names, "a page of no verb");
}

#[test]
fn completions_are_what_the_options_say() {
    let directives = main_directives();
    for (name, text) in [
        (
            "firstbyte.bash",
            shells::completion(Shell::Bash, &directives),
        ),
        ("_firstbyte", shells::completion(Shell::Zsh, &directives)),
        (
            "firstbyte.fish",
            shells::completion(Shell::Fish, &directives),
        ),
    ] {
        expect_file(&format!("packaging/completions/{name}"), &text);
    }
}

/// The names of the directives that `-g` can take: those of the main context that end in a semicolon.
fn main_directives() -> Vec<&'static str> {
    let rows = all_rows(MODULES);
    let mut names: Vec<&str> = rows
        .iter()
        .flat_map(|(_, rows)| *rows)
        .filter(|row| row.contexts.contains(Contexts::MAIN) && !row.block)
        .map(|row| row.name)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Compares a document with its expected text, or writes it.
#[track_caller]
fn expect_file(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    if found == expected {
        return;
    }
    if std::env::var_os("FIRSTBYTE_UPDATE").is_some_and(|value| value == "1") {
        return std::fs::write(&path, expected).expect("the document can be written");
    }
    panic!("{name} is out of date: FIRSTBYTE_UPDATE=1 cargo test -p firstbyte manual");
}
