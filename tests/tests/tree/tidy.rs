//! The house rules that a compiler does not know: lengths, purity, directions, words.
//!
//! Rules read text, not syntax: they are cheap, and right about this tree. Exceptions carry a number and a reason, and go
//! once they are no longer needed, so that the lists only shrink.

use std::collections::BTreeSet;

use firstbyte_tests::circles::sources;
use firstbyte_tests::source::{
    code, files, functions, is_test_file, read, root, rust_files, shipped_lines, shown,
};

/// The most lines of a file, and those from which a function needs an exception.
const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 110;

/// Allowed dependencies of each workspace package within the workspace: downwards only.
#[rustfmt::skip] // One line a package.
const DIRECTIONS: [(&str, &[&str]); 19] = [
    ("sys", &[]),
    ("engines", &[]),
    ("engines/tls", &[]),
    ("engines/geoip", &[]),
    ("server/conf", &["sys"]),
    ("server/lint", &["conf"]),
    ("server/base", &["conf", "engines"]),
    ("server/cache", &["engines", "server_base"]),
    ("server/upstream", &["conf", "engines", "server_base", "tls"]),
    ("server/http", &["conf", "engines", "server_base", "server_cache", "server_upstream", "tls"]),
    ("server/modules", &["conf", "engines", "geoip", "server_base", "server_http", "server_upstream", "tls"]),
    ("driver", &["conf", "engines", "server_base", "server_http", "server_upstream", "sys", "tls"]),
    ("app", &["sys", "conf", "lint", "engines", "geoip", "server_base", "server_http", "server_modules", "server_upstream", "driver", "freeze", "lab", "link", "store"]),
    ("store", &["engines"]),
    ("freeze", &["server_modules", "sys"]),
    ("lab", &["engines", "geoip", "store", "sys", "tls"]),
    ("link", &["sys"]),
    ("tests", &["tls"]),
    // For tests alone: no shipped crate depends on it.
    ("tests/sim", &["driver", "engines", "server_base", "server_http", "server_upstream", "sys"]),
];

/// Returns the names that workspace packages have in manifests.
fn members() -> BTreeSet<String> {
    let manifest = read(&root().join("Cargo.toml"));
    let own = manifest
        .lines()
        .filter(|line| line.contains("package = \"firstbyte-"));
    own.filter_map(|line| Some(line.split_once(' ')?.0.to_owned()))
        .collect()
}

/// Names forbidden in engines: clocks, sockets, files, threads, the process's environment.
const IMPURE: [&str; 10] = [
    "std::net",
    "std::fs",
    "std::thread",
    "std::env",
    "std::process",
    "std::io::stdin",
    "std::time::Instant",
    "Instant::now",
    "SystemTime",
    "std::sync::Mutex",
];

#[track_caller]
fn assert_none(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}:\n{}", findings.join("\n"));
}

#[test]
fn files_are_short() {
    let mut findings = Vec::new();
    for path in rust_files("") {
        let (name, lines) = (shown(&path), read(&path).lines().count());
        if lines > FILE_LINES_MAX {
            findings.push(format!("{name}: {lines} lines, at most {FILE_LINES_MAX}"));
        }
    }
    assert_none("files are split before they are long", &findings);
}

#[test]
fn functions_are_short() {
    let mut findings = Vec::new();
    for path in rust_files("") {
        let mut long = functions(&read(&path));
        long.retain(|(_, lines)| *lines > FUNCTION_LINES_MAX);
        let shown = |(line, lines)| format!("{}:{line}: {lines} lines", shown(&path));
        findings.extend(long.into_iter().map(shown));
    }
    assert_none("functions are split before they are long", &findings);
}

#[test]
fn files_say_what_they_are() {
    let silent = rust_files("").into_iter().filter(|path| {
        let text = read(path);
        // An attribute of the whole crate or fuzz target may come first.
        !text
            .lines()
            .find(|line| !line.starts_with("#!["))
            .unwrap_or_default()
            .starts_with("//!")
    });
    let findings: Vec<String> = silent.map(|path| shown(&path)).collect();
    assert_none("a file begins with //! and its idea", &findings);
}

#[test]
fn unsafe_code_lives_in_one_place() {
    let keyword = concat!("uns", "afe");
    let mut findings = Vec::new();
    for path in rust_files("") {
        if shown(&path).starts_with("sys/src/") {
            continue;
        }
        for (n, line) in read(&path).lines().enumerate() {
            let mut words = code(line).split(|c: char| !(c.is_alphanumeric() || c == '_'));
            if words.any(|word| word == keyword) {
                findings.push(format!("{}:{}: {}", shown(&path), n + 1, line.trim()));
            }
        }
    }
    findings.retain(|finding| !finding.contains("deny(") && !finding.contains("forbid("));
    assert_none("only sys may", &findings);
    let line = format!("#![forbid({keyword}_code)]");
    for source in sources().iter().filter(|source| *source != "sys/src") {
        let roots = ["lib.rs", "main.rs"].map(|name| root().join(source).join(name));
        let forbids = roots.iter().any(|path| read(path).contains(&line));
        assert!(forbids, "{source}: no {line}");
    }
}

/// The workspace packages a manifest names in its dependencies of any kind but for tests.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut inside = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[dependencies]" || line == "[build-dependencies]";
        } else if inside {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            found.insert(name.to_owned());
        }
    }
    let members = members();
    found.retain(|name| members.contains(name));
    found
}

#[test]
fn dependencies_run_down_only() {
    let mut findings = Vec::new();
    for (package, allowed) in DIRECTIONS {
        let manifest = read(&root().join(package).join("Cargo.toml"));
        assert!(manifest.contains("[package]"), "{package} has a manifest");
        for name in dependencies(&manifest)
            .iter()
            .filter(|name| !allowed.contains(&name.as_str()))
        {
            findings.push(format!("{package} depends on {name}"));
        }
    }
    let workspace = read(&root().join("Cargo.toml"));
    let members = workspace
        .lines()
        .find(|line| line.starts_with("members"))
        .unwrap_or_default();
    let named = members.matches('"').count() / 2;
    assert_eq!(
        named,
        DIRECTIONS.len(),
        "every member of the workspace has its line here: {members}"
    );
    assert_none(
        "app, modules, core, conf and engines, in this direction",
        &findings,
    );
}

#[test]
fn engines_are_pure() {
    let mut findings = Vec::new();
    let folders = ["engines/src", "engines/geoip/src"];
    for path in folders.into_iter().flat_map(rust_files) {
        if is_test_file(&path) {
            continue;
        }
        let text = read(&path);
        for (n, line) in shipped_lines(&text) {
            for word in IMPURE.iter().filter(|word| code(line).contains(**word)) {
                findings.push(format!("{}:{n}: {word}", shown(&path)));
            }
        }
    }
    assert_none(
        "an engine knows no clock, socket, file or thread",
        &findings,
    );
}

#[test]
fn nothing_is_left_undone() {
    let words = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("dbg", "!("),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
        concat!("#[ig", "nore"),
        concat!("assert!(", "true)"),
    ];
    let mut findings = Vec::new();
    for path in rust_files("") {
        for (n, line) in read(&path).lines().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(**word)) {
                findings.push(format!("{}:{}: {word}", shown(&path), n + 1));
            }
        }
    }
    assert_none("finished, or not there", &findings);
}

#[test]
fn tests_do_not_sleep() {
    let word = concat!("thread::", "sleep");
    let mut findings = Vec::new();
    for path in rust_files("") {
        let text = read(&path);
        let sleeps = text.lines().any(|line| code(line).contains(word));
        if sleeps && is_test_file(&path) && shown(&path) != "tests/src/wait.rs" {
            findings.push(shown(&path));
        }
    }
    assert_none("a test polls with a deadline (wait_until)", &findings);
}

/// Calls that make a file or a directory.
const MAKES: [&str; 6] = [
    ".create(true)",
    ".create_new(true)",
    "File::create(",
    "fs::write(",
    "fs::create_dir",
    "DirBuilder::new()",
];

/// Folders of code with which the server makes files. Tools make theirs with the rights and the umask of their user.
const SERVED: [&str; 5] = [
    "server/",
    "driver/src/io/",
    "driver/src/worker/",
    "app/src/supervisor/",
    "app/src/console.rs",
];

/// Lines that make a file with a mode left to the umask, which a daemon does not have.
fn modeless(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let makes = |line: &str| MAKES.iter().any(|word| code(line).contains(word));
    let made = shipped_lines(text).filter(|(_, line)| makes(line));
    made.map(|(n, _)| n)
        .filter(|n| {
            let around = &lines[n.saturating_sub(4)..(n + 4).min(lines.len())];
            !around.iter().any(|line| code(line).contains(".mode("))
        })
        .collect()
}

#[test]
fn files_are_made_with_a_mode() {
    let mut findings = Vec::new();
    for path in rust_files("")
        .into_iter()
        .filter(|path| SERVED.iter().any(|place| shown(path).starts_with(place)))
    {
        if !is_test_file(&path) {
            let lines = modeless(&read(&path));
            findings.extend(lines.iter().map(|n| format!("{}:{n}", shown(&path))));
        }
    }
    assert_none("who may write a file is said where it is made", &findings);
}

#[test]
fn panics_and_lint_exceptions_carry_their_reason() {
    let (unwrap, allow) = (concat!(".unwr", "ap()"), concat!("[all", "ow("));
    let mut findings = Vec::new();
    for path in rust_files("") {
        let text = read(&path);
        let lines: Vec<&str> = text.lines().collect();
        for (n, line) in shipped_lines(&text) {
            let place = format!("{}:{n}", shown(&path));
            if !is_test_file(&path) && code(line).contains(unwrap) {
                findings.push(format!("{place}: {unwrap} says no reason, expect does"));
            }
            let around = lines[n.saturating_sub(2)..(n + 3).min(lines.len())].join("\n");
            if code(line).contains(allow) && !around.contains("//") && !around.contains("reason =")
            {
                findings.push(format!(
                    "{place}: a lint exception without a reason beside it"
                ));
            }
        }
    }
    assert_none("each says why", &findings);
}

#[test]
fn no_machine_is_named() {
    let folders = [
        concat!("/ro", "ot/"),
        concat!("/wo", "rk/"),
        concat!("/fa", "rm/"),
        concat!("/tmp/", "lab"),
    ];
    let home = concat!("/ho", "me/");
    let mut findings = Vec::new();
    for path in files("") {
        let kind = path
            .extension()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !["rs", "md", "toml", "conf", "types", "sh", "txt", "html"].contains(&kind.as_str())
            && name != "Makefile"
            && name != "run"
        {
            continue;
        }
        for (n, line) in read(&path).lines().enumerate() {
            let at_home = line
                .split(home)
                .nth(1)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
            if at_home || folders.iter().any(|folder| line.contains(folder)) {
                findings.push(format!("{}:{}: {}", shown(&path), n + 1, line.trim()));
            }
        }
    }
    assert_none("paths of one machine do not belong in the tree", &findings);
}

/// The names of the directives a text defines: by a row (`DirectiveDef {`, then `name: "…"`), or by a
/// setting (`field "name": Type = default`).
fn directive_names(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut in_row = false;
    for (_, line) in shipped_lines(text) {
        in_row = in_row || line.contains("DirectiveDef {");
        let row = line.split("name: \"").nth(1).filter(|_| in_row);
        let setting = line.trim_start().split_once(" \"").filter(|(field, rest)| {
            let is_field = field
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_');
            is_field && rest.contains("\": ")
        });
        if let Some(rest) = row.or(setting.map(|(_, rest)| rest)) {
            in_row = false;
            found.extend(rest.split('"').next().map(str::to_owned));
        }
    }
    found
}

#[test]
fn every_directive_is_documented() {
    let document = read(&root().join("docs/directives.md"));
    let rows: BTreeSet<String> = ["server", "app"]
        .iter()
        .flat_map(|folder| rust_files(folder))
        .filter(|path| !is_test_file(path))
        .flat_map(|path| directive_names(&read(&path)))
        .collect();
    let findings: Vec<String> = rows
        .into_iter()
        .filter(|name| !document.contains(&format!("`{name}`")))
        .collect();
    assert_none(
        "docs/directives.md names every directive there is",
        &findings,
    );
}

#[test]
fn every_direct_dependency_has_its_reason() {
    let document = read(&root().join("docs/dependencies.md"));
    let members = members();
    let mut findings = Vec::new();
    for manifest in files("")
        .into_iter()
        .filter(|path| path.ends_with("Cargo.toml"))
    {
        let text = read(&manifest);
        let mut inside = false;
        for line in text.lines() {
            if line.starts_with('[') {
                inside = line.contains("dependencies]");
                continue;
            }
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            let ours = line.contains("path =") || members.contains(name);
            if inside
                && !name.is_empty()
                && !name.starts_with('#')
                && !ours
                && !document.contains(&format!("`{name}`"))
            {
                findings.push(format!("{}: {name}", shown(&manifest)));
            }
        }
    }
    assert_none(
        "docs/dependencies.md says why each library is there",
        &findings,
    );
}

#[test]
fn the_rules_see_what_they_look_for() {
    assert_eq!(
        functions("fn a() {\n    x\n}\n\n    pub const fn b() {\n    }\n"),
        [(1, 3), (5, 2)]
    );
    assert_eq!(
        dependencies(
            "[dependencies]\nconf.workspace = true\nlibc = \"1\"\n[dev-dependencies]\ndriver = 1\n"
        ),
        BTreeSet::from(["conf".to_owned()])
    );
    let rows = "const M: Module = Module {\n name: \"m\",\n};\nconst R: &[DirectiveDef] = &[DirectiveDef {\n name: \"root\",\n}];\n  sendfile \"sendfile\": bool = false;\n";
    let names = BTreeSet::from(["root", "sendfile"].map(str::to_owned));
    assert_eq!(directive_names(rows), names);
    assert_eq!(code("let x = 1; // unwrap"), "let x = 1; ");
    assert_eq!(shipped_lines("a\nb\n#[cfg(test)]\nc\n").count(), 2);
    let made = "OpenOptions::new()\n.create(true)\n.open(path)\n";
    assert_eq!(modeless(made), [2]);
    assert!(modeless(&made.replace(".open", ".mode(0o644)\n.open")).is_empty());
}
