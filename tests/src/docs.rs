//! Doc comments of the tree, read as text: for the rules about their sentences and for samples that a reader judges.

use crate::source::{read, rust_files, shown};

/// A doc comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doc {
    /// Its file, relative to the root of the tree.
    pub file: String,
    /// Its first line, from 1.
    pub line: usize,
    /// Its text up to the first empty line, in one line.
    pub text: String,
    /// The line of code that follows it.
    pub item: String,
}

impl Doc {
    /// The first sentence, without the full stop.
    #[must_use]
    pub fn first_sentence(&self) -> &str {
        let end = self.text.find(". ").unwrap_or(self.text.len());
        self.text[..end].trim_end_matches('.')
    }
}

/// The text of a line of documentation.
fn documented(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or(line.strip_prefix("//!"))?;
    (!text.starts_with('/')).then_some(text.trim())
}

/// The doc comments of a text.
#[must_use]
pub fn docs_of(file: &str, text: &str) -> Vec<Doc> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let block = lines[at..].iter().map_while(|line| documented(line));
        let block: Vec<&str> = block.collect();
        if !block.is_empty() {
            let first = block.split(|line| line.is_empty()).next();
            found.push(Doc {
                file: file.to_owned(),
                line: at + 1,
                text: first.unwrap_or_default().join(" "),
                item: lines
                    .get(at + block.len())
                    .map_or(String::new(), |line| line.trim().to_owned()),
            });
        }
        at += block.len().max(1);
    }
    found
}

/// The doc comments of all Rust files below a folder of the tree.
#[must_use]
pub fn docs(below: &str) -> Vec<Doc> {
    let files = rust_files(below);
    let all = files.iter().map(|path| docs_of(&shown(path), &read(path)));
    all.flatten().collect()
}

/// Draws `count` doc comments by the sequence of `seed` (SplitMix64): equal seeds draw equal comments of an equal tree.
#[must_use]
pub fn sample(docs: &[Doc], seed: u64, count: usize) -> Vec<&Doc> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let drawn = (0..count).filter_map(|_| {
        let len = u64::try_from(docs.len()).ok().filter(|len| *len > 0)?;
        docs.get(usize::try_from(next() % len).ok()?)
    });
    drawn.collect()
}
