//! Documents: links and anchors lead somewhere, named paths exist, pages begin with their use, sentences are short.
//!
//! Paths, symbols and commands of ARCHITECTURE.md and of docs/design exist. Limits of words and of sentences are those of
//! `PLAIN`. Absent: comments of the code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use firstbyte_tests::source::{
    code, files, is_test_file, read, root, rust_files, shipped_lines, shown,
};

/// Pages with a limit of lines, so that a visitor can read them at once.
const LINES_MAX: [(&str, usize); 3] = [
    ("README.md", 140),
    ("benches/README.md", 200),
    ("ARCHITECTURE.md", 280),
];

/// Columns of a line of a design page.
const COLUMNS_MAX: usize = 100;

/// Words, and their permitted number in 1,000 lines of all documents.
const PLAIN: [(&str, usize); 6] = [
    ("what", 10),
    ("where", 12),
    ("says", 3),
    ("whose", 8),
    ("lies", 1),
    ("stands", 1),
];

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

/// ARCHITECTURE.md and the pages that it refers to.
fn design_pages() -> Vec<PathBuf> {
    let is_design = |path: &PathBuf| path.parent() == Some(root().join("docs/design").as_path());
    let mut pages: Vec<PathBuf> = documents().into_iter().filter(is_design).collect();
    pages.push(root().join("ARCHITECTURE.md"));
    pages
}

/// Code spans of a document.
fn spans(path: &Path) -> Vec<String> {
    let text = text_lines(path).join("\n");
    let spans = text.split('`').skip(1).step_by(2);
    spans.map(str::to_owned).collect()
}

/// Paths in code spans of the first pages: those that begin with a folder of the tree.
#[test]
fn named_paths_exist() {
    let first_pages = [
        "README.md",
        "benches/README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ];
    let mut pages = design_pages();
    pages.extend(first_pages.map(|name| root().join(name)));
    let mut findings = Vec::new();
    for page in pages {
        for span in spans(&page) {
            let word = span.split(' ').next().unwrap_or_default();
            let Some((folder, _)) = word.split_once('/') else {
                continue;
            };
            let is_pattern = word.contains(['*', '<']) || word.chars().any(char::is_uppercase);
            let is_built = folder == "target";
            let is_ours = !folder.is_empty() && root().join(folder).is_dir();
            if is_ours && !is_pattern && !is_built && !root().join(word).exists() {
                findings.push(format!("{}: {word}", shown(&page)));
            }
        }
    }
    assert_eq!(findings, Vec::<String>::new());
}

/// Folders of the picture in ARCHITECTURE.md: each name that ends with a slash is a folder below that of its line.
#[test]
fn folders_of_the_picture_exist() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let picture = text.split("```").nth(1).unwrap_or_default();
    let folders: BTreeSet<PathBuf> = files("")
        .iter()
        .flat_map(|path| path.ancestors().skip(1).map(Path::to_owned))
        .collect();
    let (mut top, mut seen) = ("", 0);
    let mut findings = Vec::new();
    for line in picture.lines() {
        for word in line.split([' ', '(', ')', ',']) {
            let Some(name) = word.strip_suffix('/') else {
                continue;
            };
            if line.starts_with(word) {
                top = name;
            }
            let is_inside = |path: &&PathBuf| path.starts_with(root().join(top));
            let mut inside = folders.iter().filter(is_inside);
            let is_top = root().join(name).is_dir();
            if !is_top && !inside.any(|path| path.ends_with(name)) {
                findings.push(format!("{top}: {name}"));
            }
            seen += 1;
        }
    }
    assert_eq!(findings, Vec::<String>::new());
    assert!(seen > 40, "{seen} folders");
}

/// Design pages name paths from the root, so that a reader can open each of them.
#[test]
fn paths_of_design_pages_begin_at_the_root() {
    let mut findings = Vec::new();
    for page in design_pages() {
        for span in spans(&page).iter().filter(|span| !span.contains(' ')) {
            let folder = span.split_once('/').map(|(folder, _)| folder);
            let is_file = span.ends_with(".rs") || span.ends_with(".md");
            let is_of_system = folder == Some("");
            let is_ours = folder.is_some_and(|folder| root().join(folder).is_dir());
            if (folder.is_some() || is_file) && !is_ours && !is_of_system {
                findings.push(format!("{}: {span}", shown(&page)));
            }
        }
    }
    assert_eq!(findings, Vec::<String>::new());
}

/// Identifiers of a text.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

/// Identifiers of the shipped code of each file, without its comments; texts such as directives are among them. The name of a
/// file or of its folder is that of its module.
fn identifiers_by_file() -> BTreeMap<PathBuf, BTreeSet<String>> {
    let shipped = rust_files("").into_iter();
    let shipped = shipped.filter(|path| !is_test_file(path) && !path.ends_with("build.rs"));
    let of_file = |path: PathBuf| {
        let text = read(&path);
        let lines = shipped_lines(&text).map(|(_, line)| code(line));
        let mut found: BTreeSet<String> = lines.flat_map(identifiers).map(str::to_owned).collect();
        let names = identifiers(path.to_str().unwrap_or_default());
        found.extend(names.map(str::to_owned));
        (path, found)
    };
    shipped.map(of_file).collect()
}

/// A span such as `Type::function` has both names in one file at least; each other name is in some file.
#[test]
fn symbols_of_design_pages_exist() {
    let by_file = identifiers_by_file();
    let is_known = |names: &[&str]| {
        let mut files = by_file.values();
        files.any(|known| names.iter().all(|name| known.contains(*name)))
    };
    let mut findings = Vec::new();
    for page in design_pages() {
        for span in spans(&page) {
            let is_command = span.contains("cargo ") || span.starts_with("make ");
            if is_command || span.contains(['/', '-', '*']) || span.contains(".rs") {
                continue;
            }
            for word in span.split_whitespace() {
                let names: Vec<&str> = identifiers(word).collect();
                let parts = names.iter().map(|name| vec![*name]);
                let wanted = match word.contains("::") {
                    true => vec![names.clone()],
                    false => parts.collect(),
                };
                for names in wanted {
                    if !is_known(&names) {
                        findings.push(format!("{}: {span}", shown(&page)));
                    }
                }
            }
        }
    }
    assert_eq!(findings, Vec::<String>::new());
}

/// Commands of a page, in spans and in code blocks: `make` and `cargo`.
fn commands(path: &Path) -> Vec<String> {
    let text = read(path);
    let lines = text.lines().map(str::to_owned);
    let starts = |each: &str| each.starts_with("make ") || each.contains("cargo ");
    let all = lines.filter(|line| !line.contains('`')).chain(spans(path));
    all.filter(|each| starts(each)).collect()
}

/// A finding if a command names a package, a test or a target that does not exist.
fn unknown_in(command: &str, packages: &BTreeMap<String, PathBuf>) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    if let ["make", target, ..] = words.as_slice() {
        let rules = read(&root().join("Makefile"));
        let is_rule = rules
            .lines()
            .any(|line| line.starts_with(&format!("{target}:")));
        return (!is_rule).then(|| command.to_owned());
    }
    let after = |option: &str| {
        let pairs = words.windows(2).filter(move |pair| pair[0] == option);
        pairs.map(|pair| pair[1]).collect::<Vec<_>>()
    };
    let folders: Vec<_> = after("-p")
        .into_iter()
        .map(|name| packages.get(name))
        .collect();
    let has_test = |test: &str| {
        let mut folders = folders.iter().flatten();
        folders.any(|folder| {
            let tests = folder.join("tests");
            tests.join(format!("{test}.rs")).exists() || tests.join(test).join("main.rs").exists()
        })
    };
    let is_known = folders.iter().all(Option::is_some) && after("--test").into_iter().all(has_test);
    (!is_known).then(|| command.to_owned())
}

#[test]
fn commands_of_first_and_design_pages_exist() {
    let manifests = files("")
        .into_iter()
        .filter(|path| path.ends_with("Cargo.toml"));
    let packages: BTreeMap<String, PathBuf> = manifests
        .filter_map(|path| {
            let text = read(&path);
            let name = text
                .lines()
                .find_map(|line| line.strip_prefix("name = \"firstbyte"));
            let name = format!("firstbyte{}", name?.trim_end_matches('"'));
            Some((name, path.parent()?.to_owned()))
        })
        .collect();
    let mut pages = design_pages();
    pages.extend(["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    let mut seen = 0;
    let mut findings = Vec::new();
    for command in pages.iter().flat_map(|page| commands(page)) {
        seen += 1;
        findings.extend(unknown_in(&command, &packages));
    }
    assert_eq!(findings, Vec::<String>::new());
    assert!(seen >= 5, "{seen} commands");
    let wrong = [
        "make nothing",
        "cargo test -p firstbyte-nothing",
        "cargo test -p firstbyte-tests --test no",
    ];
    let found = wrong
        .iter()
        .filter(|each| unknown_in(each, &packages).is_some());
    assert_eq!(found.count(), wrong.len());
}

#[test]
fn design_pages_fit_into_their_columns() {
    let mut findings = Vec::new();
    for page in design_pages() {
        for (n, line) in read(&page).lines().enumerate() {
            if line.chars().count() > COLUMNS_MAX {
                findings.push(format!("{}:{}", shown(&page), n + 1));
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
pub(super) fn without_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(|(n, part)| if n % 2 == 1 { "x" } else { part })
        .collect()
}

/// Numbers of words of the sentences of a text; one or two words are no sentence.
pub(super) fn sentence_lengths(text: &str) -> Vec<usize> {
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
