//! Rules about upstream servers: `server/upstream` is below http, and a protocol is one row.

use std::path::PathBuf;

use firstbyte_tests::source::{code, is_test_file, read, rust_files, shipped_lines, shown};

/// Protocols of applications, and their names in code.
const PROTOCOLS: [(&str, &[&str]); 4] = [
    ("fastcgi", &["fastcgi", "fcgi"]),
    ("scgi", &["scgi"]),
    ("uwsgi", &["uwsgi"]),
    ("memcached", &["memcached"]),
];
/// Folders of generic code and of modules. Engines implement protocols; `conf` and `lint` have names of directives.
const FOLDERS: [&str; 6] = [
    "app/src",
    "driver/src",
    "server/base/src",
    "server/http/src",
    "server/modules/src",
    "server/upstream/src",
];
/// The table of protocols and the list of modules. The third place is the driver's table of engines.
const TABLES: [&str; 2] = [
    "server/upstream/src/protocol.rs",
    "server/modules/src/lib.rs",
];

/// The shipped lines of a folder with a word of these in their code, as file, line and text.
fn lines_with(folder: &str, is_named: impl Fn(&str) -> bool) -> Vec<(String, usize, String)> {
    let shipped = |path: &PathBuf| !is_test_file(path);
    let files = rust_files(folder).into_iter().filter(shipped);
    let found = files.flat_map(|path| {
        let (file, text) = (shown(&path), read(&path));
        let lines = shipped_lines(&text);
        let named = lines.filter(|(_, line)| is_named(code(line)));
        let named = named.map(|(n, line)| (file.clone(), n, line.trim().to_owned()));
        named.collect::<Vec<_>>()
    });
    found.collect()
}

/// Whether a file may name a protocol: a table, or a file of its module.
fn may_name(file: &str, protocol: &str) -> bool {
    let module = format!("server/modules/src/{protocol}");
    let is_module = file.strip_prefix(&module);
    is_module.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        || TABLES.contains(&file)
        || file.starts_with("driver/src/worker/") && file.ends_with("/engine.rs")
}

/// Whether code has a name of a protocol, in any case.
fn names(code: &str, words: &[&str]) -> bool {
    let lower = code.to_lowercase();
    words.iter().any(|word| lower.contains(word))
}

#[test]
fn a_protocol_is_named_in_its_engine_its_module_and_one_row() {
    let mut findings = Vec::new();
    for (protocol, words) in PROTOCOLS {
        let mut tables = Vec::new();
        for (file, n, line) in FOLDERS
            .iter()
            .flat_map(|folder| lines_with(folder, |code| names(code, words)))
        {
            if !may_name(&file, protocol) {
                findings.push(format!("{file}:{n}: {line}"));
            } else if !tables.contains(&file) && !file.contains(&format!("/{protocol}")) {
                tables.push(file);
            }
        }
        assert_eq!(tables.len(), TABLES.len() + 1, "{protocol}: {tables:?}");
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn the_base_names_no_protocol_spoken_with_servers() {
    let all: Vec<&str> = PROTOCOLS
        .iter()
        .flat_map(|(_, words)| *words)
        .copied()
        .collect();
    let named = lines_with("server/base/src", |code| {
        names(code, &all) || names(code, &["http1", "upstreamprotocol", "protocolspec"])
    });
    assert!(named.is_empty(), "{named:#?}");
}

#[test]
fn servers_behind_are_below_http() {
    let named = lines_with("server/upstream/src", |code| {
        let mut words = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.any(|word| ["Exchange", "server_http", "server_modules", "driver"].contains(&word))
    });
    assert!(named.is_empty(), "{named:#?}");
    let manifest = read(&firstbyte_tests::source::root().join("server/upstream/Cargo.toml"));
    assert!(!manifest.contains("server_http"), "{manifest}");
}

#[test]
fn the_rules_see_their_words() {
    assert!(names("use engines::Fcgi;", &["fcgi"]) && !names("use cgi;", &["fcgi"]));
    assert!(may_name("server/modules/src/scgi.rs", "scgi"));
    assert!(may_name("server/modules/src/fastcgi/conf.rs", "fastcgi"));
    assert!(!may_name("server/modules/src/fastcgi_cache.rs", "fastcgi"));
    assert!(!may_name("server/modules/src/uwsgi.rs", "scgi"));
    assert!(may_name("driver/src/worker/servers/engine.rs", "scgi"));
    assert!(!may_name("driver/src/worker/servers/state.rs", "scgi"));
}
