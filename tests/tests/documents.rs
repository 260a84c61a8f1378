//! Documents: links and anchors lead somewhere, named paths exist, pages begin with their use, sentences are short.
//!
//! Limits of words and of sentences are those of `PLAIN`. Absent: comments of the code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use firstbyte_tests::source::{files, read, root, shown};

/// Pages with a limit of lines, so that a visitor can read them at once.
const LINES_MAX: [(&str, usize); 2] = [("README.md", 140), ("benches/README.md", 200)];

/// Words, and how often they may occur in 1,000 lines of all documents.
const PLAIN: [(&str, usize); 6] = [
    ("what", 10),
    ("where", 12),
    ("says", 3),
    ("whose", 8),
    ("lies", 1),
    ("stands", 1),
];

/// Documents that are not plain yet: the list only shrinks.
const NOT_PLAIN: [&str; 1] = ["ARCHITECTURE.md"];

/// Words of a sentence that nine of ten sentences do not exceed.
const SENTENCE_WORDS: usize = 25;

fn documents() -> Vec<PathBuf> {
    let is_document = |path: &PathBuf| path.extension().is_some_and(|end| end == "md");
    files("").into_iter().filter(is_document).collect()
}

/// Lines of a document outside of code blocks.
fn text_lines(path: &Path) -> Vec<String> {
    let mut code = false;
    let mut lines = Vec::new();
    for line in read(path).lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// The anchor of a heading, as code hosts make it.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || ['-', '_', ' '].contains(c);
    let kept: String = heading.trim().chars().filter(kept).collect();
    kept.to_lowercase().replace(' ', "-")
}

#[test]
fn links_and_anchors_lead_somewhere() {
    let documents = documents();
    let mut anchors: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for path in &documents {
        let lines = text_lines(path);
        let headings = lines.iter().filter(|line| line.starts_with('#'));
        let of_path = headings.map(|line| anchor(line.trim_start_matches('#')));
        anchors.insert(path.clone(), of_path.collect());
    }
    let mut findings = Vec::new();
    for path in &documents {
        let text = text_lines(path).join("\n");
        let targets = text.split("](").skip(1);
        for target in targets.filter_map(|rest| rest.split(')').next()) {
            if target.starts_with("http") {
                continue;
            }
            let (file, wanted) = target.split_once('#').unwrap_or((target, ""));
            let folder = path.parent().expect("a document is in a folder");
            let leads_to = match file {
                "" => Some(path.clone()),
                file => folder.join(file).canonicalize().ok(),
            };
            let has_anchor = leads_to.as_ref().is_some_and(|leads_to| {
                let known = anchors.get(leads_to);
                wanted.is_empty() || known.is_some_and(|of| of.iter().any(|each| each == wanted))
            });
            if !has_anchor {
                findings.push(format!("{}: {target}", shown(path)));
            }
        }
    }
    assert_eq!(findings, Vec::<String>::new());
}

/// Paths in code spans of the first pages: those that begin with a folder of the tree.
#[test]
fn named_paths_exist() {
    let mut findings = Vec::new();
    for name in [
        "README.md",
        "benches/README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ] {
        let text = text_lines(&root().join(name)).join("\n");
        for span in text.split('`').skip(1).step_by(2) {
            let word = span.split(' ').next().unwrap_or_default();
            let Some((folder, _)) = word.split_once('/') else {
                continue;
            };
            let is_pattern = word.contains(['*', '<']) || word.chars().any(char::is_uppercase);
            let is_built = folder == "target";
            let is_ours = !folder.is_empty() && root().join(folder).is_dir();
            if is_ours && !is_pattern && !is_built && !root().join(word).exists() {
                findings.push(format!("{name}: {word}"));
            }
        }
    }
    assert_eq!(findings, Vec::<String>::new());
}

#[test]
fn pages_begin_with_their_use() {
    let of_docs = |path: &PathBuf| path.parent() == Some(root().join("docs").as_path());
    let findings: Vec<String> = documents()
        .into_iter()
        .filter(of_docs)
        .filter(|path| {
            let text = read(path);
            let mut lines = text
                .lines()
                .skip_while(|line| !line.starts_with("# "))
                .skip(1);
            let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
            !first.starts_with("With this page you can ")
        })
        .map(|path| shown(&path))
        .collect();
    assert_eq!(findings, Vec::<String>::new());
}

#[test]
fn first_pages_are_short() {
    for (name, most) in LINES_MAX {
        let lines = read(&root().join(name)).lines().count();
        assert!(lines <= most, "{name}: {lines} lines, {most} at most");
    }
}

/// Paragraphs and list items, code spans as one word, without tables and headings.
fn paragraphs(path: &Path) -> Vec<Vec<String>> {
    let mut blocks = vec![Vec::new()];
    let is_item = |line: &str| {
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        line.starts_with("- ") || line.starts_with("* ") || number.starts_with(". ")
    };
    for line in text_lines(path) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['|', '#', '<', '!']) {
            blocks.push(Vec::new());
            continue;
        }
        if is_item(line) {
            blocks.push(Vec::new());
        }
        let last = blocks.last_mut().expect("there is a first one");
        last.push(line.trim_start_matches(['-', '*']).trim().to_owned());
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// The text without code: each span is one word.
fn without_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(|(n, part)| if n % 2 == 1 { "x" } else { part })
        .collect()
}

/// Numbers of words of the sentences of a text; one or two words are no sentence.
fn sentence_lengths(text: &str) -> Vec<usize> {
    let (mut lengths, mut length) = (Vec::new(), 0);
    for word in text.split_whitespace() {
        length += 1;
        if word.ends_with(['.', '!', '?']) {
            lengths.push(length);
            length = 0;
        }
    }
    lengths.push(length);
    lengths.retain(|length| *length > 2);
    lengths
}

#[test]
fn sentences_are_plain() {
    let (mut lines, mut words, mut lengths) = (0, Vec::new(), Vec::new());
    for path in documents() {
        if NOT_PLAIN.contains(&shown(&path).as_str()) {
            continue;
        }
        for block in paragraphs(&path) {
            lines += block.len();
            let text = without_code(&block.join(" "));
            lengths.extend(sentence_lengths(&text));
            let letters = |c: char| !c.is_alphanumeric();
            words.extend(text.to_lowercase().split(letters).map(str::to_owned));
        }
    }
    for (word, most) in PLAIN {
        let count = words.iter().filter(|each| *each == word).count();
        assert!(
            count * 1000 <= most * lines,
            "{word:?}: {count} times in {lines} lines"
        );
    }
    lengths.sort_unstable();
    let nine_of_ten = lengths[lengths.len() * 9 / 10];
    assert!(nine_of_ten <= SENTENCE_WORDS, "{nine_of_ten} words");
}
