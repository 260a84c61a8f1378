//! The tree's own source as text, for the rules in `tests/tests/tree`.

use std::fs;
use std::path::{Path, PathBuf};

/// The workspace this crate is a folder of.
///
/// # Panics
/// Never: the crate's folder has a parent.
#[must_use]
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests
        .parent()
        .expect("the tests are a folder of the workspace")
        .to_path_buf()
}

/// All files below a folder of the tree, build output and collected inputs left out.
#[must_use]
pub fn files(below: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(below)];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                if !["target", ".git", "corpus", "artifacts", "coverage", "seeds"]
                    .contains(&name.as_str())
                {
                    folders.push(path);
                }
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The Rust files below a folder of the tree.
#[must_use]
pub fn rust_files(below: &str) -> Vec<PathBuf> {
    files(below)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .collect()
}

/// The text of a file, nothing when it is not there.
#[must_use]
pub fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// The path relative to the root of the tree.
#[must_use]
pub fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// The code of a line: the part before a comment; nothing for a line of documentation.
#[must_use]
pub fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// True for a file that only tests or fuzzers compile.
#[must_use]
pub fn is_test_file(path: &Path) -> bool {
    let name = shown(path);
    name.starts_with("tests/")
        || name.contains("/tests/")
        || name.ends_with("tests.rs")
        || name.starts_with("fuzz/")
}

/// The lines of a file that are shipped: those before its unit tests.
pub fn shipped_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text
        .lines()
        .position(|line| line.trim() == "#[cfg(test)]")
        .unwrap_or(usize::MAX);
    text.lines()
        .enumerate()
        .take(end)
        .map(|(n, line)| (n + 1, line))
}

/// Returns the first line and length of each function of a text: from `fn` to the closing brace at the indent of `fn`,
/// which rustfmt guarantees.
#[must_use]
pub fn functions(text: &str) -> Vec<(usize, usize)> {
    let mut open: Option<(usize, usize)> = None;
    let mut found = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let words = line.trim_start();
        let is_head =
            words.starts_with("fn ") || words.contains(" fn ") && !words.starts_with("//");
        if is_head && open.is_none() && !words.ends_with([';', '}']) {
            open = Some((n, indent));
        }
        if open.is_some_and(|(_, at)| indent == at)
            && words.starts_with(')')
            && words.ends_with(';')
        {
            // A declaration without a body, over several lines.
            open = None;
        }
        if let Some((start, at)) = open
            && words.starts_with('}')
            && indent == at
        {
            found.push((start + 1, n - start + 1));
            open = None;
        }
    }
    found
}
