//! Prose of comments: rates of words that mark unclear sentences, by crate. A rate may only fall.
//!
//! `prose.txt` has a line for each crate: words per 1,000 comment lines, and the length of sentences in words (90th
//! percentile). `FIRSTBYTE_UPDATE=1 cargo test -p firstbyte-tests --test tree prose` writes lower numbers into it, down to
//! `FREE`. Documents have limits of their own in `documents.rs`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use firstbyte_tests::source::{files, read, root, rust_files, shown};

use super::documents::{sentence_lengths, without_code};

/// The counted words. As pronouns and verbs of human life they replace nouns and plain verbs.
const WORDS: [&str; 6] = ["what", "where", "says", "whose", "lies", "stands"];
/// Numbers that are always permitted, so that a single word is no fault: a rate for each word, and a sentence length.
const FREE: [usize; WORDS.len() + 1] = [4, 4, 1, 4, 0, 0, 20];
/// The table of rates.
const TABLE: &str = "tests/tests/tree/prose.txt";

/// Figures of the comments of a crate.
#[derive(Debug, Default, PartialEq, Eq)]
struct Prose {
    lines: usize,
    counts: [usize; WORDS.len()],
    sentences: Vec<usize>,
}

impl Prose {
    /// Adds the comments of a file.
    fn add(&mut self, text: &str) {
        for block in blocks(text) {
            self.lines += block.len();
            let text = without_code(&block.join(" ")).to_lowercase();
            for word in text.split(|c: char| !c.is_alphanumeric()) {
                if let Some(at) = WORDS.iter().position(|each| *each == word) {
                    self.counts[at] += 1;
                }
            }
            self.sentences.extend(sentence_lengths(&text));
        }
    }

    /// Returns the counts per 1,000 lines, rounded up, then the 90th percentile of the sentences.
    fn rates(mut self) -> Vec<usize> {
        self.sentences.sort_unstable();
        let long = self.sentences.get(self.sentences.len() * 9 / 10).copied();
        let rate = |count: usize| (count * 1000).div_ceil(self.lines.max(1));
        let rates = self.counts.into_iter().map(rate);
        rates.chain([long.unwrap_or_default()]).collect()
    }
}

/// Returns the blocks of consecutive comment lines, without examples in fences.
fn blocks(text: &str) -> Vec<Vec<&str>> {
    let (mut blocks, mut block, mut is_code) = (Vec::new(), Vec::new(), false);
    for line in text.lines() {
        let line = line.trim_start();
        let comment = line
            .strip_prefix("//")
            .map(|line| line.trim_start_matches(['/', '!']).trim());
        if comment.is_some_and(|line| line.starts_with("```")) {
            is_code = !is_code;
        }
        match comment.filter(|line| !line.is_empty() && !line.starts_with("```") && !is_code) {
            Some(line) => block.push(line),
            None => blocks.push(std::mem::take(&mut block)),
        }
    }
    blocks.push(block);
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// Returns the folders of the crates, longest first, so that the first one that contains a file is its crate.
fn crates() -> Vec<PathBuf> {
    let manifests = files("")
        .into_iter()
        .filter(|path| path.ends_with("Cargo.toml"));
    let mut folders: Vec<PathBuf> = manifests
        .filter_map(|path| Some(path.parent()?.to_owned()))
        .filter(|folder| *folder != root())
        .collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.as_os_str().len()));
    folders
}

/// Returns the figures of each crate, by its folder.
fn measured() -> Vec<(String, Vec<usize>)> {
    let crates = crates();
    let mut figures: Vec<Prose> = crates.iter().map(|_| Prose::default()).collect();
    for path in rust_files("") {
        if let Some(at) = crates.iter().position(|folder| path.starts_with(folder)) {
            figures[at].add(&read(&path));
        }
    }
    let rates = figures.into_iter().map(Prose::rates);
    let mut all: Vec<_> = crates
        .iter()
        .map(|folder| shown(folder))
        .zip(rates)
        .collect();
    all.sort();
    all
}

/// Returns the permitted rates of a crate: those of its line of the table.
fn permitted(table: &str, folder: &str) -> Option<Vec<usize>> {
    let line = table
        .lines()
        .find(|line| line.split_whitespace().next() == Some(folder))?;
    let numbers = line.split_whitespace().skip(1);
    numbers.map(|number| number.parse().ok()).collect()
}

#[test]
fn comments_are_plain() {
    let command = "FIRSTBYTE_UPDATE=1 cargo test -p firstbyte-tests --test tree prose";
    let table = read(&root().join(TABLE));
    let mut text = format!("{:18} {} words\n", "crate", WORDS.join(" "));
    let mut findings = Vec::new();
    for (folder, rates) in measured() {
        let most = permitted(&table, &folder).filter(|most| most.len() == rates.len());
        let most = most.unwrap_or_else(|| {
            findings.push(format!("{folder}: no line in {TABLE}: {command}"));
            rates.clone()
        });
        let names = WORDS.iter().chain(&["words of a sentence"]);
        for ((name, rate), most) in names.zip(&rates).zip(&most) {
            if rate > most {
                findings.push(format!(
                    "{folder}: {name}: {rate}, {most} at most: restate comments"
                ));
            }
        }
        let lower = rates.iter().zip(&most).map(|(rate, most)| rate.min(most));
        let lower = lower.zip(FREE).map(|(lower, free)| free.max(*lower));
        let _ = writeln!(text, "{folder:18} {}", columns(&lower.collect::<Vec<_>>()));
    }
    if std::env::var_os("FIRSTBYTE_UPDATE").is_some() {
        fs::write(root().join(TABLE), text).expect("the table is part of the tree");
        findings.retain(|finding| !finding.contains(command));
    }
    assert_eq!(findings, Vec::<String>::new());
}

/// Returns numbers below the names of their columns.
fn columns(numbers: &[usize]) -> String {
    let widths = WORDS.iter().map(|word| word.len()).chain([5]);
    let cells: Vec<String> = numbers
        .iter()
        .zip(widths)
        .map(|(number, width)| format!("{number:>width$}"))
        .collect();
    cells.join(" ")
}

#[test]
fn comments_are_counted() {
    let mut prose = Prose::default();
    prose.add(
        "/// What it is, `what` is code.\n/// Whose is it?\nfn f() {}\n// ```\n// what\n// ```\n",
    );
    assert_eq!(prose.lines, 2);
    assert_eq!(prose.counts, [1, 0, 0, 1, 0, 0]);
    assert_eq!(prose.rates(), [500, 0, 0, 500, 0, 0, 6]);
    assert_eq!(permitted("a 1 2\nb 3 4\n", "b"), Some(vec![3, 4]));
}
