//! Golden configurations: files `*.conft` of a configuration, a line `----`, and its expected result.
//!
//! Files besides the main one follow lines `==== HEADER`, the path as a rule. `UPDATE_GOLDEN=1` writes what is given into the
//! file.

use std::fs;
use std::path::{Path, PathBuf};

/// The header of the command line.
pub(crate) const COMMAND_LINE: &str = "-g";

/// The text before `----` cut into files: their headers and texts, the main one first.
pub(crate) fn files<'a>(main: &'a str, text: &'a str) -> Vec<(&'a str, String)> {
    let mut files = vec![(main, String::new())];
    for line in text.split_inclusive('\n') {
        match line.strip_prefix("==== ") {
            Some(header) => files.push((header.trim_end(), String::new())),
            None => files
                .last_mut()
                .expect("the main file is there")
                .1
                .push_str(line),
        }
    }
    files
}

fn cases(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is part of the tree");
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

/// Checks every case of a folder with at least `at_least` of them.
pub(crate) fn check(folder: &Path, at_least: usize, given: impl Fn(&str) -> String) {
    let mut failed = Vec::new();
    let paths = cases(folder);
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
    assert!(paths.len() >= at_least, "only {} cases", paths.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
