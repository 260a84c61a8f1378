//! Golden configurations: each `golden/*.conft` is a configuration, a line `----`, and its expected result.
//!
//! Files besides the main one follow lines `==== /path`; `==== -g` is the command line. The result is the log of the
//! toy language, or the error as it is shown. `UPDATE_GOLDEN=1` writes the actual result into the file.

mod toy;

use std::fs;
use std::path::{Path, PathBuf};

use conf::Memory;
use toy::{MAIN_FILE, Toy};

const COMMAND_LINE: &str = "-g";

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entries = fs::read_dir(folder).expect("the folder is part of the crate");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "conft")
    });
    paths.sort();
    paths
}

/// The text up to `----` cut into files.
fn files(text: &str) -> Vec<(String, String)> {
    let mut files = vec![(MAIN_FILE.to_owned(), String::new())];
    for line in text.split_inclusive('\n') {
        match line.strip_prefix("==== ") {
            Some(path) => files.push((path.trim_end().to_owned(), String::new())),
            None => files
                .last_mut()
                .expect("the main file is there")
                .1
                .push_str(line),
        }
    }
    files
}

fn given(text: &str) -> String {
    let mut memory = Memory::default();
    let mut command_line = None;
    for (path, text) in files(text) {
        match path.as_str() {
            COMMAND_LINE => command_line = Some(text.trim_end().to_owned()),
            _ => memory.add_file(path, text),
        }
    }
    let mut toy = Toy::new(memory);
    let parameter = command_line.map_or(Ok(()), |text| toy.command_line(text.as_bytes()));
    let result = parameter.and_then(|()| toy.load());
    toy.shown(result)
}

#[test]
fn golden_configurations_give_what_they_say() {
    let mut failed = Vec::new();
    let paths = cases();
    for path in &paths {
        let case = fs::read_to_string(path).expect("a case can be read");
        let (text, expected) = case.split_once("----\n").expect("a case has a line ----");
        let given = given(text);
        if given == expected.trim_end() {
            continue;
        }
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(path, format!("{text}----\n{given}\n")).expect("a case can be written");
        }
        failed.push(format!(
            "{}\nexpected:\n{expected}\ngiven:\n{given}\n",
            path.display()
        ));
    }
    assert!(paths.len() >= 25, "only {} cases", paths.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
