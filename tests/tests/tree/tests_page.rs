//! The index of docs/tests.md has one row for each file with tests below a `tests` folder: the first sentence of its `//!`.
//!
//! `FIRSTBYTE_UPDATE=1 cargo test -p firstbyte-tests --test tree tests_page` writes the index. Absent: unit tests beside the
//! code (`src`), which are found by the file that they test.

use std::collections::BTreeMap;
use std::path::Path;

use firstbyte_tests::docs::docs_of;
use firstbyte_tests::source::{read, root, rust_files, shown};

/// The line below which the page is generated.
const START: &str = "## Index";

/// Returns the heading of a file: its folder, which for the black-box tests is a feature.
fn section(file: &str) -> &str {
    let end = match file.strip_prefix("tests/tests/") {
        Some(rest) => "tests/tests/".len() + rest.find('/').map_or(0, |end| end + 1),
        None => file.find("/tests/").map_or(0, |at| at + "/tests/".len()),
    };
    &file[..end]
}

/// Returns the first sentence of the head of a file, as a cell of a table.
fn summary(file: &str, text: &str) -> String {
    let docs = docs_of(file, text);
    let head = docs.first().filter(|doc| doc.line == 1);
    head.map_or("", |doc| doc.first_sentence())
        .replace('|', "\\|")
}

/// Returns whether a file of test executables has tests of its own.
fn has_tests(file: &str, text: &str) -> bool {
    let is_beside_code = file.contains("/src/") || file.starts_with("fuzz/");
    file.contains("/tests/") && !is_beside_code && text.contains("#[test]")
}

/// Returns the index: a table for each folder.
fn index() -> String {
    // Features come first, then the crates.
    let mut sections: BTreeMap<(bool, String), Vec<String>> = BTreeMap::new();
    for path in rust_files("") {
        let (file, text) = (shown(&path), read(&path));
        if has_tests(&file, &text) {
            let name = section(&file);
            let row = format!(
                "| [{}](../{file}) | {} |\n",
                &file[name.len()..],
                summary(&file, &text)
            );
            let key = (!name.starts_with("tests/tests/"), name.to_owned());
            sections.entry(key).or_default().push(row);
        }
    }
    let tables = sections.into_iter().map(|((_, name), rows)| {
        let about = introduction(&name);
        format!(
            "\n### {name}\n\n{about}| file | tests |\n|---|---|\n{}",
            rows.concat()
        )
    });
    tables.collect()
}

/// Returns the sentence about a folder: the head of its `main.rs`, with a command that runs it.
fn introduction(name: &str) -> String {
    if name == "tests/tests/" {
        return "Each file is an executable of its own. Its head has the reason.\n\n".to_owned();
    }
    let Some(feature) = name
        .strip_prefix("tests/tests/")
        .map(|name| name.trim_end_matches('/'))
    else {
        return String::new();
    };
    let main = root().join(name).join("main.rs");
    let about = summary(&shown(&main), &read(&main));
    format!("{about}. `cargo test -p firstbyte-tests --test {feature}` runs them.\n\n")
}

#[test]
fn the_index_lists_every_file_with_tests() {
    let page = root().join("docs/tests.md");
    let text = read(&page);
    let start = text
        .find(&format!("{START}\n"))
        .expect("the page has an index");
    let intro = "\nGenerated from the heads of the files: `FIRSTBYTE_UPDATE=1 cargo test -p firstbyte-tests --test tree tests_page`.\n";
    let expected = format!("{}{START}\n{intro}{}", &text[..start], index());
    if std::env::var_os("FIRSTBYTE_UPDATE").is_some() {
        std::fs::write(&page, &expected).expect("the page is part of the tree");
    } else {
        let command = "FIRSTBYTE_UPDATE=1 cargo test -p firstbyte-tests --test tree tests_page";
        assert!(text == expected, "docs/tests.md is out of date: {command}");
    }
}

#[test]
fn every_file_of_a_feature_is_compiled() {
    let mut findings = Vec::new();
    for path in rust_files("tests/tests") {
        let name = path.file_name().and_then(|name| name.to_str());
        let folder = path.parent().expect("a file is in a folder");
        let main = folder.join("main.rs");
        if name == Some("main.rs") || !main.exists() {
            continue;
        }
        let module = Path::new(name.unwrap_or_default()).with_extension("");
        let line = format!("mod {};", module.display());
        if !read(&main).lines().any(|each| each == line) {
            findings.push(shown(&path));
        }
    }
    assert_eq!(findings, Vec::<String>::new(), "not named in main.rs");
}

#[test]
fn rows_are_made_of_heads() {
    assert_eq!(section("tests/tests/http/dav.rs"), "tests/tests/http/");
    assert_eq!(section("tests/tests/via.rs"), "tests/tests/");
    assert_eq!(section("store/tests/sqlite/rows.rs"), "store/tests/");
    assert_eq!(summary("a.rs", "//! One | two. Three.\n"), "One \\| two");
    assert!(!has_tests("lab/src/web/tests/page.rs", "#[test]"));
    assert!(!has_tests("store/tests/sqlite/rows.rs", "fn row() {}"));
}
