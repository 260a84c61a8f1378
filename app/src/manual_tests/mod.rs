//! The man page and the completions of shells are what the tables of options and directives say.
//!
//! They are rendered from the tables and compared with the files under `packaging/`; `FIRSTBYTE_UPDATE=1 cargo test
//! -p firstbyte manual` writes them anew. The page of the directives, section 5, is held to the tables by
//! `server/modules/tests/directives.rs`.

mod page;
mod shells;

use std::path::Path;

use conf::Contexts;
use server_http::build::all_rows;
use server_modules::MODULES;

#[test]
fn man_page_is_what_the_tables_say() {
    expect_file("packaging/man/firstbyte.8", &page::render());
}

#[test]
fn completions_are_what_the_tables_say() {
    let directives = main_directives();
    expect_file(
        "packaging/completions/firstbyte.bash",
        &shells::bash(&directives),
    );
    expect_file(
        "packaging/completions/_firstbyte",
        &shells::zsh(&directives),
    );
    expect_file(
        "packaging/completions/firstbyte.fish",
        &shells::fish(&directives),
    );
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

/// Compares a document with what it should be, or writes it.
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
