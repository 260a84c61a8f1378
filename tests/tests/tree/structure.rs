//! Rules of the tree's structure: long functions with their reasons, protocols in their rooms, words. Imports are in
//! `circles.rs`.
//!
//! A number here may only fall. If a change makes it lower, the test fails until the number is lowered.

use std::collections::BTreeSet;
use std::path::PathBuf;

use firstbyte_tests::docs::{Doc, docs, docs_of, sample};
use firstbyte_tests::source::{
    code, functions, is_test_file, read, rust_files, shipped_lines, shown,
};

/// From this length on a function needs comments inside.
const UNCOMMENTED_LINES_MAX: usize = 50;
/// From this length on a function has `// Long:` and a reason above it.
const UNEXPLAINED_LINES_MAX: usize = 70;
/// No shipped function is longer.
const LINES_MAX: usize = 100;

/// Findings about the functions of a text, as line and reason.
fn unexplained(text: &str) -> Vec<(usize, &'static str)> {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let shipped = shipped_lines(text).count();
    let is_reason = |line: &&str| line.starts_with("// Long: ");
    let is_comment = |line: &&str| line.contains("// ") && !line.starts_with("///");
    let mut found = Vec::new();
    for (first, length) in functions(text) {
        if first > shipped || length <= UNCOMMENTED_LINES_MAX {
            continue;
        }
        // The lines above a function, up to an empty line, belong to it.
        let above = lines[..first - 1].rsplit(|line| line.is_empty()).next();
        if length > LINES_MAX {
            found.push((first, "longer than any function may be"));
        } else if length > UNEXPLAINED_LINES_MAX && !above.iter().copied().flatten().any(is_reason)
        {
            found.push((first, "long, without `// Long: why` above"));
        } else if !lines[first..first + length - 1].iter().any(is_comment) {
            found.push((first, "no comment inside says why"));
        }
    }
    found
}

#[test]
fn long_functions_say_why() {
    let shipped = |path: &PathBuf| !is_test_file(path) && !shown(path).contains("/benches/");
    let mut findings = Vec::new();
    for path in rust_files("").into_iter().filter(shipped) {
        let found = unexplained(&read(&path));
        findings.extend(
            found
                .iter()
                .map(|(line, what)| format!("{}:{line}: {what}", shown(&path))),
        );
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// Engines that a crate above them may import.
const ENGINES_USED: [(&str, &[&str]); 5] = [
    // Metrics of page views, which experiments and the store share.
    ("server/base/src", &["http", "beacon"]),
    ("server/cache/src", &["http"]),
    ("server/upstream/src", &["http"]),
    ("server/http/src", &["http", "proxy_protocol"]),
    // Beacons are bodies of requests, whatever protocol carries them.
    ("server/modules/src", &["http", "beacon"]),
];
/// Files that may branch on the protocol of an exchange: variables, and the protocols of an address.
const PROTOCOLS_ASKED: [&str; 2] = ["server/http/src/builtin.rs", "server/http/src/http.rs"];
/// Names of protocols besides HTTP/1, whose versions are semantics of a message (RFC 9110 section 2.5).
const PROTOCOLS: [&str; 5] = [
    "Version::Http2",
    "Version::Http3",
    "Version::Spdy31",
    "Protocol::Http2",
    "Protocol::Spdy",
];

/// The names that follow `engines::` in a line.
fn engines_named(line: &str) -> Vec<String> {
    let behind = code(line).split("engines::").skip(1);
    let name = |rest: &str| {
        rest.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    behind.map(name).collect()
}

#[test]
fn protocols_stay_in_their_rooms() {
    let mut findings = Vec::new();
    // Permissions that something still needs; one that nothing needs is a finding, too.
    let mut needed = BTreeSet::new();
    for (folder, allowed) in ENGINES_USED {
        let shipped = |path: &PathBuf| !is_test_file(path);
        for path in rust_files(folder).into_iter().filter(shipped) {
            let (name, text) = (shown(&path), read(&path));
            for (n, line) in shipped_lines(&text) {
                for engine in engines_named(line) {
                    if !allowed.contains(&engine.as_str()) {
                        findings.push(format!("{name}:{n}: engines::{engine}"));
                    }
                    needed.insert(format!("{folder} {engine}"));
                }
                if PROTOCOLS.iter().any(|word| code(line).contains(word)) {
                    if !PROTOCOLS_ASKED.contains(&name.as_str()) {
                        findings.push(format!("{name}:{n}: {}", line.trim()));
                    }
                    needed.insert(name.clone());
                }
            }
        }
    }
    let engines = ENGINES_USED.iter();
    let permissions = engines
        .flat_map(|(folder, allowed)| allowed.iter().map(move |one| format!("{folder} {one}")))
        .chain(PROTOCOLS_ASKED.map(str::to_owned));
    let unneeded = permissions.filter(|one| !needed.contains(one));
    findings.extend(unneeded.map(|one| format!("{one}: no longer needed")));
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// Files of `server/http` that keep values without their types: settings by slot, and values of modules for an exchange.
const UNTYPED: [&str; 2] = [
    "server/http/src/exchange/extensions.rs",
    "server/http/src/settings_set.rs",
];

#[test]
fn types_of_http_are_erased_in_two_files() {
    let shipped = |path: &PathBuf| !is_test_file(path);
    let erases = |path: &PathBuf| {
        let text = read(path);
        shipped_lines(&text).any(|(_, line)| code(line).contains("any::Any"))
    };
    let files = rust_files("server/http/src").into_iter();
    let mut found: Vec<String> = files
        .filter(|path| shipped(path) && erases(path))
        .map(|path| shown(&path))
        .collect();
    found.sort();
    assert_eq!(found, UNTYPED);
}

/// The rooms of a protocol's engine, and of the options of the client that measures it.
const OWN_ROOMS: [&str; 2] = ["engines/src/spdy/", "app/src/cli/bench"];
/// Files outside of its engine that a protocol on `mux` is known to.
const PROTOCOL_FILES: usize = 7;

#[test]
fn a_protocol_on_mux_is_known_to_few_files() {
    let shipped = |path: &PathBuf| {
        let name = shown(path);
        !is_test_file(path)
            && !name.contains("/examples/")
            && !OWN_ROOMS.iter().any(|room| name.starts_with(room))
    };
    let names_it = |path: &PathBuf| {
        let text = read(path);
        shipped_lines(&text).any(|(_, line)| code(line).to_lowercase().contains("spdy"))
    };
    let files: Vec<String> = ["app", "driver", "engines", "freeze", "server", "sys"]
        .into_iter()
        .flat_map(rust_files)
        .filter(|path| shipped(path) && names_it(path))
        .map(|path| shown(&path))
        .collect();
    let (count, files) = (files.len(), files.join("\n"));
    assert!(count <= PROTOCOL_FILES, "{count} files:\n{files}");
    assert!(
        count == PROTOCOL_FILES,
        "{count} files, lower the number:\n{files}"
    );
}

/// Names that the terms of the glossary (ARCHITECTURE.md) have replaced.
const REPLACED: &[&str] = &[
    "Gather",
    "Misdeed",
    "Errand",
    "Upkeep",
    "Chores",
    "Intake",
    "Supply",
    "Supplied",
    "Joint",
    "Family",
    "Lane",
    "Moments",
    "Cells",
    "Meters",
    "Allowance",
    "Repeated",
    "Cause",
    "Conversation",
    "Guards",
    "Lease",
    "KnownHost",
    "Unit",
    "Confs",
    "ConfsDraft",
    "Typed",
    "Written",
    "MEANINGLESS",
    "dormant",
    "stands_for",
    "LateCertificates",
    "Choice",
    "Refusal",
    "Want",
    "greet",
    "could_rest",
    "obey",
    "intake",
    "Served",
    "Fate",
    "Chance",
    "Awake",
    "cage",
    "Neighbour",
    "Recall",
    "Reported",
    "Talk",
    "LATE",
    "allowance",
    "Said",
    "greeted_us",
    "Sealer",
    "say_goodbye",
    "say_last",
    "end_side",
    "make_last",
    "lose_port",
    "join_around",
];

/// Names that are replaced in a part of the tree: elsewhere they are in use, or stand for something else.
const REPLACED_BELOW: &[(&str, &[&str])] = &[
    (
        "server/",
        &[
            "Row",
            "Held",
            "Kind",
            "Place",
            "Plan",
            "Said",
            "Late",
            "Line",
            "Generation",
            "Recall",
            "Neighbour",
            "Seed",
            "Leave",
            "Reported",
            "effort",
            "Act",
            "obey",
            "heard",
            "intake",
            "awake",
            "Child",
            "Talk",
            "Served",
            "Ahead",
            "Want",
        ],
    ),
    (
        "engines/",
        &[
            "Held", "Kind", "Line", "Place", "Order", "Told", "Asked", "lose",
        ],
    ),
    (
        "driver/",
        &[
            "Held", "Kind", "Line", "Place", "Order", "Judge", "Pace", "Late", "Act", "Active",
            "lose",
        ],
    ),
    ("link/", &["Held", "Kind", "Hold", "Way", "Late", "lose"]),
    (
        "app/",
        &[
            "Generation",
            "Kind",
            "Place",
            "Seed",
            "Leave",
            "Late",
            "Way",
            "Asked",
            "Destination",
        ],
    ),
];

/// More names that are replaced in a part of the tree: a path and a name on each line.
const REPLACED_NAMES: &str = include_str!("replaced.txt");

/// Returns whether a name is replaced in a file.
fn is_replaced(file: &str, word: &str, names: &[(&str, &str)]) -> bool {
    let below = REPLACED_BELOW.iter();
    REPLACED.contains(&word)
        || below
            .filter(|(part, _)| file.starts_with(part))
            .any(|(_, words)| words.contains(&word))
        || names
            .iter()
            .any(|(part, name)| *name == word && file.starts_with(part))
}

/// The words of a text's code.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_end = |c: char| !(c.is_alphanumeric() || c == '_');
    let lines = text.lines().enumerate();
    lines.flat_map(move |(n, line)| code(line).split(is_end).map(move |word| (n + 1, word)))
}

#[test]
fn replaced_names_do_not_come_back() {
    let mut findings = Vec::new();
    let rows = REPLACED_NAMES.lines();
    let names: Vec<_> = rows
        .map(|row| row.split_once(' ').expect("a path and a name"))
        .collect();
    let sources = |path: &PathBuf| !shown(path).ends_with("tests/tests/tree/structure.rs");
    for path in rust_files("").into_iter().filter(sources) {
        let (file, text) = (shown(&path), read(&path));
        let found = words(&text).filter(|(_, word)| is_replaced(&file, word, &names));
        findings.extend(found.map(|(n, word)| format!("{file}:{n}: {word}")));
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// Doc comments with an unclear first sentence, by part of the tree: a number may only fall.
const UNCLEAR: [(&str, usize); 10] = [
    ("app/", 0),
    ("driver/", 0),
    ("engines/", 0),
    ("freeze/", 0),
    ("fuzz/", 0),
    ("lab/", 0),
    ("link/", 0),
    ("server/", 0),
    ("sys/", 0),
    ("tests/", 0),
];

/// Begins of a doc comment that refer to another one, or name no subject.
const UNCLEAR_BEGINS: [&str; 3] = ["The same", "As [`", "What "];

/// Words of a first sentence for which the field has a plain one: returns, sets, the caller, in progress, `n`, applied.
const UNCLEAR_WORDS: [&str; 9] = [
    "tells",
    "told",
    "gives",
    "whoever",
    "nobody",
    "under way",
    "so many",
    "so much",
    "taken up",
];

/// The begin or the words that make the first sentence of a doc comment unclear.
fn unclear(doc: &Doc) -> Option<&'static str> {
    let sentence = doc.first_sentence();
    let begin = UNCLEAR_BEGINS
        .iter()
        .find(|begin| sentence.starts_with(**begin));
    let lower = sentence.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '`')
        .filter(|word| !word.is_empty())
        .collect();
    let spaced = format!(" {} ", words.join(" "));
    let word = UNCLEAR_WORDS
        .iter()
        .find(|word| spaced.contains(&format!(" {word} ")));
    begin.or(word).copied()
}

#[test]
fn first_sentences_name_their_subject() {
    let mut findings = Vec::new();
    for (part, known) in UNCLEAR {
        let all = docs(part);
        let found: Vec<String> = all
            .iter()
            .filter_map(|doc| Some((doc, unclear(doc)?)))
            .map(|(doc, why)| format!("{}:{}: {why:?}: {}", doc.file, doc.line, doc.text))
            .collect();
        if found.len() > known {
            findings.push(format!("{part}: {}, {known} are known", found.len()));
            findings.extend(found);
        } else if found.len() < known {
            findings.push(format!("{part}: {}, lower the number", found.len()));
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn doc_comments_are_read_and_drawn() {
    let text = "//! One. Two.\n\n/// The same\n/// again.\n///\n/// # Errors\n/// None.\nfn f() {}\n//// no\n";
    let all = docs_of("a.rs", text);
    let seen: Vec<_> = all
        .iter()
        .map(|doc| (doc.line, doc.first_sentence()))
        .collect();
    assert_eq!(seen, [(1, "One"), (3, "The same again")]);
    assert_eq!(all[1].item, "fn f() {}");
    assert_eq!(
        all.iter().map(unclear).collect::<Vec<_>>(),
        [None, Some("The same")]
    );
    let one = |text: &str| {
        docs_of("a.rs", &format!("/// {text}\n"))
            .first()
            .and_then(unclear)
    };
    assert_eq!(one("Returns so many bytes."), Some("so many"));
    assert_eq!(one("Calls `gives`, whatever it is."), None);
    assert_eq!(one("Returns the bytes. It gives all."), None);
    let lots: Vec<Doc> = (0..100)
        .flat_map(|n| docs_of("a.rs", &format!("/// {n}\n")))
        .collect();
    assert_eq!(sample(&lots, 19, 20), sample(&lots, 19, 20));
    assert_ne!(sample(&lots, 19, 20), sample(&lots, 20, 20));
    assert!(sample(&[], 19, 20).is_empty());
}

#[test]
fn judges_of_the_doctor_only_judge() {
    let gathers = [
        "fetch::",
        "capture::",
        "page::",
        "Examination",
        "Visitor",
        "Instant",
        "std::net",
        "std::fs",
        "std::process",
    ];
    let mut findings = Vec::new();
    for path in rust_files("lab/src/doctor/judge") {
        let text = read(&path);
        for (n, line) in shipped_lines(&text) {
            if let Some(word) = gathers.iter().find(|word| code(line).contains(**word)) {
                findings.push(format!("{}:{n}: {word}", shown(&path)));
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn the_rules_see_what_they_look_for() {
    let body = |lines: usize| "    x();\n".repeat(lines);
    let function = |inside: &str| format!("fn f() {{\n{inside}}}\n");
    assert!(unexplained(&function(&body(48))).is_empty());
    assert_eq!(
        unexplained(&function(&body(49))),
        [(1, "no comment inside says why")]
    );
    let commented = |lines| function(&format!("    // why\n{}", body(lines)));
    assert!(unexplained(&commented(67)).is_empty());
    assert_eq!(unexplained(&commented(68))[0].0, 1);
    let reasoned = format!("// Long: one table.\n#[inline]\n{}", commented(68));
    assert!(unexplained(&reasoned).is_empty());
    let apart = format!("// Long: of another.\n\n{}", commented(68));
    assert_eq!(unexplained(&apart).len(), 1);
    assert_eq!(unexplained(&commented(98)).len(), 1);
    let declared = format!("fn g(\n    x: u8,\n) -> u8;\n{}", body(120));
    assert!(unexplained(&declared).is_empty());
    assert!(is_replaced("app/src/a.rs", "Guards", &[]) && is_replaced("server/a.rs", "Kind", &[]));
    assert!(!is_replaced("tests/src/a.rs", "Kind", &[]));
    let names = [("lab/", "Judge")];
    assert!(is_replaced("lab/a.rs", "Judge", &names) && !is_replaced("app/a.rs", "Judge", &names));
    assert_eq!(engines_named("use engines::h1; // engines::h2"), ["h1"]);
    assert_eq!(
        words("a_b(C) // D")
            .map(|(_, word)| word)
            .filter(|w| !w.is_empty())
            .collect::<Vec<_>>(),
        ["a_b", "C"]
    );
    let tests = format!(
        "#[cfg(test)]\nmod tests {{\n    {}}}\n",
        function(&body(60))
    );
    assert!(unexplained(&tests).is_empty());
}
